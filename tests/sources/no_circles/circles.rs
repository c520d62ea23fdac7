//! The circles of a graph of modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::modules::{Dependency, Modules, Place};

/// Each circle in a line, and below it the dependencies that make it. Through every dependency that
/// is in a circle, a shortest one is told.
pub(crate) fn circles(modules: &Modules) -> String {
    let graph: BTreeMap<&Place, Vec<Dependency>> =
        modules.places().map(|place| (place, modules.dependencies(place))).collect();
    let mut told: BTreeSet<Vec<&Place>> = BTreeSet::new();
    for (&from, dependencies) in &graph {
        for dependency in dependencies {
            if let Some(mut circle) = path(&graph, &dependency.on, from) {
                // The same circle is met once for each of its dependencies: the least module comes
                // first.
                let least = (0..circle.len()).min_by_key(|&at| circle[at]).unwrap_or(0);
                circle.rotate_left(least);
                told.insert(circle);
            }
        }
    }
    told.iter().map(|circle| in_words(&graph, circle)).collect()
}

/// The modules on a shortest way, both ends among them.
fn path<'a>(graph: &BTreeMap<&'a Place, Vec<Dependency>>, from: &Place, to: &'a Place) -> Option<Vec<&'a Place>> {
    let (from, _) = graph.get_key_value(from)?;
    let mut before: BTreeMap<&Place, &Place> = BTreeMap::new();
    let mut waiting = VecDeque::from([*from]);
    while let Some(at) = waiting.pop_front() {
        if at == to {
            let mut way = vec![at];
            while way[way.len() - 1] != *from {
                way.push(before[way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for dependency in &graph[at] {
            let (next, _) = graph.get_key_value(&dependency.on)?;
            if *next != *from && !before.contains_key(*next) {
                before.insert(next, at);
                waiting.push_back(next);
            }
        }
    }
    None
}

fn in_words(graph: &BTreeMap<&Place, Vec<Dependency>>, circle: &[&Place]) -> String {
    let name = |place: &Place| if place.is_empty() { "crate".to_owned() } else { place.join("::") };
    let names: Vec<String> = circle.iter().chain(circle.first()).map(|place| name(place)).collect();
    let mut words = format!("{}\n", names.join(" -> "));
    for (at, place) in circle.iter().enumerate() {
        let next = circle[(at + 1) % circle.len()];
        let by = graph[place].iter().find(|dependency| dependency.on == *next);
        words += &format!("    {}\n", by.map_or("", |by| by.shown.as_str()));
    }
    words
}
