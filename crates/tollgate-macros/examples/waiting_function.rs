//! Calls of a function that wait for their permits, each at most a second.
//!
//! ```sh
//! cargo run -p tollgate-macros --example waiting_function
//! ```

use std::time::Instant;

use tollgate::rate_limit;
use tollgate_wait::WaitError;

/// Ten fetches of a host a second. A call over that waits its turn.
#[rate_limit(limit = 10, per = "1s", key = host, wait = "1s")]
async fn fetch(host: &str, page: u32) -> Result<String, WaitError> {
    Ok(format!("https://{host}/{page}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let start = Instant::now();
    let mut pages = tokio::task::JoinSet::new();
    for page in 1..=25 {
        pages.spawn(async move { fetch("example.org", page).await.map_err(|error| (page, error)) });
    }
    while let Some(fetched) = pages.join_next().await {
        let time = start.elapsed().as_millis();
        match fetched.expect("no call panics") {
            Ok(url) => println!("{time:4} ms: {url}"),
            Err((page, error)) => println!("{time:4} ms: page {page} given up: {error}"),
        }
    }
}
