//! JSON lines as servers and services write them, by their public documentation: each is the sample,
//! and has to be decided as the sample is, without an option.

use serde_json::json;

use crate::replay::decisions::seconds_of;
use crate::replay::logs::{Request, compare_by, write_sample};
use crate::replay::support::{Scratch, replay, text, total};

/// All that logs without user names can tell.
const WITHOUT_USERS: [&str; 3] = ["client", "client,path", "method"];
const WITH_USERS: [&str; 4] = ["client", "client,path", "method", "user"];

fn target(request: &Request<'_>) -> String {
    if request.query == "-" { request.path.to_owned() } else { format!("{}?{}", request.path, request.query) }
}

fn with_port(client: &str, at: usize) -> String {
    let port = 40_000 + at % 20_000;
    if client.contains(':') { format!("[{client}]:{port}") } else { format!("{client}:{port}") }
}

/// As RFC 3339.
fn start(request: &Request<'_>) -> String {
    let (date, time) = request.date_and_time();
    format!("{date}T{time}Z")
}

/// `time` is when the line was written, after the answer: what counts is `StartUTC`.
#[test]
fn traefik() {
    let scratch = Scratch::new("traefik");
    let log = write_sample(|at, request| {
        json!({
            "ClientAddr": with_port(request.client, at),
            "ClientHost": request.client,
            "ClientPort": (40_000 + at % 20_000).to_string(),
            "ClientUsername": request.user,
            "DownstreamStatus": 200,
            "Duration": 1_500_000_000,
            "RequestCount": at,
            "RequestHost": "example.org",
            "RequestMethod": request.method,
            "RequestPath": target(request),
            "StartLocal": start(request),
            "StartUTC": start(request),
            "level": "info",
            "msg": "",
            "time": "2026-03-09T00:00:00Z",
        })
        .to_string()
    });
    compare_by(&WITH_USERS, &scratch, &[], &scratch.with("access.log", log), 0);
}

/// The address has the port of the connection, which is no other client.
#[test]
fn envoy() {
    let scratch = Scratch::new("envoy");
    let log = write_sample(|at, request| {
        json!({
            "authority": "example.org",
            "bytes_received": 0,
            "downstream_local_address": "10.0.0.5:8443",
            "downstream_remote_address": with_port(request.client, at),
            "duration": 5,
            "method": request.method,
            "path": target(request),
            "protocol": "HTTP/2",
            "request_id": format!("cc21d9b0-cf5c-432b-8c7e-{at:012}"),
            "response_code": 200,
            "start_time": start(request),
            "upstream_host": "10.0.1.7:8080",
            "x_forwarded_for": null,
        })
        .to_string()
    });
    compare_by(&WITHOUT_USERS, &scratch, &[], &scratch.with("envoy.log", log), 0);
}

/// Fields within `req`, and milliseconds since 1970.
#[test]
fn pino() {
    let scratch = Scratch::new("pino");
    let log = write_sample(|at, request| {
        let record = json!({
            "level": 30,
            "time": seconds_of(request.time) * 1000,
            "pid": 812,
            "hostname": "web1",
            "req": {
                "id": at,
                "method": request.method,
                "url": target(request),
                "headers": { "host": "example.org", "user-agent": "curl/8.5.0" },
                "remoteAddress": request.client,
                "remotePort": 40_000 + at % 20_000,
            },
            "res": { "statusCode": 200 },
            "responseTime": 10,
            "msg": "request completed",
        });
        let started = json!({ "level": 30, "time": 1, "pid": 812, "hostname": "web1", "msg": "listening" });
        if at == 0 { format!("{started}\n{record}") } else { record.to_string() }
    });
    compare_by(&WITHOUT_USERS, &scratch, &[], &scratch.with("app.log", log), 0);
}

