//! Forty tasks fetch pages of two sites, at ten pages a second from each.
//!
//! ```sh
//! cargo run -p tollgate-wait --features tokio --example crawler
//! ```
//!
//! A page that could not be fetched within a second is given up at once.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tollgate::{Limiter, Quota};
use tollgate_wait::{TokioTimer, WaitingLimiter};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::<&str>::new(Quota::token_bucket(5, 10, Duration::from_secs(1)))?;
    let limiter = Arc::new(WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer));
    let start = Instant::now();
    let mut pages = JoinSet::new();
    for page in 0..20 {
        for site in ["example.org", "example.net"] {
            let limiter = Arc::clone(&limiter);
            pages.spawn(async move {
                match limiter.acquire(site).within(Duration::from_secs(1)).await {
                    Ok(_) => println!("{:4} ms: {site}/{page}", start.elapsed().as_millis()),
                    Err(error) => println!("{:4} ms: {site}/{page} given up: {error}", start.elapsed().as_millis()),
                }
            });
        }
    }
    pages.join_all().await;
    Ok(())
}
