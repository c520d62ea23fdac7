//! Charts as SVG: series along time or along limits, with a title, a legend above the curves, and
//! the values of the place that is pointed at.

mod axes;
mod marks;

use std::path::Path;

use axes::{LABEL_HEIGHT, Marks, text_width};
use marks::{bars_of, line_of};

use crate::errors::RunError;
use crate::markup::Markup;
use crate::text::shortened;
use crate::time::{Nanos, rfc3339};
use crate::words::human;

/// The colours of charts by day.
pub(crate) const LIGHT: &str = include_str!("chart/light.css");
/// And by night, where the reader has asked for it.
pub(crate) const DARK: &str = include_str!("chart/dark.css");

/// Colours of lines, to be told apart.
pub(crate) const LINES: [&str; 7] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"];

/// In pixels, as are all sizes.
pub(crate) const WIDTH: f64 = 960.0;
const PLOT_HEIGHT: f64 = 240.0;
const TITLE_HEIGHT: f64 = 26.0;
const ROW_HEIGHT: f64 = 19.0;
/// Below the axis: the labels of its marks, and its own.
const FOOT_HEIGHT: f64 = 54.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
/// The heading of a file.
const HEADING_HEIGHT: f64 = 36.0;
/// Of a name in the legend.
const LONGEST_NAME: usize = 72;

/// What the places along the axis are.
#[derive(Debug)]
pub(crate) enum Along {
    /// Steps of equal length.
    Time { start: Nanos, step: Nanos },
    /// Limits, ascending from 1, on an axis that grows by powers of ten, as the upright one does.
    Limits(Vec<u32>),
}

/// How series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// One on top of the other.
    Bars,
    Lines,
}

#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The name of its colour.
    pub(crate) class: &'static str,
    /// One for each place; where there is none, the line ends.
    pub(crate) values: Vec<Option<u64>>,
}

#[derive(Debug)]
pub(crate) struct Chart {
    /// What is counted.
    pub(crate) title: String,
    pub(crate) along: Along,
    pub(crate) look: Look,
    pub(crate) series: Vec<Series>,
}

impl Chart {
    fn places(&self) -> usize {
        self.series.iter().map(|series| series.values.len()).max().unwrap_or(0)
    }

    /// The height of the upright axis.
    fn highest(&self) -> u64 {
        let at =
            |place: usize| self.series.iter().filter_map(move |series| series.values.get(place).copied().flatten());
        let heights = (0..self.places()).map(|place| match self.look {
            Look::Bars => at(place).sum(),
            Look::Lines => at(place).max().unwrap_or(0),
        });
        heights.max().unwrap_or(0)
    }

    fn top(&self) -> f64 {
        TITLE_HEIGHT + ROW_HEIGHT * self.series.len() as f64 + 10.0
    }

    fn height(&self) -> f64 {
        self.top() + PLOT_HEIGHT + FOOT_HEIGHT
    }

    /// Adds the chart as an element of its own.
    pub(crate) fn draw(&self, out: &mut Markup) {
        let view = format!("0 0 {WIDTH} {}", self.height());
        out.element("svg", &[("viewBox", &view), ("role", &"img"), ("aria-label", &self.title)], |out| {
            self.draw_into(out);
        });
    }

    fn draw_into(&self, out: &mut Markup) {
        let frame = Frame::of(self);
        out.element("text", &[("class", &"name"), ("x", &8), ("y", &17)], |out| out.text(&self.title));
        frame.draw_axes(out);
        match self.look {
            Look::Bars => self.draw_bars(out, &frame),
            Look::Lines => self.draw_lines(out, &frame),
        }
        self.draw_legend(out);
        self.draw_values(out, &frame);
    }

    fn draw_bars(&self, out: &mut Markup, frame: &Frame<'_>) {
        let mut base = vec![0; self.places()];
        for series in &self.series {
            let path = bars_of(&series.values, &mut base, |place| frame.left_of(place), |value| frame.y(value));
            out.empty("path", &[("class", &format!("bar {}", series.class)), ("d", &path)]);
        }
    }

    fn draw_lines(&self, out: &mut Markup, frame: &Frame<'_>) {
        for (nth, series) in self.series.iter().enumerate() {
            let points: Vec<(f64, f64)> = series
                .values
                .iter()
                .enumerate()
                .map_while(|(place, value)| Some((frame.middle_of(place), frame.y((*value)?))))
                .collect();
            line_of(out, series.class, nth, self.series.len(), &points);
        }
    }

