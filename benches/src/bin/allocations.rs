//! Counts the allocations of a request in each scenario, and prints them as JSON: for each scenario
//! in order, those of each contender, or null where it does not take part.

use std::alloc::System;

use benches::http_layers::contender::Name;
use benches::http_layers::rounds::{BATCH, Turns};
use benches::http_layers::scenario::Scenario;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let counts = Scenario::all().into_iter().map(|scenario| {
        let count = |name: Name| name.takes_part(scenario).then(|| count(name, scenario));
        json!(Name::ALL.map(count))
    });
    println!("{}", json!(counts.collect::<Vec<_>>()));
}

/// Allocations of a request, on average, those of making it included.
fn count(name: Name, scenario: Scenario) -> f64 {
    let mut turns = Turns::new(name, scenario);
    let clients = turns.next(BATCH);
    let region = Region::new(COUNTED);
    turns.send(&clients);
    let change = region.change();
    (change.allocations + change.reallocations) as f64 / BATCH as f64
}
