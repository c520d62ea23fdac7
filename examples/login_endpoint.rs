//! A login endpoint that lets each client try 100 times in any minute.
//!
//! One client guesses passwords as fast as it can. Another client logs in at a normal rate. The
//! first gets 100 attempts in *any* minute, even across full minutes. The second is never denied.
//!
//! Each attempt is charged before the password is checked, so a client that hangs up has used it.
//! `refund_on_success` refunds those that succeed.
//!
//! A mock clock makes the example fast. In a service, leave `.clock(...)` out.

use std::io::{self, Write};
use std::time::Duration;

use tollgate::{Decision, Limiter, MockClock, Quota};

const LOGIN: Quota = Quota::per_minute(100);

/// The answer to a client.
fn login(limiter: &Limiter<String, MockClock>, client: &str) -> String {
    match limiter.try_acquire(client) {
        Decision::Admitted(_) => "200 OK".to_owned(),
        Decision::Denied(denial) => {
            let seconds = denial.retry_after_secs().expect("a quota's permits come free again");
            format!("429 Too Many Requests, Retry-After: {seconds}")
        }
    }
}

/// Tells the story and returns how many guesses of how many reached the password check.
fn run(out: &mut impl Write) -> io::Result<(u32, u32)> {
    let clock = MockClock::new();
    let builder = Limiter::<String>::builder(LOGIN).clock(clock.clone());
    let limiter = builder.build().map_err(io::Error::other)?;
    let (mut guesses, mut checked) = (0, 0);

    // Three minutes, ten guesses a second.
    for tick in 0..1800 {
        let told = login(&limiter, "203.0.113.7");
        guesses += 1;
        checked += u32::from(told == "200 OK");
        if tick % 100 == 0 {
            writeln!(out, "{:>5.1} s  203.0.113.7    guess {guesses:>4}: {told}", f64::from(tick) / 10.0)?;
        }
        if tick % 450 == 200 {
            let told = login(&limiter, "198.51.100.20");
            writeln!(out, "{:>5.1} s  198.51.100.20  logs in:    {told}", f64::from(tick) / 10.0)?;
        }
        clock.advance(Duration::from_millis(100));
    }
    writeln!(out, "{checked} of {guesses} guesses in three minutes reached the password check")?;
    Ok((checked, guesses))
}

fn main() -> io::Result<()> {
    run(&mut io::stdout().lock()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_guesses_in_three_minutes_and_nobody_else_is_held_up() {
        let mut out = Vec::new();
        assert_eq!(run(&mut out).unwrap(), (300, 1800));
        let story = String::from_utf8(out).unwrap();
        assert_eq!(story.matches("logs in:    200 OK").count(), 4, "{story}");
        // At 10 s the first guess is 10 s old: 50 s to wait.
        assert!(
            story.contains(" 10.0 s  203.0.113.7    guess  101: 429 Too Many Requests, Retry-After: 50"),
            "{story}"
        );
        assert!(story.contains(" 60.0 s  203.0.113.7    guess  601: 200 OK"), "{story}");
    }
}
