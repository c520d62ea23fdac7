//! Every bound of every quota: the bound itself is allowed, and one more is an error.

use core::time::Duration;

use super::calendar::{Calendar, Zone};
use super::schema::{Field, FieldError, FieldKind, FieldValue};
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const NANOSECOND: Duration = Duration::from_nanos(1);
const MOST: u32 = Quota::MAX_CAPACITY;

/// The error of the quota. Checks that its message has the given words.
fn error(quota: Quota, words: &[&str]) -> QuotaError {
    let error = quota.validate().expect_err("not a quota");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    error
}

#[test]
fn the_stated_maxima_are_allowed_and_one_more_is_not() {
    let longest = Quota::MAX_WINDOW;
    assert_eq!(Quota::new(Quota::MAX_LIMIT, longest).validate(), Ok(()));
    assert_eq!(Quota::new(1, NANOSECOND).validate(), Ok(()));
    let limit = Quota::MAX_LIMIT + 1;
    assert_eq!(Quota::per_second(limit).validate(), Err(QuotaError::LimitTooLarge { limit }));
    let window = longest + NANOSECOND;
    assert_eq!(Quota::new(1, window).validate(), Err(QuotaError::WindowTooLong { window }));
    assert!(Quota::new(1, Duration::MAX).validate().is_err());
}

#[test]
fn zero_is_an_error_not_a_clamp() {
    for quota in [
        Quota::per_minute(0),
        Quota::token_bucket(0, 1, SECOND),
        Quota::leaky_bucket(0, 1, SECOND),
        Quota::fixed_window(0, SECOND),
        Quota::sliding_counter(0, SECOND),
    ] {
        assert_eq!(error(quota, &["at least one permit"]), QuotaError::ZeroLimit);
    }
    let without = Duration::ZERO;
    for quota in [Quota::new(1, without), Quota::fixed_window(1, without), Quota::sliding_counter(1, without)] {
        assert_eq!(error(quota, &["at least one nanosecond"]), QuotaError::ZeroWindow);
    }
    for quota in
        [Quota::token_bucket(1, 0, SECOND), Quota::leaky_bucket(1, 0, SECOND), Quota::leaky_queue(0, SECOND, SECOND)]
    {
        assert_eq!(error(quota, &["rate", "at least one permit"]), QuotaError::ZeroRate);
    }
    for quota in
        [Quota::token_bucket(1, 1, without), Quota::leaky_bucket(1, 1, without), Quota::leaky_queue(1, without, SECOND)]
    {
        assert_eq!(error(quota, &["period", "at least one nanosecond"]), QuotaError::ZeroPeriod);
    }
}

#[test]
fn a_capacity_or_limit_has_the_maximum_of_its_algorithm() {
    for (quota, algorithm) in [
        (Quota::token_bucket as fn(u32, u32, Duration) -> Quota, Algorithm::TokenBucket),
        (Quota::leaky_bucket, Algorithm::LeakyBucket),
    ] {
        assert_eq!(quota(MOST, MOST, NANOSECOND).validate(), Ok(()));
        let past = QuotaError::PastMaximum { algorithm, limit: MOST + 1, most: MOST };
        assert_eq!(error(quota(MOST + 1, 1, NANOSECOND), &["1073741825", "at most 1073741824"]), past);
    }
    assert_eq!(Quota::fixed_window(MOST, SECOND).validate(), Ok(()));
    let past = QuotaError::PastMaximum { algorithm: Algorithm::FixedWindow, limit: u32::MAX, most: MOST };
    assert_eq!(error(Quota::fixed_window(u32::MAX, SECOND), &["a fixed window"]), past);
    assert_eq!(Quota::sliding_counter(Quota::MAX_COUNTER_LIMIT, SECOND).validate(), Ok(()));
    let past = QuotaError::PastMaximum { algorithm: Algorithm::SlidingCounter, limit: 65_536, most: 65_535 };
    assert_eq!(error(Quota::sliding_counter(65_536, SECOND), &["65536", "at most 65535"]), past);
}

#[test]
fn a_rate_has_a_maximum_and_its_period_too() {
    let permits = MOST + 1;
    let long = Quota::MAX_WINDOW + NANOSECOND;
    for quota in [Quota::token_bucket as fn(u32, u32, Duration) -> Quota, Quota::leaky_bucket] {
        assert_eq!(
            error(quota(1, permits, SECOND), &["1073741825", "at most 1073741824"]),
            QuotaError::RateTooLarge { permits }
        );
        assert_eq!(error(quota(1, 2, long), &["too long", "at most"]), QuotaError::PeriodTooLong { per: long });
        assert_eq!(quota(1, 2, Quota::MAX_WINDOW).validate(), Ok(()));
    }
    assert_eq!(Quota::leaky_queue(permits, SECOND, SECOND).validate(), Err(QuotaError::RateTooLarge { permits }));
    assert_eq!(Quota::leaky_queue(2, long, SECOND).validate(), Err(QuotaError::PeriodTooLong { per: long }));
}

