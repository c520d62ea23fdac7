//! Serves the example, and plays its clients.
//!
//! `cargo run -p observability -- [ADDRESS]`

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;
use tollgate::MonotonicClock;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (app, _watchers) = observability::app(folder, observability::recorder()?, MonotonicClock::new())?;
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    println!("http://{address}/metrics has the metrics, http://{address}/denied who is denied");
    tokio::spawn(observability::traffic(address));
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
