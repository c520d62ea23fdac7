//! A request that stalls between two of its steps, while hundreds of other keys come and go.
//!
//! It stalls in its clock reading: the other requests are made meanwhile.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tollgate::{Clock, Limiter, MockClock, Quota};

thread_local! {
    /// Runs during the next reading of the clock.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

struct Stalling {
    clock: MockClock,
    /// Whether the reading during which the request stalls shows the time before the stall.
    is_early: bool,
}

impl Clock for Stalling {
    fn now(&self) -> u64 {
        let before = self.clock.now();
        let Some(meanwhile) = MEANWHILE.take() else { return before };
        meanwhile();
        if self.is_early { before } else { self.clock.now() }
    }
}

const WINDOW: Duration = Duration::from_nanos(20);

type Shared = Rc<Limiter<str, Stalling>>;

/// A limiter with two places, one of which is alice's.
struct Case {
    limiter: Shared,
    clock: MockClock,
    incarnations: u32,
    last: [&'static str; 2],
    about: String,
}

fn cases() -> Vec<Case> {
    let half = WINDOW / 2;
    let quotas = [
        Quota::new(2, WINDOW),
        Quota::quantised_log(2, WINDOW, half),
        Quota::token_bucket(2, 2, half),
        Quota::fixed_window(2, half),
    ];
    let mut cases = Vec::new();
    for (quota, is_early) in quotas.into_iter().flat_map(|quota| [(quota, false), (quota, true)]) {
        for (incarnations, last) in [254, 255, 256, 257, 512]
            .into_iter()
            .flat_map(|incarnations| [(incarnations, ["alice", "bob"]), (incarnations, ["bob", "alice"])])
        {
            let clock = MockClock::new();
            let stalling = Stalling { clock: clock.clone(), is_early };
            let limiter = Limiter::<str>::builder(quota).key_cap(2).clock(stalling).build().unwrap();
            assert!(limiter.try_acquire("alice").is_admitted() && limiter.try_acquire("nobody").is_admitted());
            let about = format!("{quota}, early: {is_early}, {incarnations} incarnations, then {last:?}");
            cases.push(Case { limiter: Rc::new(limiter), clock, incarnations, last, about });
        }
    }
    cases
}

impl Case {
    /// A request that stalls while both places go to two other keys, as many times as there are
    /// incarnations. `free_places` runs before each. The last two keys are alice, with two of two
    /// permits, and bob, with one.
    fn stalled<T>(
        &self,
        free_places: impl Fn(&Shared, &MockClock, &[String; 2]) + 'static,
        request: impl FnOnce(&Limiter<str, Stalling>) -> T,
    ) -> T {
        let Self { limiter, clock, incarnations, last, .. } = self;
        let (limiter, clock, incarnations, last) = (Rc::clone(limiter), clock.clone(), *incarnations, *last);
        MEANWHILE.set(Some(Box::new(move || {
            let mut keys = ["alice", "nobody"].map(String::from);
            for incarnation in 1..=incarnations {
                free_places(&limiter, &clock, &keys);
                keys = if incarnation == incarnations {
                    last.map(String::from)
                } else {
                    ["a", "b"].map(|key| format!("{key}{incarnation}"))
                };
                for key in &keys {
                    let cost = if key == "bob" { 1 } else { 2 };
                    assert!(limiter.try_acquire_n(key.as_str(), cost).unwrap().is_admitted(), "{key}");
                }
            }
        })));
        let told = request(&self.limiter);
        assert!(MEANWHILE.take().is_none(), "{}: it did not stall", self.about);
        told
    }

    /// Checks that the request has changed neither key's permits.
    fn assert_unchanged(&self) {
        let left = ["alice", "bob"].map(|key| self.limiter.peek(key).remaining());
        assert_eq!(left, [0, 1], "{}: permits left to alice and bob", self.about);
    }
}

fn a_window_passes(_: &Shared, clock: &MockClock, _: &[String; 2]) {
    clock.advance(WINDOW);
}

#[test]
fn a_request_is_charged_to_its_own_key() {
    for case in cases() {
        let reserved = case.stalled(a_window_passes, |limiter| limiter.reserve("alice", 1, Duration::ZERO).is_ok());
        assert!(!reserved, "{}: alice had two of two", case.about);
        case.assert_unchanged();
    }
}

#[test]
fn a_peek_is_at_its_own_key() {
    for case in cases() {
        let status = case.stalled(a_window_passes, |limiter| limiter.peek("alice"));
        assert!(!status.is_admitted(), "{}: alice had two of two", case.about);
    }
}
