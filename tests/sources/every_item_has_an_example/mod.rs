//! Every public item has an example: each type, trait, function and constant one of its own, and
//! each method one of its own or a call in the example of its type. Each method of a limiter has
//! one of its own, and `try_acquire` stands first.
//!
//! The file `exceptions` lists the items that need none. It cannot grow old: an entry that names no
//! item, or an item that has an example, fails as well.

mod items;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use items::{Item, items_of};

/// The items that may lack an example, one in a line.
const EXCEPTIONS: &str = include_str!("exceptions");

/// The types whose methods a reader looks up one by one.
const LIMITERS: [&str; 2] = ["Limiter", "JointLimiter"];

#[test]
fn every_public_item_has_an_example() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<(String, Vec<Item>)> = Vec::new();
    for path in sources(&source) {
        let text = fs::read_to_string(&path).unwrap();
        files.push((path.strip_prefix(&source).unwrap().display().to_string(), items_of(&text)));
    }
    assert!(files.iter().map(|(_, items)| items.len()).sum::<usize>() > 150, "hardly an item was found");
    let complaints = complaints(&files, &exceptions(EXCEPTIONS));
    assert!(complaints.is_empty(), "{}", complaints.concat());
}

/// Types, traits, functions and constants; their methods are those of one face, which the tables of
/// the READMEs show.
#[test]
fn every_public_type_of_the_crates_beside_the_limiter_has_an_example() {
    for (name, least, exceptions_of) in [
        ("tollgate-http", 20, include_str!("exceptions.tollgate-http")),
        ("tollgate-tower", 20, include_str!("exceptions.tollgate-tower")),
        ("tollgate-actix", 12, include_str!("exceptions.tollgate-actix")),
        ("tollgate-policy", 12, include_str!("exceptions.tollgate-policy")),
        ("tollgate-wait", 8, include_str!("exceptions.tollgate-wait")),
        ("tollgate-observe", 6, include_str!("exceptions.tollgate-observe")),
        ("tollgate-redis", 12, include_str!("exceptions.tollgate-redis")),
        ("tollgate-duration", 3, ""),
        ("tollgate-address", 5, ""),
        ("tollgate-root", 2, ""),
        ("tollgate-serve", 5, include_str!("exceptions.tollgate-serve")),
    ] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("src");
        let items = |path: PathBuf| {
            let mut items = items_of(&fs::read_to_string(&path).unwrap());
            items.retain(|item| item.of.is_empty());
            (format!("{name}/{}", path.strip_prefix(&source).unwrap().display()), items)
        };
        let files: Vec<(String, Vec<Item>)> = sources(&source).into_iter().map(items).collect();
        assert!(
            files.iter().map(|(_, items)| items.len()).sum::<usize>() >= least,
            "hardly an item was found in {name}"
        );
        let complaints = complaints(&files, &exceptions(exceptions_of));
        assert!(complaints.is_empty(), "{}", complaints.concat());
    }
}

/// Rustdoc shows the methods of a type in the order of the modules that define them.
#[test]
fn try_acquire_is_the_first_method_of_each_limiter() {
    let mut files = Vec::new();
    in_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"), &mut files);
    let items: Vec<Item> = files.iter().flat_map(|path| items_of(&fs::read_to_string(path).unwrap())).collect();
    for limiter in LIMITERS {
        let first = items.iter().find(|item| item.of == limiter).map(|item| &*item.name);
        assert_eq!(first, Some("try_acquire"), "{limiter}");
    }
}

/// The source files of the module in this file, in the order in which modules are declared.
fn in_order(file: &Path, found: &mut Vec<PathBuf>) {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let folder = if name == "lib" { file.parent().unwrap().to_owned() } else { file.with_extension("") };
    for line in fs::read_to_string(file).unwrap().lines() {
        let child = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ").and_then(|it| it.strip_suffix(';'));
        // A module of tests may lie elsewhere.
        if let Some(child) = child.map(|child| folder.join(child).with_extension("rs")).filter(|it| it.exists()) {
            in_order(&child, found);
        }
    }
    found.push(file.to_owned());
}

