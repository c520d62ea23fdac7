//! Many threads ask for one key while the clock stands still: exactly the limit is admitted.
//!
//! Two common designs of a sliding window log admit more here. A set of times holds two requests of
//! one tick only once. And a check before the write admits every thread that checks in between.

use std::io::{self, Write};
use std::thread;

use tollgate::{Limiter, MockClock, Quota};

const THREADS: usize = 8;
const CALLS_PER_THREAD: usize = 1000;
const LIMIT: u32 = 1500;

/// Tells the story and returns how many requests were admitted at each of two ticks.
fn run(out: &mut impl Write) -> io::Result<[usize; 2]> {
    let clock = MockClock::new();
    let quota = Quota::per_minute(LIMIT);
    let builder = Limiter::<String>::builder(quota).clock(clock.clone());
    let limiter = builder.build().map_err(io::Error::other)?;
    let one_thread = || (0..CALLS_PER_THREAD).filter(|_| limiter.try_acquire("one key").is_admitted()).count();

    let mut in_all = [0; 2];
    for (tick, in_all) in in_all.iter_mut().enumerate() {
        let admitted: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one_thread)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
        });
        *in_all = admitted.iter().sum();
        writeln!(out, "tick {tick}: admitted to each of {THREADS} threads: {admitted:?}")?;
        writeln!(out, "        {in_all} of {} in all, under a limit of {LIMIT}", THREADS * CALLS_PER_THREAD)?;
        clock.advance(quota.window());
    }
    Ok(in_all)
}

fn main() -> io::Result<()> {
    run(&mut io::stdout().lock()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_limit_at_each_tick() {
        let mut out = Vec::new();
        assert_eq!(run(&mut out).unwrap(), [1500, 1500]);
        assert!(String::from_utf8(out).unwrap().contains("1500 of 8000 in all"));
    }
}
