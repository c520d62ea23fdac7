//! Penalties that grow, by example: how long each block lasts, when the count begins anew, and what a
//! change of the penalty does to it.

use std::time::Duration;

use tollgate::{DenialReason, JointLimiter, Limiter, MockClock, Penalty, Quota};

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// One denial in a nanosecond begins a block of ten.
const FIXED: Penalty = Penalty::new(1, Duration::from_nanos(1), Duration::from_nanos(10));

fn growing(factor: u32, longest: u64, quiet_for: u64) -> Penalty {
    FIXED.growing(factor, ns(longest), ns(quiet_for))
}

/// One permit in a nanosecond, so that a second request at once is a denial.
struct Play {
    limiter: Limiter<str, MockClock>,
    clock: MockClock,
}

/// The number of a block, and how long it lasts.
type Block = Option<(u8, u128)>;

impl Play {
    fn of(penalty: Penalty) -> Self {
        let clock = MockClock::new();
        let builder = Limiter::builder(Quota::new(1, ns(1))).penalty(penalty).clock(clock.clone());
        Self { limiter: builder.build().expect("good"), clock }
    }

    /// The block that goes on.
    fn block(&self) -> Block {
        let denial = self.limiter.peek("a").decision().into_result().err()?;
        assert_eq!((denial.reason(), denial.quota()), (DenialReason::Penalty, 0));
        Some((denial.block().expect("a number"), denial.retry_after().as_nanos()))
    }

    /// Asks until a block begins.
    fn begin(&self) -> Block {
        assert_eq!(self.block(), None);
        let told = [(); 2].map(|()| self.limiter.try_acquire("a"));
        assert!(told[0].is_admitted());
        let denial = told[1].into_result().expect_err("the second at once");
        assert_eq!(self.block(), denial.block().map(|number| (number, denial.retry_after().as_nanos())));
        self.block()
    }

    /// Waits for the end of the block and so many nanoseconds more.
    fn after_block(&self, more: u64) -> &Self {
        let (_, rest) = self.block().expect("a block");
        self.clock.advance(ns(u64::try_from(rest).expect("few") - 1));
        assert!(self.limiter.peek("a").is_denied(), "until it ends");
        self.clock.advance(ns(1 + more));
        self
    }

    fn change(&self, penalty: Option<Penalty>) -> &Self {
        self.limiter.settings().set_penalty(0, penalty).expect("good");
        self
    }
}

#[test]
fn each_block_is_so_many_times_the_last_up_to_the_longest() {
    let play = Play::of(growing(3, 100, 1000));
    assert_eq!(play.begin(), Some((1, 10)));
    let blocks = [(); 4].map(|()| play.after_block(999).begin());
    assert_eq!(blocks, [(2, 30), (3, 90), (4, 100), (5, 100)].map(Some));
    assert_eq!(play.limiter.counts().penalties, 5);
}

#[test]
fn the_quiet_time_begins_at_the_end_of_the_last_block_and_is_half_open() {
    for (quiet, next) in [(49, (2, 20)), (50, (1, 10))] {
        let play = Play::of(growing(2, 1000, 50));
        assert_eq!(play.begin(), Some((1, 10)));
        assert_eq!(play.after_block(quiet).begin(), Some(next), "after {quiet}");
    }
    // Longer than the quiet time is a block itself.
    let play = Play::of(growing(9, 1000, 5));
    assert_eq!(play.begin(), Some((1, 10)));
    assert_eq!(play.after_block(4).begin(), Some((2, 90)));
    assert_eq!(play.after_block(4).begin(), Some((3, 810)));
    assert_eq!(play.after_block(5).begin(), Some((1, 10)));
}

/// A denial that begins no block makes no noise.
#[test]
fn denials_alone_do_not_prolong_the_quiet_time() {
    let play = Play::of(Penalty::new(2, ns(1), ns(10)).growing(2, ns(1000), ns(50)));
    let ask = || [(); 3].map(|()| play.limiter.try_acquire("a").retry_after());
    assert_eq!(ask(), [None, Some(ns(1)), Some(ns(10))]);
    play.after_block(30);
    assert_eq!([(); 2].map(|()| play.limiter.try_acquire("a").retry_after()), [None, Some(ns(1))]);
    play.clock.advance(ns(20));
    assert_eq!(ask(), [None, Some(ns(1)), Some(ns(10))]);
    assert_eq!(play.block(), Some((1, 10)));
}

#[test]
fn a_block_is_never_longer_than_the_longest_whatever_the_factor() {
    let (longest, most) = (Quota::MAX_WINDOW, Quota::MAX_WINDOW.as_nanos());
    let play = Play::of(FIXED.growing(u32::MAX, longest, longest));
    assert_eq!(play.begin(), Some((1, 10)));
    assert_eq!(play.after_block(0).begin(), Some((2, 10 * u128::from(u32::MAX))));
    assert_eq!(play.after_block(0).begin(), Some((3, most)), "10 * (2^32 - 1)^2 is more than 2^64");
}

#[test]
fn a_number_past_255_is_told_as_255() {
    let play = Play::of(growing(1, 10, 1000));
    assert_eq!(play.begin(), Some((1, 10)));
    let last = (0..300).map(|_| play.after_block(0).begin()).last();
    assert_eq!(last, Some(Some((255, 10))));
    assert_eq!(play.after_block(1000).begin(), Some((1, 10)));
}

#[test]
fn the_blocks_of_a_fixed_penalty_are_all_the_first() {
    let play = Play::of(FIXED);
    assert_eq!(play.begin(), Some((1, 10)));
    assert_eq!([(); 3].map(|()| play.after_block(0).begin()), [Some((1, 10)); 3]);
}

