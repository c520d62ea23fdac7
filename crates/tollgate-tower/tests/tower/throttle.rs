//! Clients that keep to a rate and to `Retry-After`, under paused time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response, StatusCode, header};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate::{DirectLimiter, Limiter, Quota, TokioClock};
use tollgate_tower::{Pause, RateLimitLayer, ResponseBody, ThrottleError, ThrottleLayer, retry_after};
use tollgate_wait::WaitError;
use tower::{Layer, Service, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

/// The hosts that a server was asked for, with the seconds since the start.
type Asked = Arc<Mutex<Vec<(String, u64)>>>;

/// A client at a request a second for each host. Its server answers 429 to the first request.
fn client(
    within: Duration,
    wait: &'static str,
) -> (impl Service<Request<()>, Response = Response<()>, Error = ThrottleError<Infallible>, Future: Send> + Clone, Asked)
{
    let limiter = Limiter::<String, _>::builder(Quota::per_second(1)).clock(TokioClock::new()).build().unwrap();
    let host = |request: &Request<()>| request.uri().host().unwrap().to_owned();
    let layer = ThrottleLayer::new(Arc::new(limiter), host, |answer: &Response<()>| {
        retry_after(answer.status(), answer.headers())
    });
    let (asked, start) = (Asked::default(), Instant::now());
    let server = {
        let asked = Arc::clone(&asked);
        service_fn(move |request: Request<()>| {
            let mut asked = asked.lock().unwrap();
            let first = asked.is_empty();
            asked.push((host(&request), start.elapsed().as_secs()));
            let answer = Response::builder().status(if first && !wait.is_empty() { 429 } else { 200 });
            std::future::ready(Ok(answer.header("retry-after", wait).body(()).unwrap()))
        })
    };
    (layer.within(within).max_retry_after(30 * SECOND).layer(server), asked)
}

fn get(host: &str) -> Request<()> {
    Request::get(format!("http://{host}/")).body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_host_go_at_the_rate_and_those_of_another_are_apart() {
    let (client, asked) = client(60 * SECOND, "");
    let mut all = JoinSet::new();
    for host in ["a", "a", "b", "a"] {
        let request = client.clone().oneshot(get(host));
        all.spawn(async move { request.await.unwrap().status().as_u16() });
    }
    assert_eq!(all.join_all().await, [200; 4]);
    let asked = asked.lock().unwrap();
    let at = |host| asked.iter().filter(|asked| asked.0 == host).map(|asked| asked.1).collect::<Vec<_>>();
    assert_eq!((at("a"), at("b")), (vec![0, 1, 2], vec![0]));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_retry_after_has_passed() {
    let (client, asked) = client(60 * SECOND, "8");
    assert_eq!(client.clone().oneshot(get("a")).await.unwrap().status(), 429);
    for host in ["b", "a", "a"] {
        assert_eq!(client.clone().oneshot(get(host)).await.unwrap().status(), 200);
    }
    let times: Vec<_> = asked.lock().unwrap().iter().map(|asked| asked.1).collect();
    assert_eq!(times, [0, 0, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_sent_in_time_fails_at_once_and_is_not_sent() {
    let (client, asked) = client(5 * SECOND, "8");
    assert_eq!(client.clone().oneshot(get("a")).await.unwrap().status(), 429);
    tokio::time::sleep(SECOND).await;
    let start = Instant::now();
    let error = client.clone().oneshot(get("a")).await.unwrap_err();
    assert!(matches!(error, ThrottleError::Wait(WaitError::TooLong { wait }) if wait > 6 * SECOND), "{error:?}");
    assert_eq!((start.elapsed(), asked.lock().unwrap().len()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn a_long_retry_after_is_cut() {
    let (client, asked) = client(60 * SECOND, "18446744073709551615");
    assert_eq!(client.clone().oneshot(get("a")).await.unwrap().status(), 429);
    assert_eq!(client.clone().oneshot(get("a")).await.unwrap().status(), 200);
    assert_eq!(asked.lock().unwrap()[1].1, 30);
}

/// The time that an answer takes.
const LATENCY: Duration = Duration::from_millis(20);

/// A client at 10 requests a second to the server that answers so, by the number of the request and
/// the time.
fn fast<F>(
    within: Duration,
    answer: F,
) -> impl Service<Request<()>, Response = Response<()>, Error = ThrottleError<Infallible>, Future: Send> + Clone
where
    F: Fn(usize, Duration) -> Response<()> + Clone + Send + 'static,
{
    let limiter = DirectLimiter::with_clock(Quota::per_second(10), TokioClock::new()).unwrap();
    let read = |answer: &Response<()>| retry_after(answer.status(), answer.headers());
    let layer = ThrottleLayer::new(Arc::new(limiter), |_: &Request<()>| (), read).within(within);
    let (count, start) = (Arc::new(Mutex::new(0)), Instant::now());
    layer.layer(service_fn(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        let answer = answer(*count, start.elapsed());
        async {
            tokio::time::sleep(LATENCY).await;
            Ok(answer)
        }
    }))
}

fn refused(wait: u64, fields: &[(&'static str, &str)]) -> Response<()> {
    let answer = Response::builder().status(429).header("retry-after", wait);
    fields.iter().fold(answer, |answer, (name, value)| answer.header(*name, *value)).body(()).unwrap()
}

/// The milliseconds at which a server was asked.
type Times = Arc<Mutex<Vec<u128>>>;

fn note(times: &Times, time: Duration) {
    times.lock().unwrap().push(time.as_millis());
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_requests_go_at_the_pace_of_the_server() {
    let served = DirectLimiter::with_clock(Quota::per_second(5), TokioClock::new()).unwrap();
    let hello = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let (limit, sent) = (RateLimitLayer::new(Arc::new(served)).layer(hello), Arc::new(Mutex::new(0)));
    let server = {
        let sent = Arc::clone(&sent);
        service_fn(move |request| {
            let mut sent = sent.lock().unwrap();
            *sent += 1;
            // Requests overtake each other.
            let (way, limit) = (Duration::from_millis(*sent * 17 % 40), limit.clone());
            async move {
                tokio::time::sleep(way).await;
                let answer = limit.oneshot(request).await;
                tokio::time::sleep(LATENCY).await;
                answer
            }
        })
    };

    let limiter = DirectLimiter::with_clock(Quota::per_second(10), TokioClock::new()).unwrap();
    let layer = ThrottleLayer::new(
        Arc::new(limiter),
        |_: &Request<()>| (),
        |answer: &Response<ResponseBody<String>>| retry_after(answer.status(), answer.headers()),
    );
    let (client, start) = (layer.layer(server), Instant::now());
    let mut all = JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        all.spawn(async move { while client.clone().oneshot(get("a")).await.unwrap().status() != 200 {} });
    }
    all.join_all().await;
    // Of the first burst, 5 are refused.
    assert_eq!((*sent.lock().unwrap(), start.elapsed().as_secs()), (105, 21));
}

#[tokio::test(start_paused = true)]
async fn a_pace_holds_for_a_minute_and_then_the_limiter_alone_decides() {
    let times = Times::default();
    let client = {
        let times = Arc::clone(&times);
        fast(1_000 * SECOND, move |nth, time| {
            note(&times, time);
            let fields = [("ratelimit-policy", r#""a";q=2;w=1"#), ("ratelimit", r#""a";r=0;t=3"#)];
            if nth == 1 { refused(3, &fields) } else { Response::new(()) }
        })
    };
    for _ in 0..130 {
        client.clone().oneshot(get("a")).await.unwrap();
    }
    let times = times.lock().unwrap();
    // 500 ms, and a part of the time that the answer took.
    let paced: Vec<_> = (0..118).map(|nth| 3_020 + nth * 510).collect();
    assert_eq!(times[1..119], paced);
    // One after the other, without a wait.
    let free: Vec<_> = (0..8).map(|nth| 63_020 + nth * 20).collect();
    assert_eq!(times[119..127], free);
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_one_request_at_a_time_tries_the_server_again() {
    let times = Times::default();
    let client = {
        let times = Arc::clone(&times);
        fast(1_000 * SECOND, move |_, time| {
            note(&times, time);
            if time < 10 * SECOND { refused(4, &[]) } else { Response::new(()) }
        })
    };
    let mut all = JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        all.spawn(async move { while client.clone().oneshot(get("a")).await.unwrap().status() != 200 {} });
    }
    all.join_all().await;
    let times = times.lock().unwrap();
    assert_eq!((&times[..10], &times[10..13]), (&[0; 10][..], &[4_020, 8_040, 12_060][..]));
    assert!(times.len() == 10 + 2 + 20 && times.iter().all(|time| *time < 14_000), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_turn_comes_too_late_at_the_pace_fails_at_once() {
    let client = fast(Duration::from_millis(5_100), |nth, _| {
        let fields = [("ratelimit-policy", r#""a";q=5;w=1"#), ("ratelimit", r#""a";r=0;t=1"#)];
        if nth == 1 { refused(1, &fields) } else { Response::new(()) }
    });
    client.clone().oneshot(get("a")).await.unwrap();
    let (mut all, start) = (JoinSet::new(), Instant::now());
    for _ in 0..30 {
        let request = client.clone().oneshot(get("a"));
        all.spawn(async move { (request.await.is_ok(), start.elapsed()) });
    }
    let results = all.join_all().await;
    // One is sent after a second, and 20 in the 4 seconds after it. Of the others, the one whose turn
    // would be next is told last.
    let failed: Vec<_> = results.iter().filter(|result| !result.0).map(|result| result.1.as_secs()).collect();
    assert_eq!(failed, [0, 0, 0, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn the_pace_is_that_of_the_slowest_policy_that_is_exhausted() {
    let read = |policies: &[&str], limits: &[&str]| {
        let all = [("ratelimit-policy", policies), ("ratelimit", limits)];
        let fields = all.into_iter().flat_map(|(name, lines)| lines.iter().map(move |line| (name, *line)));
        let answer = refused(8, &fields.collect::<Vec<_>>());
        let pause = retry_after(answer.status(), answer.headers()).unwrap();
        assert_eq!(pause.wait(), 8 * SECOND);
        pause.pace().map(|pace| pace.as_millis())
    };
    let policies = [r#""s";q=10;w=1, "m";q=100;w=60;pk=:AQI=:"#, r#""d";q=1000;w=86400;qu="requests""#];
    assert_eq!(read(&policies, &[r#""s";r=0;t=1"#]), Some(100));
    assert_eq!(read(&policies, &[r#""s";r=0;t=1"#, r#""m";r=0;t=8, "d";r=7;t=9"#]), Some(600));
    assert_eq!(read(&policies, &[r#""d";r=0;t=1"#]), Some(86_400));
    for limits in [r#""s";r=1;t=1"#, r#""x";r=0"#, "s;r=0", r#"("s");r=0"#, r#""s";r=0.0"#, "\"s", ""] {
        assert_eq!(read(&policies, &[limits]), None, "{limits}");
    }
    for policy in ["q=0;w=1", "q=-1;w=1", "q=1", "w=1", "q=5000000000;w=1", "q=1;w=1;qu=\"bytes\"", "q=1;w=1;qu=7"] {
        assert_eq!(read(&[&format!("\"s\";{policy}")], &[r#""s";r=0"#]), None, "{policy}");
    }
    assert_eq!((read(&policies, &[]), read(&[], &[r#""s";r=0"#])), (None, None));
}

#[test]
fn retry_after_is_in_seconds_or_a_date() {
    let read = |status: StatusCode, value: &str| {
        let fields = HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
        retry_after(status, &fields).as_ref().map(Pause::wait)
    };
    let (many, busy) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(read(many, "8"), Some(8 * SECOND));
    assert_eq!(read(busy, "0"), Some(Duration::ZERO));
    assert_eq!((read(StatusCode::OK, "8"), read(many, "soon"), read(many, "-1")), (None, None, None));
    let date = httpdate::fmt_http_date(SystemTime::now() + 1000 * SECOND);
    assert!(read(many, &date).is_some_and(|time| time > 900 * SECOND && time <= 1000 * SECOND));
    assert_eq!(read(many, "Sun, 06 Nov 1994 08:49:37 GMT"), None);
}
