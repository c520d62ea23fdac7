//! Random requests to one key, beside the oracle.

use proptest::prelude::*;

use super::super::{Account, STATE_BITS, Verdict};
use super::any::AnyAccount;
use super::traffic::{END_OF_TIME, account, lengths, meter, origin, requests};
use crate::decision::Left;
use crate::state::cell::{AtomicWord, Hint, Word};
use crate::state::request::{self, CellRef, Proposal, Request, Seen};
use crate::state::ring::Rings;
use tollgate_kit::oracle::meter::{Meter, Naive};

struct Run {
    meter: Meter,
    origin: u64,
    account: AnyAccount,
    naive: Naive,
    state: u128,
}

impl Run {
    fn starts_low(&self) -> bool {
        matches!(self.meter, Meter::TokenBucket { capacity, start, .. } if start < capacity)
    }

    /// Decides, checks all that can be asked, and charges. Gives back the wait, if it is denied.
    fn request(&mut self, now: u64, cost: u32) -> Option<u64> {
        if self.state == 0 {
            // Which is when a bucket begins to be refilled.
            self.naive = Naive::new(self.meter, self.origin, now);
        }
        self.check_numbers(now);
        let remaining = self.account.left(self.state, now, None).remaining;
        let admitted = self.naive.admits(now, cost);
        assert_eq!(admitted, cost <= remaining, "admitted exactly if as much remains");
        match self.account.decide(self.state, now, cost, None) {
            Verdict::Admit { state, delay_ns } => {
                assert!(admitted, "by the oracle, too");
                assert_eq!(i128::from(delay_ns), self.naive.delay(now), "the delay in the queue");
                assert!(state > 0 && state < 1 << STATE_BITS);
                self.naive.grant(now, cost);
                self.state = state;
                self.check_numbers(now);
                None
            }
            Verdict::Deny { wait_ns, state } => {
                assert!(!admitted, "by the oracle, too");
                assert_eq!(state.is_some(), self.state == 0, "a denial writes only where it starts an account");
                self.state = state.unwrap_or(self.state);
                self.check_wait(now, cost, wait_ns);
                Some(wait_ns)
            }
        }
    }

    /// Passes after exactly that long, and not a nanosecond sooner.
    fn check_wait(&self, now: u64, cost: u32, wait: u64) {
        assert!(wait > 0);
        for (time, passes) in [(now + wait, true), (now + wait - 1, false)] {
            assert_eq!(self.naive.admits(time, cost), passes, "by the oracle, {wait} after {now}");
            let verdict = self.account.decide(self.state, time, cost, None);
            assert_eq!(matches!(verdict, Verdict::Admit { .. }), passes, "{wait} after {now}");
        }
    }

    fn check_numbers(&self, now: u64) {
        let (naive, limit) = (&self.naive, self.meter.limit());
        let left = self.account.left(self.state, now, None);
        let Left { remaining, next_after_ns: next, reset_after_ns: reset, .. } = left;
        assert_eq!((left.limit, remaining), (limit, naive.most(now)), "what remains at {now}");
        if remaining == limit {
            assert_eq!((next, reset), (0, 0), "all of it is left at {now}");
        } else if self.state == 0 {
            assert_eq!((next, reset), (u64::MAX, u64::MAX), "it earns nothing");
        } else {
            assert!(next > 0 && naive.most(now + next) > remaining, "more {next} after {now}");
            assert_eq!(naive.most(now + next - 1), remaining, "and not sooner");
            assert_eq!(naive.most(now + reset), limit, "all free {reset} after {now}");
            assert!(naive.most(now + reset - 1) < limit, "and not sooner");
        }
        let over_at = self.account.over_at(self.state);
        if self.state == 0 {
            assert_eq!(over_at, 0);
        } else if self.starts_low() {
            assert_eq!(over_at, u64::MAX);
        } else {
            let over_at = over_at.max(now);
            assert!(naive.is_free(over_at.into()), "over at {over_at}");
            assert!(over_at == now || !naive.is_free(u128::from(over_at) - 1), "and not sooner");
            assert_eq!(self.account.left(self.state, over_at, None), self.account.left(0, over_at, None));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn accounts_answer_as_the_oracle_does(
        meter in meter(),
        origin in origin(),
        after in prop_oneof![Just(0), 0..1000_u64, 0..1_u64 << 58],
        requests in requests(),
    ) {
        let naive = Naive::new(meter, origin, origin);
        let mut run = Run { meter, origin, account: account(meter, origin), naive, state: 0 };
        let (mut now, mut advised) = (origin + after, 0);
        for request in requests {
            now = request.gap.after(now, lengths(meter), advised);
            if now > END_OF_TIME {
                break;
            }
            let remaining = run.account.left(run.state, now, None).remaining;
            advised = run.request(now, request.cost.permits(meter.limit(), remaining)).unwrap_or(0);
        }
    }

    #[test]
    fn an_earlier_reading_is_granted_nothing_that_a_later_one_is_denied(
        meter in meter(), origin in origin(), requests in requests(), earlier in 0..6_usize, part in 0..1500_u64,
    ) {
        let account = account(meter, origin);
        let (mut state, mut now) = (0, origin);
        for request in requests {
            now = request.gap.after(now, lengths(meter), 0);
            if now > END_OF_TIME {
                break;
            }
            let remaining = account.left(state, now, None).remaining;
            let cost = request.cost.permits(meter.limit(), remaining);
            let lag = u64::try_from(u128::from(lengths(meter)[earlier]) * u128::from(part) / 1000).expect("short");
            let verdicts = [now.saturating_sub(lag).max(origin), now].map(|now| account.decide(state, now, cost, None));
            if state > 0 && matches!(verdicts[0], Verdict::Admit { .. }) {
                prop_assert!(matches!(verdicts[1], Verdict::Admit { .. }), "{verdicts:?}");
            }
            state = match verdicts[1] {
                Verdict::Admit { state, .. } => state,
                Verdict::Deny { state: other, .. } => other.unwrap_or(state),
            };
        }
    }

    #[test]
    fn nonsense_is_answered_without_a_panic(
        meter in meter(), origin: u64, state in 0..1_u128 << STATE_BITS, after in 0..1_u128 << STATE_BITS,
        now: u64, cost: u32, within: u64,
    ) {
        let account = account(meter, origin >> 2);
        let _ = (account.decide(state, now, cost, None), account.decide(state, now, cost, Some(within)));
        let _ = (account.refund(state, now, after, cost, 0), account.refund(state, now, state, cost, 0));
        let _ = (account.owe(state, now, cost), account.left(state, now, None), account.over_at(state));
    }

    #[test]
    fn a_request_of_no_permits_is_admitted_at_once(
        meter in meter(), state in 0..1_u128 << STATE_BITS, now: u64, within: u64,
    ) {
        let (account, word, hint, rings) = (account(meter, 1 << 60), AtomicWord::new(), Hint::new(), Rings::with_room(0));
        let cell = CellRef { word: &word, hint: &hint, rings: &rings };
        let seen = Seen { cell, word: Word::of(state), now };
        let admitted = Proposal::Admit { word: Word::of(state), mark: state, delay_ns: 0 };
        let propose = |ask| request::Algorithm::propose(&account, seen, ask, None);
        prop_assert_eq!(propose(Request::acquire(0).peek()), admitted);
        prop_assert_eq!(propose(Request::reserve(0, within).peek()), admitted);
    }
}