#[test]
fn forget_and_clear_forget_the_number() {
    for (clear, is_blocked) in [(false, true), (false, false), (true, true), (true, false)] {
        let play = Play::of(growing(2, 1000, 500));
        assert_eq!(play.begin(), Some((1, 10)));
        assert_eq!(play.after_block(5).begin(), Some((2, 20)));
        if !is_blocked {
            play.after_block(5);
        }
        if clear {
            play.limiter.clear();
        } else {
            assert!(play.limiter.forget("a"), "also when the block is over: its number counted");
        }
        play.clock.advance(ns(1));
        assert_eq!(play.begin(), Some((1, 10)), "clear: {clear}, blocked: {is_blocked}");
    }
}

#[test]
fn a_running_block_lasts_as_a_changed_penalty_says_from_when_it_began() {
    let play = Play::of(growing(2, 1000, 500));
    assert_eq!(play.begin(), Some((1, 10)));
    assert_eq!(play.after_block(0).begin(), Some((2, 20)));
    play.clock.advance(ns(5));
    play.change(Some(growing(7, 1000, 500)));
    assert_eq!(play.block(), Some((2, 70 - 5)));
    play.change(Some(FIXED));
    assert_eq!(play.block(), Some((2, 10 - 5)), "it keeps its number");
    play.change(None);
    assert_eq!(play.block(), None);
    play.change(Some(growing(3, 1000, 500)));
    assert_eq!(play.block(), Some((2, 30 - 5)));
    assert_eq!(play.after_block(0).begin(), Some((3, 90)));
}

#[test]
fn a_block_that_is_over_does_not_come_back_and_counts_on_from_its_end() {
    let play = Play::of(growing(2, 1000, 500));
    assert_eq!(play.begin(), Some((1, 10)));
    play.after_block(100);
    // From its begin, a block of so long would go on.
    let long = Penalty::new(1, ns(1), ns(400));
    play.change(Some(long.growing(2, ns(1000), ns(600))));
    assert_eq!(play.block(), None);
    play.clock.advance(ns(499));
    assert_eq!(play.begin(), Some((2, 800)), "599 after the end of the last");

    let play = Play::of(growing(2, 1000, 500));
    assert_eq!(play.begin(), Some((1, 10)));
    play.after_block(100);
    play.change(Some(long.growing(2, ns(1000), ns(600))));
    play.clock.advance(ns(500));
    assert_eq!(play.begin(), Some((1, 400)), "600 after the end of the last");
}

/// What counts under no penalty in between does not count afterwards.
#[test]
fn a_fixed_penalty_forgets_the_numbers_of_blocks_that_are_over() {
    let play = Play::of(growing(2, 1000, 500));
    assert_eq!(play.begin(), Some((1, 10)));
    play.after_block(1);
    play.change(Some(FIXED)).change(Some(growing(2, 1000, 500)));
    assert_eq!(play.begin(), Some((1, 10)));
}

/// A stream of keys of which each is blocked, and never seen again. The key cap has room for the blocks
/// of twice as many keys.
#[test]
fn keys_that_were_quiet_make_room_and_others_do_not() {
    let clock = MockClock::new();
    let builder = Limiter::<str>::builder(Quota::new(1, ns(1))).penalty(growing(2, 1000, 500)).key_cap(50);
    let limiter = builder.clock(clock.clone()).build().expect("good");
    let block = |key: String| {
        let told = [(); 2].map(|()| limiter.try_acquire(&*key).into_result());
        assert!(told[0].is_ok());
        told[1].expect_err("the second at once").block()
    };
    for round in 0..200_u32 {
        assert!((0..50_u32).all(|key| block(format!("{round} {key}")) == Some(1)));
        clock.advance(ns(255));
    }
    assert_eq!((limiter.counts().penalties, limiter.counts().penalties_refused), (10_000, 0));
    assert!(limiter.counts().bytes < 60_000, "{} bytes", limiter.counts().bytes);
    // The keys of the last round have not been quiet for long enough. Half of the places are free.
    assert!((0..50_u32).all(|key| block(format!("more {key}")) == Some(1)));
    clock.advance(ns(1));
    assert_eq!(block("one too many".to_owned()), None);
    assert_eq!(limiter.counts().penalties_refused, 1);
}

/// The denial has the longest wait, and the number of that block.
#[test]
fn of_several_blocks_the_one_with_the_longest_wait_is_told() {
    let clock = MockClock::new();
    let second = |growth: Penalty| {
        let builder = JointLimiter::<(u32, u32)>::builder().dimension("user", [Quota::new(1, ns(1))]);
        let builder = builder.dimension("address", [Quota::new(1, ns(1))]).penalty(0, growth).penalty(1, FIXED);
        builder.clock(clock.clone()).build().expect("good")
    };
    let limiter = second(growing(5, 1000, 1000));
    let blocks = || {
        assert!(limiter.try_acquire((1, 1)).expect("keys").is_admitted());
        let denial = limiter.try_acquire((1, 1)).expect("keys").into_result().expect_err("the second at once");
        (denial.dimension(), denial.block(), denial.retry_after(), denial.violated().count())
    };
    assert_eq!(blocks(), (0, Some(1), ns(10), 2));
    clock.advance(ns(10));
    assert_eq!(blocks(), (0, Some(2), ns(50), 2));
    clock.advance(ns(20));
    let denial = limiter.peek((1, 1)).expect("keys").decision().into_result().expect_err("blocked");
    assert_eq!((denial.block(), denial.violated().collect::<Vec<_>>()), (Some(2), vec![0]));
}
