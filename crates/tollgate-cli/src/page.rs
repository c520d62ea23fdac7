//! A page of HTML that stands alone: tables and charts, without scripts and without the network.

use std::path::Path;

use crate::chart::{Chart, DARK, LIGHT};
use crate::errors::RunError;
use crate::markup::Markup;
use crate::words::{human, percent};

/// Nothing is loaded and nothing runs, whatever a log has in it.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"robots\" content=\"noindex\">\n";

/// A page in the making.
#[derive(Debug)]
pub(crate) struct Page(Markup);

/// What is in a cell of a table.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Text(String),
    /// A number, for people and for programs.
    Count(u64),
    /// So many of so many.
    Share(u64, u64),
}

impl Page {
    /// Begins a page of that title.
    pub(crate) fn new(title: &str) -> Self {
        let mut out = Markup::default();
        out.raw(HEAD);
        out.tagged("title", title);
        out.element("style", &[], |out| {
            out.raw(include_str!("page/page.css"));
            out.raw(LIGHT);
            out.raw(DARK);
        });
        out.raw("\n</head>\n<body>\n");
        out.tagged("h1", title);
        Self(out)
    }

    /// What to know first.
    pub(crate) fn lead(&mut self, text: &str) {
        self.0.element("p", &[("class", &"lead")], |out| out.text(text));
        self.0.raw("\n");
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.0.element("p", &[("class", &"note")], |out| out.text(text));
        self.0.raw("\n");
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.0.tagged("h2", text);
        self.0.raw("\n");
    }

    /// Adds a table of that class. Columns whose names begin with `:` are of text.
    pub(crate) fn table(&mut self, class: &'static str, columns: &[&str], rows: &[Vec<Cell>]) {
        self.0.element("table", &[("class", &class)], |out| {
            out.element("tr", &[], |out| {
                for column in columns {
                    let text = column.trim_start_matches(':');
                    out.element("th", &[("class", &class_of(column))], |out| out.text(text));
                }
            });
            for row in rows {
                out.raw("\n");
                out.element("tr", &[], |out| {
                    for (cell, column) in row.iter().zip(columns) {
                        out.element("td", &[("class", &class_of(column))], |out| cell.write(out));
                    }
                });
            }
        });
        self.0.raw("\n");
    }

    pub(crate) fn code(&mut self, text: &str) {
        self.0.element("pre", &[], |out| out.lines(text));
        self.0.raw("\n");
    }

    pub(crate) fn charts(&mut self, charts: &[Chart]) {
        for chart in charts {
            self.0.element("figure", &[], |out| chart.draw(out));
            self.0.raw("\n");
        }
    }

    /// Ends the page, and writes it.
    ///
    /// # Errors
    ///
    /// [`RunError::Write`] when the file can't be written.
    pub(crate) fn write(mut self, path: &Path) -> Result<(), RunError> {
        self.0.element("footer", &[], |out| {
            out.text(concat!("tollgate ", env!("CARGO_PKG_VERSION"), ": "));
            out.tagged("code", &command_line());
        });
        self.0.raw("\n</body>\n</html>\n");
        std::fs::write(path, self.0.finish())
            .map_err(|error| RunError::Write { what: path.display().to_string(), error })
    }
}

fn class_of(column: &str) -> &'static str {
    if column.starts_with(':') { "text" } else { "" }
}

impl Cell {
    fn write(&self, out: &mut Markup) {
        match self {
            Self::Text(text) => out.text(text),
            Self::Count(count) => out.element("data", &[("value", count)], |out| out.text(&human(*count))),
            Self::Share(part, whole) => out.text(&percent(*part, *whole)),
        }
    }
}

/// How the program was called, as a shell takes it.
fn command_line() -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./=,:@%+".contains(char);
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    core::iter::once("tollgate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
