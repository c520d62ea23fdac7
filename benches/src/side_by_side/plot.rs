//! Line charts, as SVG: everyone's figures against something, both on logarithmic scales.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::side_by_side::contender::Name;

/// One chart of a drawing.
pub struct Panel {
    /// What it is about.
    pub title: String,
    /// What lies along the horizontal axis.
    pub across: &'static str,
    /// For each contender its points.
    pub lines: Vec<(Name, Vec<(f64, f64)>)>,
}

/// What a drawing says.
pub struct Drawing<'a> {
    /// Above everything.
    pub title: &'a str,
    /// What lies along the vertical axes.
    pub up: &'a str,
    /// Side by side.
    pub panels: Vec<Panel>,
}

const PANEL_WIDTH: u32 = 420;
const HEIGHT: u32 = 460;
const HEADING: u32 = 70;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Everyone's colour, the same in every drawing.
const fn colour(name: Name) -> RGBColor {
    match name {
        Name::Tollgate => RGBColor(0xd6, 0x27, 0x28),
        Name::Bucket => RGBColor(0xff, 0x7f, 0x0e),
        Name::Governor => RGBColor(0x1f, 0x77, 0xb4),
        Name::RateNet => RGBColor(0x2c, 0xa0, 0x2c),
        Name::ShardedDeques => RGBColor(0x94, 0x67, 0xbd),
        Name::OneLock => RGBColor(0x55, 0x55, 0x55),
    }
}

impl Drawing<'_> {
    /// Draws it and writes it to the file.
    ///
    /// # Errors
    ///
    /// When a panel has no points, or the file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut svg = String::new();
        self.draw(&mut svg)?;
        std::fs::write(path, svg).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let count = self.panels.len();
        let width = PANEL_WIDTH * u32::try_from(count)?.max(2);
        let root = SVGBackend::with_string(svg, (width, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let (heading, panels) = root.split_vertically(HEADING);
        self.heading(&heading)?;
        for (panel, area) in self.panels.iter().zip(panels.split_evenly((1, count))) {
            self.panel(&area, panel)?;
        }
        root.present()?;
        Ok(())
    }

    /// The title, and below it whose colour is which.
    fn heading(&self, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
        let text = |size: u32| (FONT, size).into_text_style(area).color(&BLACK);
        area.draw(&Text::new(self.title, (18, 10), text(20)))?;
        let mut x = 18;
        for name in Name::ALL {
            let line = [(x, 51), (x + 22, 51)];
            area.draw(&PathElement::new(line, colour(name).stroke_width(stroke(name))))?;
            area.draw(&Text::new(name.label(), (x + 27, 43), text(14)))?;
            x += 52 + 7 * i32::try_from(name.label().len())?;
        }
        Ok(())
    }

    fn panel(&self, area: &Area<'_>, panel: &Panel) -> Result<(), Box<dyn Error>> {
        let points = || panel.lines.iter().flat_map(|(_, points)| points);
        let (left, right) = bounds(points().map(|&(x, _)| x)).ok_or("a panel without points")?;
        let (low, high) = bounds(points().map(|&(_, y)| y)).ok_or("a panel without points")?;
        let (low, high) = (low / 1.25, high * 1.25);
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, (FONT, 16))
            .margin_right(20)
            .margin_left(6)
            .margin_bottom(4)
            .x_label_area_size(40)
            .y_label_area_size(62)
            .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale().with_key_points(marks(low, high)))?;
        chart
            .configure_mesh()
            .light_line_style(BLACK.mix(0.05))
            .bold_line_style(BLACK.mix(0.14))
            .axis_style(BLACK.mix(0.6))
            .label_style((FONT, 12))
            .axis_desc_style((FONT, 13))
            .x_desc(panel.across)
            .y_desc(self.up)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .draw()?;
        // Ours last, on top of the others.
        for (name, points) in panel.lines.iter().rev() {
            let colour = colour(*name);
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(stroke(*name))))?;
            chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
        }
        Ok(())
    }
}

const fn stroke(name: Name) -> u32 {
    if matches!(name, Name::Tollgate | Name::Bucket) { 3 } else { 2 }
}

/// 1, 2 and 5 of each decade: what the library would mark of less than a decade is a matter of
/// luck.
fn marks(low: f64, high: f64) -> Vec<f64> {
    let decades = -3..12;
    let all = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade)));
    all.filter(|mark| (low..=high).contains(mark)).collect()
}

fn bounds(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?))
}

/// A number on an axis: 10 k and 1 M, and no digits that say nothing.
fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        1e6.. => (number / 1e6, " M"),
        1e3.. => (number / 1e3, " k"),
        _ => (number, ""),
    };
    let digits = format!("{scaled:.1}");
    format!("{}{unit}", digits.strip_suffix(".0").unwrap_or(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_everyone_and_labels_on_both_axes() {
        let points = vec![(1.0, 40.0), (1_000_000.0, 158.0)];
        let lines = Name::ALL.map(|name| (name, points.clone())).into();
        let panels = vec![Panel { title: "a panel".into(), across: "keys", lines }];
        let mut svg = String::new();
        Drawing { title: "a drawing", up: "ns", panels }.draw(&mut svg).unwrap();
        let texts = ["a drawing", "a panel", "keys", "ns", "50", "100", "10 k", "1 M"];
        for text in texts.into_iter().chain(Name::ALL.map(Name::label)) {
            assert!(svg.contains(&format!("\n{text}\n")), "{text} is missing");
        }
        assert_eq!(svg.matches("<circle").count(), 2 * Name::ALL.len());
    }
}
