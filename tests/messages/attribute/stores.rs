use tollgate::{Denial, rate_limit};

#[rate_limit(store = LIMITER, keys = (&1,))]
fn store_without_async() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER)]
async fn store_without_keys() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, key = &1)]
async fn store_with_one_key(_: u64) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, keys = (&1,), wait = "2s")]
async fn store_that_waits(_: u64) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, keys = (&1,), on_error = |_| Ok(()))]
async fn store_with_on_error(_: u64) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, limiter = LIMITER, keys = (&1,))]
async fn store_and_limiter(_: u64) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, keys = (&1,), limit = 5)]
async fn store_and_limit(_: u64) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = LIMITER, keys = (&1,))]
async fn store_without_a_result(_: u64) {}

fn main() {}
