use super::*;

#[test]
fn borrowed_and_owned_keys_agree_and_seeds_differ() {
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
