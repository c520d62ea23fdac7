//! What can be given wrong: each has a typed error when the limiter is made, or when a key is
//! listed.

use std::error::Error as _;
use std::time::Duration;

use tollgate::{
    Absent, BuildError, ChangeError, DirectLimiter, JointError, JointLimiter, JointLimiterBuilder, Limiter, ListError,
    MAX_KEY_CAP, MockClock, Penalty, PenaltyError, Quota,
};

const SECOND: Duration = Duration::from_secs(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

fn refused(penalty: Penalty) -> (PenaltyError, String) {
    let error = Limiter::<str>::builder(Quota::per_second(1)).penalty(penalty).build().expect_err("a bad penalty");
    let BuildError::Penalty(why) = error else { panic!("{error:?}") };
    assert_eq!(penalty.validate(), Err(why));
    assert_eq!(error.to_string(), why.to_string());
    assert!(error.source().is_none());
    (why, why.to_string())
}

#[test]
fn penalties() {
    let too_long = Quota::MAX_WINDOW + NANOSECOND;
    let (error, text) = refused(Penalty::new(0, SECOND, SECOND));
    assert_eq!(
        (error, text.as_str()),
        (PenaltyError::ZeroDenials, "the number of a penalty's denials is zero: give at least one")
    );
    let denials = Penalty::MAX_DENIALS + 1;
    let (error, text) = refused(Penalty::new(denials, SECOND, SECOND));
    assert_eq!(error, PenaltyError::TooManyDenials { denials });
    assert!(text.contains("1048577") && text.contains("1048576"), "{text}");
    assert_eq!(refused(Penalty::new(3, Duration::ZERO, SECOND)).0, PenaltyError::ZeroWithin);
    assert_eq!(refused(Penalty::new(1, Duration::ZERO, SECOND)).0, PenaltyError::ZeroWithin);
    assert_eq!(refused(Penalty::new(3, SECOND, Duration::ZERO)).0, PenaltyError::ZeroBlock);
    let (error, text) = refused(Penalty::new(3, too_long, SECOND));
    assert_eq!(error, PenaltyError::WithinTooLong { within: too_long });
    assert!(text.contains("1152921504.606846976s"), "{text}");
    let (error, text) = refused(Penalty::new(3, SECOND, Duration::MAX));
    assert_eq!(error, PenaltyError::BlockTooLong { blocked_for: Duration::MAX });
    assert!(text.contains("1152921504.606846975s"), "{text}");
}

#[test]
fn penalties_that_grow() {
    let too_long = Quota::MAX_WINDOW + NANOSECOND;
    let growing = |factor, longest, quiet| Penalty::new(3, SECOND, 2 * SECOND).growing(factor, longest, quiet);
    for (penalty, error, part) in [
        (growing(0, 2 * SECOND, SECOND), PenaltyError::ZeroFactor, "at least one"),
        (
            growing(2, SECOND, SECOND),
            PenaltyError::LongestTooShort { blocked_for: 2 * SECOND },
            "shorter than the first: give at least 2s",
        ),
        (
            growing(2, too_long, SECOND),
            PenaltyError::LongestTooLong { longest: too_long },
            "at most 1152921504.606846975s",
        ),
        (growing(2, 2 * SECOND, Duration::ZERO), PenaltyError::ZeroQuiet, "at least one nanosecond"),
        (
            growing(2, 2 * SECOND, too_long),
            PenaltyError::QuietTooLong { quiet_for: too_long },
            "at most 1152921504.606846975s",
        ),
    ] {
        let (refused, text) = refused(penalty);
        assert_eq!(refused, error);
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(growing(1, 2 * SECOND, NANOSECOND).validate(), Ok(()));
    // That of the first block comes first.
    let no_block = Penalty::new(3, SECOND, Duration::ZERO).growing(0, Duration::ZERO, Duration::ZERO);
    assert_eq!(no_block.validate(), Err(PenaltyError::ZeroBlock));
}

#[test]
fn the_largest_penalty_and_the_smallest() {
    for penalty in [
        Penalty::new(Penalty::MAX_DENIALS, Quota::MAX_WINDOW, Quota::MAX_WINDOW),
        Penalty::new(1, NANOSECOND, NANOSECOND),
        Penalty::new(1, NANOSECOND, Quota::MAX_WINDOW).growing(u32::MAX, Quota::MAX_WINDOW, Quota::MAX_WINDOW),
        Penalty::new(1, NANOSECOND, NANOSECOND).growing(1, NANOSECOND, NANOSECOND),
    ] {
        assert_eq!(penalty.validate(), Ok(()));
        let builder = Limiter::<str>::builder(Quota::per_second(1)).penalty(penalty).clock(MockClock::new());
        let limiter = builder.build().expect("a good penalty");
        assert!(limiter.try_acquire("alice").is_admitted());
        assert!((0..10).all(|_| limiter.try_acquire("alice").is_denied()));
    }
}

#[test]
fn a_penalty_needs_no_more_room_than_there_can_be() {
    let penalty = Penalty::new(2, SECOND, SECOND);
    let builder = Limiter::<str>::builder(Quota::per_second(1)).penalty(penalty);
    assert!(builder.key_cap(MAX_KEY_CAP).build().is_ok());
}

#[test]
fn lists() {
    let builder = || Limiter::<str>::builder(Quota::per_second(1)).clock(MockClock::new());
    assert_eq!(builder().list_cap(0).build().expect_err("no room"), BuildError::ZeroListCap);
    let list_cap = MAX_KEY_CAP + 1;
    let error = builder().list_cap(list_cap).build().expect_err("too much room");
    assert_eq!(error, BuildError::ListCapTooLarge { list_cap });
    assert!(error.to_string().contains("250000001") && error.to_string().contains("250000000"), "{error}");

    let without = builder().build().expect("good");
    assert_eq!((without.allow("alice"), without.deny("alice")), (Err(ListError::NoLists), Err(ListError::NoLists)));
    assert!(!without.unlist("alice"));
    assert!(ListError::NoLists.to_string().contains("list_cap"));

    let one = builder().list_cap(1).build().expect("good");
    assert_eq!((one.allow("alice"), one.allow("alice")), (Ok(true), Ok(false)));
    assert_eq!(one.allow("bob"), Err(ListError::Full { list_cap: 1 }));
    // The other list is another place.
    assert_eq!(one.deny("alice"), Err(ListError::Full { list_cap: 1 }));
    assert!(ListError::Full { list_cap: 1 }.to_string().contains("at most 1 keys"));
}

fn joint() -> JointLimiterBuilder<(u32, u32), MockClock> {
    let builder = JointLimiter::<(u32, u32)>::builder().dimension("one", [Quota::per_second(1)]);
    builder.dimension("two", [Quota::token_bucket(5, 1, SECOND)]).clock(MockClock::new())
}

#[test]
fn a_penalty_is_for_a_dimension_that_there_is() {
    let penalty = Penalty::new(2, SECOND, SECOND);
    let error = joint().penalty(2, penalty).build().expect_err("two dimensions");
    assert_eq!(error, BuildError::NoSuchDimension { dimension: 2, dimensions: 2 });
    assert!(error.to_string().contains("dimension 2") && error.to_string().contains("there are 2"), "{error}");
    assert!(joint().penalty(1, penalty).build().is_ok());
    let none = Penalty::new(0, SECOND, SECOND);
    assert_eq!(joint().penalty(0, none).build().expect_err("none"), BuildError::Penalty(PenaltyError::ZeroDenials));
    let error = DirectLimiter::builder(Quota::per_second(1)).penalty(none).build().expect_err("none");
    assert_eq!(error, BuildError::Penalty(PenaltyError::ZeroDenials));
}

#[test]
fn lists_of_several_dimensions() {
    let without = joint().build().expect("good");
    assert_eq!((without.allow((1, 1)), without.deny((1, 1))), (Err(ListError::NoLists), Err(ListError::NoLists)));
    assert_eq!(without.unlist((1, 1)), Ok(false));
    assert_eq!(joint().list_cap(0).build().expect_err("no room"), BuildError::ZeroListCap);
    let two = joint().list_cap(2).build().expect("good");
    let nothing = ListError::Keys(JointError::NoKeys);
    assert_eq!((two.allow((Absent, Absent)), two.deny((Absent, Absent))), (Err(nothing), Err(nothing)));
    assert_eq!(two.unlist((Absent, Absent)), Err(JointError::NoKeys));
    assert_eq!(nothing.to_string(), JointError::NoKeys.to_string());
    assert!(nothing.source().is_none() && ListError::NoLists.source().is_none());
    // The same key in two dimensions takes two places.
    assert_eq!((two.allow((1, 1)), two.allow((1, 1))), (Ok(true), Ok(false)));
    assert_eq!(two.allow((2, Absent)), Err(ListError::Full { list_cap: 2 }));
}

#[test]
fn quotas_of_a_key_of_several_dimensions() {
    let log = [Quota::per_second(3)];
    let without = joint().build().expect("good");
    assert_eq!(without.set_quotas_of((1, Absent), &log), Err(ChangeError::NoneOfItsOwn));
    let limiter = joint().keys_with_quotas(4).build().expect("good");
    assert_eq!(limiter.set_quotas_of((Absent, Absent), &log), Err(ChangeError::Keys(JointError::NoKeys)));
    // The second dimension has another algorithm: neither changes.
    let error = limiter.set_quotas_of((1, 1), &log).expect_err("a bucket");
    assert!(matches!(error, ChangeError::OtherAlgorithm { .. }), "{error:?}");
    assert_eq!(limiter.quotas_of((1, Absent)).expect("a key"), [Some([Quota::per_second(1)].into()), None]);
    limiter.set_quotas_of((1, Absent), &log).expect("a log");
    assert_eq!(limiter.quotas_of((1, Absent)).expect("a key"), [Some(log.into()), None]);
    assert_eq!(limiter.quotas_of((2, Absent)).expect("a key"), [Some([Quota::per_second(1)].into()), None]);
    let past = joint().key_cap(3).keys_with_quotas(4).build().expect_err("too many");
    assert_eq!(past, BuildError::OwnQuotasPastCap { keys_with_quotas: 4, key_cap: 3 });
}
