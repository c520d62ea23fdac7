//! Counts, shares and lines of reports.

use core::fmt::Write;

use indicatif::HumanCount;

/// Adds a line.
pub(crate) fn put(out: &mut String, line: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{}", line.trim_end_matches(' '));
}

pub(crate) fn count_of(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A count as people read it: `2,400`.
pub(crate) fn human(count: u64) -> String {
    HumanCount(count).to_string()
}

/// How often, in words.
pub(crate) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{} times", human(count_of(count))),
    }
}

/// A share in percent: never rounded to all or nothing when it is neither.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0%".to_owned();
    }
    if part == whole {
        return "100%".to_owned();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    match (part * 10_000 + whole / 2) / whole {
        0 => "<0.01%".to_owned(),
        10_000 => ">99.99%".to_owned(),
        hundredths => format!("{}.{:02}%", hundredths / 100, hundredths % 100),
    }
}

/// Adds a line that begins with `start`, whose words go on below each other where they do not fit.
///
/// It is broken between the items of `rest` first, and between the words of one only if that alone
/// is too long. Where a word is too long for what is left beside `start`, the lines that follow
/// begin further left.
pub(crate) fn put_wrapped(out: &mut String, start: &str, rest: &[String], width: usize) {
    let indent = console::measure_text_width(start);
    let longest = rest.iter().flat_map(|item| item.split_whitespace()).map(console::measure_text_width).max();
    let hanging = indent.min(width.saturating_sub(longest.unwrap_or(0)));
    let mut line = start.to_owned();
    let mut is_new = true;
    let mut add = |piece: &str| {
        let gap = usize::from(!is_new);
        if !is_new && console::measure_text_width(&line) + gap + console::measure_text_width(piece) > width {
            put(out, &core::mem::replace(&mut line, " ".repeat(hanging)));
        } else {
            line.push_str(&" ".repeat(gap));
        }
        line.push_str(piece);
        is_new = false;
    };
    for item in rest {
        let is_short = console::measure_text_width(item) <= width.saturating_sub(indent);
        if is_short { add(item) } else { item.split_whitespace().for_each(&mut add) }
    }
    put(out, &line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_rounded_to_all_or_nothing() {
        assert_eq!(percent(0, 10), "0%");
        assert_eq!(percent(1, 1_000_000), "<0.01%");
        assert_eq!(percent(999_999, 1_000_000), ">99.99%");
        assert_eq!(percent(220, 2400), "9.17%");
        assert_eq!(percent(87, 10_000), "0.87%");
        assert_eq!(percent(5, 5), "100%");
        assert_eq!(percent(0, 0), "0%");
    }

    #[test]
    fn lines_break_between_items_and_only_then_between_words() {
        let wrapped = |width| {
            let mut out = String::new();
            put_wrapped(&mut out, "keys  ", &["one two,".to_owned(), "three four five".to_owned()], width);
            out
        };
        assert_eq!(wrapped(40), "keys  one two, three four five\n");
        assert_eq!(wrapped(24), "keys  one two,\n      three four five\n");
        assert_eq!(wrapped(18), "keys  one two,\n      three four\n      five\n");
    }
}
