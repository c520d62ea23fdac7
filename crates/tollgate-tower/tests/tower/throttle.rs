//! Clients that keep to a rate and to `Retry-After`, under paused time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response, StatusCode, header};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate::{Limiter, Quota, TokioClock};
use tollgate_tower::{ThrottleError, ThrottleLayer, retry_after};
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

#[test]
fn retry_after_is_in_seconds_or_a_date() {
    let read = |status: StatusCode, value: &str| {
        let fields = HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
        retry_after(status, &fields)
    };
    let (many, busy) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(read(many, "8"), Some(8 * SECOND));
    assert_eq!(read(busy, "0"), Some(Duration::ZERO));
    assert_eq!((read(StatusCode::OK, "8"), read(many, "soon"), read(many, "-1")), (None, None, None));
    let date = httpdate::fmt_http_date(SystemTime::now() + 1000 * SECOND);
    assert!(read(many, &date).is_some_and(|time| time > 900 * SECOND && time <= 1000 * SECOND));
    assert_eq!(read(many, "Sun, 06 Nov 1994 08:49:37 GMT"), None);
}
