use super::*;

#[test]
fn no_tag_is_that_of_an_empty_or_sealed_cell() {
    for slot in 0..16 {
        for high in [0, u64::MAX << 4] {
            let key = Key::of(Fingerprint { low: 0, high: high & !SLOT | slot });
            assert!(key.tag > 1);
            assert_eq!(key.slot() as u64, slot);
            assert_eq!(key.shard(6), if high == 0 { 0 } else { 63 });
            assert_eq!(key.shard(0), 0);
        }
    }
}
