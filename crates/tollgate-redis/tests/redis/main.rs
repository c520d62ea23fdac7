//! Limiters on a real `redis-server`, which the tests start and stop.

mod against_oracle;
mod examples;
mod faults;
#[cfg(feature = "policy")]
mod from_policy;
mod on_a_server;
mod recorded;
mod vectors;

/// The receipt of a request that is admitted.
fn receipt(decided: tollgate_redis::Decided<tollgate::Decision>) -> tollgate_redis::Receipt {
    assert!(decided.is_admitted(), "{decided:?}");
    decided.into_receipt()
}
