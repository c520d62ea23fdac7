//! Windows of the calendar: the server's clock tells which one is now, and this process when it begins.

use std::time::{Duration, SystemTime};

use tollgate::{Calendar, MockClock, Quota, Zone};
use tollgate_kit::months;
use tollgate_kit::redis::{Server, ask, runtime};
use tollgate_redis::{RedisLimiter, StoreError};

use crate::receipt;

const KEY: &str = "alice";

fn berlin(limit: u32, per: Calendar) -> Quota {
    Quota::calendar(limit, per, Zone::named("Europe/Berlin").unwrap())
}

#[test]
fn a_month_begins_at_midnight_in_its_zone() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = MockClock::new();
    let store = server.builder().prefix("replay").log_clock(clock.clone()).build().unwrap();
    runtime().block_on(async {
        let limiter = RedisLimiter::new(&store, "api", berlin(1, Calendar::Month)).unwrap();
        for (time, is_admitted) in months::REQUESTS {
            clock.set(time * 1_000_000_000);
            assert_eq!(limiter.try_acquire(KEY).await.unwrap().is_admitted(), is_admitted, "{time}");
        }
    });
}

#[test]
fn the_server_alone_tells_which_window_is_now() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    runtime().block_on(async {
        for per in Calendar::ALL {
            let quota = berlin(3, *per);
            let limiter = RedisLimiter::new(&store, per.name(), quota).unwrap();
            let window = per.window(quota.calendar_window().unwrap().1, now);
            let [start, end] = [window.start, window.end].map(|time| u64::try_from(time.as_micros()).unwrap());
            let denied = async || limiter.try_acquire(KEY).await.unwrap().retry_after();
            clock.set(start);
            let admitted = limiter.try_acquire_n(KEY, 3).await.unwrap();
            assert_eq!(denied().await, Some(Duration::from_micros(end - start)), "{per}");
            clock.set(end - 1);
            assert_eq!(denied().await, Some(Duration::from_micros(1)), "{per}");
            assert_eq!(limiter.refund(receipt(admitted)).await.unwrap(), 3, "{per}");
            let late = limiter.try_acquire_n(KEY, 2).await.unwrap();
            let left = limiter.peek(KEY, 0).await.unwrap();
            assert_eq!((left.remaining(), left.reset_after()), (1, Duration::from_micros(1)), "{per}");
            let name: Vec<String> = ask(&mut connection, &["KEYS", &format!("*:M{per}.Europe/Berlin:*")]);
            let expires: u64 = ask(&mut connection, &["PEXPIRETIME", &name[0]]);
            assert_eq!(expires, end / 1_000 + 1, "{per}");
            // The next window.
            clock.set(end);
            assert_eq!(limiter.refund(receipt(late)).await.unwrap(), 0, "{per}");
            assert!(limiter.try_acquire_n(KEY, 3).await.unwrap().is_admitted(), "{per}");
            assert!(denied().await.is_some(), "{per}");
            // Further ahead than this process knows, and further behind.
            let far = 4 * u64::try_from(quota.window().as_micros()).unwrap();
            for time in [end + far, start - far] {
                clock.set(time);
                let error = limiter.try_acquire("bob").await.unwrap_err();
                assert_eq!(error, StoreError::ClocksDiffer { key: limiter.digest("bob") }, "{per}");
            }
        }
    });
}
