//! Several servers on one store, and servers whose store is away.

use std::time::Duration;

use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use tokio::runtime::Runtime;
use tollgate_serve::ServeError;

use crate::envoy_grpc::descriptor;
use crate::place::Place;
use crate::support::{Answer, POLICY, Running, problem_of, server};

const USERS: &str = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 100, per = \"1d\" }]\n";
const ALICE: &str = r#"{"keys": {"user": "alice"}}"#;

fn counted(served: &Running, metric: &str, result: &str) -> u64 {
    served.metric(&format!("{metric}{{result=\"{result}\"}}"))
}

#[test]
fn servers_on_one_store_share_one_limit_exactly() {
    let Some(place) = Place::on_store() else { return };
    let servers = [place.of(USERS), place.of(USERS)];
    let ask = |served: &Running| (0..50).filter(|_| served.acquire(ALICE).status == 200).count();
    let admitted: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = servers.iter().cycle().take(4).map(|served| scope.spawn(move || ask(served))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(admitted.iter().sum::<usize>(), 100, "{admitted:?}");
    let of_store = |result| servers.iter().map(|it| counted(it, "tollgate_store_requests_total", result)).sum::<u64>();
    assert_eq!((of_store("admitted"), of_store("denied"), of_store("refused")), (100, 100, 0));
    // A server that starts later goes on, without a snapshot.
    assert_eq!(place.of(USERS).acquire(ALICE).status, 429);
}

/// The status of a denial by the one service of Envoy, and the code of the other.
type ByGrpc = (Option<i32>, Code);

/// One call of each of Envoy's services.
fn by_grpc(served: &Running) -> ByGrpc {
    Runtime::new().unwrap().block_on(async {
        let mut client = AuthorizationClient::connect(served.url("")).await.unwrap();
        let context_extensions = [("user".to_owned(), "alice".to_owned())].into();
        let attributes = Some(AttributeContext { context_extensions, ..AttributeContext::default() });
        let answer = client.check(CheckRequest { attributes }).await.unwrap().into_inner();
        let status = match answer.http_response.unwrap() {
            HttpResponse::DeniedResponse(denied) => Some(denied.status.unwrap().code),
            _ => None,
        };
        let mut client = RateLimitServiceClient::connect(served.url("")).await.unwrap();
        let descriptors = vec![descriptor(&[("user", "alice")])];
        let request = RateLimitRequest { descriptors, ..RateLimitRequest::default() };
        (status, client.should_rate_limit(request).await.unwrap().into_inner().overall_code())
    })
}

/// A server whose store ends after one request, and the answers from then on.
fn left_alone(more: &str) -> Option<(Running, [Answer; 3], ByGrpc)> {
    let mut place = Place::on_store()?;
    let served = Running::start(server(&place.policy(USERS, more)));
    assert_eq!(served.acquire(ALICE).field("ratelimit"), Some(r#""user";r=99;t=86400"#));
    place.goes_away();
    let field = [("x-tollgate-user", "alice")];
    let answers = [served.acquire(ALICE), served.get("/auth_request", &field), served.get("/authz", &field)];
    let by_grpc = by_grpc(&served);
    Some((served, answers, by_grpc))
}

#[test]
fn a_store_that_is_away_is_answered_with_503_and_admits_nothing() {
    let Some((served, [acquired, of_nginx, of_envoy], by_grpc)) = left_alone("") else { return };
    assert_eq!((acquired.status, acquired.field("retry-after"), acquired.field("ratelimit")), (503, None, None));
    assert_eq!(acquired.body, r#"{"title":"Service Unavailable","status":503}"#);
    assert_eq!(acquired.field("cache-control"), Some("no-store"));
    assert_eq!((of_nginx.status, of_nginx.field("tollgate-status")), (403, Some("503")));
    problem_of(of_nginx.field("tollgate-problem").unwrap(), 503);
    assert_eq!(of_envoy.problem()["title"], "Service Unavailable");
    assert_eq!(by_grpc, (Some(503), Code::OverLimit));
    assert_eq!(counted(&served, "tollgate_requests_total", "undecided"), 5);
    assert_eq!(counted(&served, "tollgate_requests_total", "admitted"), 1);
    assert_eq!(counted(&served, "tollgate_store_requests_total", "refused"), 5);
    assert_eq!(served.get("/health", &[]).status, 200);
}

#[test]
fn a_store_that_is_away_admits_without_a_count_if_that_is_asked_for() {
    let Some((served, [acquired, of_nginx, of_envoy], by_grpc)) = left_alone("on_failure = \"open\"") else { return };
    assert_eq!((acquired.status, acquired.field("ratelimit")), (200, None));
    assert_eq!((of_nginx.status, of_envoy.status, by_grpc), (204, 200, (None, Code::Ok)));
    assert_eq!(counted(&served, "tollgate_requests_total", "uncounted"), 5);
    assert_eq!(counted(&served, "tollgate_store_requests_total", "admitted_uncounted"), 5);
    assert_eq!(served.metric(r#"tollgate_admissions_total{dimension="user"}"#), 1);
}

#[test]
fn a_store_that_is_away_leaves_a_share_of_the_limit() {
    let away = "on_failure = \"local\"\nnodes = 20";
    let Some((served, [acquired, of_nginx, of_envoy], by_grpc)) = left_alone(away) else { return };
    // One in twenty of a hundred.
    assert_eq!(acquired.field("ratelimit"), Some(r#""user";r=4;t=86400"#));
    assert_eq!((acquired.status, of_nginx.status, of_envoy.status, by_grpc), (200, 204, 200, (None, Code::Ok)));
    assert_eq!(served.acquire(ALICE).problem()["violated-policies"], serde_json::json!(["user"]));
    let of_store = |result| counted(&served, "tollgate_store_requests_total", result);
    assert_eq!((of_store("admitted"), of_store("admitted_locally"), of_store("denied_locally")), (1, 5, 1));
    assert_eq!(of_store("refused"), 0);
}

#[test]
fn a_cached_denial_is_told_as_the_store_told_it() {
    let Some(place) = Place::on_store() else { return };
    let served = Running::start(server(&place.policy(POLICY, "cache_denials = 100")));
    let ask = |cost: u32| {
        served.acquire(&format!(r#"{{"keys": {{"client": "192.0.2.1", "user": "alice"}}, "cost": {cost}}}"#))
    };
    assert_eq!(ask(3).status, 200);
    for _ in 0..3 {
        let denied = ask(1);
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["user"]));
        assert_eq!(denied.field("ratelimit-policy"), Some(r#""address";q=5;w=86400, "user";q=3;w=86400"#));
        assert!(denied.field("ratelimit").unwrap().starts_with(r#""user";r=0;t="#), "{denied:?}");
        let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
        assert!((80_000..=86_400).contains(&wait), "{wait}");
    }
    let of_store = |result| counted(&served, "tollgate_store_requests_total", result);
    assert_eq!((of_store("denied"), of_store("denied_by_cache")), (1, 2));
    assert_eq!(served.metric(r#"tollgate_denials_total{dimension="user",quota="user"}"#), 3);
}

#[test]
fn a_tier_has_permits_denials_and_a_share_of_its_own_on_a_store() {
    let Some(mut place) = Place::on_store() else { return };
    let tier = "tier_by = \"plan\"\n[[dimension.tier]]\nname = \"internal\"\nunlimited = true\n\
                [[dimension.tier]]\nname = \"pro\"\nquota = [{ limit = 4, per = \"1d\" }, { limit = 200, per = \"2d\" }]\n";
    let policy = format!("[[dimension]]\nname = \"user\"\nquota = [{{ limit = 2, per = \"1d\" }}]\n{tier}");
    let away = "cache_denials = 100\non_failure = \"local\"\nnodes = 2";
    let served = [(); 2].map(|()| Running::start(server(&place.policy(&policy, away))));
    let ask = |server: usize, user: &str, plan: &str| {
        served[server].acquire(&format!(r#"{{"keys": {{"user": "{user}", "plan": "{plan}"}}}}"#))
    };
    let admitted = |user: &str, plan: &str| (0..8).filter(|at| ask(at % 2, user, plan).status == 200).count();
    assert_eq!([admitted("alice", "free"), admitted("alice", "pro"), admitted("alice", "internal")], [2, 4, 8]);
    for _ in 0..2 {
        let denied = ask(0, "alice", "pro");
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["user-1d"]));
        assert_eq!(denied.field("ratelimit-policy"), Some(r#""user-1d";q=4;w=86400, "user-2d";q=200;w=172800"#));
        assert!(denied.field("ratelimit").unwrap().starts_with(r#""user-1d";r=0;t="#), "{denied:?}");
    }
    assert!(counted(&served[0], "tollgate_store_requests_total", "denied_by_cache") > 0);
    // A server that starts later goes on with both.
    let later = Running::start(server(&place.policy(&policy, away)));
    for plan in ["free", "pro"] {
        let body = format!(r#"{{"keys": {{"user": "alice", "plan": "{plan}"}}}}"#);
        assert_eq!(later.acquire(&body).status, 429, "{plan}");
    }
    place.goes_away();
    // One in two.
    let locally = |plan: &str| (0..8).filter(|_| ask(1, "bob", plan).status == 200).count();
    assert_eq!([locally("free"), locally("pro"), locally("internal")], [1, 2, 8]);
}

#[test]
fn leases_are_spent_without_the_store_and_given_back_by_a_server_that_stops() {
    let Some(place) = Place::on_store() else { return };
    // Steps of a day: none ends while this runs.
    let quota = "[[dimension]]\nname = \"user\"\nquota = [{ algorithm = \"quantised-log\", limit = 200, per = \"1d\", \
                 resolution = \"1d\" }]\n";
    let start = || Running::start(server(&place.policy(quota, "lease = { most = 50, slots = 64 }")));
    let [first, second] = [start(), start()];
    let left = |served: &Running| {
        let answer = served.acquire(ALICE);
        let told = answer.field("ratelimit").unwrap().strip_prefix("\"user\";r=").unwrap().to_owned();
        (answer.status, told.split_once(';').unwrap().0.parse::<u32>().unwrap())
    };
    // A node that is alone knows what is left.
    for spent in 1..=50 {
        assert_eq!(left(&first), (200, 200 - spent));
    }
    let by_lease = counted(&first, "tollgate_store_requests_total", "admitted_by_lease");
    assert_eq!(by_lease + counted(&first, "tollgate_store_requests_total", "admitted"), 50);
    assert!(by_lease > 35, "{by_lease}");
    // A call decides on each request that finds no lease, and takes the permits of the next one.
    assert_eq!(first.metric("tollgate_store_calls_total"), 50 - by_lease);
    let leased = counted(&first, "tollgate_store_lease_permits_total", "leased");
    assert!(leased >= by_lease, "{leased}");
    let lost = ["perhaps_leased", "given_back"].map(|it| counted(&first, "tollgate_store_lease_permits_total", it));
    assert_eq!(lost, [0, 0]);
    let admitted = || std::iter::from_fn(|| Some(left(&second).0).filter(|status| *status == 200)).count();
    // What the first one holds is denied to others.
    let before = admitted();
    assert!(before < 150, "{before}");
    first.stop();
    assert_eq!(before + admitted(), 150);
}

#[test]
fn what_a_store_can_not_do_keeps_the_server_from_starting() {
    let Some(place) = Place::on_store() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listens = ["127.0.0.1:0".parse().unwrap()];
    let error = |server: tollgate_serve::Server| runtime.block_on(server.bind(&listens)).unwrap_err();
    let queue = "[[dimension]]\nname = \"host\"\nquota = [{ algorithm = \"leaky-queue\", leak = 1, per = \"10s\", \
                 max_delay = \"60s\" }]";
    let of_tier =
        USERS.to_owned() + &queue.replace("name = \"host\"", "name = \"slow\"").replace("dimension", "dimension.tier");
    for (policy, name) in [(queue, "host"), (&of_tier, "user")] {
        assert!(matches!(error(place.server(policy)), ServeError::QueueOnStore { dimension } if dimension == name));
    }
    assert!(matches!(error(place.server(POLICY).snapshot("limits")), ServeError::SnapshotOfStore));
    let penalty = "penalty = { denials = 3, within = \"1m\", blocked_for = \"1h\" }\n";
    let refused = error(place.server(&format!("{USERS}{penalty}")));
    assert!(refused.to_string().contains("a store keeps no `penalty`"), "{refused}");
    let refused = error(place.server(&format!("{USERS}shadow = true\n")));
    assert!(refused.to_string().contains("a store keeps no `shadow`"), "{refused}");
    let unset = place.policy(USERS, "").replace("file = \"", "env = \"NOT_SET");
    let refused = error(server(&unset).time_for_requests(Duration::from_secs(1)));
    assert!(refused.to_string().contains("it is not set"), "{refused}");
}
