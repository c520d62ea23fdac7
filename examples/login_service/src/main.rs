//! Serves a log-in and an API with limits from a policy file.
//!
//! `cargo run -p login_service -- [--listen ADDRESS] [--policy FILE] [--trust NETWORK]...`

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use login_service::OneUser;
use tokio::net::TcpListener;
use tollgate::{MonotonicClock, Policy};
use tollgate_tower::{ClientIp, TrustedProxies};

struct Arguments {
    listen: String,
    policy: PathBuf,
    /// Networks of proxies that say in `X-Forwarded-For` where requests come from.
    trust: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/policy.toml").into();
        let mut arguments = Self { listen: "127.0.0.1:3000".into(), policy, trust: Vec::new() };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            match word.as_str() {
                "--listen" => arguments.listen = value,
                "--policy" => arguments.policy = value.into(),
                "--trust" => arguments.trust.push(value),
                _ => return Err(format!("no argument `{word}`: there are --listen, --policy and --trust")),
            }
        }
        Ok(arguments)
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let file = arguments.policy.display();
    let policy = Policy::load(&arguments.policy)?;
    let clients = match &arguments.trust[..] {
        [] => ClientIp::peer(),
        networks => ClientIp::behind(TrustedProxies::new(networks)?),
    };
    let app = login_service::app(&policy, clients, OneUser, MonotonicClock::new())
        .map_err(|error| format!("{file}: {error}"))?;
    let listener = TcpListener::bind(&arguments.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    // With the peers' addresses, by which the log-in is limited.
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
