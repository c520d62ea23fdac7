//! Serves the proxy on port 3000, before a model of its own or the one at an address.
//!
//! ```sh
//! cargo run -p token_budget -- [ADDRESS OF A MODEL]
//! curl -N -H 'x-api-key: alice' -d '{"prompt": "one two three four", "max_tokens": 5}' localhost:3000/chat
//! curl localhost:3000/metrics
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use token_budget::{Gateway, model};
use tokio::net::TcpListener;
use tollgate::Quota;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = match std::env::args().nth(1) {
        Some(address) => address,
        None => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = format!("http://{}/", listener.local_addr()?);
            tokio::spawn(async move { axum::serve(listener, model().into_make_service()).await });
            address
        }
    };
    let tokens = Quota::token_bucket(1000, 1000, Duration::from_secs(60));
    let gateway = Arc::new(Gateway::new(address, tokens, 4)?);
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, gateway.routes()).await?;
    Ok(())
}
