use tollgate::{Denial, Quota, rate_limit};

const LOGIN: Quota = Quota::per_minute(5);

#[rate_limit]
fn none() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(key = id)]
fn no_quota(_: u8) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5)]
fn no_window() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(per = "10s")]
fn no_limit() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(5, "10s")]
fn without_names() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(period = 30, threshold = 2)]
fn names_of_others() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", burst = 3)]
fn unknown() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", limit = 6)]
fn twice() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5 per = "10s")]
fn no_comma() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit, per = "10s")]
fn no_value() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = "login")]
fn policy_in_quotes() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = LOGIN, per = "10s")]
fn policy_and_window() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limiter = LOGIN, policy = LOGIN)]
fn limiter_and_policy() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = LOGIN, key = ())]
fn empty_key() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = LOGIN, key = "user")]
fn literal_key(user: &str) -> Result<&str, Denial> {
    Ok(user)
}

#[rate_limit(limit = 5, per = "10s", key = ("user", &-1))]
fn tuple_of_literals(user: &str) -> Result<&str, Denial> {
    Ok(user)
}

#[rate_limit(policy = LOGIN, keys = (&1,))]
fn keys_without_a_joint_limiter() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = LOGIN, cost = 2, on_error = |_| Ok(()))]
fn error_that_cannot_be() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(threshold = 2, period = 30)]
fn a_limit_of_another_name() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = LOGIN, cost = cost, wait = "2s", on_error = |_| Ok(()))]
fn error_of_a_wait(cost: u32) -> Result<u32, Denial> {
    Ok(cost)
}

#[rate_limit(policy = LOGIN, wait = "2s")]
fn wait_without_a_result() {}

fn main() {}