#[test]
fn a_queue_has_as_many_places_as_the_delay_has_room_for() {
    let queue = Quota::leaky_queue(1, NANOSECOND, Duration::from_nanos(u64::from(MOST) - 1));
    assert_eq!((queue.limit(), queue.validate()), (MOST, Ok(())));
    let max_delay = Duration::from_nanos(MOST.into());
    let queue = Quota::leaky_queue(1, NANOSECOND, max_delay);
    assert_eq!(error(queue, &["1.073741824s", "more than 1073741824 places"]), QuotaError::QueueTooLong { max_delay });
    let queue = Quota::leaky_queue(3, SECOND, Duration::from_millis(999));
    assert_eq!((queue.limit(), queue.window()), (3, Duration::from_millis(1999)));
    assert_eq!(Quota::leaky_queue(1, SECOND, Duration::ZERO).limit(), 1);
    assert!(Quota::leaky_queue(MOST, NANOSECOND, Duration::MAX).validate().is_err());
}

#[test]
fn a_key_must_be_as_new_within_the_longest_window() {
    const YEAR: Duration = Duration::from_secs(31_557_600);
    assert_eq!(Quota::token_bucket(36, 1, YEAR).validate(), Ok(()));
    let reset = 37 * YEAR;
    assert_eq!(error(Quota::token_bucket(37, 1, YEAR), &["at most"]), QuotaError::ResetTooLong { reset });
    assert_eq!(Quota::leaky_bucket(37, 1, YEAR).validate(), Err(QuotaError::ResetTooLong { reset }));
    assert_eq!(Quota::leaky_queue(1, YEAR, 18 * YEAR).validate(), Err(QuotaError::ResetTooLong { reset }));
    assert_eq!(Quota::sliding_counter(1, 18 * YEAR).validate(), Ok(()));
    let reset = 38 * YEAR;
    assert_eq!(Quota::sliding_counter(1, 19 * YEAR).validate(), Err(QuotaError::ResetTooLong { reset }));
    let window = 37 * YEAR;
    assert_eq!(Quota::fixed_window(1, window).validate(), Err(QuotaError::WindowTooLong { window }));
    assert_eq!(Quota::sliding_counter(1, window).validate(), Err(QuotaError::WindowTooLong { window }));
    // No test has to count up to these numbers.
    assert!(Quota::token_bucket(u32::MAX, 1, Duration::MAX).validate().is_err());
    assert!(Quota::leaky_queue(u32::MAX, Duration::MAX, Duration::MAX).validate().is_err());
    assert!(Quota::sliding_counter(1, Duration::MAX).validate().is_err());
}

#[test]
fn a_window_is_made_of_whole_steps() {
    let steps = |limit, window, resolution| Quota::quantised_log(limit, window, resolution);
    let millis = Duration::from_millis;
    assert_eq!(steps(MOST, 60 * SECOND, millis(60)).validate(), Ok(()));
    assert_eq!(steps(1, SECOND, SECOND).validate(), Ok(()));
    assert_eq!(steps(1, SECOND, SECOND).window(), 2 * SECOND);
    assert_eq!(
        (steps(1, SECOND, millis(10)).resolution(), Quota::per_second(1).resolution()),
        (Some(millis(10)), None)
    );
    assert_eq!(steps(0, SECOND, SECOND).validate(), Err(QuotaError::ZeroLimit));
    assert_eq!(steps(1, Duration::ZERO, SECOND).validate(), Err(QuotaError::ZeroWindow));
    assert_eq!(error(steps(1, SECOND, Duration::ZERO), &["resolution is zero"]), QuotaError::ZeroResolution);
    for resolution in [millis(300), 2 * SECOND, Duration::MAX] {
        let uneven = QuotaError::UnevenResolution { resolution, window: SECOND };
        let quota = steps(1, SECOND, resolution);
        if resolution == Duration::MAX {
            assert!(quota.validate().is_err());
        } else {
            assert_eq!(error(quota, &["1s", "divides"]), uneven);
        }
    }
    let most = Duration::from_nanos(Quota::MAX_STEPS.into());
    assert_eq!(steps(1, most, NANOSECOND).validate(), Ok(()));
    let finer = steps(1, most + NANOSECOND, NANOSECOND);
    assert_eq!(error(finer, &["16385 steps", "16384"]), QuotaError::TooManySteps { steps: 16_385 });
    let limit = MOST + 1;
    let past = QuotaError::PastMaximum { algorithm: Algorithm::QuantisedLog, limit, most: MOST };
    assert_eq!(error(steps(limit, SECOND, SECOND), &["quantised log"]), past);
    let window = Quota::MAX_WINDOW;
    assert_eq!(steps(1, window, window).validate(), Err(QuotaError::ResetTooLong { reset: 2 * window }));
    let half = Duration::from_nanos(u64::try_from(window.as_nanos()).unwrap() / 2);
    assert_eq!(steps(1, half, half).validate(), Ok(()));
    assert_eq!(steps(1, SECOND, SECOND).aligned(SECOND).validate(), Err(QuotaError::PhaseNeedsFixedWindow));
    assert_eq!(steps(1, SECOND, SECOND).starting_with(1).validate(), Err(QuotaError::StartNeedsTokenBucket));
    assert_eq!(steps(5, SECOND, millis(10)).to_string(), "quantised log, 5 per 1s in steps of 10ms");
}

