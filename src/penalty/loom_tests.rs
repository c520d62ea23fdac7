//! Every interleaving of denials that come at once, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::{sync::Arc, thread};

use super::*;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        5
    }
}

impl Penalties {
    fn denied(&self) -> Option<u64> {
        self.note_denial(KEY, &Noted::new(&Still))
    }
}

/// A key that has been denied so often is denied by two threads at once, with at most two
/// preemptions: one is enough for a thread that stalls at any step while the other finishes.
fn two_denials(denials: u32, before: u32, check: impl Fn([Option<u64>; 2], &Penalties) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 5_000;
    crate::sync::check_model(&model, move || {
        let penalty = Penalty::new(denials, Duration::from_nanos(100), Duration::from_nanos(50));
        let penalties = Arc::new(Penalties::new(penalty, 4));
        assert!((0..before).all(|_| penalties.denied().is_none()));
        let shared = Arc::clone(&penalties);
        let thread = thread::spawn(move || shared.denied());
        let second = penalties.denied();
        check([thread.join().unwrap(), second], &penalties);
        assert_eq!(penalties.denied(), Some(55), "blocked by now, whatever came first");
        assert_eq!(penalties.begun(), 1);
    });
}

#[test]
fn loom_of_two_denials_one_is_counted() {
    two_denials(2, 0, |mut until, penalties| {
        until.sort_unstable();
        assert_eq!(until, [None, Some(55)]);
        assert_eq!(penalties.begun(), 1);
    });
}

#[test]
fn loom_of_two_denials_too_many_one_begins_the_block() {
    two_denials(2, 1, |until, penalties| {
        assert_eq!(until, [Some(55); 2]);
        assert_eq!(penalties.begun(), 1);
    });
}