/// The source files in a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn exceptions(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The items without an example that are no exceptions, and the exceptions that are none.
fn complaints(files: &[(String, Vec<Item>)], exceptions: &[&str]) -> Vec<String> {
    let items = || files.iter().flat_map(|(file, items)| items.iter().map(move |item| (file, item)));
    let mut of_types: BTreeMap<String, String> = BTreeMap::new();
    for (_, item) in items() {
        *of_types.entry(item.path()).or_default() += &item.example;
    }
    let has_example = |item: &Item| {
        let may_be_shown = !item.of.is_empty() && !LIMITERS.contains(&&*item.of);
        let of_type = of_types.get(&item.of).filter(|_| may_be_shown);
        !of_types[&item.path()].is_empty() || of_type.is_some_and(|example| item.is_shown_in(example))
    };
    let mut complaints = Vec::new();
    for (file, item) in items() {
        let path = item.path();
        if !has_example(item) && !exceptions.contains(&path.as_str()) {
            complaints.push(format!("{file}:{}: {path} has no example\n", item.line));
        }
    }
    for &exception in exceptions {
        match items().find(|(_, item)| item.path() == exception) {
            None => complaints.push(format!("exceptions: there is no {exception}\n")),
            Some((_, item)) if has_example(item) => {
                complaints.push(format!("exceptions: {exception} has an example: remove it from the list\n"));
            }
            Some(_) => {}
        }
    }
    complaints
}

/// What is said of one file.
fn complaints_about(source: &str, exceptions: &[&str]) -> String {
    complaints(&[("lib.rs".to_owned(), items_of(source))], exceptions).concat()
}

const SHOWN: &str = r#"
/// A type.
///
/// ```
/// # Meter::hidden();
/// let meter = Meter::new();
/// assert_eq!(meter.read(), 0);
/// ```
pub struct Meter {
    pub field: u32,
}

impl<F: Fn(u32) -> u32> Meter<F> {
    /// New.
    pub const fn new() -> Self {
        Self
    }

    /// Reads.
    #[must_use]
    pub fn read(&self) -> u32 {
        0
    }

    pub(crate) fn inner(&self) {}

    fn private() {}
}

impl Default for Meter {
    fn default() -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    pub fn helper() {}
}
"#;

#[test]
fn members_may_be_shown_by_their_type() {
    assert_eq!(complaints_about(SHOWN, &[]), "");
}

#[test]
fn an_item_without_an_example_is_named_with_its_line() {
    let source = SHOWN.replace("assert_eq!(meter.read(), 0)", "let _ = meter");
    assert_eq!(complaints_about(&source, &[]), "lib.rs:21: Meter::read has no example\n");
    let source = SHOWN.replace("/// ```\n/// #", "/// ```text\n/// #");
    let said = complaints_about(&source, &[]);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.starts_with("lib.rs:9: Meter has no example\n"), "{said}");
}

#[test]
fn a_method_of_a_limiter_needs_its_own_example() {
    let source = SHOWN.replace("Meter", "Limiter");
    let said = complaints_about(&source, &[]);
    assert_eq!(said, "lib.rs:15: Limiter::new has no example\nlib.rs:21: Limiter::read has no example\n");
}

#[test]
fn a_hidden_line_shows_nothing() {
    let source = SHOWN.replace("fn private()", "pub fn hidden()");
    assert_eq!(complaints_about(&source, &[]), "lib.rs:27: Meter::hidden has no example\n");
}

#[test]
fn traits_functions_and_constants_need_examples_too() {
    let source = "
        /// ```
        /// fn now() -> u64 { 7 }
        /// ```
        pub trait Clock {
            fn now() -> u64;
            fn later() -> u64;
            #[doc(hidden)]
            fn never();
        }
        pub const MOST: u32 = 1;
        pub async fn wait() {}
        mod sealed {
            pub trait Sealed {
                fn f();
            }
        }
        trait Private {
            fn g();
        }
    ";
    let said = complaints_about(source, &[]);
    let without = ["Clock::later", "MOST", "wait"];
    assert_eq!(said.lines().count(), without.len(), "{said}");
    assert!(without.iter().all(|name| said.contains(&format!(": {name} has no example"))), "{said}");
}

#[test]
fn an_exception_that_is_none_is_named() {
    let source = SHOWN.replace("assert_eq!(meter.read(), 0)", "let _ = meter");
    assert_eq!(complaints_about(&source, &["Meter::read"]), "");
    let said = complaints_about(SHOWN, &["Meter::read", "Meter::gone"]);
    assert_eq!(
        said,
        "exceptions: Meter::read has an example: remove it from the list\nexceptions: there is no Meter::gone\n"
    );
    assert_eq!(exceptions("# A reason.\n\nMeter::read\n"), ["Meter::read"]);
}
