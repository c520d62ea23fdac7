//! Imports of many keys.

use std::collections::HashSet;

use super::*;
use crate::clock::MockClock;
use crate::fingerprint::Fingerprint;
use crate::state::cell::PROBES;

const KEYS: usize = 20_000;

fn tags() -> impl Iterator<Item = u64> {
    (1..=KEYS as u64).map(|number| Key::of(Fingerprint::new(number, 0)).tag())
}

fn table() -> Table {
    Table::new(&[&[Quota::per_hour(1)]], 0, KEYS, 0)
}

/// In the order of the table, the keys pile up, and each is looked for past hundreds of others.
#[test]
fn an_import_looks_at_few_cells_for_each_key() {
    let exports: BTreeMap<u64, Export> = tags().map(|tag| (tag, Export::Stamps(vec![(0, 1)]))).collect();
    let (table, clock) = (table(), MockClock::new());
    let before = PROBES.get();
    table.import(&exports.into_iter().collect::<Vec<_>>(), 0, &clock).unwrap();
    assert_eq!(table.counts(&clock).live_keys, KEYS);
    let probes = PROBES.get() - before;
    assert!(probes < 100 * KEYS, "{probes} looks at cells for {KEYS} keys");
}

#[test]
fn quotas_of_many_keys_are_imported_by_one_rebuild_of_each_shard() {
    let own: Vec<_> = tags().map(|tag| (tag, vec![Quota::per_hour(2)])).collect();
    let (table, clock) = (table(), MockClock::new());
    assert!(table.import_own(&own, &clock).unwrap());
    assert_eq!(table.own_quotas().len(), KEYS);
    let rebuilds = table.shards().iter().map(|shard| shard.root().number);
    assert_eq!(rebuilds.max(), Some(1));
    let versions: HashSet<_> = table.own_quotas().values().map(Arc::as_ptr).collect();
    assert_eq!(versions.len(), 1, "equal quotas share one version");
}

#[test]
fn each_number_is_met_once() {
    for count in (0..1000).chain([6180, 16_180, 1 << 14, 30_030]) {
        let mut numbers: Vec<_> = spread(count).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..count), "{count}");
    }
}
