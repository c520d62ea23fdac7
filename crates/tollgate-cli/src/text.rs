//! Text of a log, made fit to be shown.

/// Text from a log, made fit for a terminal: nothing in it can move the cursor or change colours.
pub(crate) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() || is_invisible(char) { safe.extend(char.escape_default()) } else { safe.push(char) }
    }
    safe
}

/// Characters that reorder or hide the text around them.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The start of some text of a log, in quotes, harmless and short.
pub(crate) fn excerpt(text: &[u8]) -> String {
    const MOST: usize = 64;
    // Four bytes make a character at most.
    let start = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]).into_owned();
    format!("\"{}\"", shortened(&harmless(&start), MOST))
}

/// At most `width` columns of the text.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_cannot_command_the_terminal() {
        assert_eq!(harmless("a\x1b[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(harmless("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(harmless("päth/世界"), "päth/世界");
    }

    #[test]
    fn excerpts_are_short() {
        assert_eq!(excerpt(b"short"), "\"short\"");
        assert!(excerpt(&[b'x'; 100_000]).chars().count() <= 66);
        assert_eq!(excerpt(b"\xff\x00"), "\"\u{fffd}\\u{0}\"");
    }
}
