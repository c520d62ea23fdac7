//! Layers inside layers.

use std::sync::Arc;

use tollgate::{DirectLimiter, JointLimiter, MockClock, Quota};
use tollgate_tower::{RateLimitLayer, constant};
use tower::ServiceBuilder;

use crate::common::{Answer, items};
use crate::layer::support::{Inner, ask, get};

pub(super) fn limit(permits: u32) -> RateLimitLayer<DirectLimiter<MockClock>> {
    RateLimitLayer::new(Arc::new(DirectLimiter::with_clock(Quota::per_minute(permits), MockClock::new()).unwrap()))
}

/// The names in a field, from the inside out.
fn names(answer: &Answer, field: &str) -> Vec<String> {
    answer.all(field).into_iter().flat_map(items).map(|(name, _)| name).collect()
}

#[tokio::test]
async fn layers_without_a_name_have_distinct_ones_from_the_first_answer_on() {
    let joint = JointLimiter::builder().dimension("user", [Quota::per_minute(50)]).clock(MockClock::new()).build();
    let joint = RateLimitLayer::new(Arc::new(joint.unwrap())).key((constant(1),));
    let outer = limit(3).skip(|head| head.uri.path() == "/skipped");
    let layers = ServiceBuilder::new().layer(joint).layer(outer).layer(limit(2).name("own").unwrap()).layer(limit(9));
    let service = Inner::default().behind(&layers);
    let skipped = ask(&service, get("/skipped")).await;
    assert_eq!(names(&skipped, "ratelimit-policy"), ["default-2", "own", "user"]);
    let admitted = ask(&service, get("/")).await;
    for field in ["ratelimit-policy", "ratelimit"] {
        assert_eq!(names(&admitted, field), ["default-2", "own", "default", "user"]);
    }
    // Denied by the third layer from outside, and then by the second.
    assert_eq!(names(&ask(&service, get("/")).await, "ratelimit"), ["own", "default", "user"]);
    assert_eq!(names(&ask(&service, get("/")).await, "ratelimit"), ["own", "default", "user"]);
    let denied = ask(&service, get("/")).await;
    assert_eq!(denied.all("ratelimit"), [r#""default";r=0;t=60"#, r#""user";r=45;t=60"#]);
}

#[tokio::test]
async fn a_layer_that_is_inside_and_alone_has_the_name_of_its_place() {
    let inner = limit(9);
    let alone = Inner::default().behind(&inner);
    let inside = Inner::default().behind(&ServiceBuilder::new().layer(limit(5)).layer(inner));
    for _ in 0..2 {
        assert_eq!(names(&ask(&alone, get("/")).await, "ratelimit"), ["default"]);
        assert_eq!(names(&ask(&inside, get("/")).await, "ratelimit"), ["default-2", "default"]);
    }
}
