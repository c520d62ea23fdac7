//! The drawing of a suggestion: what every limit would have denied.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::slots::Spread;
use super::suggestion::Suggestion;
use crate::errors::RunError;
use crate::plot::{COLOURS, FONT, write_svg};
use crate::text::{harmless, shortened};
use crate::time::length;
use crate::words::{count_of, human};

const SIZE: (u32, u32) = (1000, 720);
/// Draws the shares of requests and of keys by the limit, a line for each window, and writes the file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself fails.
pub(super) fn write(path: &Path, suggestion: &Suggestion<'_>) -> Result<(), RunError> {
    write_svg(path, |svg| draw(svg, suggestion))
}

fn draw(svg: &mut String, suggestion: &Suggestion<'_>) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (heading, panels) = root.split_vertically(40);
    let title = format!("what each limit denies, for each {}", suggestion.key);
    let style = (FONT, 20).into_text_style(&heading).color(&BLACK);
    heading.draw(&Text::new(shortened(&harmless(&title), 80), (18, 12), style))?;
    let (upper, lower) = panels.split_vertically(340);
    let (requests, keys) = (count_of(suggestion.log.events.len()), count_of(suggestion.log.keys[0].len()));
    panel(&upper, suggestion, "requests denied", requests, Spread::denied)?;
    panel(&lower, suggestion, "keys denied at least once", keys, |spread, limit| count_of(spread.keys_hit(limit)))?;
    root.present()?;
    Ok(())
}

/// Both axes grow by powers of ten: what matters is at the far end of both.
fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    suggestion: &Suggestion<'_>,
    title: &str,
    whole: u64,
    count: impl Fn(&Spread, u32) -> u64,
) -> Result<(), Box<dyn Error>> {
    let most = suggestion.spreads.iter().map(Spread::most).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_top(10)
        .margin_left(8)
        .x_label_area_size(46)
        .y_label_area_size(84)
        .build_cartesian_2d((1..most.saturating_add(1).max(10)).log_scale(), (1..whole.max(10)).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(BLACK.mix(0.04))
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_desc("limit (permits a window)")
        .y_desc(format!("{title}, of {}", human(whole)))
        .x_label_formatter(&|limit| human(u64::from(*limit)))
        .y_label_formatter(&|count| human(*count))
        .draw()?;
    for (spread, colour) in suggestion.spreads.iter().zip(COLOURS.iter().cycle()) {
        // Where nothing is denied any more the line ends, on the axis.
        let points = steps_up_to(spread.most()).map(|limit| (limit, count(spread, limit).max(1)));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(length(spread.window))
            .legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 16, y + 2)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .label_font((FONT, 13))
        .border_style(BLACK.mix(0.2))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// Limits from 1 to the last, so close that none is a pixel from the next.
fn steps_up_to(last: u32) -> impl Iterator<Item = u32> {
    core::iter::successors(Some(1_u32), move |&limit| {
        (limit < last).then(|| limit.saturating_add((limit / 100).max(1)).min(last))
    })
}
