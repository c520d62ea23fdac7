//! What all drawings have in common: their files, axes, lines and colours.

use core::ops::Range;
use std::error::Error;
use std::path::Path;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::errors::RunError;
use crate::time::{Nanos, axis_label};
use crate::timeline::steps;
use crate::words::human;

pub(crate) const FONT: &str = "sans-serif";

/// Of lines in one chart, to be told apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x4c, 0x78, 0xa8),
    RGBColor(0xf5, 0x85, 0x18),
    RGBColor(0x54, 0xa2, 0x4b),
    RGBColor(0xb2, 0x79, 0xa2),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x72, 0x72, 0x72),
];

/// What an axis of time is called.
pub(crate) const TIME: &str = "time (UTC)";

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Refuses the name of a picture of another kind.
///
/// # Errors
///
/// [`RunError::NotSvg`].
pub(crate) fn check_name(path: &Path) -> Result<(), RunError> {
    let is_svg = path.extension().is_none_or(|kind| kind.eq_ignore_ascii_case("svg")) && path != Path::new("-");
    if is_svg { Ok(()) } else { Err(RunError::NotSvg { path: path.to_owned() }) }
}

/// Writes what is drawn.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written, [`RunError::Draw`] when the drawing itself
/// fails.
pub(crate) fn write_svg(
    path: &Path,
    draw: impl FnOnce(&mut String) -> Result<(), Box<dyn Error>>,
) -> Result<(), RunError> {
    let mut svg = String::new();
    draw(&mut svg).map_err(|error| RunError::Draw(error.to_string()))?;
    std::fs::write(path, svg).map_err(|error| RunError::Write { what: path.display().to_string(), error })
}

/// A chart's place in a drawing.
pub(crate) fn panel<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_right(24).margin_top(10).margin_left(8).x_label_area_size(46);
    builder
}

/// Draws both axes, with counts along the upright one.
pub(crate) fn draw_axes<X, Y>(
    mesh: &mut MeshStyle<'_, '_, X, Y, SVGBackend<'_>>,
    x: &str,
    y: &str,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged<ValueType = u64> + ValueFormatter<u64>,
{
    mesh.bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_desc(x)
        .y_desc(y)
        .y_label_formatter(&|count| human(*count))
        .draw()?;
    Ok(())
}

/// Draws a line of the nth colour through the points, and names it in the legend.
pub(crate) fn draw_line<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    nth: usize,
    name: String,
    points: impl Iterator<Item = (X::ValueType, Y::ValueType)>,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType: Clone + 'static>,
    Y: Ranged<ValueType: Clone + 'static>,
{
    let colour = COLOURS[nth % COLOURS.len()];
    chart
        .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
        .label(name)
        .legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 16, y + 2)], colour.filled()));
    Ok(())
}

/// Draws the names of all lines.
pub(crate) fn draw_legend<'a, X: Ranged, Y: Ranged>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
) -> Result<(), Box<dyn Error>> {
    let mut legend = chart.configure_series_labels();
    legend.label_font((FONT, 13)).border_style(BLACK.mix(0.2)).background_style(WHITE).draw()?;
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
        // The step between marks is not known here. A mark's own roundness tells how much of it
        // needs to be shown.
        let steps: Vec<Nanos> = steps().collect();
        let roundness = steps.into_iter().rev().find(|step| value.rem_euclid(*step) == 0);
        axis_label(*value, roundness.unwrap_or(1))
    }
}
