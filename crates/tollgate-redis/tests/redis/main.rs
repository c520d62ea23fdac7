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

/// Waits until it is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so().await {
        assert!(std::time::Instant::now() < end, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
