//! What is logged of denials, and how often.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tollgate::{JointLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_observe::LogObserver;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of an event, as they are shown.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Fields {
    /// These fields, with spaces between.
    fn all<const N: usize>(&self, names: [&str; N]) -> String {
        names.map(|name| self.0.get(name).map_or("-", |text| text)).join(" ")
    }
}

/// Keeps what is logged, down to a level.
#[derive(Clone)]
struct Log(LevelFilter, Arc<Mutex<Vec<(Level, Fields)>>>);

impl Log {
    fn new(least: LevelFilter) -> Self {
        Self(least, Arc::default())
    }

    fn take(&self, level: Level) -> Vec<Fields> {
        let mut all = self.1.lock().unwrap();
        let (of, others) = all.drain(..).partition(|(is, _)| *is == level);
        *all = others;
        Vec::into_iter(of).map(|(_, fields)| fields).collect()
    }

    fn summaries(&self) -> Vec<String> {
        self.take(Level::WARN).iter().map(|fields| fields.all(["policy", "denied", "overruled", "cost"])).collect()
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tollgate" && *metadata.level() <= self.0
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.1.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_denial_is_told_with_its_quota_and_no_key() {
    let log = Log::new(LevelFilter::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let limiter = JointLimiter::<(String, String)>::builder()
        .dimension("user", [Quota::per_minute(9)])
        .dimension("tenant", [Quota::per_minute(2).named("tenant-1m")])
        .observer(LogObserver::new("api").key_hash([7; 16]))
        .clock(MockClock::new())
        .build()
        .unwrap();
    for _ in 0..3 {
        let _ = limiter.try_acquire(("alice", "acme")).unwrap();
    }
    assert!(limiter.try_acquire_n(("alice", "acme"), 3).is_err());
    let told = log.take(Level::DEBUG);
    let fields = ["policy", "result", "reason", "dimension", "quota", "retry_after", "cost"];
    let all: Vec<String> = told.iter().map(|event| event.all(fields)).collect();
    assert_eq!(all, ["api quota quota tenant tenant-1m: 2 per 1m 60.0 1", "api cost - - - - 3"]);
    let key = &told[0].0["key"];
    assert!(key.len() == 32 && key.chars().all(|digit| digit.is_ascii_hexdigit()), "{key}");
    assert!(!format!("{told:?}").contains("alice") && !format!("{told:?}").contains("acme"));
}

#[test]
fn a_denial_by_a_penalty_is_told_with_the_number_of_the_block() {
    let log = Log::new(LevelFilter::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let (second, clock) = (Duration::from_secs(1), MockClock::new());
    let penalty = Penalty::new(2, second, 10 * second).growing(3, 60 * second, 60 * second);
    let builder = Limiter::<str>::builder(Quota::new(1, second)).penalty(penalty).observer(LogObserver::new("login"));
    let limiter = builder.clock(clock.clone()).build().unwrap();
    for _ in 0..2 {
        let _ = [(); 3].map(|()| limiter.try_acquire("alice"));
        clock.advance(10 * second);
    }
    let told: Vec<String> =
        log.take(Level::DEBUG).iter().map(|event| event.all(["reason", "retry_after", "block"])).collect();
    assert_eq!(told, ["quota 1.0 -", "penalty 10.0 1", "quota 1.0 -", "penalty 30.0 2"]);
}

#[test]
fn a_key_has_the_same_hash_again_and_another_by_another_secret() {
    let log = Log::new(LevelFilter::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let hashes = |observer: LogObserver| {
        let limiter = Limiter::<str>::builder(Quota::per_minute(1)).observer(observer).build().unwrap();
        let _ = limiter.try_acquire_many(["alice", "alice", "alice", "bob", "bob"]);
        let told = log.take(Level::DEBUG);
        told.iter().map(|event| event.0.get("key").cloned()).collect::<Vec<_>>()
    };
    assert_eq!(hashes(LogObserver::new("api")), [None, None, None], "not asked for");
    let one = hashes(LogObserver::new("api").key_hash([1; 16]));
    assert!(one[0].is_some() && one[0] == one[1] && one[1] != one[2], "{one:?}");
    assert_eq!(hashes(LogObserver::new("api").key_hash([1; 16])), one, "another limiter");
    assert_ne!(hashes(LogObserver::new("api").key_hash([2; 16]))[0], one[0]);
}

#[test]
fn there_is_one_summary_a_second_and_no_denial_is_lost() {
    let log = Log::new(LevelFilter::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let clock = MockClock::new();
    let observer = Arc::new(LogObserver::new("api").clock(clock.clone()));
    let builder = Limiter::<str>::builder(Quota::per_hour(1)).observer(Arc::clone(&observer));
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let deny = |times| (0..times).for_each(|_| _ = limiter.try_acquire("alice"));
    deny(1);
    assert_eq!(log.summaries(), [""; 0], "admitted");
    deny(100);
    assert_eq!(log.summaries(), ["api 1 0 0"], "the first is told at once");
    clock.advance(Duration::from_nanos(999_999_999));
    deny(5);
    assert_eq!(log.summaries(), [""; 0]);
    clock.advance(Duration::from_nanos(1));
    deny(5);
    assert_eq!(log.summaries(), ["api 105 0 0"]);
    clock.advance(Duration::from_secs(100));
    assert_eq!(log.summaries(), [""; 0]);
    observer.summarise();
    observer.summarise();
    assert_eq!(log.summaries(), ["api 4 0 0"]);
    deny(7);
    drop((limiter, observer));
    assert_eq!(log.summaries(), ["api 1 0 0", "api 6 0 0"], "the last ones are told at the end");
    assert_eq!(log.take(Level::DEBUG).len(), 0, "nobody listens to them");
}

#[test]
fn shadow_mode_is_told_apart() {
    let log = Log::new(LevelFilter::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let builder = Limiter::<str>::builder(Quota::per_hour(1)).shadow(true).observer(LogObserver::new("trial"));
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    let _ = limiter.try_acquire_many(["alice"; 2]);
    assert_eq!(log.summaries(), ["trial 0 1 0"]);
    let told = log.take(Level::DEBUG);
    assert_eq!(told[0].all(["result", "reason", "retry_after"]), "overruled quota 3600.0");
}

#[test]
fn of_several_threads_one_writes_the_summary() {
    let log = Log::new(LevelFilter::WARN);
    let clock = MockClock::new();
    let observer = LogObserver::new("api").clock(clock.clone());
    let builder = Limiter::<str>::builder(Quota::per_hour(1)).observer(observer);
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let threads = |requests: u64| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _guard = tracing::subscriber::set_default(log.clone());
                    (0..requests).for_each(|_| _ = limiter.try_acquire("alice"));
                });
            }
        });
    };
    let mut denied = 0;
    for second in 1..=20 {
        threads(50);
        let summaries = log.summaries();
        assert_eq!(summaries.len(), 1, "second {second}: {summaries:?}");
        let count = summaries[0].split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        denied += count;
        clock.advance(Duration::from_secs(1));
    }
    let _guard = tracing::subscriber::set_default(log.clone());
    drop(limiter);
    denied += log.summaries()[0].split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    assert_eq!(denied, 20 * 4 * 50 - 1);
}
