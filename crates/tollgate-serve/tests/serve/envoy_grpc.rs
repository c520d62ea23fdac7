//! The protocols of Envoy, by generated clients of tonic.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{Address, HeaderValue, SocketAddress, address};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer, Request};
use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest, CheckResponse};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use tokio::runtime::Runtime;
use tonic::Status;

use crate::place::by_both;
use crate::support::{POLICY, Running, problem_of};

/// One call on a connection of its own.
pub(crate) fn check(served: &Running, attributes: AttributeContext) -> Result<CheckResponse, Status> {
    Runtime::new().unwrap().block_on(async {
        let mut client = AuthorizationClient::connect(served.url("")).await.unwrap();
        client.check(CheckRequest { attributes: Some(attributes) }).await.map(tonic::Response::into_inner)
    })
}

pub(crate) fn rate_limit(served: &Running, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
    Runtime::new().unwrap().block_on(async {
        let mut client = RateLimitServiceClient::connect(served.url("")).await.unwrap();
        client.should_rate_limit(request).await.map(tonic::Response::into_inner)
    })
}

pub(crate) fn attributes(peer: &str, headers: &[(&str, &str)], extensions: &[(&str, &str)]) -> AttributeContext {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<HashMap<_, _>>()
    };
    let socket = SocketAddress { address: peer.to_owned(), ..SocketAddress::default() };
    let address = Address { address: Some(address::Address::SocketAddress(socket)) };
    let http = HttpRequest { headers: map(headers), ..HttpRequest::default() };
    AttributeContext {
        source: Some(Peer { address: Some(address), ..Peer::default() }),
        request: Some(Request { http: Some(http), ..Request::default() }),
        context_extensions: map(extensions),
        ..AttributeContext::default()
    }
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).to_owned(), value: (*value).to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

pub(crate) fn request(descriptors: Vec<RateLimitDescriptor>, hits_addend: u32) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend }
}

pub(crate) fn value<'a>(fields: &'a [HeaderValue], name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.key == name).map(|field| field.value.as_str())
}

#[test]
fn check_admits_and_denies_by_the_address_and_the_named_header_field() {
    by_both(|place| {
        let server = place.server(POLICY).address("client").unwrap().header("user", "x-api-key").unwrap();
        let served = Running::start(server);
        let alice = || attributes("192.0.2.1", &[("x-api-key", "alice")], &[]);
        for left in ["2", "1", "0"] {
            let admitted = check(&served, alice()).unwrap();
            assert_eq!(admitted.status.unwrap().code, 0);
            let Some(HttpResponse::OkResponse(ok)) = admitted.http_response else { panic!("it is admitted") };
            let fields: Vec<HeaderValue> = ok.response_headers_to_add.into_iter().filter_map(|it| it.header).collect();
            assert!(value(&fields, "ratelimit").unwrap().starts_with(&format!("\"user\";r={left};t=")));
            assert_eq!(value(&fields, "ratelimit-policy"), Some(r#""address";q=5;w=86400, "user";q=3;w=86400"#));
        }
        let denied = check(&served, alice()).unwrap();
        assert_ne!(denied.status.unwrap().code, 0);
        let Some(HttpResponse::DeniedResponse(response)) = denied.http_response else { panic!("it is denied") };
        assert_eq!(response.status.unwrap().code, 429);
        let fields: Vec<HeaderValue> = response.headers.into_iter().filter_map(|it| it.header).collect();
        assert_eq!(value(&fields, "content-type"), Some("application/problem+json"));
        assert!(value(&fields, "retry-after").unwrap().parse::<u64>().unwrap() > 80_000);
        assert_eq!(problem_of(&response.body, 429)["violated-policies"], serde_json::json!(["user"]));
        // Another user at the address, which has two left.
        let bob = check(&served, attributes("192.0.2.1", &[("x-api-key", "bob")], &[])).unwrap();
        assert_eq!(bob.status.unwrap().code, 0);
    });
}

#[test]
fn no_cache_keeps_an_answer_of_grpc_or_a_response_with_the_fields_of_one_client() {
    let served = Running::start(crate::support::server(POLICY).address("client").unwrap().optional("user").unwrap());
    Runtime::new().unwrap().block_on(async {
        let mut client = AuthorizationClient::connect(served.url("")).await.unwrap();
        let asked = CheckRequest { attributes: Some(attributes("192.0.2.1", &[], &[])) };
        let admitted = client.check(asked).await.unwrap();
        assert_eq!(admitted.metadata().get("cache-control").unwrap(), "no-store");
        let Some(HttpResponse::OkResponse(ok)) = admitted.into_inner().http_response else { panic!("it is admitted") };
        let added = ok.response_headers_to_add.into_iter().map(|it| (it.append_action(), it.header.unwrap()));
        let of_cache: Vec<_> = added.filter(|(_, field)| field.key == "cache-control").collect();
        let [(action, field)] = &of_cache[..] else { panic!("once: {of_cache:?}") };
        // What the service says of its own responses stays.
        assert_eq!((*action, field.value.as_str()), (HeaderAppendAction::AddIfAbsent, "no-store"));
        let mut client = RateLimitServiceClient::connect(served.url("")).await.unwrap();
        let asked = request(vec![descriptor(&[("client", "192.0.2.1")])], 1);
        let admitted = client.should_rate_limit(asked).await.unwrap();
        assert_eq!(admitted.metadata().get("cache-control").unwrap(), "no-store");
    });
}

#[test]
fn check_reads_no_header_field_that_was_not_named_since_the_client_wrote_it() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        let forged = [("x-tollgate-client", "198.51.100.1"), ("x-tollgate-user", "alice")];
        let refused = check(&served, attributes("192.0.2.1", &forged, &[])).unwrap();
        let Some(HttpResponse::DeniedResponse(response)) = refused.http_response else { panic!("it has no user") };
        assert_eq!(response.status.unwrap().code, 400);
        assert_eq!(response.body, r#"{"title":"Bad Request","status":400}"#);
        // The operator's extension of the route has the value.
        for _ in 0..3 {
            let admitted = check(&served, attributes("192.0.2.1", &forged, &[("user", "route")])).unwrap();
            assert_eq!(admitted.status.unwrap().code, 0);
        }
        let denied = check(&served, attributes("192.0.2.2", &forged, &[("user", "route")])).unwrap();
        assert_eq!(denied.status.unwrap().code, 7);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="missing_key"}"#), 1);
    });
}

