//! The drawing of a replay: admitted and denied requests over time.

use crate::chart::{Along, Chart, Look, Series};
use crate::time::length;
use crate::timeline::{Bucket, Timeline};
use crate::words::human;

/// Enough for the drawing's width; more would be thinner than three pixels.
pub(crate) const STEPS_AT_MOST: usize = 280;

/// Two charts over the same time: all requests, and below it the denied ones alone, on a scale that
/// shows them.
pub(crate) fn charts(timeline: &Timeline) -> [Chart; 2] {
    let every = length(timeline.step.unsigned_abs());
    let series = |name: &str, class: &'static str, count: fn(&Bucket) -> u64| {
        let all = timeline.buckets.iter().map(count).sum();
        let values = timeline.buckets.iter().map(|bucket| Some(count(bucket))).collect();
        Series { name: format!("{name}: {}", human(all)), class, values }
    };
    let admitted = || series("admitted", "admitted", |bucket| bucket.admitted);
    let denied = || series("denied", "denied", |bucket| bucket.denied);
    let mut all = vec![admitted(), denied()];
    if timeline.buckets.iter().any(|bucket| bucket.too_big > 0) {
        all.push(series("too big", "too-big", |bucket| bucket.too_big));
    }
    let chart = |title: &str, series| Chart {
        title: format!("{title} per {every}"),
        along: Along::Time { start: timeline.start, step: timeline.step },
        look: Look::Bars,
        series,
    };
    [chart("requests", all), chart("denied", vec![denied()])]
}
