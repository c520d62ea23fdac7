//! What observers see of each decision, and what they can't do to it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::{
    Absent, DenialReason, DirectLimiter, JointError, JointLimiter, Limiter, MockClock, Observation, Observer, Quota,
    ReserveError,
};

/// What was seen of one decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    admitted: bool,
    overruled: bool,
    too_costly: bool,
    reason: Option<DenialReason>,
    quota: Option<String>,
    dimension: Option<String>,
    cost: u32,
    /// The hash of each key.
    keys: Vec<Option<u64>>,
    remaining: Option<u32>,
}

#[derive(Default)]
struct Record(Mutex<Vec<Seen>>);

impl Record {
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn one(&self) -> Seen {
        let mut seen = self.take();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }
}

impl Observer for Record {
    fn observe(&self, it: &Observation<'_>) {
        let key = |dimension| {
            let mut state = DefaultHasher::new();
            it.key(dimension).map(|key| (key.hash_into(&mut state), state.finish()).1)
        };
        self.0.lock().unwrap().push(Seen {
            admitted: it.admission().is_some(),
            overruled: it.is_overruled(),
            too_costly: it.result().is_err(),
            reason: it.denial().map(|denial| denial.reason()),
            quota: it.quota().map(Quota::to_string),
            dimension: it.denial().and_then(|denial| it.dimension(denial.dimension()).map(str::to_owned)),
            cost: it.cost(),
            keys: (0..3).map(key).collect(),
            remaining: it.status().map(|status| status.remaining()),
        });
    }
}

fn hash(key: impl Hash) -> Option<u64> {
    let mut state = DefaultHasher::new();
    key.hash(&mut state);
    Some(state.finish())
}

fn keyed(quota: Quota) -> (Arc<Record>, Limiter<String, MockClock>) {
    let record = Arc::new(Record::default());
    let builder = Limiter::<String>::builder(quota).observer(Arc::clone(&record)).clock(MockClock::new());
    (record, builder.build().unwrap())
}

#[test]
fn each_call_that_may_charge_is_one_observation() {
    let (record, limiter) = keyed(Quota::per_minute(2));
    let keys = vec![hash("alice"), None, None];
    let admitted = Seen { admitted: true, cost: 1, keys, remaining: Some(1), ..Seen::default() };

    assert!(limiter.try_acquire("alice").is_admitted());
    assert_eq!(record.one(), admitted);
    assert!(limiter.try_acquire_status(String::from("alice")).is_admitted());
    assert_eq!(record.one(), Seen { remaining: Some(0), ..admitted.clone() });

    let denied = Seen {
        admitted: false,
        reason: Some(DenialReason::Quota),
        quota: Some("2 per 1m".into()),
        remaining: Some(0),
        ..admitted.clone()
    };
    assert!(limiter.try_acquire("alice").is_denied());
    assert_eq!(record.one(), denied);
    assert!(limiter.try_acquire_n("alice", 2).unwrap().is_denied());
    assert_eq!(record.one(), Seen { cost: 2, ..denied.clone() });
    assert!(limiter.try_acquire_n_status("alice", 2).unwrap().is_denied());
    assert_eq!(record.one(), Seen { cost: 2, ..denied.clone() });
    assert!(matches!(limiter.reserve("alice", 1, Duration::ZERO), Err(ReserveError::Denied(_))));
    assert_eq!(record.one(), denied);

    let too_costly = Seen { admitted: false, too_costly: true, cost: 3, remaining: None, ..admitted.clone() };
    assert!(limiter.try_acquire_n("alice", 3).is_err());
    assert!(limiter.try_acquire_n_status("alice", 3).is_err());
    assert!(limiter.reserve("alice", 3, Duration::ZERO).is_err());
    assert_eq!(record.take(), vec![too_costly; 3]);

    assert_eq!(limiter.try_acquire_many(["alice", "bob"]).len(), 2);
    let [alice, bob] = &record.take()[..] else { panic!("two requests") };
    assert_eq!(alice, &denied);
    assert_eq!(bob, &Seen { keys: vec![hash("bob"), None, None], ..admitted.clone() });
    drop(Arc::new(limiter).reserve_owned("carol", 1, Duration::ZERO).unwrap());
    assert_eq!(record.one(), Seen { keys: vec![hash("carol"), None, None], ..admitted });
}

