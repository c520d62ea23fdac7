//! Requests without a key, and keys that are refused.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tollgate::{JointLimiter, Limiter, Quota};
use tollgate_http::{ClientAddress, Peer, TrustedProxies};
use tollgate_tower::{
    ClientIp, Head, KeyError, KeyExtractor, Missing, PathKey, RateLimitLayer, constant, extension, from_head, header,
    path,
};

use crate::layer::support::{Inner, ask, from, get, with};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[derive(Clone)]
struct User(u64);

fn of_user(user: u64) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = get("/");
    request.extensions_mut().insert(User(user));
    request
}

#[tokio::test]
async fn a_request_without_a_peer_is_rejected_and_told_nothing_about_the_set_up() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(1)).unwrap());
    let inner = Inner::default();
    let service = inner.behind(&RateLimitLayer::new(limiter).key(ClientIp::peer()));
    let answer = ask(&service, get("/")).await;
    assert_eq!(answer.status, 500);
    assert_eq!(&answer.body[..], br#"{"title":"Internal Server Error","status":500}"#);
    assert_eq!(answer.one("content-type"), "application/problem+json");
    assert!(!answer.fields.contains_key("ratelimit-policy") && !answer.fields.contains_key("ratelimit"));
    assert_eq!(inner.calls(), 0);
}

/// The key of a host behind a tunnel is the IPv4 address that its own embeds.
#[tokio::test]
async fn a_network_is_exempt_by_the_addresses_in_it_and_not_by_keys() {
    let (clients, own) = (ClientIp::peer(), TrustedProxies::new(["10.0.0.0/8", "2001:db8::7/128"]).unwrap());
    let layer = RateLimitLayer::new(Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(1)).unwrap()))
        .key(clients.clone())
        .skip(move |head| clients.address(head).is_ok_and(|address| own.contains(address)));
    let service = Inner::default().behind(&layer);
    for own in ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"] {
        for _ in 0..3 {
            assert!(ask(&service, from(own)).await.status.is_success(), "{own}");
        }
    }
    // NAT64, 6to4 and Teredo of 10.1.2.3; a neighbour in the /64.
    assert!(ask(&service, from("64:ff9b::a01:203")).await.status.is_success());
    for other in ["64:ff9b::a01:203", "2002:a01:203::1", "2001:0:1:2::f5fe:fdfc"] {
        assert_eq!(ask(&service, from(other)).await.status, 429, "{other}");
    }
    assert!(ask(&service, from("2001:db8::8")).await.status.is_success());
    assert_eq!(ask(&service, from("2001:db8::8")).await.status, 429);
}

#[tokio::test]
async fn requests_without_a_peer_share_a_key_or_are_not_limited_as_configured() {
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(2)).unwrap());
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::peer());
    let sharing = Inner::default().behind(&layer.clone().on_missing(Missing::Share(unknown)));
    for n in 0..4 {
        assert_eq!(ask(&sharing, get("/")).await.status.is_success(), n < 2, "request {n}");
        assert_eq!(ask(&sharing, from("192.0.2.1")).await.status.is_success(), n < 2, "request {n}");
    }
    assert_eq!(limiter.peek(unknown).remaining(), 0);
    let skipping = Inner::default().behind(&layer.on_missing(Missing::Skip));
    for _ in 0..4 {
        let answer = ask(&skipping, get("/")).await;
        assert!(answer.status.is_success() && !answer.fields.contains_key("ratelimit-policy"));
        assert!(ask(&skipping, from("192.0.2.1")).await.status.is_client_error());
    }
}

#[tokio::test]
async fn a_unix_socket_is_a_missing_key_unless_it_is_trusted_and_names_an_address() {
    let unix = || {
        let mut request = with(get("/"), "x-forwarded-for", "192.0.2.7");
        request.extensions_mut().insert(Peer::UnixSocket);
        request
    };
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(1)).unwrap());
    let layer = |clients| RateLimitLayer::new(Arc::clone(&limiter)).key(clients);
    let network = TrustedProxies::new(["127.0.0.1"]).unwrap();
    let untrusted = Inner::default().behind(&layer(ClientIp::behind(network)));
    assert_eq!(ask(&untrusted, unix()).await.status, 500);
    let trusted = Inner::default().behind(&layer(ClientIp::behind(TrustedProxies::unix_sockets())));
    assert_eq!(ask(&trusted, unix()).await.status, 200);
    assert_eq!(limiter.peek(IpAddr::from([192, 0, 2, 7])).remaining(), 0);
}

