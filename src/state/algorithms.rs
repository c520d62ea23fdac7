//! The code of each algorithm, made of its kind of quotas. Constructors of quotas name it.

use super::account::bucket::Bucket;
use super::account::calendar::CalendarWindow;
use super::account::line::{Queue, WarmUp};
use super::account::windows::{Counter, Window};
use super::account::{Account, Verdict};
use super::cell::{AtomicWord, Word};
use super::code::{Code, Numbers};
use super::concurrency::Concurrency;
use super::log::steps::Steps;
use super::log::{LogPlan, Permits};
use super::request::{Algorithm, Seen};
use crate::clock::nanos;
use crate::decision::{FastDecision, PerQuota};
use crate::quota::Kind;

/// Declares the code of each algorithm: the kind of its quotas, its numbers, and what differs from others.
macro_rules! algorithms {
    (|$given:ident, $quota:ident, $limit:ident| $(
        $NAME:ident: $Variant:ident $(from $kind:pat => $numbers:expr)? $(, $field:ident = $function:expr)*;
    )+) => {
        $(
            pub(crate) static $NAME: Code = Code {
                $($field: $function,)*
                ..Code {
                    numbers: |$given| {
                        #[allow(unused, reason = "not each algorithm has all of them")]
                        let ($quota, $limit) = (&$given.quotas[0], $given.quotas[0].limit());
                        match $quota.kind() {
                            $($kind => Some(Numbers::$Variant($numbers)),)?
                            _ => None,
                        }
                    },
                    algorithm: |numbers| match numbers {
                        Numbers::$Variant(algorithm) => algorithm,
                        _ => unreachable!("a plan has the code of its algorithm"),
                    },
                    decide: |numbers, seen, cost, left| match numbers {
                        Numbers::$Variant(algorithm) => (algorithm as &dyn Algorithm).decide(seen, cost, left),
                        _ => None,
                    },
                    decide_shortly: None,
                    moved: |of, seen, under, to| match (of, under) {
                        (Numbers::$Variant(of), Numbers::$Variant(under)) => Some(of.moved(seen, under, to)),
                        _ => None,
                    },
                    converted: None,
                }
            };
        )+

        /// For quotas.
        #[allow(dead_code, reason = "no quota is one of blocks")]
        pub(crate) mod of_quotas {
            $(pub(crate) static $NAME: crate::quota::AnyCode = &super::$NAME;)+
        }
    };
}

algorithms! { |given, quota, limit|
    LOG: Log from Kind::Log => LogPlan::<Permits>::new(given.quotas);
    QUANTISED_LOG: QuantisedLog
        from Kind::QuantisedLog { window, resolution } =>
            LogPlan::<Steps>::new(quota, nanos(window), nanos(resolution)),
        decide = apart::quantised_log;
    BUCKET: Bucket
        from Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } =>
            Bucket::new(limit, permits, nanos(per), quota.start().unwrap_or(limit)),
        decide = apart::bucket;
    QUEUE: Queue
        from Kind::LeakyQueue { leak, per, max_delay } => Queue::new(limit, leak, nanos(per), nanos(max_delay)),
        decide_shortly = Some(apart::queue);
    WINDOW: Window
        from Kind::FixedWindow => {
            let window = quota.window_ns();
            Window::new(limit, window, quota.phase().map(|phase| given.boundary(phase, window)))
        },
        decide_shortly = Some(apart::window);
    COUNTER: Counter
        from Kind::SlidingCounter { window } => {
            let boundary = given.boundary(quota.phase().unwrap_or_default(), nanos(window));
            Counter::new(limit, nanos(window), Some(boundary))
        },
        decide_shortly = Some(apart::counter);
    WARM_UP: WarmUp
        from Kind::WarmUp { rate, per, warm_up } => WarmUp::new(limit, rate, nanos(per), nanos(warm_up)),
        decide_shortly = Some(apart::warm_up);
    CALENDAR: Calendar
        from Kind::Calendar { per, zone } => CalendarWindow::new(limit, per, zone, given.origin, given.since_1970),
        decide_shortly = Some(apart::calendar), converted = Some(other_fixed_window);
    CONCURRENCY: Concurrency from Kind::Concurrency { .. } => Concurrency { limit };
    // No quota, but the blocks of a penalty.
    BLOCKS: Blocks;
}

fn other_fixed_window(of: &Numbers, seen: Seen<'_>, under: &Numbers) -> Option<Word> {
    let (state, now) = (seen.word.state(), seen.now);
    Some(Word::of(match (of, under) {
        (Numbers::Window(of), Numbers::Calendar(under)) => under.converted_from(of, state, now),
        (Numbers::Calendar(of), Numbers::Window(under)) => of.converted_to(under, state, now),
        _ => return None,
    }))
}

/// Decides a request by an account on an open word, and swaps it. `None` if another thread was faster.
#[inline(always)]
pub(super) fn decide<A: Account>(
    account: &A,
    cell: &AtomicWord,
    word: Word,
    now: u64,
    cost: u32,
) -> Option<FastDecision> {
    carried_out(account.decide_open(word.state(), now, cost), cell, word)
}

#[inline(always)]
fn carried_out(verdict: Verdict, cell: &AtomicWord, word: Word) -> Option<FastDecision> {
    match verdict {
        // The state follows from this word. If it has changed, the state is not to be written.
        Verdict::Admit { state, delay_ns } => {
            cell.swap(word, Word::of(state)).then_some(FastDecision::admitted(delay_ns))
        }
        // Only a key that was never asked has a state to write.
        Verdict::Deny { wait_ns, .. } => Some(FastDecision::denied(wait_ns, 0)),
    }
}

/// The decisions of accounts, each a function of its own that is called with registers alone. A
/// function that is not generic is compiled once, and not in each crate that decides.
mod apart {
    use super::{Account, AtomicWord, FastDecision, Numbers, PerQuota, Seen, Verdict, Word, carried_out, decide};

    macro_rules! apart {
        ($($name:ident: $Variant:ident),*) => { $(
            pub(super) fn $name(
                numbers: &Numbers,
                cell: &AtomicWord,
                word: Word,
                now: u64,
                cost: u32,
            ) -> Option<FastDecision> {
                match numbers {
                    Numbers::$Variant(account) => decide(account, cell, word, now, cost),
                    _ => None,
                }
            }
        )* };
    }

    pub(super) fn quantised_log(
        numbers: &Numbers,
        seen: Seen<'_>,
        cost: u32,
        mut left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let Numbers::QuantisedLog(log) = numbers else { return None };
        match log.denied_by_hint(seen, cost, left.as_deref_mut()) {
            Some((wait_ns, quota)) => Some(FastDecision::denied(wait_ns, quota)),
            None => log.decide_generally(seen, cost, left),
        }
    }

    /// The account that most requests with a status ask. If the swap is lost, the caller discards what is
    /// left.
    pub(super) fn bucket(
        numbers: &Numbers,
        seen: Seen<'_>,
        cost: u32,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let Numbers::Bucket(bucket) = numbers else { return None };
        let decided = bucket.decide_open(seen.word.state(), seen.now, cost);
        let after = if let Verdict::Admit { state, .. } = decided { state } else { seen.word.state() };
        if let Some(left) = left {
            left.set([bucket.left(after, seen.now, None)]);
        }
        carried_out(decided, seen.cell.word, seen.word)
    }

    apart!(queue: Queue, window: Window, counter: Counter, warm_up: WarmUp, calendar: Calendar);
}
