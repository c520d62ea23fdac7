use super::*;

#[test]
fn goes_forward_from_near_zero() {
    let clock = MonotonicClock::new();
    let first = clock.now();
    let wall = std::time::Instant::now();
    while clock.now() == first {
        assert!(wall.elapsed().as_secs() < 5, "the clock stands still");
    }
    assert!(clock.now() > first);
}

#[test]
fn an_instant_clock_reads_the_time_that_has_passed_by_the_system() {
    let before = std::time::Instant::now();
    let clock = InstantClock::new();
    let (any, made) = (AnyClock::from(clock), std::time::Instant::now());
    for _ in 0..100 {
        let (least, reading, as_any) = (made.elapsed(), clock.now(), any.now());
        assert!(nanos(least) <= reading && reading <= as_any && as_any <= nanos(before.elapsed()));
    }
}

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

#[cfg(feature = "tokio")]
mod of_tokio {
    use super::*;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn follows_paused_time_to_the_nanosecond() {
        let clock = TokioClock::new();
        let any = AnyClock::from(clock);
        assert_eq!((clock.now(), any.now()), (0, 0));
        tokio::time::advance(Duration::from_nanos(1_000_001)).await;
        assert_eq!((clock.now(), any.now()), (1_000_001, 1_000_001));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        // A timer fires at the next whole millisecond.
        assert!(clock.now() >= 3_600_001_000_001);
    }

    #[test]
    fn a_reading_outside_of_a_runtime_goes_forward() {
        let clock = TokioClock::new();
        let before = std::time::Instant::now();
        let first = clock.now();
        while clock.now() == first {
            assert!(before.elapsed().as_secs() < 5, "the clock stands still");
        }
        assert!(clock.now() > first);
    }
}

#[test]
fn real_clocks_know_when_they_were_made_and_pass_it_on() {
    let wall = || SystemTime::UNIX_EPOCH.elapsed().map(nanos).unwrap();
    // The system's clock may be set back meanwhile, so that only one of several has to fit.
    let fits = || {
        let before = wall();
        let coarse = CoarseClock::new(Duration::from_secs(1)).unwrap();
        let made = [
            MonotonicClock::new().since_1970(),
            InstantClock::new().since_1970(),
            coarse.since_1970(),
            AnyClock::from(InstantClock::new()).since_1970(),
            AnyClock::new(Arc::new(MonotonicClock::new())).since_1970(),
            (&&InstantClock::new()).since_1970(),
        ];
        let after = wall();
        made.into_iter().all(|it| it.is_some_and(|it| (before..=after).contains(&it)))
    };
    assert!((0..3).any(|_| fits()));
    assert_eq!((MockClock::new().since_1970(), AnyClock::from(MockClock::new()).since_1970()), (None, None));
}
