//! Three in ten seconds, asked fifteen times at once, again after a pause of ten seconds.
//!
//! Twelve of the fifteen requests are denied. Denials prolong nothing: after the pause the caller
//! has three permits again. (If refused requests counted, too, a caller that never pauses would
//! never be admitted again.)

use std::io::{self, Write};
use std::time::Duration;

use tollgate::{Limiter, MockClock, Quota};

const CALLS: u32 = 15;
const PAUSE: Duration = Duration::from_secs(10);

/// Tells the story and returns how many calls were admitted before and after the pause.
fn run(out: &mut impl Write) -> io::Result<[u32; 2]> {
    let clock = MockClock::new();
    let quota = Quota::new(3, Duration::from_secs(10));
    let builder = Limiter::<String>::builder(quota).clock(clock.clone());
    let limiter = builder.build().map_err(io::Error::other)?;
    let mut admitted = [0; 2];
    for (round, admitted) in admitted.iter_mut().enumerate() {
        if round > 0 {
            clock.advance(PAUSE);
            writeln!(out, "a pause of {PAUSE:?}")?;
        }
        for call in 1..=CALLS {
            let decision = limiter.try_acquire("caller");
            *admitted += u32::from(decision.is_admitted());
            match decision.retry_after() {
                None => writeln!(out, "call {call:>2}: admitted")?,
                Some(wait) => writeln!(out, "call {call:>2}: denied, try again in {wait:?}")?,
            }
        }
    }
    writeln!(out, "{} and {} of {CALLS} admitted", admitted[0], admitted[1])?;
    Ok(admitted)
}

fn main() -> io::Result<()> {
    run(&mut io::stdout().lock()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_fifteen_and_three_again_after_the_pause() {
        let mut out = Vec::new();
        assert_eq!(run(&mut out).unwrap(), [3, 3]);
        let story = String::from_utf8(out).unwrap();
        assert_eq!(story.matches("denied, try again in 10s").count(), 24, "{story}");
        // The first three of each round, not any three.
        let told: Vec<_> = story.lines().filter(|line| line.starts_with("call")).collect();
        for round in told.chunks(15) {
            assert!(round[..3].iter().all(|line| line.ends_with("admitted")), "{story}");
        }
    }
}