#[test]
fn cloudflare() {
    let scratch = Scratch::new("cloudflare");
    for numbers in [true, false] {
        let log = write_sample(|at, request| {
            let nanos = seconds_of(request.time) * 1_000_000_000;
            let (start, end) = if numbers {
                (json!(nanos), json!(nanos + 7_000_000))
            } else {
                (json!(start(request)), json!("2026-03-09T00:00:00Z"))
            };
            json!({
                "ClientIP": request.client,
                "ClientRequestHost": "example.org",
                "ClientRequestMethod": request.method,
                "ClientRequestURI": target(request),
                "EdgeEndTimestamp": end,
                "EdgeResponseBytes": 1935,
                "EdgeResponseStatus": 200,
                "EdgeStartTimestamp": start,
                "RayID": format!("{at:016x}"),
            })
            .to_string()
        });
        compare_by(&WITHOUT_USERS, &scratch, &[], &scratch.with("logpush.json", log), 0);
    }
}

#[test]
fn api_gateway() {
    let scratch = Scratch::new("api-gateway");
    let log = write_sample(|at, request| {
        json!({
            "requestId": format!("{at:08x}-0000-4000-8000-000000000000"),
            "ip": request.client,
            "caller": "-",
            "user": request.user,
            "requestTime": request.time,
            "httpMethod": request.method,
            "resourcePath": request.path,
            "status": "200",
            "protocol": "HTTP/1.1",
            "responseLength": "512",
        })
        .to_string()
    });
    compare_by(&WITH_USERS, &scratch, &[], &scratch.with("rest.json", log), 0);
    let log = write_sample(|at, request| {
        json!({
            "requestId": format!("JKJaXmPLvHcESHA={at}"),
            "sourceIp": request.client,
            "requestTimeEpoch": (seconds_of(request.time) * 1000).to_string(),
            "httpMethod": request.method,
            "path": request.path,
            "routeKey": "$default",
            "status": "200",
        })
        .to_string()
    });
    compare_by(&WITHOUT_USERS, &scratch, &[], &scratch.with("http.json", log), 0);
}

const LIMIT: [&str; 4] = ["--limit", "1", "--per", "1s"];

#[test]
fn a_log_without_a_field_that_fits_names_those_there_are_and_the_option() {
    let scratch = Scratch::new("fields");
    let log = scratch.with("app.log", "{\"when\":1,\"from\":{\"addr\":\"a\",\"port\":7}}\n");
    let complaint = |options: &[&str]| text(&replay(&[LIMIT.as_slice(), options, &[&log]].concat()).stderr);
    let by_time = complaint(&[]);
    let fields = "the fields are \"from.addr\", \"from.port\", \"when\"; name one of them with";
    assert!(by_time.starts_with(&format!("{log}:1: has no time: {fields} --time-column\n")), "{by_time}");
    let by_client = complaint(&["--time-column", "when"]);
    assert_eq!(by_client, format!("tollgate: {log}: no record has a client: {fields} --key\n"));
    let cost = complaint(&["--time-column", "when", "--key", "from.addr", "--cost-column", "weight"]);
    assert!(cost.contains(&format!("has no cost called \"weight\": {fields} --cost-column")), "{cost}");
    let options = [LIMIT.as_slice(), &["--time-column", "when", "--key", "from.addr", &log]].concat();
    assert_eq!(total(&replay(&options), "requests"), 1);
    // Once, however many lines there are.
    let many = scratch.with("many.log", "{\"when\":1}\n".repeat(9));
    let complaint = text(&replay(&[LIMIT.as_slice(), &[&many]].concat()).stderr);
    assert_eq!(complaint.matches("the fields are").count(), 1, "{complaint}");
}

/// One part of a key that no record has would be a key of the others alone.
#[test]
fn a_part_of_a_key_that_no_record_has_is_told_of() {
    let scratch = Scratch::new("part");
    let log = scratch.with("app.log", "{\"time\":1,\"ip\":\"a\",\"path\":\"/\"}\n{\"time\":2,\"ip\":\"b\"}\n");
    let output = replay(&[LIMIT.as_slice(), &["--key", "clinet,path", "--where", "metod!=GET", &log]].concat());
    assert_eq!(total(&output, "requests"), 1);
    let fields = "the fields are \"ip\", \"path\", \"time\"; name one of them with";
    let expected = format!("no record has a clinet: {fields} --key\nno record has a metod: {fields} --where\n");
    assert_eq!(text(&output.stderr), expected);
    let output = replay(&[LIMIT.as_slice(), &["--key", "client,path", &log]].concat());
    assert_eq!(text(&output.stderr), "", "a record without a part is no news if another has it");
}