#[test]
fn a_start_is_for_token_buckets_and_a_phase_for_windows_that_stand_still() {
    let bucket = Quota::token_bucket(5, 1, SECOND);
    assert_eq!(bucket.starting_with(5).validate(), Ok(()));
    let past = QuotaError::StartPastCapacity { start: 6, capacity: 5 };
    assert_eq!(error(bucket.starting_with(6), &["start with 6", "at most 5"]), past);
    let others = [
        Quota::per_second(5),
        Quota::leaky_bucket(5, 1, SECOND),
        Quota::leaky_queue(5, SECOND, SECOND),
        Quota::fixed_window(5, SECOND),
        Quota::sliding_counter(5, SECOND),
    ];
    for quota in others {
        assert_eq!(error(quota.starting_with(1), &["only a token bucket"]), QuotaError::StartNeedsTokenBucket);
    }
    for quota in [others[0], bucket, others[1], others[2]] {
        assert_eq!(error(quota.aligned(SECOND), &["only a fixed window"]), QuotaError::PhaseNeedsFixedWindow);
    }
    for quota in [others[3], others[4]] {
        assert_eq!(quota.aligned(Duration::MAX).validate(), Ok(()));
    }
}

#[test]
fn a_name_is_short_and_printable() {
    let quota = Quota::per_minute(5);
    assert_eq!((quota.name(), quota.named("login").name()), (None, Some("login")));
    let longest = "n".repeat(Quota::MAX_NAME);
    for name in [" ", "~", "user-1m", "a b", longest.as_str()] {
        let named = quota.named(name);
        assert_eq!((named.name(), named.validate()), (Some(name), Ok(())));
        assert_eq!(named.to_string(), format!("{name}: 5 per 1m"));
        assert!(format!("{named:?}").contains(&format!("{name:?}")), "{named:?}");
        assert_eq!(named.starting_with(1).validate(), Err(QuotaError::StartNeedsTokenBucket), "said first");
    }
    assert_eq!(error(quota.named(""), &["empty"]), QuotaError::EmptyName);
    let long = "n".repeat(Quota::MAX_NAME + 1);
    let length = long.len();
    assert_eq!(error(quota.named(&long), &["33 bytes", "at most 32"]), QuotaError::NameTooLong { length });
    assert_eq!(quota.named(&long).name(), None);
    for (name, at) in [("\"", 0), ("a\\b", 1), ("ab\n", 2), ("\u{7f}", 0), ("né", 1), ("\0", 0)] {
        assert_eq!(error(quota.named(name), &["printable"]), QuotaError::NameCharacter { at });
    }
    const NAMED: Quota = Quota::per_minute(5).named("const");
    assert_ne!(NAMED, quota);
    assert_eq!(NAMED, quota.named("const"));
}

/// A quota of the algorithm with all of its fields, each with a value of its own. Those of windows of
/// the calendar are tested apart.
fn with_all_fields(algorithm: Algorithm) -> Vec<(Field, FieldValue)> {
    let fields = algorithm.needed_fields().iter().chain(algorithm.optional_fields());
    let fields = fields.filter(|field| **field != Field::Zone);
    let value = |(at, field): (usize, &Field)| {
        let value = match field.kind() {
            FieldKind::Number => FieldValue::Number(9 - u32::try_from(at).unwrap()),
            // A resolution divides the window.
            FieldKind::Duration => FieldValue::Duration(SECOND * if *field == Field::Per { 60 } else { 5 }),
            FieldKind::Flag => FieldValue::Flag(true),
            FieldKind::Zone => FieldValue::Zone(Zone::UTC),
        };
        (*field, value)
    };
    fields.enumerate().map(value).collect()
}