#[test]
fn what_charges_nothing_by_itself_is_not_observed() {
    let (record, limiter) = keyed(Quota::per_minute(1));
    assert!(limiter.peek("alice").is_admitted());
    assert!(limiter.try_acquire_n("alice", 0).unwrap().is_admitted());
    assert!(limiter.try_acquire_n_status("alice", 0).unwrap().is_admitted());
    let receipt = limiter.reserve("alice", 0, Duration::ZERO).unwrap().commit();
    limiter.refund(receipt).unwrap();
    assert_eq!(record.take(), []);
}

#[test]
fn a_limiter_without_keys_is_observed() {
    let record = Arc::new(Record::default());
    let builder = DirectLimiter::builder(Quota::per_minute(1)).observer(Arc::clone(&record)).clock(MockClock::new());
    let limiter = Arc::new(builder.build().unwrap());
    let admitted = Seen { admitted: true, cost: 1, keys: vec![None; 3], remaining: Some(0), ..Seen::default() };
    drop(limiter.reserve(1, Duration::ZERO).unwrap());
    drop(limiter.reserve_owned(1, Duration::ZERO).unwrap());
    assert_eq!(record.take(), vec![admitted.clone(); 2]);
    assert!(limiter.try_acquire().is_admitted());
    assert_eq!(record.one(), admitted);
    let denied = Seen { reason: Some(DenialReason::Quota), quota: Some("1 per 1m".into()), ..admitted };
    let denied = Seen { admitted: false, ..denied };
    assert!(limiter.try_acquire_n(1).unwrap().is_denied());
    assert_eq!(record.one(), denied);
    assert!(limiter.try_acquire_status().is_denied());
    assert!(limiter.try_acquire_n_status(1).unwrap().is_denied());
    assert_eq!(record.take(), vec![denied; 2]);
}

#[test]
fn a_joint_limiter_tells_the_dimension_and_each_key() {
    let record = Arc::new(Record::default());
    let limiter = JointLimiter::<(String, u64, (u8, String))>::builder()
        .dimension("user", [Quota::per_minute(9)])
        .dimension("tenant", [Quota::per_second(3), Quota::per_minute(3).named("tenant-1m")])
        .dimension("endpoint", [Quota::per_minute(9)])
        .observer(Arc::clone(&record))
        .clock(MockClock::new())
        .build()
        .unwrap();
    let admitted = |user: Option<u64>, remaining| Seen {
        admitted: true,
        cost: 1,
        keys: vec![user, hash(7_u64), hash((1_u8, "/"))],
        remaining: Some(remaining),
        ..Seen::default()
    };
    assert!(limiter.try_acquire((Absent, 7, (1, "/"))).unwrap().is_admitted());
    assert_eq!(record.one(), admitted(None, 2));
    assert!(limiter.try_acquire_status(("alice", 7, (1, "/"))).unwrap().is_admitted());
    drop(limiter.reserve(("alice", 7, (1, "/")), 1).unwrap());
    assert!(limiter.try_acquire(("alice", 7, (1, "/"))).unwrap().is_admitted());
    assert_eq!(record.take(), [1, 0, 0].map(|remaining| admitted(hash("alice"), remaining)));

    let denied = Seen {
        admitted: false,
        reason: Some(DenialReason::Quota),
        dimension: Some("tenant".into()),
        quota: Some("tenant-1m: 3 per 1m".into()),
        ..admitted(hash("alice"), 0)
    };
    assert_eq!(limiter.try_acquire_many([("alice", 7, (1, "/"))]).len(), 1);
    assert!(limiter.try_acquire_n_status(("alice", 7, (1, "/")), 1).unwrap().is_denied());
    assert!(limiter.reserve(("alice", 7, (1, "/")), 1).is_err());
    assert_eq!(record.take(), [denied.clone(), denied.clone(), denied]);

    let too_costly = Seen { admitted: false, too_costly: true, cost: 4, remaining: None, ..admitted(hash("alice"), 0) };
    assert!(matches!(limiter.try_acquire_n(("alice", 7, (1, "/")), 4), Err(JointError::Cost(_))));
    assert!(limiter.reserve(("alice", 7, (1, "/")), 4).is_err());
    assert_eq!(record.take(), vec![too_costly; 2]);
    assert_eq!(limiter.try_acquire((Absent, Absent, Option::<&(u8, String)>::None)), Err(JointError::NoKeys));
    assert_eq!(record.take(), [], "no key, no decision");
}

