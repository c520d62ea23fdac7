//! Pages, opened in a headless Chromium, and what they have in them then.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_kit::programs::skipped;

use crate::replay::support::{Scratch, text};

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The name of a Chromium that is installed. Says so if there is none.
fn chromium() -> Option<&'static str> {
    let runs = |name: &&&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    };
    let found = NAMES.iter().find(runs).copied();
    if found.is_none() {
        skipped("a page in a browser: there is no chromium (apt-get install chromium)");
    }
    found
}

/// The document of a page once it is loaded, as HTML; `None` without a Chromium.
pub(crate) fn document_of(scratch: &Scratch, page: &str) -> Option<String> {
    let name = chromium()?;
    let profile = scratch.file("profile");
    let page = fs::canonicalize(page).unwrap();
    let output = Command::new(name)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={profile}"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let document = text(&output.stdout);
    assert!(document.contains("</html>"), "{} {}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(Path::new(&profile).exists());
    Some(document)
}

/// The text of some HTML, without its tags.
pub(crate) fn text_of(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text += part.split_once('>').map_or(part, |(_, text)| text);
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    text.replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}

/// The elements of that name, with their attributes and what is in them; they must not be nested.
pub(crate) fn elements<'a>(html: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let (start, end) = (format!("<{name}"), format!("</{name}>"));
    let parts = html.split(&start).skip(1).filter(|part| part.starts_with(['>', ' ']));
    parts.map(|part| part.split(&end).next().unwrap().split_once('>').unwrap()).collect()
}

/// The texts of the cells of all tables of a class, row by row, without the headings.
pub(crate) fn rows(document: &str, class: &str) -> Vec<Vec<String>> {
    let class = format!("class=\"{class}\"");
    let tables = elements(document, "table").into_iter().filter(|(attributes, _)| attributes.contains(&class));
    let rows = tables.flat_map(|(_, table)| elements(table, "tr").into_iter().map(|(_, row)| row));
    let cells = rows.map(|row| elements(row, "td").into_iter().map(|(_, cell)| text_of(cell)).collect());
    cells.filter(|row: &Vec<String>| !row.is_empty()).collect()
}

/// A count, as people read it.
pub(crate) fn count(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text:?} is no count"))
}
