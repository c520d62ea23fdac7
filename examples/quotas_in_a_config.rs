//! Quotas in the configuration of a service, in any format that serde reads.
//!
//! ```text
//! port 3000: admitted
//! {"name":"login","algorithm":"sliding-window-log","limit":5,"per":"1m"}
//! ```

use serde::{Deserialize, Serialize};
use tollgate::{DirectLimiter, Quota};

#[derive(Serialize, Deserialize)]
struct Config {
    port: u16,
    login: Quota,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"{ "port": 3000, "login": { "name": "login", "limit": 5, "per": "1m" } }"#;
    let config: Config = serde_json::from_str(text)?;
    let limiter = DirectLimiter::new(config.login)?;
    println!("port {}: {}", config.port, limiter.try_acquire());
    println!("{}", serde_json::to_string(&config.login)?);
    Ok(())
}