#[test]
fn in_shadow_mode_the_denial_is_seen_as_overruled() {
    let record = Arc::new(Record::default());
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).shadow(true).observer(Arc::clone(&record));
    let limiter = builder.list_cap(9).build().unwrap();
    limiter.deny(8).unwrap();
    assert!(limiter.try_acquire_many([7, 7, 8]).iter().all(|decision| decision.is_admitted()));
    let by = |it: &Seen| (it.admitted, it.overruled, it.reason, it.quota.clone());
    let (quota, list) = (Some(DenialReason::Quota), Some(DenialReason::DenyList));
    let seen: Vec<_> = record.take().iter().map(by).collect();
    let one = Some("1 per 1m".to_owned());
    assert_eq!(seen, [(true, false, None, None), (true, true, quota, one), (true, true, list, None)]);
}

#[test]
fn a_key_with_quotas_of_its_own_is_denied_by_these() {
    let record = Arc::new(Record::default());
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).keys_with_quotas(9).observer(Arc::clone(&record));
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    limiter.set_quotas_of(7, &[Quota::per_hour(2)]).unwrap();
    assert_eq!(limiter.try_acquire_many([7, 7, 7]).len(), 3);
    assert_eq!(record.take()[2].quota.as_deref(), Some("2 per 1h"));
}

/// An observer that panics loses no decision and no permit, and charges nothing twice.
#[test]
fn a_panic_stays_in_the_observer() {
    let record = Arc::new(Record::default());
    let panics = |_: &Observation<'_>| std::panic::resume_unwind(Box::new("by intention"));
    let builder = Limiter::<u64>::builder(Quota::per_minute(3)).observer(panics).observer(Arc::clone(&record));
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    assert!(limiter.try_acquire(7).is_admitted());
    assert_eq!(limiter.peek(7).remaining(), 2, "charged once");
    let reserved = limiter.reserve(7, 1, Duration::ZERO).unwrap();
    assert_eq!(limiter.peek(7).remaining(), 1);
    assert_eq!(limiter.refund(reserved.commit()).unwrap(), 1, "the receipt is not lost");
    let admitted = limiter.try_acquire_many([7; 4]).iter().filter(|decision| decision.is_admitted()).count();
    assert_eq!(admitted, 2);
    assert_eq!(record.take().len(), 6, "the other observers see each decision");
}

/// The limiter holds nothing while it calls an observer, which may ask the limiter.
#[test]
fn an_observer_can_ask_its_limiter() {
    use std::sync::OnceLock;
    static LIMITER: OnceLock<Limiter<u64>> = OnceLock::new();
    let forget = |it: &Observation<'_>| {
        if it.denial().is_some() {
            LIMITER.get().expect("it is built").clear();
        }
    };
    let limiter = Limiter::builder(Quota::per_minute(1)).observer(forget).build().unwrap();
    let limiter = LIMITER.get_or_init(|| limiter);
    let admitted: Vec<_> = limiter.try_acquire_many([7; 4]).iter().map(|decision| decision.is_admitted()).collect();
    assert_eq!(admitted, [true, false, true, false]);
}

#[test]
fn the_text_of_an_observation_has_no_key() {
    let texts = Arc::new(Mutex::new(String::new()));
    let write = Arc::clone(&texts);
    let observer = move |it: &Observation<'_>| {
        *write.lock().unwrap() += &format!("{it:?} {:?}", it.key(0).expect("a key"));
    };
    let limiter = Limiter::<String>::builder(Quota::per_minute(1)).observer(observer).build().unwrap();
    assert!(limiter.try_acquire("alice@example.org").is_admitted());
    let text = texts.lock().unwrap();
    assert!(text.contains("Admitted") && !text.contains("alice"), "{text}");
}