    fn row(&self, nth: usize) -> f64 {
        TITLE_HEIGHT + ROW_HEIGHT * nth as f64 + 12.0
    }

    fn name(&self, nth: usize) -> String {
        shortened(&self.series[nth].name, LONGEST_NAME)
    }

    /// One row for each series, above the plot: nothing is behind it, however long the names are.
    fn draw_legend(&self, out: &mut Markup) {
        out.element("g", &[("class", &"legend")], |out| {
            for (nth, series) in self.series.iter().enumerate() {
                let y = self.row(nth);
                match self.look {
                    Look::Bars => out.empty(
                        "rect",
                        &[
                            ("class", &format!("bar {}", series.class)),
                            ("x", &20),
                            ("y", &(y - 10.0)),
                            ("width", &12),
                            ("height", &12),
                        ],
                    ),
                    Look::Lines => {
                        let points = [(8.0, y - 4.0), (26.0, y - 4.0), (44.0, y - 4.0)];
                        line_of(out, series.class, nth, self.series.len(), &points);
                    }
                }
                out.element("text", &[("x", &52), ("y", &y)], |out| out.text(&self.name(nth)));
            }
        });
    }

    /// The values of each place, which show while it is pointed at: in the rows of the legend.
    fn draw_values(&self, out: &mut Markup, frame: &Frame<'_>) {
        let names = (0..self.series.len()).map(|nth| text_width(&self.name(nth)));
        let x = 52.0 + names.fold(0.0, f64::max) + 16.0;
        for place in 0..self.places() {
            out.element("g", &[("class", &"at")], |out| {
                let (from, to) = (frame.left_of(place), frame.left_of(place + 1));
                let (width, height) = (format!("{:.1}", (to - from).max(1.0)), PLOT_HEIGHT);
                let from = format!("{from:.1}");
                out.empty(
                    "rect",
                    &[("class", &"hit"), ("x", &from), ("y", &frame.top), ("width", &width), ("height", &height)],
                );
                out.element("g", &[("class", &"now"), ("visibility", &"hidden")], |out| {
                    let middle = format!("{:.1}", frame.middle_of(place));
                    let ends: [(&'static str, f64); 2] = [("y1", frame.top), ("y2", frame.top + PLOT_HEIGHT)];
                    let [(y1, top), (y2, bottom)] = &ends;
                    out.empty(
                        "line",
                        &[("class", &"guide"), ("x1", &middle), ("x2", &middle), (y1, top), (y2, bottom)],
                    );
                    let right = WIDTH - RIGHT;
                    out.element("text", &[("x", &right), ("y", &17), ("text-anchor", &"end")], |out| {
                        out.text(&self.place_in_words(place));
                    });
                    for (nth, series) in self.series.iter().enumerate() {
                        let Some(value) = series.values.get(place).copied().flatten() else { continue };
                        out.element("text", &[("x", &x), ("y", &self.row(nth))], |out| out.text(&human(value)));
                    }
                });
            });
        }
    }

    fn place_in_words(&self, place: usize) -> String {
        match &self.along {
            Along::Time { start, step } => rfc3339(time_at(*start, *step, place)),
            Along::Limits(limits) => format!("limit {}", limits.get(place).map_or(0, |limit| *limit)),
        }
    }
}

/// When a step begins.
fn time_at(start: Nanos, step: Nanos, place: usize) -> Nanos {
    start.saturating_add(step.saturating_mul(Nanos::try_from(place).unwrap_or(Nanos::MAX)))
}

/// Where the plot is in a chart, and what is where in it.
struct Frame<'a> {
    chart: &'a Chart,
    upright: Marks,
    along: Marks,
    left: f64,
    top: f64,
}

impl<'a> Frame<'a> {
    fn of(chart: &'a Chart) -> Self {
        let highest = chart.highest();
        let (upright, along) = match &chart.along {
            Along::Time { start, step } => {
                (Marks::counts(highest), Marks::times(*start, time_at(*start, *step, chart.places())))
            }
            Along::Limits(limits) => {
                (Marks::powers_and_zero(highest), Marks::powers(limits.last().copied().unwrap_or(1).into()))
            }
        };
        // Charts below each other begin at the same place, unless a label needs more room.
        let left = (upright.widest() + 16.0).max(LEFT);
        Self { chart, upright, along, left, top: chart.top() }
    }

    fn x(&self, part: f64) -> f64 {
        self.left + part * (WIDTH - RIGHT - self.left)
    }

    fn y(&self, value: u64) -> f64 {
        self.top + PLOT_HEIGHT * (1.0 - self.upright.part_of(value))
    }

