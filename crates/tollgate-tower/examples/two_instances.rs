//! A service whose limits are in a policy file: in process, or on the store of the file. Two instances
//! with the same file on the same store share the limits.
//!
//! ```text
//! redis-server --port 6379 &
//! export TOLLGATE_SECRET="a long text that all instances have"
//! cargo run -p tollgate-tower --features axum,redis --example two_instances -- limits.toml 127.0.0.1:3001 &
//! cargo run -p tollgate-tower --features axum,redis --example two_instances -- limits.toml 127.0.0.1:3002
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::{Router, routing::get};
use tollgate_policy::Policy;
use tollgate_tower::{ClientIp, PolicyLimiter, RateLimitLayer};

/// What `limits.toml` may have. Without the `[store]`, each instance has the whole limit.
const EXAMPLE: &str = r#"
[store]
url = "redis://127.0.0.1:6379"
secret = { env = "TOLLGATE_SECRET" }

[[dimension]]
name = "address"
quota = [{ limit = 100, per = "1m" }]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(address)) = (arguments.next(), arguments.next()) else {
        println!("two_instances limits.toml 127.0.0.1:3001, with such a file:\n{EXAMPLE}");
        return Ok(());
    };
    let limiter = PolicyLimiter::<(IpAddr,)>::new(&Policy::load(file)?)?;
    let limit = RateLimitLayer::new(Arc::new(limiter)).key((ClientIp::peer(),));
    let app = Router::new().route("/", get(|| async { "hello\n" })).layer(limit);
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
