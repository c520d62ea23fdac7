//! Serves a log-in and an API with limits from a policy file, which it reads again when its contents
//! change, and after SIGHUP.
//!
//! `cargo run -p login_service -- [--listen ADDRESS] [--operators ADDRESS] [--policy FILE] [--every DURATION]
//! [--trust NETWORK]...`

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use login_service::{OneUser, Service};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;
use tollgate::{MonotonicClock, parse_duration};
use tollgate_policy::{Policy, Reloader, Watcher};
use tollgate_tower::{ClientAddress, TrustedProxies};

struct Arguments {
    listen: String,
    /// For metrics and denied keys.
    operators: String,
    policy: PathBuf,
    /// The interval between looks at the policy file.
    every: Duration,
    /// Networks of proxies that say in `X-Forwarded-For` where requests come from.
    trust: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self {
            listen: "127.0.0.1:3000".into(),
            operators: "127.0.0.1:3001".into(),
            policy: concat!(env!("CARGO_MANIFEST_DIR"), "/policy.toml").into(),
            every: Watcher::EVERY,
            trust: Vec::new(),
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            match word.as_str() {
                "--listen" => arguments.listen = value,
                "--operators" => arguments.operators = value,
                "--policy" => arguments.policy = value.into(),
                "--every" => arguments.every = parse_duration(&value)?,
                "--trust" => arguments.trust.push(value),
                _ => {
                    return Err(format!(
                        "no argument `{word}`: there are --listen, --operators, --policy, --every and --trust"
                    )
                    .into());
                }
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
        [] => ClientAddress::peer(),
        networks => ClientAddress::behind(TrustedProxies::new(networks)?),
    };
    // Before the observers, which take their handles of it.
    let recorder = PrometheusBuilder::new().install_recorder()?;
    let service =
        Service::new(&policy, clients, OneUser, MonotonicClock::new()).map_err(|error| format!("{file}: {error}"))?;

    let reloader = Arc::new(service.follow(&arguments.policy, policy));
    let _watcher = Watcher::start(Arc::clone(&reloader), arguments.every)?;
    reload_after_signals(reloader)?;

    let listener = TcpListener::bind(&arguments.listen).await?;
    let for_operators = TcpListener::bind(&arguments.operators).await?;
    println!("listening on http://{}", listener.local_addr()?);
    println!("for operators: http://{}/metrics and /denied", for_operators.local_addr()?);
    // With the peers' addresses, by which the log-in is limited.
    let clients = service.clients().into_make_service_with_connect_info::<SocketAddr>();
    tokio::try_join!(
        axum::serve(listener, clients).into_future(),
        axum::serve(for_operators, service.operators(recorder)).into_future(),
    )?;
    Ok(())
}

/// After SIGHUP the file is read at once.
#[cfg(unix)]
fn reload_after_signals(reloader: Arc<Reloader>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut signals = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            let reloader = Arc::clone(&reloader);
            // It waits for the file system, so not on a thread that serves.
            let _ = tokio::task::spawn_blocking(move || reloader.reload_now()).await;
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn reload_after_signals(_: Arc<Reloader>) -> std::io::Result<()> {
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
