//! The pattern that would read lines of no known format, from the first time and the first address
//! in one of them.

use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;

use jiff::Timestamp;
use jiff::tz::Offset;
use regex::bytes::Regex;

use crate::time::{SECOND, in_range};
use crate::times::{TimeOptions, Times};

/// A time is written in at most so many words: `17 May 2015 10:05:03 +0000`.
const WORDS_OF_A_TIME: usize = 5;

/// Times that are read only if they are said to be written so.
const FORMATS: &[&str] = &[
    // nginx's log of errors, and Go.
    "%Y/%m/%d %H:%M:%S%.f",
    // Apache's log of errors, and C.
    "%a %b %d %H:%M:%S%.f %Y",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d %b %Y %H:%M:%S%.f %z",
    "%d %b %Y %H:%M:%S%.f",
    "%d-%b-%Y %H:%M:%S%.f",
    "%b %d %Y %H:%M:%S%.f",
];

/// The years of which one is proposed: the last in which the day exists is among them.
const YEARS: i16 = 8;

/// How a line could be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Guess {
    pub(super) pattern: String,
    /// How the time is written, if that has to be said.
    pub(super) format: Option<&'static str>,
    /// The year to begin with, if the time lacks one.
    pub(super) year: Option<i16>,
    /// There is an address, which the pattern calls `client`.
    pub(super) has_client: bool,
}

/// A time in a line.
struct Time {
    range: Range<usize>,
    format: Option<&'static str>,
    year: Option<i16>,
}

/// The guess for a line that has a time, of several the most precise; checked to read that line.
pub(super) fn guess(line: &[u8]) -> Option<Guess> {
    let line = std::str::from_utf8(line).ok()?;
    let words = words(line);
    times(line, &words).into_iter().find_map(|time| guess_by(line, &words, time))
}

fn guess_by(line: &str, words: &[Range<usize>], time: Time) -> Option<Guess> {
    let Time { range: time, format, year } = time;
    let address = words.iter().filter(|word| !overlap(word, &time)).find_map(|word| address(line, word));
    let time_group = format!("(?<time>{})", shape(&line[time.clone()]));
    let pattern = match &address {
        None => time_group,
        Some(address) => {
            let text = &line[address.clone()];
            let digits = if text.contains(':') { "[0-9A-Fa-f:.]+" } else { r"\d+\.\d+\.\d+\.\d+" };
            // One that begins in the midst of a word would find another address.
            let client = format!(r"\b(?<client>{digits})");
            if address.start < time.start {
                format!("{client}.*?{time_group}")
            } else {
                format!("{time_group}.*?{client}")
            }
        }
    };
    let regex = Regex::new(&pattern).ok()?;
    let found = regex.captures(line.as_bytes())?;
    let is = |name: &str, range: &Range<usize>| found.name(name).is_some_and(|group| group.range() == *range);
    let right = is("time", &time) && address.as_ref().is_none_or(|address| is("client", address));
    right.then_some(Guess { pattern, format, year, has_client: address.is_some() })
}

/// Words, without the marks around them. What is behind `=` is a word of its own.
fn words(line: &str) -> Vec<Range<usize>> {
    let ends_word = |char: char| char.is_whitespace() || ",;|=\"'()[]{}<>".contains(char);
    let mut words = Vec::new();
    let mut start = 0;
    for (at, char) in line.char_indices().chain([(line.len(), ' ')]) {
        if ends_word(char) {
            if at > start {
                words.push(start..at);
            }
            start = at + char.len_utf8();
        }
    }
    words
}

/// The times that begin at each of the words, each as long as it goes on; the best first.
fn times(line: &str, words: &[Range<usize>]) -> Vec<Time> {
    let mut times: Vec<Time> = Vec::new();
    for (at, first) in words.iter().enumerate() {
        let most = words.len().min(at + WORDS_OF_A_TIME);
        times.extend(words[at..most].iter().rev().find_map(|last| time(line, first.start..last.end)));
    }
    times.sort_by_key(|time| Reverse(worth(line, time)));
    times
}

/// The time that this text is. A number is one only if it is as long as those since 2001 are.
fn time(line: &str, range: Range<usize>) -> Option<Time> {
    let text = &line[range.clone()];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !text.contains(':') && digits < 10 {
        return None;
    }
    if Times::default().read(text).is_ok() {
        return Some(Time { range, format: None, year: None });
    }
    let is_written_so = |format: &&str| {
        let options = TimeOptions { format: Some((*format).to_owned()), ..TimeOptions::default() };
        Times::new(&options).read(text).is_ok()
    };
    if let Some(format) = FORMATS.iter().copied().find(is_written_so) {
        return Some(Time { range, format: Some(format), year: None });
    }
    let year = last_year_of(text, Timestamp::now())?;
    Some(Time { range, format: None, year: Some(year) })
}