#[test]
fn a_quota_of_each_algorithm_is_made_of_its_fields_and_has_them() {
    for &algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        let mut fields = with_all_fields(algorithm);
        let quota = Quota::from_fields(algorithm, &fields).unwrap();
        assert_eq!(quota.algorithm(), algorithm);
        fields.sort_by_key(|(field, _)| Field::ALL.iter().position(|other| other == field));
        assert_eq!(quota.fields().collect::<Vec<_>>(), fields);
        let needed: Vec<_> =
            fields.into_iter().filter(|(field, _)| algorithm.needed_fields().contains(field)).collect();
        let plain = Quota::from_fields(algorithm, &needed).unwrap();
        assert_eq!(plain.fields().collect::<Vec<_>>(), needed);
    }
}

#[test]
fn fields_that_are_missing_foreign_or_of_another_type_are_errors() {
    for &algorithm in Algorithm::ALL {
        let all = with_all_fields(algorithm);
        for (at, &(field, value)) in all.iter().enumerate() {
            let mut fewer = all.clone();
            fewer.remove(at);
            let made = Quota::from_fields(algorithm, &fewer);
            let is_needed = algorithm.needed_fields().contains(&field);
            assert_eq!(made.err(), is_needed.then_some(FieldError::Missing { field, algorithm }));
            let other = if value == FieldValue::Flag(true) { FieldValue::Number(1) } else { FieldValue::Flag(true) };
            fewer.insert(at, (field, other));
            assert_eq!(Quota::from_fields(algorithm, &fewer), Err(FieldError::OtherKind { field }));
        }
        for &field in Field::ALL.iter().filter(|field| !algorithm.has_field(**field)) {
            assert_eq!(Field::from_name(field.name()), Some(field));
            let zone = FieldValue::Zone(Zone::UTC);
            let values = [FieldValue::Number(1), FieldValue::Duration(SECOND), FieldValue::Flag(true), zone];
            let made = values.map(|value| Quota::from_fields(algorithm, &[all.as_slice(), &[(field, value)]].concat()));
            assert!(made.contains(&Err(FieldError::Foreign { field, algorithm })), "{made:?}");
        }
        let off = [all.as_slice(), &[(Field::CountingRefused, FieldValue::Flag(false))]].concat();
        assert!(Quota::from_fields(algorithm, &off).is_ok(), "a flag that is off is none");
    }
    let zero = Quota::from_fields(
        Algorithm::FixedWindow,
        &[(Field::Per, FieldValue::Duration(SECOND)), (Field::Limit, FieldValue::Number(0))],
    );
    assert_eq!(zero, Err(FieldError::Invalid(QuotaError::ZeroLimit)));
}

#[test]
fn a_window_of_the_calendar_is_made_of_its_fields_and_has_them() {
    let limit = (Field::Limit, FieldValue::Number(5));
    let of = |algorithm, fields: &[_]| Quota::from_fields(algorithm, &[&[limit], fields].concat());
    let zone = (Field::Zone, FieldValue::Zone(Zone::UTC));
    for &calendar in Calendar::ALL {
        let per = (Field::Per, FieldValue::Calendar(calendar));
        let quota = Quota::calendar(5, calendar, Zone::UTC);
        for fields in [&[per][..], &[per, zone]] {
            assert_eq!(of(Algorithm::FixedWindow, fields), Ok(quota));
        }
        assert_eq!(quota.fields().collect::<Vec<_>>(), [limit, per, zone]);
        assert_eq!(quota.to_string(), format!("fixed window, 5 per {calendar} in UTC"));
        for algorithm in [Algorithm::SlidingWindowLog, Algorithm::SlidingCounter, Algorithm::TokenBucket] {
            let error = FieldError::CalendarNeedsFixedWindow { calendar, algorithm };
            let fields = [per, (Field::Capacity, FieldValue::Number(5)), (Field::Refill, FieldValue::Number(5))];
            let fields = &fields[..if algorithm == Algorithm::TokenBucket { 3 } else { 1 }];
            let limit = &[limit][usize::from(algorithm == Algorithm::TokenBucket)..];
            assert_eq!(Quota::from_fields(algorithm, &[limit, fields].concat()), Err(error));
        }
        assert_eq!(quota.aligned(SECOND).validate(), Err(QuotaError::PhaseNeedsFixedWindow));
        assert_eq!(Quota::calendar(0, calendar, Zone::UTC).validate(), Err(QuotaError::ZeroLimit));
        assert!(Quota::calendar(Quota::MAX_CAPACITY, calendar, Zone::UTC).validate().is_ok());
        assert!(Quota::calendar(Quota::MAX_CAPACITY + 1, calendar, Zone::UTC).validate().is_err());
    }
    let per = (Field::Per, FieldValue::Duration(SECOND));
    assert_eq!(of(Algorithm::FixedWindow, &[per, zone]), Err(FieldError::ZoneNeedsCalendar));
    let phase = (Field::Phase, FieldValue::Calendar(Calendar::Day));
    assert_eq!(of(Algorithm::FixedWindow, &[per, phase]), Err(FieldError::OtherKind { field: Field::Phase }));
}
