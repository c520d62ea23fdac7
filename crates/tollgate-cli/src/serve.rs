//! `tollgate serve`: a policy file over HTTP and gRPC.

use std::process::ExitCode;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tollgate_serve::{Bound, Listen, ServeError, Server, Stopped};

use crate::args::ServeArgs;
use crate::check::{in_words, is_client};
use crate::errors::RunError;
use crate::plan;
use crate::terminal;
use crate::text::harmless;

/// Serves until a signal.
///
/// # Errors
///
/// The options make no sense, or the server can't listen, or a file can't be read or written.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, RunError> {
    let (policy, name) = plan::load(&args.policy)?;
    #[cfg(not(feature = "redis"))]
    if policy.store().is_some() {
        return Err(RunError::no_store(&name));
    }
    let words = in_words(&name, &policy, |field| is_client(field) || args.address.iter().any(|it| it == field));
    let server = with_fields(Server::new(policy), args).map_err(|error| RunError::Options(error.to_string()))?;
    let server =
        server.max_connections(args.max_connections).time_for_requests(args.request_time).time_to_stop(args.stop_time);
    let server = match &args.snapshot {
        Some(path) => server.snapshot(path),
        None => server,
    };
    let runtime = Runtime::new().map_err(|error| RunError::Serve(format!("no threads to serve with: {error}")))?;
    let refused = |error: ServeError| match harmless(&error.to_string()) {
        text if is_of_store(&error) => RunError::Options(text),
        text => RunError::Serve(text),
    };
    let stopped = runtime.block_on(async {
        let unheard = |error| RunError::Serve(format!("signals can't be heard: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(unheard)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
        let mut hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup()).map_err(unheard)?) };
        let bound = server.bind(&args.listen).await.map_err(refused)?;
        terminal::print(&format!("{words}{}", beginning(&bound)))?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                Some(Some(())) = async { Some(hangup.as_mut()?.recv().await) } => {}
            }
        };
        bound.run(stop).await.map_err(refused)
    })?;
    terminal::print(&end(stopped))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the program was started to outlive its terminal, as by `nohup`. Linux tells.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first bit is that of SIGHUP.
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & 1 == 1)
}

/// Whether the policy asks a store for what no store does.
fn is_of_store(error: &ServeError) -> bool {
    #[cfg(feature = "redis")]
    if matches!(error, ServeError::Store(_)) {
        return true;
    }
    matches!(error, ServeError::QueueOnStore { .. } | ServeError::SnapshotOfStore)
}

fn with_fields(mut server: Server, args: &ServeArgs) -> Result<Server, ServeError> {
    for (field, name) in &args.header {
        server = server.header(field, name)?;
    }
    for field in &args.address {
        server = server.address(field)?;
    }
    for name in &args.host {
        server = server.host(name)?;
    }
    for field in &args.optional {
        server = server.optional(field)?;
    }
    Ok(server)
}

fn beginning(bound: &Bound) -> String {
    let restored = bound.restored().map(|keys| format!("restored {keys} keys\n"));
    let listens = bound.listens().iter().map(|listen| match listen {
        Listen::Tcp(address) => format!("listening on http://{address}\n"),
        other => format!("listening on {}\n", harmless(&other.to_string())),
    });
    restored.into_iter().chain(listens).collect()
}

fn end(stopped: Stopped) -> String {
    let cut_off = if stopped.cut_off { "; connections that did not end in time were cut off" } else { "" };
    match stopped.saved {
        Some(keys) => format!("stopped, saved {keys} keys{cut_off}\n"),
        None => format!("stopped{cut_off}\n"),
    }
}
