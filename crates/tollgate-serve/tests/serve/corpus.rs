//! A server decides the corpus of policies as the limiter in process does.

use std::cell::Cell;

use envoy_types::pb::envoy::service::auth::v3::CheckRequest;
use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use tokio::runtime::Runtime;
use tollgate::{AnyClock, MockClock};
use tollgate_kit::corpus::{self, Answer, Case, Request};
use tollgate_policy::{Matcher, Policy};
use tollgate_serve::Server;

use crate::envoy_grpc::attributes;
use crate::place::Place;
use crate::support::{Running, agent, server};

/// Asks `/authz` as a proxy that sends the client as it does.
fn decide(server: Server, clock: &MockClock, requests: &[Request]) -> Vec<Answer> {
    let (served, agent) = (Running::start(server.clock(AnyClock::new(clock.clone()))), agent());
    let answer = |request: &Request| {
        clock.set(request.nanos());
        let hops: Vec<String> =
            request.forwarded.map(str::to_owned).into_iter().chain([request.peer.to_string()]).collect();
        let mut asked = agent.get(served.url("/authz")).header("x-tollgate-client", hops.join(", "));
        for (name, value) in [("method", request.method), ("path", request.target), ("host", request.host)] {
            asked = asked.header(format!("x-tollgate-{name}"), value);
        }
        asked = asked.header(corpus::USER, request.user);
        if let Some(plan) = request.plan {
            asked = asked.header(corpus::PLAN, plan);
        }
        let mut answer = asked.call().unwrap();
        answer.body_mut().read_to_string().unwrap();
        request.answered(answer.status().as_u16())
    };
    requests.iter().map(answer).collect()
}

#[test]
fn a_server_decides_each_policy_of_the_corpus_as_in_process() {
    let decide = |policy: &Policy, requests: &[Request]| {
        decide(Server::new(policy.clone()), &Place::in_process().clock(), requests)
    };
    let played = corpus::check(|_| true, decide);
    assert!(played >= 60, "{played}");
}

#[test]
fn a_server_on_a_store_decides_the_corpus_as_in_process() {
    let Some(place) = Place::on_store() else { return };
    let number = Cell::new(0);
    let decide = |policy: &Policy, requests: &[Request]| {
        number.set(number.get() + 1);
        // On a store there are none, and its table comes first.
        let text = policy.to_string().replace("network_limits = false\n", "");
        let text = place.policy(&text, &format!("name = \"{}\"", number.get()));
        decide(server(&text), &place.clock(), requests)
    };
    let played = corpus::check(Case::is_for_a_store, decide);
    assert!(played >= 60, "{played}");
}

/// Asks `Check` as Envoy does, with all attributes of a request.
fn decide_for_envoy(policy: &Policy, requests: &[Request]) -> Vec<Answer> {
    let clock = Place::in_process().clock();
    let mut server = Server::new(policy.clone()).clock(AnyClock::new(clock.clone()));
    // Envoy knows no users: the operator names their header field.
    if Matcher::new(policy).fields().iter().any(|field| field == "user") {
        server = server.header("user", corpus::USER).unwrap();
    }
    let served = Running::start(server);
    Runtime::new().unwrap().block_on(async {
        let mut client = AuthorizationClient::connect(served.url("")).await.unwrap();
        let mut answers = Vec::new();
        for request in requests {
            clock.set(request.nanos());
            let fields = [
                (corpus::USER, Some(request.user)),
                (corpus::PLAN, request.plan),
                (corpus::FORWARDED, request.forwarded),
            ];
            let fields: Vec<_> = fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let mut attributes = attributes(&request.peer.to_string(), &fields, &[]);
            let http = attributes.request.as_mut().and_then(|it| it.http.as_mut()).unwrap();
            http.method = request.method.to_owned();
            http.path = request.target.to_owned();
            http.host = request.host.to_owned();
            let asked = CheckRequest { attributes: Some(attributes) };
            let answer = client.check(asked).await.unwrap().into_inner();
            answers.push(match answer.http_response.unwrap() {
                HttpResponse::OkResponse(_) => Answer::Admitted,
                HttpResponse::DeniedResponse(denied) => {
                    request.answered(u16::try_from(denied.status.unwrap().code).unwrap())
                }
                HttpResponse::ErrorResponse(error) => panic!("{error:?}: {request:?}"),
            });
        }
        answers
    })
}

#[test]
fn a_server_decides_the_corpus_for_envoy_as_in_process() {
    let played = corpus::check(|_| true, decide_for_envoy);
    assert!(played >= 60, "{played}");
}
