//! What a service does that is limited by a policy, by way of `/authz`.

use tollgate::MockClock;
use tollgate_kit::limited::{self, Service};
use tollgate_policy::Policy;
use tollgate_serve::Server;

use crate::support::Running;

struct Authz(Running);

fn server(policy: &Policy) -> Server {
    Server::new(policy.clone()).address("address").unwrap()
}

impl Service for Authz {
    const BODY: &'static str = "{\"admitted\":true}\n";

    fn start(policy: &Policy) -> Self {
        Self(Running::start(server(policy)))
    }

    fn by_clock(policy: &Policy, clock: MockClock) -> Self {
        Self(Running::start(server(policy).clock(clock)))
    }

    fn send(&self, fields: &[(&str, &str)]) -> limited::Answer {
        let answer = self.0.get("/authz", &[fields, &[("x-tollgate-address", "192.0.2.1")]].concat());
        limited::Answer { status: answer.status, fields: answer.fields, body: answer.body }
    }

    fn by_store(&self) -> (u64, u64) {
        let of_store = |result| self.0.metric(&format!("tollgate_store_requests_total{{result=\"{result}\"}}"));
        let undecided = ["refused", "admitted_uncounted", "admitted_locally", "denied_locally"];
        (of_store("admitted"), undecided.map(of_store).iter().sum())
    }
}

tollgate_kit::limited_by_a_policy!(Authz);
