use core::time::Duration;

use super::*;
use crate::clock::AnyClock;

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