#[test]
fn descriptors_ask_the_dimensions_that_have_their_entries_as_fields() {
    by_both(|place| {
        let policy = format!(
            "{POLICY}\n[[dimension]]\nname = \"login\"\nkey = [\"client\", \"user\"]\nquota = [{{ limit = 1, per = \"1d\" }}]"
        );
        let served = place.of(&policy);
        let client = || descriptor(&[("client", "192.0.2.1")]);
        let login = || descriptor(&[("user", "alice"), ("client", "192.0.2.1")]);
        let first = rate_limit(&served, request(vec![client(), login()], 0)).unwrap();
        assert_eq!(first.overall_code(), Code::Ok);
        assert_eq!(first.statuses.len(), 2);
        let [of_client, of_login] = &first.statuses[..] else { panic!("one for each descriptor") };
        assert_eq!((of_client.code(), of_client.limit_remaining), (Code::Ok, 4));
        let limit = of_client.current_limit.clone().unwrap();
        assert_eq!((limit.name.as_str(), limit.requests_per_unit, limit.unit()), ("address", 5, Unit::Day));
        assert_eq!((of_login.code(), of_login.limit_remaining), (Code::Ok, 0));
        assert!(value(&first.response_headers_to_add, "ratelimit").unwrap().starts_with(r#""login";r=0;t="#));

        // The second descriptor is over its limit, so that the first is not charged.
        let second = rate_limit(&served, request(vec![client(), login()], 0)).unwrap();
        assert_eq!(second.overall_code(), Code::OverLimit);
        let [of_client, of_login] = &second.statuses[..] else { panic!("one for each descriptor") };
        assert_eq!((of_client.code(), of_login.code()), (Code::Ok, Code::OverLimit));
        assert_eq!(of_login.current_limit.clone().unwrap().name, "login");
        assert!(of_login.duration_until_reset.unwrap().seconds > 80_000);
        assert_eq!(value(&second.response_headers_to_add, "content-type"), Some("application/problem+json"));
        assert!(value(&second.response_headers_to_add, "retry-after").is_some());
        let body = String::from_utf8(second.raw_body.clone()).unwrap();
        assert_eq!(problem_of(&body, 429)["violated-policies"], serde_json::json!(["login"]));

        // Four are left of the address. The dimension `user` was not asked.
        assert_eq!(rate_limit(&served, request(vec![client()], 4)).unwrap().overall_code(), Code::Ok);
        assert_eq!(rate_limit(&served, request(vec![client()], 1)).unwrap().overall_code(), Code::OverLimit);
        let user = descriptor(&[("user", "alice")]);
        assert_eq!(rate_limit(&served, request(vec![user], 3)).unwrap().overall_code(), Code::Ok);
    });
}

#[test]
fn the_remote_address_is_the_only_address_of_the_policy() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        let remote = |address: &str| request(vec![descriptor(&[("remote_address", address)])], 5);
        assert_eq!(rate_limit(&served, remote("2001:db8::1")).unwrap().overall_code(), Code::Ok);
        assert_eq!(rate_limit(&served, remote("2001:db8::2")).unwrap().overall_code(), Code::OverLimit);
        // No field of this policy is an address, or two are.
        let without = place.server(&POLICY.replace("client", "origin"));
        for server in [without, place.server(POLICY).address("user").unwrap()] {
            let status = rate_limit(&Running::start(server), remote("2001:db8::1")).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");
        }
    });
}

