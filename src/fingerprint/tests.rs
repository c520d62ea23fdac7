use super::*;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Hash)]
enum Key {
    Nothing,
    One(u64),
    Two(u64, u64),
    Text(&'static str),
}

fn numbers() -> DefaultFingerprinter {
    DefaultFingerprinter::with_seed(1, 2)
}

#[test]
fn keys_of_different_lengths_and_kinds_differ() {
    let of = |key: Key| numbers().fingerprint(&key);
    let all = [
        of(Key::Nothing),
        of(Key::One(0)),
        of(Key::One(1)),
        of(Key::Two(0, 0)),
        of(Key::Two(1, 0)),
        of(Key::Two(0, 1)),
        of(Key::Text("")),
        of(Key::Text("\0")),
        of(Key::Text("a")),
        numbers().fingerprint(&()),
        numbers().fingerprint(&(0_u64, 0_u64)),
        numbers().fingerprint(&(0_u64, 0_u64, 0_u64)),
        numbers().fingerprint(&(0_u64, 0_u64, 0_u64, 0_u64)),
        numbers().fingerprint(&(0_u64, 0_u64, 0_u64, 0_u64, 0_u64)),
        numbers().fingerprint(&1_u128),
        numbers().fingerprint(&(2_u128 << 64)),
    ];
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert_eq!(all.iter().map(|fingerprint| fingerprint.low).collect::<HashSet<_>>().len(), all.len());
    assert_eq!(all.iter().map(|fingerprint| fingerprint.high).collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn borrowed_and_owned_keys_agree_and_seeds_differ() {
    assert_eq!(numbers().fingerprint("alice"), numbers().fingerprint(&String::from("alice")));
    assert_ne!(numbers().fingerprint("alice"), numbers().fingerprint("bob"));
    for other in [DefaultFingerprinter::new(), DefaultFingerprinter::with_seed(2, 1)] {
        assert_ne!(numbers().fingerprint("alice"), other.fingerprint("alice"));
        assert_ne!(numbers().fingerprint(&7), other.fingerprint(&7));
    }
    let again = DefaultFingerprinter::new().with_secret(numbers().secret().expect("a seed"));
    assert_eq!(numbers().fingerprint("alice"), again.fingerprint("alice"));
    assert_eq!(numbers().fingerprint(&7), again.fingerprint(&7));
}

/// Worked out by hand, in numbers as long as one likes.
#[test]
fn multiply_shift_is_what_it_says() {
    let hash = MultiplyShift {
        by: [(1 << 64) + 3, 5 << 64, u128::MAX],
        by_count: 1000 << 64,
        plus: (7 << 64) + u128::from(u64::MAX),
    };
    assert_eq!(hash.hash(&[]), 7);
    // The parts below 2^64 add up to 30 and 2^64 - 1.
    assert_eq!(hash.hash(&[10]), 10 + 1000 + 7 + 1);
    // 3 * (2^64 - 1), and 2^64 - 1, are 4 * 2^64 less 4.
    assert_eq!(hash.hash(&[u64::MAX]), u64::MAX.wrapping_add(3 + 1000 + 7));
    assert_eq!(hash.hash(&[10, 100]), 10 + 500 + 2000 + 7 + 1);
    // Modulo 2^128 the last number is -1.
    assert_eq!(hash.hash(&[10, 100, 31]), 10 + 500 + 3000 + 7 + 1 - 1 + 1 - 1);
    assert_eq!(hash.hash(&[0, 0, 1]), 3000 + 7);
}

/// Keys as they come: numbers in a row, with gaps, in steps that are powers of two, with few
/// bits set, and addresses. They must lie in a table as random ones do.
#[test]
fn orderly_keys_lie_in_a_table_as_random_ones_do() {
    const BITS: u32 = 14;
    const KEYS: u64 = (13 << BITS) / 16;
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
            let lows = (0..KEYS).map(|number| fingerprinter.fingerprint(&key(number)).low);
            let looked_at = slots_looked_at(BITS, lows);
            // (1 + 1 / (1 - load)) / 2 is 3.2, whatever the order of insertion: D. E. Knuth,
            // "Notes on open addressing", 1963.
            assert!((2.5..4.0).contains(&looked_at), "{name}, seed {seed}: {looked_at}");
        }
        let hosts = (0..KEYS).map(|host| IpAddr::V6(Ipv6Addr::from((0x2001_0db8 << 96) + u128::from(host))));
        let looked_at = slots_looked_at(BITS, hosts.map(|host| fingerprinter.fingerprint(&host).low));
        assert!((2.5..4.0).contains(&looked_at), "addresses, seed {seed}: {looked_at}");
    }
}

/// How many slots a key is found after, on average, when slots are probed one after the other.
fn slots_looked_at(bits: u32, lows: impl Iterator<Item = u64>) -> f64 {
    let mut taken = vec![false; 1 << bits];
    let (mut keys, mut looked_at) = (0_u32, 0_u32);
    for low in lows {
        let mut at = usize::try_from(low & ((1 << bits) - 1)).expect("a slot");
        keys += 1;
        looked_at += 1;
        while core::mem::replace(&mut taken[at], true) {
            at = (at + 1) % taken.len();
            looked_at += 1;
        }
    }
    f64::from(looked_at) / f64::from(keys)
}

#[test]
fn by_sip_hash_borrowed_and_owned_keys_agree_and_seeds_differ() {
    let one = SipFingerprinter::new();
    assert_eq!(one.fingerprint("alice"), one.fingerprint(&String::from("alice")));
    assert_ne!(one.fingerprint("alice"), one.fingerprint("bob"));
    assert_ne!(one.fingerprint("alice"), SipFingerprinter::new().fingerprint("alice"));
    let again = |key: &str| SipFingerprinter::with_seed(1, 2).fingerprint(key);
    assert_eq!(again("alice"), again("alice"));
}

#[test]
fn the_halves_of_a_standard_hasher_differ() {
    let twice = HashTwice::new(RandomState::new());
    let fingerprint = twice.fingerprint(&7_u32);
    assert_ne!(fingerprint.low, fingerprint.high);
    assert_eq!(fingerprint, twice.fingerprint(&7_u32));
}
