//! HTML and SVG, written so that text can't become markup.

use core::fmt::{Display, Write};

use crate::text::harmless;

/// Markup in the making. What is not a constant of the program gets in as text or as the value of
/// an attribute, and is escaped.
#[derive(Debug, Default)]
pub(crate) struct Markup(String);

/// An attribute of an element.
pub(crate) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Markup {
    /// Adds markup as it is.
    pub(crate) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Adds text.
    pub(crate) fn text(&mut self, text: &str) {
        for char in harmless(text).chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // XML has no such characters.
                '\u{fffe}' | '\u{ffff}' => self.0.push('\u{fffd}'),
                other => self.0.push(other),
            }
        }
    }

    /// Adds lines of text, each with its end.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.text(line);
            self.0.push('\n');
        }
    }

    /// Adds an element.
    pub(crate) fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        content: impl FnOnce(&mut Self),
    ) {
        // Writing to a string can't fail.
        let _ = write!(self.0, "<{name}");
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"");
            self.text(&value.to_string());
            self.0.push('"');
        }
        self.0.push('>');
        content(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// Adds an element of text without attributes.
    pub(crate) fn tagged(&mut self, name: &'static str, text: &str) {
        self.element(name, &[], |inner| inner.text(text));
    }

    /// Adds an element without content.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.element(name, attributes, |_| ());
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut markup = Markup::default();
        let hostile = "</td><script>alert('\"&\u{202e}\u{ffff}\x1b')</script>";
        markup.element("td", &[("title", &hostile)], |inner| inner.text(hostile));
        let escaped = "&lt;/td&gt;&lt;script&gt;alert(&#39;&quot;&amp;\\u{202e}\u{fffd}\\u{1b}&#39;)&lt;/script&gt;";
        assert_eq!(markup.finish(), format!("<td title=\"{escaped}\">{escaped}</td>"));
    }
}