#[test]
fn a_request_that_the_policy_does_not_fit_is_an_error_and_charges_nothing() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        let client = || descriptor(&[("client", "192.0.2.1")]);
        let with_limit =
            RateLimitDescriptor { limit: Some(RateLimitOverride { requests_per_unit: 1_000, unit: 1 }), ..client() };
        let with_cost = |value| RateLimitDescriptor { hits_addend: Some(UInt64Value { value }), ..client() };
        let cases = [
            (vec![], "there is no descriptor"),
            (vec![client(), descriptor(&[("tenant", "7")])], "the policy has \"client\", \"user\""),
            (vec![client(), descriptor(&[])], "no dimension has the entries"),
            (vec![descriptor(&[("client", "192.0.2.1"), ("user", "alice")])], "no dimension has the entries"),
            (vec![client(), descriptor(&[("client", "192.0.2.2")])], "the entry \"client\" has two values"),
            (vec![client(), descriptor(&[("user", "")])], "the entry \"user\" is empty"),
            (vec![descriptor(&[("client", "here")])], "the entry \"client\" is not an IP address"),
            (vec![with_limit], "the policy has the limits"),
            (vec![with_cost(0)], "hits_addend is zero"),
            (vec![with_cost(1 << 32)], "hits_addend is more than"),
            (vec![with_cost(1), with_cost(2)], "different hits_addend"),
        ];
        let count = cases.len() as u64;
        for (descriptors, expected) in cases {
            let status = rate_limit(&served, request(descriptors, 0)).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument, "{expected}: {status:?}");
            assert!(status.message().contains(expected), "{expected}: {status:?}");
        }
        assert_eq!(served.metric(r#"tollgate_requests_total{result="malformed"}"#), count);
        let all = rate_limit(&served, request(vec![with_cost(5)], 1)).unwrap();
        assert_eq!((all.overall_code(), all.statuses[0].limit_remaining), (Code::Ok, 0));
        // More than the limit: no wait helps.
        let never = rate_limit(&served, request(vec![client()], 6)).unwrap();
        assert_eq!(never.overall_code(), Code::OverLimit);
        assert_eq!((value(&never.response_headers_to_add, "retry-after"), never.raw_body.len()), (None, 0));
    });
}

#[test]
fn a_message_above_64_kib_is_refused() {
    by_both(|place| {
        let served = place.of(POLICY);
        let long = "x".repeat(70_000);
        let status = rate_limit(&served, request(vec![descriptor(&[("client", &long)])], 0)).unwrap_err();
        assert_eq!(status.code(), tonic::Code::OutOfRange, "{status:?}");
        let long = attributes("192.0.2.1", &[("x", &long)], &[("user", "alice"), ("client", "192.0.2.1")]);
        assert_eq!(check(&served, long).unwrap_err().code(), tonic::Code::OutOfRange);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="admitted"}"#), 0);
    });
}

#[test]
fn an_unknown_method_is_unimplemented() {
    let served = Running::of(POLICY);
    // As any client of gRPC that knows more methods.
    let status = Runtime::new().unwrap().block_on(async {
        let channel = tonic::transport::Endpoint::new(served.url("")).unwrap().connect().await.unwrap();
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.unwrap();
        let path = "/envoy.service.auth.v3.Authorization/Recheck".parse().unwrap();
        let codec = tonic_prost::ProstCodec::<CheckRequest, CheckResponse>::default();
        grpc.unary(tonic::Request::new(CheckRequest::default()), path, codec).await.unwrap_err()
    });
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}
