//! The drawing of a replay: admitted and denied requests over time, as SVG.

use std::error::Error;
use std::path::Path;

use indicatif::HumanCount;
use plotters::prelude::*;

use crate::drawing::{Area, FONT, TIME, TimeAxis, draw_axes, panel, write_svg};
use crate::errors::RunError;
use crate::text::shortened;
use crate::time::length;
use crate::timeline::{Bucket, Timeline};

/// Enough for the drawing's width; more would be thinner than a pixel.
pub(crate) const STEPS_AT_MOST: usize = 360;

const SIZE: (u32, u32) = (1000, 580);
const UPPER_HEIGHT: u32 = 340;
const ADMITTED: RGBColor = RGBColor(0x4c, 0x78, 0xa8);
const DENIED: RGBColor = RGBColor(0xd6, 0x27, 0x28);
const TOO_BIG: RGBColor = RGBColor(0x7f, 0x7f, 0x7f);

/// Draws the timeline and writes it to the file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself
/// fails.
pub(crate) fn write(path: &Path, title: &str, timeline: &Timeline) -> Result<(), RunError> {
    write_svg(path, |svg| draw(svg, title, timeline))
}

/// Two panels over the same time: all requests, and below it the denied ones alone, on a scale that
/// shows them.
fn draw(svg: &mut String, title: &str, timeline: &Timeline) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (heading, panels) = root.split_vertically(44);
    draw_heading(&heading, title, timeline)?;
    let every = length(timeline.step.unsigned_abs());
    let (upper, lower) = panels.split_vertically(UPPER_HEIGHT);
    let all = |bucket: &Bucket| [(bucket.admitted, ADMITTED), (bucket.denied, DENIED), (bucket.too_big, TOO_BIG)];
    draw_panel(&upper, &format!("requests per {every}"), timeline, all)?;
    draw_panel(&lower, &format!("denied per {every}"), timeline, |bucket| [(bucket.denied, DENIED)])?;
    root.present()?;
    Ok(())
}

/// What was replayed, what the colours mean, and how much there is of each.
fn draw_heading(area: &Area<'_>, title: &str, timeline: &Timeline) -> Result<(), Box<dyn Error>> {
    let text = |size: u32| (FONT, size).into_text_style(area).color(&BLACK);
    let sum = |of: fn(&Bucket) -> u64| timeline.buckets.iter().map(of).sum::<u64>();
    let too_big = sum(|bucket| bucket.too_big);
    // Costs above a limit are rare: only where there are some, the title makes room for them.
    let columns = if too_big > 0 { 40 } else { 56 };
    area.draw(&Text::new(shortened(title, columns), (18, 14), text(20)))?;
    let legend = [
        ("admitted", sum(|bucket| bucket.admitted), ADMITTED, 640),
        ("denied", sum(|bucket| bucket.denied), DENIED, 820),
        ("too big", too_big, TOO_BIG, 460),
    ];
    for (name, count, colour, x) in legend.into_iter().filter(|(.., x)| too_big > 0 || *x > 460) {
        let words = format!("{name}: {}", HumanCount(count));
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
    let (times, counts) = (TimeAxis(timeline.start..timeline.end()), 0..highest + highest / 20 + 1);
    let mut chart = panel(area).y_label_area_size(72).build_cartesian_2d(times, counts)?;
    draw_axes(chart.configure_mesh().disable_x_mesh().light_line_style(WHITE).y_labels(7), TIME, title)?;
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
