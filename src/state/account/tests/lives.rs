//! Requests, reservations, refunds and settled costs on one key, beside a naive account that knows
//! each charge.

use proptest::prelude::*;

use super::super::{Account, Verdict};
use super::any::AnyAccount;
use super::traffic::{START_OF_TIME, account};
use tollgate_kit::oracle::meter::Meter;
use tollgate_kit::reservations::account::Account as Model;
use tollgate_kit::reservations::{Naive, Number};

/// Where windows begin.
const ORIGIN: u64 = START_OF_TIME + (1 << 40);

fn meter() -> impl Strategy<Value = Meter> {
    let phase = || (0..30_u64).prop_map(u128::from);
    prop_oneof![
        2 => (1..12_u32, 1..6_u32, 1..30_u64, 0..12_u32).prop_map(|(capacity, refill, per, start)| {
            Meter::TokenBucket { capacity, refill, per, start: capacity - start.min(capacity) }
        }),
        1 => (1..12_u32, 1..6_u32, 1..30_u64).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per }),
        2 => (1..6_u32, 1..30_u64, 0..60_u64)
            .prop_map(|(leak, per, max_delay)| Meter::LeakyQueue { leak, per, max_delay }),
        1 => (1..12_u32, 1..30_u64, proptest::option::of(phase()))
            .prop_map(|(limit, window, phase)| Meter::FixedWindow { limit, window, phase }),
        2 => (1..12_u32, 1..30_u64, phase())
            .prop_map(|(limit, window, phase)| Meter::SlidingCounter { limit, window, phase }),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Request {
        cost: u32,
        within: Option<u64>,
    },
    /// One of the receipts costs so much; the newest is 0.
    Settle(usize, u32),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let within = prop_oneof![Just(None), (0..80_u64).prop_map(Some), Just(Some(u64::MAX))];
    let step = prop_oneof![
        3 => (1..6_u32, within).prop_map(|(cost, within)| Step::Request { cost, within }),
        2 => (0..6_usize, prop_oneof![Just(0), 0..6_u32, 0..40_u32]).prop_map(|(newest, actual)| Step::Settle(newest, actual)),
    ];
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..8_u64, 1 => 0..70_u64];
    proptest::collection::vec((gap, step), 1..120)
}

struct Receipt {
    number: Number,
    after: u128,
    cost: u32,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn settled_costs_are_those_of_the_naive_account(meter in meter(), steps in steps()) {
        let account: AnyAccount = account(meter, ORIGIN);
        let (mut model, mut state, mut now) = (Model::of(meter, ORIGIN), 0, ORIGIN);
        let mut receipts: Vec<Receipt> = vec![];
        for (gap, step) in steps {
            now += gap;
            match step {
                Step::Request { cost, within } => {
                    let cost = cost.min(meter.limit());
                    let verdict = account.decide(state, now, cost, within);
                    match (verdict, model.request(now, cost, within)) {
                        (Verdict::Admit { state: after, delay_ns }, Ok((delay, number))) => {
                            prop_assert_eq!(delay_ns, delay);
                            prop_assert!(within.is_none_or(|within| delay <= within));
                            receipts.push(Receipt { number, after, cost });
                            state = after;
                        }
                        (Verdict::Deny { wait_ns, state: started }, Err(wait)) => {
                            prop_assert_eq!(wait_ns, wait);
                            state = started.unwrap_or(state);
                        }
                        (verdict, answer) => prop_assert!(false, "{verdict:?}, and not {answer:?}"),
                    }
                }
                Step::Settle(newest, actual) => {
                    let Some(cell) = receipts.len().checked_sub(newest + 1) else { continue };
                    let Receipt { number, after, cost } = receipts.remove(cell);
                    match actual.checked_sub(cost) {
                        Some(0) => {}
                        Some(more) => {
                            state = account.owe(state, now, more);
                            model.owe(now, more);
                        }
                        None => {
                            let refunded = account.refund(state, now, after, cost, actual);
                            prop_assert_eq!(refunded.map_or(0, |(_, permits)| permits), model.refund(now, number, actual));
                            state = refunded.map_or(state, |(state, _)| state);
                        }
                    }
                }
            }
            if state > 0 {
                prop_assert_eq!(account.left(state, now, None).remaining, model.remaining(now), "at {}", now);
            }
        }
    }
}
