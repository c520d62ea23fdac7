//! The core on one word beside today's core and governor, interleaved in one run:
//!
//! ```sh
//! RUSTFLAGS="--cfg tollgate_heart" cargo run --profile bench -p one_word [ROUNDS [ROW]]
//! ```
//!
//! Each row has the time of a decision as a ratio to governor's: the median over rounds.

#[cfg(not(tollgate_heart))]
fn main() {
    eprintln!("run it with RUSTFLAGS=\"--cfg tollgate_heart\": no limiter uses the core on one word");
    std::process::exit(2);
}

#[cfg(tollgate_heart)]
fn main() {
    run::main();
}

#[cfg(tollgate_heart)]
mod run {
    use std::hint::black_box;
    use std::num::NonZeroU32;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    use tollgate::heart::measured::Measured;
    use tollgate::{Limiter, Quota};

    const REQUESTS: usize = 1 << 20;

    /// A xorshift generator: the same keys in each run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }
    }

    fn uniform(seed: u64, keys: u64) -> Vec<u64> {
        let mut random = Random(seed);
        (0..REQUESTS).map(|_| random.next() % keys).collect()
    }

    /// Zipf's law with exponent 1, over 100,000 keys.
    fn zipf(seed: u64) -> Vec<u64> {
        let mut sums = Vec::new();
        let mut sum = 0.0;
        for rank in 1..=100_000 {
            sum += 1.0 / f64::from(rank);
            sums.push(sum);
        }
        let mut random = Random(seed);
        let mut draw = || {
            let at = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
            sums.partition_point(|&upto| upto < at) as u64
        };
        (0..REQUESTS).map(|_| draw()).collect()
    }

    /// Nanoseconds a decision, of one thread.
    fn time(decide: &(impl Fn(u64) -> bool + Sync), keys: &[Vec<u64>]) -> f64 {
        let start = Barrier::new(keys.len());
        let times: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> = keys
                .iter()
                .map(|keys| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        let from = Instant::now();
                        let admitted = keys.iter().filter(|&&key| decide(key)).count();
                        black_box(admitted);
                        from.elapsed().as_nanos() as f64 / keys.len() as f64
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        times.iter().sum::<f64>() / times.len() as f64
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    pub(crate) fn main() {
        let rounds = std::env::args().nth(1).map_or(7, |rounds| rounds.parse().expect("a number of rounds"));
        let only = std::env::args().nth(2).unwrap_or_default();
        let row = |name: &str, limit, window, keys: &[Vec<u64>], rounds| {
            if name.contains(&only) {
                row(name, limit, window, keys, rounds);
            }
        };
        println!("{:14} {:>2} | governor ns | log: word, today | bucket: word, today", "keys", "T");
        let (hour, tick) = (Duration::from_secs(3600), Duration::from_nanos(1));
        for threads in [1_u64, 2] {
            let all = |keys: &dyn Fn(u64) -> Vec<u64>| (1..=threads).map(|seed| keys(seed * 77)).collect::<Vec<_>>();
            row("one, denied", 60, hour, &all(&|_| vec![42; REQUESTS]), rounds);
            row("one, admitted", 60, tick, &all(&|_| vec![42; REQUESTS]), rounds);
            row("Zipf 100 k", 60, hour, &all(&zipf), rounds);
            row("uniform 100 k", 16, hour, &all(&|seed| uniform(seed, 100_000)), rounds);
            row("uniform 1 M", 16, hour, &all(&|seed| uniform(seed, 1_000_000)), rounds);
        }
    }

    fn row(name: &str, limit: u32, window: Duration, keys: &[Vec<u64>], rounds: usize) {
        let per = (window / limit).max(Duration::from_nanos(1));
        let bucket = Quota::token_bucket(limit, 1, per);
        let quota = Quota::new(limit, window);
        let log = Measured::new(quota);
        let today = Limiter::<u64>::builder(quota).key_cap(1 << 21).build().expect("valid");
        let account = Measured::new(bucket);
        let today_bucket = Limiter::<u64>::builder(bucket).key_cap(1 << 21).build().expect("valid");
        let burst = NonZeroU32::new(limit).expect("not zero");
        let governor = governor::Quota::with_period(per).expect("not zero").allow_burst(burst);
        let governor = governor::RateLimiter::<u64, _, _>::keyed(governor);
        let mut times: [Vec<f64>; 5] = Default::default();
        for round in 0..=rounds {
            let now = [
                time(&|key| governor.check_key(&key).is_ok(), keys),
                time(&|key| log.try_acquire(&key), keys),
                time(&|key| today.try_acquire(&key).is_admitted(), keys),
                time(&|key| account.try_acquire(&key), keys),
                time(&|key| today_bucket.try_acquire(&key).is_admitted(), keys),
            ];
            // The first round is the warm-up.
            if round > 0 {
                times.iter_mut().zip(now).for_each(|(times, now)| times.push(now));
            }
        }
        let ratio = |of: usize| median(times[of].iter().zip(&times[0]).map(|(ours, its)| ours / its).collect());
        println!(
            "{name:14} {:>2} | {:11.1} | {:9.2}, {:5.2} | {:12.2}, {:5.2}",
            keys.len(),
            median(times[0].clone()),
            ratio(1),
            ratio(2),
            ratio(3),
            ratio(4)
        );
    }
}
