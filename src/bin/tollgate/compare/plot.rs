//! The drawing of a comparison: what each denied over time.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::comparison::Comparison;
use crate::errors::RunError;
use crate::plot::{COLOURS, FONT, TimeAxis, write_svg};
use crate::text::shortened;
use crate::time::length;
use crate::words::human;

/// Coarse enough for lines to be told apart.
pub(super) const STEPS_AT_MOST: usize = 120;

const SIZE: (u32, u32) = (1000, 580);

/// Draws the denials of each over time, a line for each, and writes the file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself fails.
pub(super) fn write(path: &Path, comparison: &Comparison<'_>) -> Result<(), RunError> {
    write_svg(path, |svg| draw(svg, comparison))
}

fn draw(svg: &mut String, comparison: &Comparison<'_>) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let Some((_, first)) = comparison.all.first() else { return Ok(()) };
    let (start, end, step) = (first.timeline.start, first.timeline.end(), first.timeline.step);
    let denied = comparison.all.iter().flat_map(|(_, finish)| &finish.timeline.buckets).map(|bucket| bucket.denied);
    let highest = denied.max().unwrap_or(0);
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(72)
        .build_cartesian_2d(TimeAxis(start..end), 0..highest + highest / 20 + 1)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_desc("time (UTC)")
        .y_desc(format!("denied per {}", length(step.unsigned_abs())))
        .y_label_formatter(&|count| human(*count))
        .draw()?;
    for ((contender, finish), colour) in comparison.all.iter().zip(COLOURS.iter().cycle()) {
        let times = core::iter::successors(Some(start), |time| time.checked_add(step));
        let points = times.zip(finish.timeline.buckets.iter().map(|bucket| bucket.denied));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(shortened(&contender.name, 64))
            .legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 16, y + 2)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .label_font((FONT, 13))
        .border_style(BLACK.mix(0.2))
        .background_style(WHITE)
        .draw()?;
    root.present()?;
    Ok(())
}
