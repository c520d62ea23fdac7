//! The measurement of requests.

use std::net::SocketAddr;
use std::time::Instant;

use crate::http_layers::contender::{Name, Requests};
use crate::http_layers::scenario::Scenario;
use crate::statistics::median;
use crate::turns::turns;

/// Requests of a contender in a round.
pub const BATCH: usize = 1_000;

/// Requests that go before them and are not timed, so that it does not matter which contender had
/// the turn before.
const WARM_UP: usize = 200;

/// A contender, and the clients that take turns.
pub struct Turns {
    service: Box<dyn Requests>,
    scenario: Scenario,
    /// Without a layer all requests are.
    admitted: bool,
    clients: Vec<SocketAddr>,
    at: usize,
}

impl Turns {
    /// Sends two requests of each client, so that each has its key, and has used its permit if it
    /// has only one.
    #[must_use]
    pub fn new(name: Name, scenario: Scenario) -> Self {
        let clients = scenario.clients();
        let admitted = scenario.admitted || name == Name::None;
        let turns = Self { service: name.service(scenario), scenario, admitted, clients, at: 0 };
        for _ in 0..2 {
            for some in turns.clients.chunks(BATCH) {
                let _ = turns.service.send(some);
            }
        }
        turns
    }

    /// The clients whose turn it is.
    pub fn next(&mut self, count: usize) -> Vec<SocketAddr> {
        let clients = self.clients.iter().copied().cycle().skip(self.at).take(count).collect();
        self.at = (self.at + count) % self.clients.len();
        clients
    }

    /// Sends their requests.
    ///
    /// # Panics
    ///
    /// When any is admitted or denied that should not be.
    pub fn send(&self, clients: &[SocketAddr]) {
        let expected = if self.admitted { clients.len() } else { 0 };
        assert_eq!(self.service.send(clients), expected, "{}", self.scenario.label());
    }
}

/// Nanoseconds of a request, of each round.
#[derive(Debug)]
pub struct Times {
    of: Vec<(Name, Vec<f64>)>,
}

impl Times {
    /// The median of a contender; `None` if it does not take part.
    #[must_use]
    pub fn median(&self, name: Name) -> Option<f64> {
        Some(median(self.of(name)?))
    }

    /// What a layer adds: the median over rounds of its time less that without a layer in the same
    /// round.
    #[must_use]
    pub fn added(&self, name: Name) -> Option<f64> {
        let pairs = self.of(name)?.iter().zip(self.of(Name::None)?);
        Some(median(&pairs.map(|(with, without)| with - without).collect::<Vec<_>>()))
    }

    fn of(&self, name: Name) -> Option<&[f64]> {
        self.of.iter().find(|(of, _)| *of == name).map(|(_, times)| &times[..])
    }
}

/// Times a scenario.
#[must_use]
pub fn measure(scenario: Scenario, rounds: usize) -> Times {
    let names = Name::ALL.into_iter().filter(|name| name.takes_part(scenario));
    let mut contenders: Vec<_> = names.map(|name| (name, Turns::new(name, scenario), Vec::new())).collect();
    let count = contenders.len();
    // The first round is not timed.
    for (round, whose) in turns(rounds + 1, count) {
        let (_, contender, times) = &mut contenders[whose];
        let (warm_up, clients) = (contender.next(WARM_UP), contender.next(BATCH));
        contender.send(&warm_up);
        let began = Instant::now();
        contender.send(&clients);
        let elapsed = began.elapsed();
        if round > 0 {
            times.push(elapsed.as_secs_f64() * 1e9 / BATCH as f64);
        }
    }
    Times { of: contenders.into_iter().map(|(name, _, times)| (name, times)).collect() }
}
