use std::net::{IpAddr, Ipv6Addr};

use super::*;
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};

#[test]
fn no_tag_is_that_of_an_empty_or_sealed_cell() {
    for group in 0..16 {
        for high in [0, u64::MAX << 4] {
            let key = Key::of(Fingerprint { low: 0, high: high & !GROUP | group });
            assert!(key.tag > 1);
            assert_eq!(key.group() as u64, group);
            assert_eq!(key.shard(0), 0);
        }
    }
}

/// Keys as they come: numbers in a row, with gaps, in steps that are powers of two, with few bits
/// set, and addresses. They must lie in shards and cells as random ones do.
#[test]
fn orderly_keys_lie_in_a_table_as_random_ones_do() {
    const KEYS: u64 = 13 << 10;
    type Set = (&'static str, fn(u64) -> u64);
    let sets: [Set; 6] = [
        ("in a row", |number| number),
        ("every thousandth", |number| number * 1000),
        ("steps of 2^32", |number| number << 32),
        ("steps of 2^50", |number| number << 50),
        ("bits turned round", u64::reverse_bits),
        ("a row of rows", |number| (number >> 7 << 40) | (number & 127)),
    ];
    for seed in 0..50 {
        let fingerprinter = DefaultFingerprinter::with_seed(seed, 0);
        for (name, key) in sets {
            let keys = (0..KEYS).map(|number| Key::of(fingerprinter.fingerprint(&key(number))));
            check_places(name, seed, &keys.collect::<Vec<_>>());
        }
        let hosts = (0..KEYS).map(|host| IpAddr::V6(Ipv6Addr::from((0x2001_0db8 << 96) + u128::from(host))));
        check_places(
            "addresses",
            seed,
            &hosts.map(|host| Key::of(fingerprinter.fingerprint(&host))).collect::<Vec<_>>(),
        );
    }
}

/// With 1 and with 16 shards, 13 of 16 cells taken.
fn check_places(name: &str, seed: u64, keys: &[Key]) {
    for bits in [0, 4] {
        let (mut looked_at, share) = (0, keys.len() >> bits);
        for shard in 0..1 << bits {
            let keys: Vec<_> = keys.iter().filter(|key| key.shard(bits) == shard).collect();
            assert!((share / 2..share * 2).contains(&keys.len()), "{name}, seed {seed}: {} keys", keys.len());
            let table = CellTable::with_room(keys.len() * 16 / 13);
            let mut taken = vec![false; table.len()];
            for &key in &keys {
                let mut at = table.home(*key);
                looked_at += 1;
                while core::mem::replace(&mut taken[at], true) {
                    at = (at + 1) % taken.len();
                    looked_at += 1;
                }
            }
        }
        // (1 + 1 / (1 - load)) / 2 is 3.2, whatever the order of insertion: D. E. Knuth, "Notes on open
        // addressing", 1963.
        let looked_at = f64::from(looked_at) / f64::from(u32::try_from(keys.len()).expect("few"));
        assert!((2.5..4.0).contains(&looked_at), "{name}, seed {seed}, {bits} bits: {looked_at}");
    }
}