/// The last year in which a time without one is not after this moment, but for a day: the offset is
/// not known.
fn last_year_of(text: &str, now: Timestamp) -> Option<i16> {
    let latest = in_range(now).ok()?.checked_add(24 * 3600 * SECOND)?;
    let this_year = Offset::UTC.to_datetime(now).year() + 1;
    (this_year - YEARS..=this_year).rev().find(|&year| {
        let options = TimeOptions { year: Some(year), ..TimeOptions::default() };
        Times::new(&options).read(text).is_ok_and(|time| time <= latest)
    })
}

/// Times with a year come first, then numbers with a fraction, times without a year, and whole
/// numbers, which may count anything; among these, those with more digits of a second.
fn worth(line: &str, time: &Time) -> (u8, usize) {
    let text = &line[time.range.clone()];
    let kind = match (text.contains(':'), time.year) {
        (true, None) => 3,
        (false, _) if text.contains('.') => 2,
        (true, Some(_)) => 1,
        (false, _) => 0,
    };
    (kind, digits_of_a_second(text))
}

/// The digits behind the seconds, which follow a colon; of a number, those behind the point.
fn digits_of_a_second(text: &str) -> usize {
    let starts = text.match_indices(['.', ',']).map(|(at, _)| at);
    let is_after_seconds = |at: &usize| *at > 2 && (!text.contains(':') || text.as_bytes()[at - 3] == b':');
    let start = starts.into_iter().find(is_after_seconds);
    start.map_or(0, |at| text[at + 1..].bytes().take_while(u8::is_ascii_digit).count())
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The address that a word is, or has before its port.
fn address(line: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let text = &line[word.clone()];
    if text.parse::<IpAddr>().is_ok() {
        return Some(word.clone());
    }
    let (host, port) = text.rsplit_once(':')?;
    let has_port = host.parse::<Ipv4Addr>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
    has_port.then(|| word.start..word.start + host.len())
}

/// A pattern of texts with digits, letters, spaces and marks in the same places.
fn shape(text: &str) -> String {
    let kind = |char: char| match char {
        _ if char.is_ascii_digit() => r"\d+",
        _ if char.is_alphabetic() => r"\pL+",
        _ if char.is_whitespace() => " +",
        _ => "",
    };
    let mut pattern = String::new();
    let mut last = "";
    for char in text.chars() {
        let now = kind(char);
        if now.is_empty() && ":-/,_".contains(char) {
            pattern.push(char);
        } else if now.is_empty() {
            pattern += &regex::escape(&char.to_string());
        } else if now != last {
            pattern += now;
        }
        last = now;
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(line: &str) -> Option<(String, bool, bool)> {
        guess(line.as_bytes()).map(|guess| (guess.pattern, guess.year.is_some(), guess.has_client))
    }

    #[test]
    fn the_first_time_and_the_first_address_make_the_pattern() {
        let known = |pattern: &str, year, client| Some((pattern.to_owned(), year, client));
        assert_eq!(
            pattern("<34>May  7 10:05:03 web1 app[7]: login from 192.0.2.7 port 22"),
            known(r"(?<time>\pL+ +\d+ +\d+:\d+:\d+).*?\b(?<client>\d+\.\d+\.\d+\.\d+)", true, true)
        );
        assert_eq!(
            pattern("ts=2015-05-17T10:05:03Z level=info ip=2001:db8::1 msg=x"),
            known(r"(?<time>\d+-\d+-\d+\pL+\d+:\d+:\d+\pL+).*?\b(?<client>[0-9A-Fa-f:.]+)", false, true)
        );
        assert_eq!(
            pattern("10.0.0.1 | 2015-05-17 10:05:03 | GET"),
            known(r"\b(?<client>\d+\.\d+\.\d+\.\d+).*?(?<time>\d+-\d+-\d+ +\d+:\d+:\d+)", false, true)
        );
        assert_eq!(pattern("1431857103.25 ann"), known(r"(?<time>\d+\.\d+)", false, false));
        assert_eq!(pattern("hello world, how are you at 12:30"), None);
    }

    #[test]
    fn a_year_that_is_proposed_is_the_last_that_can_be() {
        let now = "2026-03-02T08:00:00Z".parse().unwrap();
        for (text, year) in [
            ("Mar  2 07:00:00", Some(2026)),
            // West of Greenwich it is still that day.
            ("Mar  3 07:00:00", Some(2026)),
            ("Mar  4 07:00:00", Some(2025)),
            ("Dec 31 23:59:59", Some(2025)),
            ("Feb 29 12:00:00", Some(2024)),
            ("Feb 30 12:00:00", None),
        ] {
            assert_eq!(last_year_of(text, now), year, "{text}");
        }
    }
}
