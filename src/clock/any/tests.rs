use super::*;

struct Fixed(u64);

impl Clock for Fixed {
    fn now(&self) -> u64 {
        self.0
    }
}

#[test]
fn a_reading_is_that_of_the_clock_inside() {
    let mock = MockClock::new();
    mock.set(5);
    assert_eq!(AnyClock::from(mock).now(), 5);
    assert_eq!(AnyClock::new(Fixed(9)).now(), 9);
    let monotonic = MonotonicClock::new();
    let (before, inside) = (monotonic.now(), AnyClock::from(monotonic.clone()).now());
    assert!((before..=monotonic.now()).contains(&inside));
    let coarse = CoarseClock::new(core::time::Duration::from_secs(3_000_000_000)).unwrap();
    assert_eq!(AnyClock::from(coarse.clone()).now(), coarse.now());
}

#[test]
fn a_clone_shows_the_same_time() {
    let mock = MockClock::new();
    let clock = AnyClock::from(mock.clone());
    let other = clock.clone();
    mock.set(7);
    assert_eq!((clock.now(), other.now()), (7, 7));
}
