//! Every interleaving of two changes of a limiter's quotas.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::{sync::Arc, thread};

use super::*;
use crate::caps::AtKeyCap;
use crate::clock::MockClock;
use crate::engine::AtCap;
use crate::quota::Quota;

/// The keys and the quota that keys without a place share end with the same change.
#[test]
fn loom_two_changes_leave_keys_and_the_shared_quota_the_same() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(8);
    crate::sync::check_model(&model, || {
        let builder = Limiter::<str>::builder(Quota::per_minute(1)).key_cap(1).clock(MockClock::new());
        let limiter = Arc::new(builder.at_key_cap(AtKeyCap::Share).build().unwrap());
        let other = Arc::clone(&limiter);
        let change = |limiter: &Limiter<str, MockClock>, quotas: [u32; 4]| {
            quotas.iter().for_each(|&limit| limiter.set_quotas(&[Quota::per_minute(limit)]).unwrap());
        };
        let thread = thread::spawn(move || change(&other, [2, 3, 4, 5]));
        change(&limiter, [6, 7, 8, 9]);
        thread.join().unwrap();
        let AtCap::Share(shared) = &limiter.engine.at_cap else { panic!("nothing is shared") };
        assert_eq!(limiter.quotas(), &*shared.table.version(0).quotas);
    });
}
