//! Contenders take turns, round by round, so that what slows the machine for a while slows all of
//! them.

/// The turns of so many rounds: the round, and whose turn it is. The order of turns rotates.
pub fn turns(rounds: usize, contenders: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rounds).flat_map(move |round| (0..contenders).map(move |turn| (round, (round + turn) % contenders)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_a_turn_in_each_round_and_the_order_rotates() {
        assert_eq!(turns(2, 3).collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0)]);
    }
}
