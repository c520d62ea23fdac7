//! Every interleaving of denials that come at once, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::{sync::Arc, thread};

use super::*;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

/// A clock that stands still.
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

impl Penalties {
    /// The end of the block of a denied key, and its number.
    fn denied(&self, at: u64) -> Option<(u64, u8)> {
        self.note_denial(KEY, &Noted::new(&At(at))).map(|Block { until, number }| (until, number))
    }
}

/// Runs a model with at most two preemptions: one is enough for a thread that stalls at any step while
/// the other finishes.
fn explore(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 5_000;
    crate::sync::check_model(&model, body);
}

fn penalty(denials: u32) -> Penalty {
    Penalty::new(denials, Duration::from_nanos(100), Duration::from_nanos(50))
}

/// A key that has been denied so often is denied by two threads at once.
fn two_denials(before: u32, check: impl Fn([Option<(u64, u8)>; 2], &Penalties) + Sync + Send + 'static) {
    explore(move || {
        let penalties = Arc::new(Penalties::new(penalty(2), 4));
        assert!((0..before).all(|_| penalties.denied(5).is_none()));
        let shared = Arc::clone(&penalties);
        let thread = thread::spawn(move || shared.denied(5));
        let second = penalties.denied(5);
        check([thread.join().unwrap(), second], &penalties);
        assert_eq!(penalties.denied(5), Some((55, 1)), "blocked by now, whatever came first");
        assert_eq!(penalties.begun(), 1);
    });
}

#[test]
fn loom_of_two_denials_one_is_counted() {
    two_denials(0, |mut blocks, penalties| {
        blocks.sort_unstable();
        assert_eq!(blocks, [None, Some((55, 1))]);
        assert_eq!(penalties.begun(), 1);
    });
}

#[test]
fn loom_of_two_denials_too_many_one_begins_the_block() {
    two_denials(1, |blocks, penalties| {
        assert_eq!(blocks, [Some((55, 1)); 2]);
        assert_eq!(penalties.begun(), 1);
    });
}

/// One thread begins a block, and is denied again when it is over. Another is denied then, too. One of
/// them begins the next block, and it has the next number. By the later clock the first one is the
/// only one.
#[test]
fn loom_of_two_denials_after_a_block_one_begins_the_next_with_its_number() {
    explore(|| {
        let growing = penalty(1).growing(3, Duration::from_nanos(1000), Duration::from_nanos(10));
        let penalties = Arc::new(Penalties::new(growing, 4));
        let shared = Arc::clone(&penalties);
        let thread = thread::spawn(move || [5, 60].map(|at| shared.denied(at)));
        let second = penalties.denied(60);
        let ([first, next], blocks) = (thread.join().unwrap(), penalties.begun());
        match blocks {
            2 => {
                assert_eq!([next, second], [Some((210, 2)); 2]);
                // It may read its block when the next one has begun.
                assert!(first == Some((55, 1)) || first == Some((210, 2)), "{first:?}");
            }
            _ => assert_eq!(([first, next, second], blocks), ([Some((110, 1)); 3], 1)),
        }
    });
}
