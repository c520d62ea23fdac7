//! Bars, lines, and what tells lines apart that lie on each other.

use core::fmt::Write;

use crate::markup::Markup;

/// How many markers a line has at most.
const MARKERS: usize = 9;

/// Bars on top of `base`, which they raise, as one path.
pub(super) fn bars_of(
    values: &[Option<u64>],
    base: &mut [u64],
    left_of: impl Fn(usize) -> f64,
    y: impl Fn(u64) -> f64,
) -> String {
    let mut path = String::new();
    for (place, (value, base)) in values.iter().zip(base).enumerate() {
        let Some(value) = value.filter(|value| *value > 0) else { continue };
        let (left, right) = (left_of(place), left_of(place + 1));
        let (bottom, top) = (y(*base), y(base.saturating_add(value)));
        // Writing to a string can't fail. What is not nothing shows, however little it is.
        let _ = write!(path, "M{left:.1} {bottom:.1}V{:.1}H{right:.1}V{bottom:.1}z", top.min(bottom - 0.5));
        *base = base.saturating_add(value);
    }
    path
}

/// The nth of so many lines. Earlier ones are wider and the others have gaps, so that a line that
/// lies on another does not hide it; each has markers of its own form, at places of its own.
pub(super) fn line_of(out: &mut Markup, class: &'static str, nth: usize, count: usize, points: &[(f64, f64)]) {
    const GAPS: [&str; 7] = ["none", "9 4", "2 3", "11 3 2 3", "5 5", "1 4", "16 4"];
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
    }
    let below = (count.saturating_sub(nth + 1)) as f64 / count.max(2).saturating_sub(1) as f64;
    let width = format!("{:.1}", 1.8 + 3.0 * below);
    let class_of_line = format!("line {class}");
    out.empty(
        "path",
        &[
            ("class", &class_of_line),
            ("d", &path),
            ("stroke-width", &width),
            ("stroke-dasharray", &GAPS[nth % GAPS.len()]),
        ],
    );
    if count < 2 {
        return;
    }
    let apart = (points.len() / MARKERS).max(1);
    let first = (apart * (2 * nth + 1)) / (2 * count);
    let mut markers = String::new();
    for (x, y) in points.iter().skip(first).step_by(apart) {
        add_marker(&mut markers, nth, *x, *y);
    }
    out.empty("path", &[("class", &format!("mark {class}")), ("d", &markers)]);
}

fn add_marker(path: &mut String, nth: usize, x: f64, y: f64) {
    let r = 4.5;
    let (left, right, top, bottom) = (x - r, x + r, y - r, y + r);
    let _ = match nth % 5 {
        0 => write!(path, "M{left:.1} {y:.1}a{r} {r} 0 1 0 {0} 0a{r} {r} 0 1 0 -{0} 0z", 2.0 * r),
        1 => write!(path, "M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z"),
        2 => write!(path, "M{x:.1} {top:.1}L{right:.1} {bottom:.1}H{left:.1}z"),
        3 => write!(path, "M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}L{left:.1} {y:.1}z"),
        _ => write!(path, "M{left:.1} {top:.1}H{right:.1}L{x:.1} {bottom:.1}z"),
    };
}
