//! Axes: where values are along them, and where they have marks.

use crate::time::{Nanos, axis_label};
use crate::timeline::steps;
use crate::words::human;

/// The height of a label.
pub(super) const LABEL_HEIGHT: f64 = 14.0;

/// Columns that a letter takes at most, in the wide fonts that a reader may have.
const LETTER_WIDTH: f64 = 7.9;

/// How wide a text is, rather too much than too little.
pub(super) fn text_width(text: &str) -> f64 {
    console::measure_text_width(text) as f64 * LETTER_WIDTH
}

#[derive(Debug, Clone, Copy)]
enum Scale {
    /// From nothing to this.
    Linear(u64),
    /// From 1 to this, by powers of ten.
    Powers(u64),
    /// The same, with room for nothing below 1.
    PowersAndZero(u64),
}

/// The marks of an axis, each with its part of the axis' length.
#[derive(Debug)]
pub(super) struct Marks {
    scale: Scale,
    all: Vec<(f64, String)>,
}

impl Marks {
    fn new(scale: Scale, values: impl Iterator<Item = u64>) -> Self {
        let mut marks = Self { scale, all: Vec::new() };
        marks.all = values.map(|value| (marks.part_of(value), human(value))).collect();
        marks
    }

    /// Of counts from 0 to a little above the highest.
    pub(super) fn counts(highest: u64) -> Self {
        const MARKS_AT_MOST: u64 = 6;
        let most = highest.saturating_add(highest / 20).saturating_add(1);
        let powers = core::iter::successors(Some(1_u64), |power| power.checked_mul(10));
        let steps = powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit)));
        let step = steps.into_iter().find(|step| highest / step < MARKS_AT_MOST).unwrap_or(u64::MAX);
        Self::new(Scale::Linear(most), (0..=highest / step).map(|nth| nth * step))
    }

    /// Of powers of ten from 1 on, with twice and five times each.
    pub(super) fn powers(highest: u64) -> Self {
        let most = highest.max(10);
        let values = powers_up_to(most).flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit)));
        Self::new(Scale::Powers(most), values.filter(move |value| *value <= most))
    }

    /// Of nothing, and of powers of ten.
    pub(super) fn powers_and_zero(highest: u64) -> Self {
        let most = highest.max(10);
        Self::new(Scale::PowersAndZero(most), core::iter::once(0).chain(powers_up_to(most)))
    }

    /// Of round times.
    pub(super) fn times(start: Nanos, end: Nanos) -> Self {
        const MARKS_AT_MOST: u64 = 8;
        let span = end.abs_diff(start);
        let step = steps().find(|step| span / step.unsigned_abs() < MARKS_AT_MOST).unwrap_or(Nanos::MAX);
        let into_step = start.rem_euclid(step);
        let first = if into_step == 0 { Some(start) } else { start.checked_add(step - into_step) };
        let marks = core::iter::successors(first, |mark| mark.checked_add(step)).take_while(|mark| *mark <= end);
        let part = |mark: Nanos| mark.abs_diff(start) as f64 / span.max(1) as f64;
        let all = marks.map(|mark| (part(mark), axis_label(mark, step))).collect();
        Self { scale: Scale::Linear(span), all }
    }

    pub(super) fn all(&self) -> &[(f64, String)] {
        &self.all
    }

    /// The width of the widest label.
    pub(super) fn widest(&self) -> f64 {
        self.all.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max)
    }

    /// Which part of the axis lies before a value.
    pub(super) fn part_of(&self, value: u64) -> f64 {
        // A power of ten takes as much room as nothing does.
        let powers = |value: u64| (value as f64).log10();
        match self.scale {
            Scale::Linear(most) => value as f64 / most.max(1) as f64,
            Scale::Powers(most) => powers(value.max(1)) / powers(most),
            Scale::PowersAndZero(_) if value == 0 => 0.0,
            Scale::PowersAndZero(most) => (0.5 + powers(value)) / (0.5 + powers(most)),
        }
    }
}

fn powers_up_to(most: u64) -> impl Iterator<Item = u64> {
    core::iter::successors(Some(1_u64), |power| power.checked_mul(10)).take_while(move |power| *power <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_within_the_axis() {
        let labels = |marks: &Marks| marks.all.iter().map(|(_, label)| label.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&Marks::counts(0)), ["0"]);
        assert_eq!(labels(&Marks::counts(100)), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Marks::counts(7)), ["0", "2", "4", "6"]);
        assert_eq!(labels(&Marks::powers(30)), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(&Marks::powers_and_zero(2400)), ["0", "1", "10", "100", "1,000"]);
        let times = [(0, 0), (0, 1), (-5, 7_200_000_000_000), (i64::MIN, i64::MAX)].map(|(a, b)| Marks::times(a, b));
        let others = [0, 1, 9, 10, 11, u64::MAX].map(|most| [Marks::counts(most), Marks::powers_and_zero(most)]);
        for marks in times.iter().chain(others.as_flattened()) {
            assert!(marks.all.len() <= 24, "{marks:?}");
            assert!(marks.all.iter().all(|(part, _)| (0.0..=1.0).contains(part)), "{marks:?}");
            assert!(marks.all.is_sorted_by(|one, other| one.0 < other.0), "{marks:?}");
        }
    }
}
