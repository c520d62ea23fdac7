//! Runs made by hand, and runs of the oracle.

use tollgate_kit::checker::{Event, Told};
use tollgate_kit::key::Quotas;

pub(crate) fn admitted(before: u64, after: u64) -> Event {
    Event { key: 0, cost: 1, before, after, told: Told::Admitted }
}

pub(crate) fn denied(before: u64, after: u64, retry_after: u64) -> Event {
    Event { key: 0, cost: 1, before, after, told: Told::Denied { retry_after, quota: 0 } }
}

/// What a limiter does by the oracle, one request (pause before it, cost) after the other.
pub(crate) fn simulate(quotas: &Quotas, requests: &[(u64, u32)]) -> Vec<Event> {
    let (mut key, mut now) = (quotas.key(0), 0);
    let mut event = |&(pause, cost): &(u64, u32)| {
        now += pause;
        let told = match key.wait(now, cost) {
            0 => Told::Admitted,
            retry_after => Told::Denied { retry_after, quota: 0 },
        };
        if told == Told::Admitted {
            key.grant(now, cost);
        }
        Event { key: 0, cost, before: now, after: now, told }
    };
    requests.iter().map(&mut event).collect()
}

/// The same requests, each of a cost up to the limit.
pub(crate) fn costs(requests: &[(u64, u32)], limit: u32) -> Vec<(u64, u32)> {
    requests.iter().map(|&(pause, cost)| (pause, 1 + cost % limit)).collect()
}
