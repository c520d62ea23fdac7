use std::time::Duration;
use tollgate::{Denial, Quota, rate_limit};

const SECOND: Duration = Duration::from_secs(1);
const NEVER: Quota = Quota::per_second(0);
const BUCKET: Quota = Quota::token_bucket(5, 1, SECOND);
const QUEUE: Quota = Quota::leaky_queue(5, SECOND, SECOND);

#[rate_limit(policy = NEVER)]
fn zero_limit() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = Duration::ZERO)]
fn zero_window() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = [BUCKET, Quota::per_hour(10)])]
fn bucket_with_another() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = QUEUE)]
fn queue() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = BUCKET, cost = 6)]
fn cost_above_the_limit() -> Result<(), Denial> {
    Ok(())
}

fn main() {}
