//! The drawing of a suggestion: what every limit would have denied.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::slots::Spread;
use super::suggestion::Suggestion;
use crate::drawing::{Area, FONT, draw_axes, draw_legend, draw_line, panel, write_svg};
use crate::errors::RunError;
use crate::text::{harmless, shortened};
use crate::time::length;
use crate::words::{count_of, human};

const SIZE: (u32, u32) = (1000, 720);

/// Draws the shares of requests and of keys by the limit, a line for each window, and writes the
/// file.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself
/// fails.
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
    let (requests, keys) = (count_of(suggestion.log.requests()), count_of(suggestion.log.keys[0].len()));
    draw_panel(&upper, suggestion, "requests denied", requests, Spread::denied)?;
    draw_panel(&lower, suggestion, "keys denied at least once", keys, |spread, limit| {
        count_of(spread.keys_hit(limit))
    })?;
    root.present()?;
    Ok(())
}

/// Both axes grow by powers of ten: what matters is at the far end of both.
fn draw_panel(
    area: &Area<'_>,
    suggestion: &Suggestion<'_>,
    title: &str,
    whole: u64,
    count: impl Fn(&Spread, u32) -> u64,
) -> Result<(), Box<dyn Error>> {
    let most = suggestion.spreads.iter().map(Spread::most).max().unwrap_or(1);
    let limits = (1..most.saturating_add(1).max(10)).log_scale();
    let mut chart = panel(area).y_label_area_size(84).build_cartesian_2d(limits, (1..whole.max(10)).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(BLACK.mix(0.04)).x_label_formatter(&|limit| human(u64::from(*limit)));
    draw_axes(&mut mesh, "limit (permits a window)", &format!("{title}, of {}", human(whole)))?;
    for (nth, spread) in suggestion.spreads.iter().enumerate() {
        // Where nothing is denied any more the line ends, on the axis.
        let points = steps_up_to(spread.most()).map(|limit| (limit, count(spread, limit).max(1)));
        draw_line(&mut chart, nth, length(spread.window), points)?;
    }
    draw_legend(&mut chart)
}

/// Limits from 1 to the last, so close that none is a pixel from the next.
fn steps_up_to(last: u32) -> impl Iterator<Item = u32> {
    core::iter::successors(Some(1_u32), move |&limit| {
        (limit < last).then(|| limit.saturating_add((limit / 100).max(1)).min(last))
    })
}