    /// Where the field of a place begins.
    fn left_of(&self, place: usize) -> f64 {
        match &self.chart.along {
            Along::Time { .. } => self.x(place as f64 / self.chart.places().max(1) as f64),
            Along::Limits(_) if place == 0 => self.x(0.0),
            Along::Limits(_) if place >= self.chart.places() => self.x(1.0),
            Along::Limits(_) => f64::midpoint(self.middle_of(place - 1), self.middle_of(place)),
        }
    }

    fn middle_of(&self, place: usize) -> f64 {
        match &self.chart.along {
            Along::Time { .. } => f64::midpoint(self.left_of(place), self.left_of(place + 1)),
            Along::Limits(limits) => self.x(self.along.part_of(limits.get(place).map_or(1, |&limit| limit.into()))),
        }
    }

    fn draw_axes(&self, out: &mut Markup) {
        let (bottom, right) = (self.top + PLOT_HEIGHT, WIDTH - RIGHT);
        for (part, label) in self.upright.all() {
            let y = format!("{:.1}", self.top + PLOT_HEIGHT * (1.0 - part));
            out.empty("line", &[("class", &"grid"), ("x1", &self.left), ("x2", &right), ("y1", &y), ("y2", &y)]);
            let (x, dy) = (self.left - 7.0, "0.35em");
            let attributes: [(&'static str, &dyn core::fmt::Display); 5] =
                [("class", &"faint"), ("x", &x), ("y", &y), ("dy", &dy), ("text-anchor", &"end")];
            out.element("text", &attributes, |out| out.text(label));
        }
        out.empty("path", &[("class", &"axis"), ("d", &format!("M{} {bottom}H{right}", self.left))]);
        // A label that would run into the one before it is left out; none leaves the drawing.
        let mut end_of_last = f64::NEG_INFINITY;
        for (part, label) in self.along.all() {
            let (x, half) = (self.x(*part), text_width(label) / 2.0);
            out.empty("path", &[("class", &"axis"), ("d", &format!("M{x:.1} {bottom}v5"))]);
            let middle = x.clamp(half + 2.0, (WIDTH - half - 2.0).max(half + 2.0));
            if middle - half < end_of_last + 10.0 {
                continue;
            }
            end_of_last = middle + half;
            let (x, y) = (format!("{middle:.1}"), bottom + LABEL_HEIGHT + 8.0);
            let attributes: [(&'static str, &dyn core::fmt::Display); 4] =
                [("class", &"faint"), ("x", &x), ("y", &y), ("text-anchor", &"middle")];
            out.element("text", &attributes, |out| out.text(label));
        }
        let name = match self.chart.along {
            Along::Time { .. } => "time (UTC)",
            Along::Limits(_) => "limit (permits a window)",
        };
        let (x, y) = (f64::midpoint(self.left, right), bottom + 2.0 * LABEL_HEIGHT + 14.0);
        let attributes: [(&'static str, &dyn core::fmt::Display); 4] =
            [("class", &"faint"), ("x", &x), ("y", &y), ("text-anchor", &"middle")];
        out.element("text", &attributes, |out| out.text(name));
    }
}

/// Writes charts below each other, under a heading.
///
/// # Errors
///
/// [`RunError::Write`] when the file can't be written.
pub(crate) fn write_svg(path: &Path, heading: &str, charts: &[Chart]) -> Result<(), RunError> {
    let height = charts.iter().map(Chart::height).sum::<f64>() + HEADING_HEIGHT;
    let view = format!("0 0 {WIDTH} {height}");
    let mut out = Markup::default();
    let attributes: [(&'static str, &dyn core::fmt::Display); 4] =
        [("xmlns", &"http://www.w3.org/2000/svg"), ("viewBox", &view), ("width", &WIDTH), ("height", &height)];
    out.element("svg", &attributes, |out| {
        out.tagged("title", heading);
        out.element("style", &[], |out| out.raw(LIGHT));
        out.empty("rect", &[("width", &"100%"), ("height", &"100%"), ("fill", &"#fff")]);
        out.element("text", &[("class", &"heading"), ("x", &8), ("y", &23)], |out| {
            out.text(&shortened(heading, 88));
        });
        let mut y = HEADING_HEIGHT;
        for chart in charts {
            out.element("g", &[("transform", &format!("translate(0 {y})"))], |out| chart.draw_into(out));
            y += chart.height();
        }
    });
    let mut svg = out.finish();
    svg.push('\n');
    std::fs::write(path, svg).map_err(|error| RunError::Write { what: path.display().to_string(), error })
}
