//! A request that enters and leaves, beside a semaphore for each key in a `DashMap`, and beside a plain
//! decision of a token bucket. Prints the table of BENCHMARKS.md.
//!
//! ```sh
//! cargo run --release -p benches -- in_flight
//! ```

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use benches::statistics::median;
use benches::table::{Table, ratio};
use benches::turns::turns;
use dashmap::DashMap;
use tokio::sync::Semaphore;
use tollgate::{Limiter, Quota};

const ROUNDS: usize = 21;
const REQUESTS: usize = 200_000;
/// No request of these is denied.
const LIMIT: u32 = 1 << 20;

/// A request of a key that ends at once.
type Request = Box<dyn Fn(u64) + Send + Sync>;

fn tollgate() -> Request {
    let limiter = Limiter::<u64>::new(Quota::concurrent(LIMIT)).expect("a usable quota");
    Box::new(move |key| drop(black_box(limiter.try_enter(key).expect("few are in flight"))))
}

fn semaphores() -> Request {
    let all = DashMap::<u64, Arc<Semaphore>>::new();
    Box::new(move |key| {
        let semaphore = all.get(&key).map(|semaphore| Arc::clone(&semaphore));
        let new = || Arc::clone(&all.entry(key).or_insert_with(|| Arc::new(Semaphore::new(LIMIT as usize))));
        let semaphore = semaphore.unwrap_or_else(new);
        drop(black_box(semaphore.try_acquire_owned().expect("few are in flight")));
    })
}

fn bucket() -> Request {
    let quota = Quota::token_bucket(Quota::MAX_CAPACITY, Quota::MAX_CAPACITY, Duration::from_secs(1));
    let limiter = Limiter::<u64>::new(quota).expect("a usable quota");
    Box::new(move |key| assert!(black_box(limiter.try_acquire(key)).is_admitted()))
}

/// The nanoseconds of a request, by so many threads at once.
fn time(request: &Request, keys: u64, threads: usize) -> f64 {
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for at in 0..REQUESTS as u64 {
                    // Steps through all keys in an order without a pattern for the memory.
                    request((at + thread * 77_777).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & (keys - 1));
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        start.elapsed().as_nanos() as f64 / REQUESTS as f64
    })
}

fn main() {
    let mut table = Table::new(&[
        "ns a request",
        "threads",
        "tollgate: enter and leave",
        "DashMap of semaphores",
        "token bucket: one decision",
        "tollgate / semaphores",
        "tollgate / token bucket",
    ]);
    for (name, keys) in [("one key", 1), ("100 k keys", 1 << 17)] {
        for threads in [1, 2] {
            let contenders = [tollgate(), semaphores(), bucket()];
            // Each key has its place before time is taken.
            contenders.iter().for_each(|request| (0..keys).for_each(request));
            let mut times = [const { Vec::new() }; 3];
            for (_, turn) in turns(ROUNDS, contenders.len()) {
                times[turn].push(time(&contenders[turn], keys, threads));
            }
            let [ours, semaphores, bucket] = &times;
            let beside = |others: &[f64]| {
                let ratios: Vec<f64> = ours.iter().zip(others).map(|(ours, other)| ours / other).collect();
                Some(median(&ratios))
            };
            let ns = |times: &[f64]| format!("{:.1}", median(times));
            table.row(&[
                name.into(),
                threads.to_string(),
                ns(ours),
                ns(semaphores),
                ns(bucket),
                ratio(beside(semaphores), Some(0.8)),
                ratio(beside(bucket), Some(2.0)),
            ]);
        }
    }
    println!("{table}\nMedians over {ROUNDS} interleaved rounds; a ratio is the median of the rounds' ratios.");
}
