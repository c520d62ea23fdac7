use super::*;
use std::collections::HashSet;

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
