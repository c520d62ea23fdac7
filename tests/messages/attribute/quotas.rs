use tollgate::{Denial, rate_limit};
use tollgate_wait::WaitError;

#[rate_limit(limit = 0, per = "10s")]
fn zero_limit() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 16_777_217, per = "10s")]
fn limit_past_the_maximum() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 99_999_999_999, per = "10s")]
fn limit_past_every_integer() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = "5", per = "10s")]
fn limit_in_quotes() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "0s")]
fn zero_window() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "soon")]
fn no_duration() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10")]
fn no_unit() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = 10)]
fn number() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "1 month")]
fn no_fixed_length() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "2000w")]
fn window_past_the_maximum() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", cost = 6)]
fn cost_above_the_limit() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", cost = 0)]
fn zero_cost() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = 1.5)]
fn number_with_a_fraction() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = "0s")]
fn wait_of_zero() -> Result<(), WaitError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = 2)]
fn wait_without_a_unit() -> Result<(), WaitError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = "2 parsecs")]
fn wait_of_another_unit() -> Result<(), WaitError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = "99999w")]
fn wait_past_the_maximum() -> Result<(), WaitError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = true)]
fn wait_that_is_no_duration() -> Result<(), WaitError> {
    Ok(())
}

fn main() {}
