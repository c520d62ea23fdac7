use super::*;

#[test]
fn ticks_until_the_last_clone_is_dropped_and_then_joins() {
    let clock = CoarseClock::new(Duration::from_micros(100)).unwrap();
    let shared = Arc::clone(&clock.shared);
    let other = clock.clone();
    drop(clock);
    let before = other.now();
    while other.now() == before {
        std::thread::yield_now();
    }
    drop(other);
    // The thread was joined and has dropped its pointer, so this is the only pointer left.
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn a_long_resolution_does_not_delay_the_drop() {
    // If the drop waited for the tick, the test would hang for a century.
    drop(CoarseClock::new(Duration::from_secs(3_000_000_000)).unwrap());
}
