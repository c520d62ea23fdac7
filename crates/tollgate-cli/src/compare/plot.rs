//! The drawing of a comparison: what each denied over time.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::comparison::Comparison;
use crate::drawing::{TIME, TimeAxis, draw_axes, draw_legend, draw_line, panel, write_svg};
use crate::errors::RunError;

use crate::text::shortened;
use crate::time::length;

/// Coarse enough for lines to be told apart.
pub(super) const STEPS_AT_MOST: usize = 120;

const SIZE: (u32, u32) = (1000, 580);

/// Draws the denials of each over time, a line for each, and writes the file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself
/// fails.
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
    let (times, counts) = (TimeAxis(start..end), 0..highest + highest / 20 + 1);
    let mut chart = panel(&root).y_label_area_size(72).build_cartesian_2d(times, counts)?;
    let every = format!("denied per {}", length(step.unsigned_abs()));
    draw_axes(chart.configure_mesh().disable_x_mesh().light_line_style(WHITE), TIME, &every)?;
    for (nth, (contender, finish)) in comparison.all.iter().enumerate() {
        let times = core::iter::successors(Some(start), |time| time.checked_add(step));
        let points = times.zip(finish.timeline.buckets.iter().map(|bucket| bucket.denied));
        draw_line(&mut chart, nth, shortened(&contender.name, 64), points)?;
    }
    draw_legend(&mut chart)?;
    root.present()?;
    Ok(())
}