#[tokio::test]
async fn an_api_key_that_comes_twice_or_is_too_long_or_no_text_is_always_refused() {
    let limiter = Arc::new(Limiter::<String>::new(Quota::per_hour(2)).unwrap());
    for missing in [Missing::Reject, Missing::Skip, Missing::Share("-".to_owned())] {
        let rejects = missing == Missing::Reject;
        let inner = Inner::default();
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(header(API_KEY)).on_missing(missing);
        let service = inner.behind(&layer);
        let twice = with(with(get("/"), "x-api-key", "a"), "x-api-key", "a");
        assert_eq!(ask(&service, twice).await.status, 400);
        let long = with(get("/"), "x-api-key", &"k".repeat(1_025));
        assert_eq!(ask(&service, long).await.status, 400);
        let mut no_text = get("/");
        no_text.headers_mut().insert("x-api-key", HeaderValue::from_bytes(b"k\xff").unwrap());
        assert_eq!(ask(&service, no_text).await.status, 400);
        assert_eq!(inner.calls(), 0);
        // Empty is missing.
        for request in [get("/"), with(get("/"), "x-api-key", "")] {
            assert_eq!(ask(&service, request).await.status, if rejects { 400 } else { 200 });
        }
    }
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(header("X-Api-Key"));
    let service = Inner::default().behind(&layer);
    let longest = "k".repeat(1_024);
    assert_eq!(ask(&service, with(get("/"), "x-api-key", &longest)).await.status, 200);
    assert_eq!(limiter.peek(longest.as_str()).remaining(), 1);
}

#[tokio::test]
async fn an_answer_of_the_service_to_a_bad_request_knows_which_key_it_needs() {
    let own = RateLimitLayer::new(Arc::new(Limiter::new(Quota::per_hour(9)).unwrap()));
    let own = own.key(header(API_KEY)).on_denied(|denied| http::Response::new(denied.wanted().unwrap().to_owned()));
    assert_eq!(&ask(&Inner::default().behind(&own), get("/")).await.body[..], b"the header field x-api-key");
}

#[test]
#[should_panic(expected = "no header field can have this name")]
fn a_name_that_no_header_field_can_have_is_refused() {
    let _ = header("x api key");
}

#[tokio::test]
async fn a_header_with_one_address_that_comes_twice_is_refused() {
    let proxies = TrustedProxies::new(["192.0.2.1"]).unwrap();
    let clients = ClientAddress::behind_header(proxies, "X-Real-IP").unwrap();
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(1)).unwrap());
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).key(ClientIp::new(clients)).on_missing(Missing::Skip);
    let service = Inner::default().behind(&layer);
    let once = with(from("192.0.2.1"), "x-real-ip", "198.51.100.1");
    assert_eq!(ask(&service, once.clone()).await.status, 200);
    assert_eq!(limiter.peek(IpAddr::from([198, 51, 100, 1])).remaining(), 0);
    assert_eq!(ask(&service, with(once, "x-real-ip", "198.51.100.2")).await.status, 400);
    // From others the field does not count, however often it comes.
    let other = with(with(from("192.0.2.2"), "x-real-ip", "198.51.100.1"), "x-real-ip", "198.51.100.2");
    assert_eq!(ask(&service, other).await.status, 200);
}

