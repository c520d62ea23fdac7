use tollgate::{Denial, rate_limit};

struct AppError;

#[rate_limit(limit = 5, per = "10s")]
fn returns_no_result() -> String {
    String::new()
}

#[rate_limit(limit = 5, per = "10s")]
fn error_of_no_denial() -> Result<(), AppError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", cost = cost)]
fn error_of_no_cost(cost: u32) -> Result<u32, Denial> {
    Ok(cost)
}

#[rate_limit(limit = 5, per = "10s", cost = text.len())]
fn cost_of_another_type(text: &str) -> Result<&str, tollgate::ReserveError> {
    Ok(text)
}

#[rate_limit(limit = 5, per = "10s", key = (id, weight))]
fn key_without_hash(id: u64, weight: f64) -> Result<f64, Denial> {
    Ok(weight + id as f64)
}

#[rate_limit(limit = 5, per = "10s", on_denied = false)]
fn answer_that_is_no_function() -> bool {
    true
}

#[rate_limit(limit = 5, per = "10s", wait = 2 + 2)]
fn wait_of_another_type() -> Result<(), tollgate_wait::WaitError> {
    Ok(())
}

#[rate_limit(limit = 5, per = "10s", wait = "2s")]
fn denial_of_a_wait() -> Result<(), Denial> {
    Ok(())
}

fn main() {}
