//! The options of `tollgate serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tollgate::parse_duration;
use tollgate_serve::Listen;

use crate::number::parse_within;

const HELP: &str = "\
Examples:
  tollgate serve policy.toml
  tollgate serve --address client --snapshot /var/lib/tollgate/limits policy.toml
  tollgate serve --listen unix:/run/tollgate.sock --header user=x-api-key --optional user policy.toml

A request gives the values of the fields that the dimensions of the policy name in `key`; a dimension \
without `key` has one field, its name. POST /acquire takes them as JSON:
  curl --json '{\"keys\": {\"client\": \"192.0.2.7\"}, \"cost\": 1}' http://127.0.0.1:7117/acquire
/auth_request is for nginx, /authz and the services of gRPC are for Envoy: the guide of the crate \
tollgate-serve has their configuration. /health and /metrics are for those who watch.

SIGTERM, SIGINT and SIGHUP stop the server: requests that have come are answered, and the snapshot is \
written. The policy is read at the start alone: after a change, start it again.

Exit codes: 0 it was stopped, 1 it can't listen, or a file can't be read or written, 2 the command \
line or the policy makes no sense.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArgs {
    /// The policy file
    #[arg(value_name = "FILE.toml")]
    pub(crate) policy: PathBuf,

    /// Where to listen: an address and port, or unix:PATH; may be given several times. By default
    /// on port 7117 of the loopback address, which other machines do not reach
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:7117")]
    pub(crate) listen: Vec<Listen>,

    /// A name by which requests call this server (`Host`, `:authority`), without a port; .example.com
    /// stands for all names under it, too, and * for any. By default localhost and IP addresses;
    /// on a Unix socket any name. Requests to others are answered with 421
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// A file with the state of the limits: read at the start if it is there, written at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,

    /// The header field with the value of a field, for nginx and Envoy; by default x-tollgate-FIELD,
    /// and none for gRPC
    #[arg(long, value_name = "FIELD=NAME", value_parser = parse_pair)]
    pub(crate) header: Vec<(String, String)>,

    /// The values of this field are addresses of clients, as those of the field `client` always are, and
    /// other texts are refused. [client] in the policy says who a client is; IPv6 networks of 48 and
    /// 32 bits have limits, too, unless the policy says network_limits = false
    #[arg(long, value_name = "FIELD")]
    pub(crate) address: Vec<String>,

    /// Requests may lack this field; the dimensions with it are not asked then
    #[arg(long, value_name = "FIELD")]
    pub(crate) optional: Vec<String>,

    /// The most connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = |text: &str| parse_within::<usize>(text, 1..=1_000_000))]
    pub(crate) max_connections: usize,

    /// The time for the head of a request to come, and for its body
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) request_time: Duration,

    /// The time for connections to end when the server stops
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) stop_time: Duration,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, name)) if !field.is_empty() => Ok((field.to_owned(), name.to_owned())),
        _ => Err("write FIELD=NAME, such as user=x-api-key".to_owned()),
    }
}
