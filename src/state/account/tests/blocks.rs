//! The blocks of a penalty against a list of them, under changes of their lengths and restarts.

use proptest::prelude::*;

use super::super::blocks::Blocks;
use super::super::{Account, Verdict};

const START: u64 = 1 << 60;

/// A block as it happened.
#[derive(Debug, Clone, Copy)]
struct Block {
    number: u8,
    start: u64,
    /// When it ended, once it has.
    end: Option<u64>,
}

/// The last block that counts, worked out by multiplying.
#[derive(Debug)]
struct Naive {
    blocks: Blocks,
    last: Option<Block>,
}

impl Naive {
    fn end(&self, block: Block) -> u64 {
        let mut length = u128::from(self.blocks.first);
        for _ in 1..block.number {
            length = u128::from(self.blocks.longest).min(length * u128::from(self.blocks.factor));
        }
        block.end.unwrap_or(block.start + u64::try_from(length).unwrap())
    }

    /// Notes that a block has ended, and forgets it when the key has been quiet.
    fn look(&mut self, now: u64) {
        let Some(block) = self.last else { return };
        let end = self.end(block);
        self.last = (now < end + self.blocks.quiet).then_some(match now < end {
            true => block,
            false => Block { end: Some(end), ..block },
        });
    }

    fn running(&mut self, now: u64) -> Option<(u64, u8)> {
        self.look(now);
        let block = self.last.filter(|block| block.end.is_none())?;
        Some((self.end(block) - now, block.number))
    }

    fn begin(&mut self, now: u64) {
        let number = self.last.map_or(0, |last| last.number).saturating_add(1);
        self.last = Some(Block { number, start: now, end: None });
    }
}

#[derive(Debug, Clone)]
enum Op {
    Begin,
    Advance(u64),
    /// To the end of the running block, or one nanosecond before it.
    ToEnd(bool),
    Change(Blocks),
    /// Under a clock that reads so much later, or with other lengths, too.
    Restart(u64, Option<Blocks>),
}

fn blocks() -> impl Strategy<Value = Blocks> {
    let length = || prop_oneof![4 => 1_u64..50, 1 => Just(1 << 60)];
    let quiet = prop_oneof![1 => Just(0_u64), 5 => 1_u64..200, 1 => Just(1 << 60)];
    let factor = prop_oneof![6 => 1_u64..4, 1 => Just(u64::from(u32::MAX))];
    (length(), factor, prop_oneof![4 => 0_u64..300, 1 => Just(1 << 60)], quiet)
        .prop_map(|(first, factor, longest, quiet)| Blocks { first, factor, longest: longest.max(first), quiet })
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => Just(Op::Begin),
        4 => (0_u64..100).prop_map(Op::Advance),
        4 => any::<bool>().prop_map(Op::ToEnd),
        1 => blocks().prop_map(Op::Change),
        1 => (0_u64..1000, prop::option::of(blocks())).prop_map(|(later, to)| Op::Restart(later, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn blocks_are_those_of_the_list(first in blocks(), ops in prop::collection::vec(ops(), 1..60)) {
        let (mut naive, mut state, mut now) = (Naive { blocks: first, last: None }, 0, START);
        for op in ops {
            match op {
                Op::Begin => match naive.blocks.decide(state, now, 1, None) {
                    Verdict::Admit { state: begun, delay_ns: 0 } => {
                        prop_assert_eq!(naive.running(now), None);
                        naive.begin(now);
                        state = begun;
                    }
                    Verdict::Deny { wait_ns, state: None } => {
                        prop_assert_eq!(naive.running(now).map(|(rest, _)| rest), Some(wait_ns));
                        prop_assert!(
                            matches!(naive.blocks.decide(state, now - 1, 1, None), Verdict::Deny { .. }),
                            "an earlier clock admits no more"
                        );
                    }
                    other => prop_assert!(false, "{other:?}"),
                },
                Op::Advance(by) => now += by,
                Op::ToEnd(exactly) => {
                    let rest = naive.running(now).map_or(0, |(rest, _)| rest);
                    // The longest would use up the times.
                    now += if rest < 1 << 50 { rest.saturating_sub(u64::from(!exactly)) } else { 0 };
                }
                Op::Change(to) => {
                    naive.look(now);
                    state = if state == 0 { 0 } else { to.converted(&naive.blocks, state, now) };
                    naive.blocks = to;
                }
                #[cfg(feature = "snapshot")]
                Op::Restart(later, to) => {
                    naive.look(now);
                    let to = to.unwrap_or(naive.blocks);
                    let exported = naive.blocks.exported(state, now);
                    let counts = naive.blocks.over_at(state) > now;
                    state = if counts { to.moved_in_time(exported, later.into(), now + later) } else { 0 };
                    let moved = |it: Block| {
                        Block { start: it.start + later, end: it.end.map(|end| end + later), ..it }
                    };
                    naive = Naive { blocks: to, last: naive.last.map(moved) };
                    now += later;
                }
                #[cfg(not(feature = "snapshot"))]
                Op::Restart(..) => {}
            }
            prop_assert_eq!(naive.blocks.running(state, now), naive.running(now));
            let counts_until = naive.last.map_or(0, |last| naive.end(last) + naive.blocks.quiet);
            prop_assert_eq!(naive.blocks.over_at(state).max(now), counts_until.max(now));
            prop_assert!(state < 1 << super::super::STATE_BITS);
        }
    }
}

#[test]
fn a_block_that_is_owed_begins_when_the_running_one_ends() {
    let blocks = Blocks { first: 10, factor: 2, longest: 100, quiet: 5 };
    let first = blocks.owe(0, START, 1);
    assert_eq!(blocks.running(first, START), Some((10, 1)));
    let second = blocks.owe(first, START + 3, 1);
    assert_eq!(blocks.running(second, START + 10), Some((20, 2)));
    assert_eq!(blocks.decide(second, START + 3, 1, None), Verdict::Deny { wait_ns: 27, state: None });
    assert_eq!(blocks.refund(second, START, second, 1, 0), None);
}
