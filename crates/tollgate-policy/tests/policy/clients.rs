//! Who clients are, in process.

use std::net::IpAddr;

use tollgate::MockClock;
use tollgate_kit::clients::{POLICY, requests};
use tollgate_policy::Policy;

#[test]
fn a_limiter_in_process_takes_clients_as_all_programs_do() {
    let policy = Policy::from_toml(POLICY).unwrap();
    let limiter = policy.builder_of::<IpAddr>("address").unwrap().clock(MockClock::new()).build().unwrap();
    for request in requests() {
        let peer: IpAddr = request.peer.parse().unwrap();
        let key = policy.client().key(peer, &request.forwarded).unwrap();
        assert_eq!(limiter.try_acquire(key).is_admitted(), request.is_admitted, "{}", request.hops());
    }
}
