use std::net::IpAddr;

use tollgate::{Denial, rate_limit};
use tollgate_redis::{AcquireError, PolicyLimiter};

type Limiter = PolicyLimiter<(String, IpAddr)>;

#[rate_limit(store = limiter, keys = (user, address))]
async fn error_of_no_store(limiter: &Limiter, user: &str, address: IpAddr) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(store = limiter, keys = (user,))]
async fn one_key_of_two(limiter: &Limiter, user: &str) -> Result<(), AcquireError> {
    Ok(())
}

#[rate_limit(limiter = limiter, keys = (user, address))]
fn policy_as_a_limiter(limiter: &Limiter, user: &str, address: IpAddr) -> Result<(), tollgate::ReserveError> {
    Ok(())
}

fn main() {}