#[tokio::test]
async fn a_dimension_without_its_key_is_not_asked_where_it_is_skipped() {
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_hour(1)])
        .dimension("address", [Quota::per_hour(3)])
        .build()
        .unwrap();
    let user = extension(|user: &User| user.0).on_missing(Missing::Skip);
    let layer = RateLimitLayer::new(Arc::new(limiter)).key((user, ClientIp::peer()));
    let service = Inner::default().behind(&layer);
    let by = |user: Option<u64>, peer: &str| {
        let mut request = from(peer);
        user.map(|user| request.extensions_mut().insert(User(user)));
        request
    };
    assert_eq!(ask(&service, by(Some(1), "192.0.2.1")).await.status, 200);
    assert_eq!(ask(&service, by(Some(1), "192.0.2.1")).await.status, 429);
    assert_eq!(ask(&service, by(None, "192.0.2.1")).await.status, 200);
    assert_eq!(ask(&service, by(None, "192.0.2.1")).await.status, 200);
    assert_eq!(ask(&service, by(None, "192.0.2.1")).await.status, 429);
    // The layer still rejects a request without an address.
    assert_eq!(ask(&service, of_user(2)).await.status, 500);
}

#[tokio::test]
async fn a_dimension_that_is_not_asked_is_not_told() {
    let limiter = JointLimiter::builder()
        .dimension("user", [Quota::per_hour(9)])
        .dimension("address", [Quota::per_hour(2)])
        .build()
        .unwrap();
    let user = extension(|user: &User| user.0).on_missing(Missing::Skip);
    let layer = RateLimitLayer::new(Arc::new(limiter)).key((user, ClientIp::peer()));
    let service = Inner::default().behind(&layer);
    let told = async |request| {
        let answer = ask(&service, request).await;
        let field = |name: &str| answer.fields.get(name).unwrap().to_str().unwrap().to_owned();
        (answer.status.as_u16(), field("ratelimit-policy"), field("ratelimit"))
    };
    let mut of_both = from("192.0.2.1");
    of_both.extensions_mut().insert(User(1));
    let (address, both) = (r#""address";q=2;w=3600"#, r#""user";q=9;w=3600, "address";q=2;w=3600"#);
    for (status, request, policies) in
        [(200, from("192.0.2.1"), address), (200, of_both.clone(), both), (429, from("192.0.2.1"), address)]
    {
        let (found, policy, limit) = told(request).await;
        assert_eq!((found, policy.as_str()), (status, policies));
        assert!(limit.starts_with(r#""address";"#), "{limit}");
    }
    assert_eq!(told(of_both).await.1, both);
}

#[tokio::test]
async fn a_layer_s_answer_counts_for_the_dimensions_that_have_none() {
    let joint = || {
        let limiter = JointLimiter::builder()
            .dimension("user", [Quota::per_hour(1)])
            .dimension("address", [Quota::per_hour(1)])
            .build();
        RateLimitLayer::new(Arc::new(limiter.unwrap()))
    };
    let user = || extension(|user: &User| user.0);
    let unknown = IpAddr::from([0, 0, 0, 0]);

    let share = joint().key((user(), ClientIp::peer())).on_missing(Missing::Share((0, unknown)));
    let share = Inner::default().behind(&share);
    assert_eq!(ask(&share, get("/")).await.status, 200);
    assert_eq!(ask(&share, of_user(1)).await.status, 429, "the shared address is exhausted");
    assert_eq!(ask(&share, from("192.0.2.1")).await.status, 429, "the shared user is exhausted");

    let skip = Inner::default().behind(&joint().key((user(), ClientIp::peer())).on_missing(Missing::Skip));
    for _ in 0..3 {
        let unlimited = ask(&skip, get("/")).await;
        assert!(unlimited.status.is_success() && !unlimited.fields.contains_key("ratelimit-policy"));
    }
    assert_eq!(ask(&skip, of_user(1)).await.status, 200);
    assert_eq!(ask(&skip, of_user(1)).await.status, 429);

    let own = user().on_missing(Missing::Reject);
    let reject = Inner::default().behind(&joint().key((own, ClientIp::peer())).on_missing(Missing::Skip));
    assert_eq!(ask(&reject, from("192.0.2.1")).await.status, 500, "an extractor's own answer comes first");
}

#[tokio::test]
async fn a_malformed_part_of_a_key_is_not_forgiven_for_a_missing_one() {
    let limiter = Arc::new(Limiter::<(u64, String)>::new(Quota::per_hour(1)).unwrap());
    let user = extension(|user: &User| user.0).on_missing(Missing::Skip);
    let layer = RateLimitLayer::new(limiter).key((user, header(API_KEY))).on_missing(Missing::Skip);
    let service = Inner::default().behind(&layer);
    assert_eq!(ask(&service, get("/")).await.status, 200);
    let twice = with(with(get("/"), "x-api-key", "a"), "x-api-key", "b");
    assert_eq!(ask(&service, twice).await.status, 400);
}

#[tokio::test]
async fn parts_of_a_key_do_not_run_into_one_another() {
    // As texts, and as bytes.
    let limiter = Arc::new(Limiter::<(String, String)>::new(Quota::per_hour(1)).unwrap());
    let key = (header("x-one"), header("x-two"));
    let texts = Inner::default().behind(&RateLimitLayer::new(limiter).key(key));
    let limiter = Arc::new(Limiter::<(HeaderValue, HeaderValue)>::new(Quota::per_hour(1)).unwrap());
    let value = |name| from_head(move |head| Ok(head.headers[name].clone()));
    let bytes = Inner::default().behind(&RateLimitLayer::new(limiter).key((value("x-one"), value("x-two"))));
    let request = |one, two| with(with(get("/"), "x-one", one), "x-two", two);
    for (one, two, status) in [("a", "bc", 200), ("ab", "c", 200), ("a", "bc", 429)] {
        assert_eq!(ask(&bytes, request(one, two)).await.status, status);
        assert_eq!(ask(&texts, request(one, two)).await.status, status);
    }
}

#[tokio::test]
async fn a_path_does_not_run_into_another_path_of_a_key() {
    let limiter = Arc::new(Limiter::<(PathKey, PathKey)>::new(Quota::per_hour(1)).unwrap());
    let referrer = from_head(|head: &Head<'_>| {
        let referrer = get(head.headers["referer"].to_str().unwrap());
        path().extract(&Head::of(&referrer))
    });
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).key((path(), referrer)));
    let keys = [("/a/b", "/c", 200), ("/b", "/c/a", 200), ("/a/b/c", "/", 200), ("/", "/a/b/c", 200)];
    for (one, two, status) in keys.into_iter().chain([("/x/../a//%62/", "/./c", 429), ("/b/", "//c/%61", 429)]) {
        assert_eq!(ask(&service, with(get(one), "referer", two)).await.status, status, "{one} {two}");
    }
}

