//! Exports a quantised log, and imports it under another clock.

use super::fields::{MAX_TOTAL, StepsState};
use super::plan::StepsPlan;
use super::view::View;
use super::written;
use crate::state::plan::Place;
use crate::state::ring::Rings;
use crate::state::word::Word;

impl StepsPlan {
    /// The age of each step's end, in nanoseconds, and its permits, oldest first. `None` if the word
    /// changed meanwhile.
    pub(in crate::state) fn export(&self, place: Place<'_>, word: Word, reading: u64) -> Option<Vec<(i64, u32)>> {
        let view = View::of(self, place, word, reading)?;
        let StepsState { newest, used, .. } = view.state;
        let mut steps = view.older_from(view.first);
        steps.extend((used > 0 && newest >= view.first).then_some((newest, used)));
        let age = |step| i64::try_from(i128::from(reading) - i128::from(self.end_of(step))).unwrap_or(i64::MAX);
        let export = steps.into_iter().map(|(step, permits)| (age(step), permits)).collect();
        (place.word.load() == word).then_some(export)
    }

    /// The word of a key with these steps, as of `elapsed` nanoseconds ago; `None` if there is no
    /// room.
    ///
    /// Stamps rounded by another clock are rounded up again, by less than a step, but not past the
    /// present step: no permit is later than that.
    pub(in crate::state) fn import(
        &self,
        rings: &Rings,
        entries: &[(i64, u32)],
        now: u64,
        elapsed: u64,
    ) -> Option<Word> {
        let end = |age: i64| {
            let end = i128::from(now) - i128::from(age) - i128::from(elapsed);
            u64::try_from(end.max(0)).unwrap_or(u64::MAX)
        };
        let latest = self.step_of(now);
        let mut steps: Vec<(u64, u32)> = Vec::with_capacity(entries.len());
        for &(age, permits) in entries.iter().filter(|&&(_, permits)| permits > 0) {
            let step = self.step_of(end(age)).min(latest);
            match steps.last_mut() {
                Some((last, sum)) if *last >= step => *sum = sum.saturating_add(permits),
                _ => steps.push((step, permits)),
            }
        }
        let Some((newest, used)) = steps.pop() else { return Some(Word::NEW) };
        steps.retain(|&(step, _)| newest - step <= self.window);
        let state = StepsState { newest, used: used.min(MAX_TOTAL), ..StepsState::default() };
        written(rings, state, &steps, steps.len() + 2)
    }
}
