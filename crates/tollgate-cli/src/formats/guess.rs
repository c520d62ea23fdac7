//! The pattern that would read lines of no known format, from the first time and the first address
//! in one of them.

use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;

use regex::bytes::Regex;

use crate::times::{TimeOptions, Times};

/// A time is written in at most so many words: `17 May 2015 10:05:03 +0000`.
const WORDS_OF_A_TIME: usize = 5;

/// How a line could be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Guess {
    pub(super) pattern: String,
    /// The time lacks a year.
    pub(super) needs_year: bool,
    /// There is an address, which the pattern calls `client`.
    pub(super) has_client: bool,
}

/// The guess for a line that has a time; checked to read that line.
pub(super) fn guess(line: &[u8]) -> Option<Guess> {
    let line = std::str::from_utf8(line).ok()?;
    let words = words(line);
    let (time, needs_year) = find_time(line, &words)?;
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
    right.then_some(Guess { pattern, needs_year, has_client: address.is_some() })
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

/// The first time, as long as it goes on. A number is one only if it is as long as those since 2001
/// are.
fn find_time(line: &str, words: &[Range<usize>]) -> Option<(Range<usize>, bool)> {
    let with_year = TimeOptions { year: Some(2000), ..TimeOptions::default() };
    for (at, first) in words.iter().enumerate() {
        let most = words.len().min(at + WORDS_OF_A_TIME);
        for last in words[at..most].iter().rev() {
            let range = first.start..last.end;
            let text = &line[range.clone()];
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            if !text.contains(':') && digits < 10 {
                continue;
            }
            if Times::default().read(text).is_ok() {
                return Some((range, false));
            }
            if Times::new(&with_year).read(text).is_ok() {
                return Some((range, true));
            }
        }
    }
    None
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
        guess(line.as_bytes()).map(|guess| (guess.pattern, guess.needs_year, guess.has_client))
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
}