#[tokio::test]
async fn a_path_does_not_run_into_a_text_of_a_key() {
    let limiter = Arc::new(Limiter::<(PathKey, String)>::new(Quota::per_hour(1)).unwrap());
    let by = |user: &str| {
        let layer = RateLimitLayer::new(Arc::clone(&limiter)).key((path(), constant(user.to_owned())));
        Inner::default().behind(&layer)
    };
    assert_eq!(ask(&by("alice"), get("/c")).await.status, 200);
    for user in ["c\0\0\0\0\0\0\0\u{1}\0\0\0\0\0\0\0alice", "c\u{1}\0\0\0\0\0\0\0alice"] {
        assert_eq!(ask(&by(user), get("/")).await.status, 200);
    }
    assert_eq!(ask(&by("alice"), get("/x/../%63/")).await.status, 429);
}

#[tokio::test]
async fn extractors_can_be_chosen_at_run_time() {
    let by_address: Box<dyn KeyExtractor<Key = String>> =
        Box::new(tollgate_tower::from_head(|head: &Head<'_>| ClientIp::peer().extract(head).map(|ip| ip.to_string())));
    let limiter = Arc::new(Limiter::<String>::new(Quota::per_hour(1)).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(Arc::clone(&limiter)).key(by_address));
    assert_eq!(ask(&service, from("192.0.2.1")).await.status, 200);
    assert_eq!(limiter.peek("192.0.2.1").remaining(), 0);
}

#[test]
fn a_key_that_the_server_does_not_provide_is_its_error() {
    assert_eq!(KeyError::not_provided().status(), 500);
}
