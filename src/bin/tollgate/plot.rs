//! The drawing of a replay: admitted and denied requests over time, as SVG.

use core::ops::Range;
use std::error::Error;
use std::path::Path;

use indicatif::HumanCount;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::errors::RunError;
use crate::text::shortened;
use crate::time::{Nanos, axis_label, length};
use crate::timeline::{Bucket, Timeline, steps};

/// Enough for the drawing's width; more would be thinner than a pixel.
pub(crate) const STEPS_AT_MOST: usize = 360;

const SIZE: (u32, u32) = (1000, 580);
const UPPER_HEIGHT: u32 = 340;
const ADMITTED: RGBColor = RGBColor(0x4c, 0x78, 0xa8);
const DENIED: RGBColor = RGBColor(0xd6, 0x27, 0x28);
pub(crate) const FONT: &str = "sans-serif";

/// Of lines in one chart, to be told apart.
pub(crate) const COLOURS: [RGBColor; 6] = [
    RGBColor(0x4c, 0x78, 0xa8),
    RGBColor(0xf5, 0x85, 0x18),
    RGBColor(0x54, 0xa2, 0x4b),
    RGBColor(0xb2, 0x79, 0xa2),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x72, 0x72, 0x72),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Refuses the name of a picture of another kind.
///
/// # Errors
///
/// [`RunError::NotSvg`].
pub(crate) fn check_name(path: &Path) -> Result<(), RunError> {
    let is_svg = path.extension().is_none_or(|kind| kind.eq_ignore_ascii_case("svg")) && path != Path::new("-");
    if is_svg { Ok(()) } else { Err(RunError::NotSvg { path: path.to_owned() }) }
}

/// Draws the timeline and writes it to the file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself fails.
pub(crate) fn write(path: &Path, title: &str, timeline: &Timeline) -> Result<(), RunError> {
    write_svg(path, |svg| draw(svg, title, timeline))
}

/// Writes what is drawn.
///
/// # Errors
///
/// As [`write`].
pub(crate) fn write_svg(
    path: &Path,
    draw: impl FnOnce(&mut String) -> Result<(), Box<dyn Error>>,
) -> Result<(), RunError> {
    let mut svg = String::new();
    draw(&mut svg).map_err(|error| RunError::Draw(error.to_string()))?;
    std::fs::write(path, svg).map_err(|error| RunError::Write { what: path.display().to_string(), error })
}

/// Two panels over the same time: all requests, and below it the denied ones alone, on a scale that shows them.
fn draw(svg: &mut String, title: &str, timeline: &Timeline) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (heading, panels) = root.split_vertically(44);
    draw_heading(&heading, title, timeline)?;
    let every = length(timeline.step.unsigned_abs());
    let (upper, lower) = panels.split_vertically(UPPER_HEIGHT);
    let denied_above_admitted = |bucket: &Bucket| [(bucket.admitted, ADMITTED), (bucket.denied, DENIED)];
    draw_panel(&upper, &format!("requests per {every}"), timeline, denied_above_admitted)?;
    draw_panel(&lower, &format!("denied per {every}"), timeline, |bucket| [(bucket.denied, DENIED)])?;
    root.present()?;
    Ok(())
}

/// What was replayed, what the colours mean, and how much there is of each.
fn draw_heading(area: &Area<'_>, title: &str, timeline: &Timeline) -> Result<(), Box<dyn Error>> {
    let text = |size: u32| (FONT, size).into_text_style(area).color(&BLACK);
    area.draw(&Text::new(shortened(title, 56), (18, 14), text(20)))?;
    let total = |of: fn(&Bucket) -> u64| HumanCount(timeline.buckets.iter().map(of).sum());
    let legend = [
        (format!("admitted: {}", total(|bucket| bucket.admitted)), ADMITTED, 640),
        (format!("denied: {}", total(|bucket| bucket.denied)), DENIED, 820),
    ];
    for (words, colour, x) in legend {
        area.draw(&Rectangle::new([(x, 17), (x + 12, 29)], colour.filled()))?;
        area.draw(&Text::new(words, (x + 18, 15), text(15)))?;
    }
    Ok(())
}

fn draw_panel<const LAYERS: usize>(
    area: &Area<'_>,
    title: &str,
    timeline: &Timeline,
    layers: impl Fn(&Bucket) -> [(u64, RGBColor); LAYERS],
) -> Result<(), Box<dyn Error>> {
    let height_of = |bucket| layers(bucket).iter().map(|(count, _)| count).sum::<u64>();
    let highest = timeline.buckets.iter().map(height_of).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_top(10)
        .margin_left(8)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(TimeAxis(timeline.start..timeline.end()), 0..highest + highest / 20 + 1)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_desc("time (UTC)")
        .y_desc(title)
        .y_labels(7)
        .y_label_formatter(&|count| HumanCount(*count).to_string())
        .draw()?;
    let mut start = timeline.start;
    for bucket in &timeline.buckets {
        let end = start.saturating_add(timeline.step);
        let mut base = 0;
        for (count, colour) in layers(bucket).into_iter().filter(|(count, _)| *count > 0) {
            let top = base + count;
            chart.draw_series([Rectangle::new([(start, base), (end, top)], colour.filled())])?;
            base = top;
        }
        start = end;
    }
    Ok(())
}

/// An axis of time, with marks at round times rather than at round numbers of nanoseconds.
pub(crate) struct TimeAxis(pub(crate) Range<Nanos>);

impl TimeAxis {
    fn step_between_marks(&self) -> Nanos {
        const MARKS_AT_MOST: u64 = 8;
        let span = self.0.end.abs_diff(self.0.start);
        steps().find(|step| span / step.unsigned_abs() < MARKS_AT_MOST).unwrap_or(Nanos::MAX)
    }
}

impl Ranged for TimeAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = Nanos;

    fn map(&self, value: &Nanos, (low, high): (i32, i32)) -> i32 {
        let along = i128::from(*value) - i128::from(self.0.start);
        let span = (i128::from(self.0.end) - i128::from(self.0.start)).max(1);
        let pixels = i128::from(high) - i128::from(low);
        i32::try_from(i128::from(low) + pixels * along / span).unwrap_or(high)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<Nanos> {
        let step = self.step_between_marks();
        let into_step = self.0.start.rem_euclid(step);
        let first = if into_step == 0 { Some(self.0.start) } else { self.0.start.checked_add(step - into_step) };
        let marks = core::iter::successors(first, |mark| mark.checked_add(step));
        marks.take_while(|mark| *mark <= self.0.end).collect()
    }

    fn range(&self) -> Range<Nanos> {
        self.0.clone()
    }
}

impl ValueFormatter<Nanos> for TimeAxis {
    fn format(value: &Nanos) -> String {
        // The step between marks is not known here. A mark's own roundness tells how much of it needs to be shown.
        let steps: Vec<Nanos> = steps().collect();
        let roundness = steps.into_iter().rev().find(|step| value.rem_euclid(*step) == 0);
        axis_label(*value, roundness.unwrap_or(1))
    }
}
