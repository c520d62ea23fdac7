use super::*;

#[test]
fn a_quota_of_each_kind_is_the_same_again() {
    let second = Duration::from_secs(1);
    for quota in [
        Quota::new(3, second),
        Quota::new(3, second).counting_refused().named("api"),
        Quota::token_bucket(7, 3, second),
        Quota::token_bucket(7, 3, second).starting_with(0),
        Quota::leaky_bucket(7, 3, second),
        Quota::leaky_queue(7, second, 2 * second),
        Quota::fixed_window(7, second),
        Quota::fixed_window(7, second).aligned(Duration::ZERO),
        Quota::sliding_counter(7, second).aligned(second / 4),
        Quota::quantised_log(7, second, second / 10),
        Quota::warm_up(7, 3, second, 5 * second),
        Quota::calendar(7, Calendar::Day, Zone::UTC),
        Quota::calendar(7, Calendar::Week, Zone::UTC),
        Quota::calendar(7, Calendar::Month, Zone::UTC).named("api"),
        #[cfg(feature = "calendar")]
        Quota::calendar(7, Calendar::Month, Zone::named("Pacific/Apia").unwrap()),
    ] {
        assert_eq!(OwnQuota::of(&quota).quota(), Some(quota));
    }
}

#[test]
fn a_phase_past_64_bits_is_kept_as_the_same_boundary() {
    let (most, nanosecond) = (Duration::from_nanos(u64::MAX), Duration::from_nanos(1));
    let window = Duration::from_nanos(10);
    for quota in [Quota::fixed_window(7, window), Quota::sliding_counter(7, window)] {
        for (phase, kept) in [
            (most - nanosecond, most - nanosecond),
            (most, Duration::from_nanos(5)),
            (most + nanosecond, Duration::from_nanos(6)),
            (Duration::MAX, Duration::from_nanos(9)),
        ] {
            let restored = OwnQuota::of(&quota.aligned(phase)).quota();
            assert_eq!(restored, Some(quota.aligned(kept)), "{phase:?}");
        }
    }
}

#[test]
fn numbers_that_do_not_fit_together_are_no_quota() {
    let bucket = OwnQuota::of(&Quota::token_bucket(7, 3, Duration::from_secs(1)));
    for at in 0..bucket.numbers.len() {
        let mut other = bucket.clone();
        other.numbers[at] += 1 << 32;
        assert!(other.quota().is_none_or(|quota| quota.validate().is_err()), "number {at}");
    }
}

#[test]
fn no_two_fields_of_an_algorithm_have_the_same_place() {
    for &algorithm in Algorithm::ALL {
        let fields = algorithm.needed_fields().iter().chain(algorithm.optional_fields());
        // A snapshot has apart whether refused requests count, and time zones.
        let fields = fields.filter(|field| !matches!(field, Field::CountingRefused | Field::Zone));
        let mut places: Vec<usize> = fields.map(|field| place(algorithm, *field).expect("a place").0).collect();
        places.sort_unstable();
        assert!(places.is_sorted_by(|one, other| one < other) && places[0] > 0, "{algorithm}: {places:?}");
    }
}
