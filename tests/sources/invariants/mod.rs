//! Whatever `docs/invariants.md` names exists, and the code cites each name that is there, and no
//! other.
//!
//! Each invariant has a heading `### INV-NAME`, a sentence, a reason, and lines that begin with
//! `Models:` and `Weakenings:`, which name tests and entries of `tests/weaken`.

mod list;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use list::{Invariant, cited, invariants};

/// What the lists may name, and the texts that cite them.
struct Crate {
    lists: Vec<String>,
    /// Functions that are tests.
    tests: BTreeSet<String>,
    weakenings: BTreeSet<String>,
    /// Texts by path.
    texts: Vec<(String, String)>,
}

const LISTS: [&str; 1] = ["docs/invariants.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files under a directory with this ending.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The functions of a source that are tests: directly below `#[test]`, or models by their name.
fn tests_of(source: &str) -> Vec<String> {
    let mut found = vec![];
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("fn ") {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            if is_test {
                found.push(rest[..end].to_owned());
            }
            is_test = false;
        } else {
            is_test = line.starts_with("#[test]") || is_test && (line.starts_with("#[") || line.starts_with("//"));
        }
    }
    found
}

fn weakenings_of(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| line.strip_prefix("mutation ")).map(str::to_owned).collect()
}

impl Crate {
    fn this() -> Self {
        let sources: Vec<PathBuf> = ["src", "tests"].iter().flat_map(|part| files(&root().join(part), ".rs")).collect();
        let lists = fs::read_dir(root().join("tests/weaken")).unwrap().map(|entry| entry.unwrap().path());
        let lists = lists.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("mutations"));
        let cites = files(&root().join("src"), ".rs").into_iter().chain(files(&root().join("docs"), ".md"));
        Self {
            lists: LISTS.iter().map(|list| read(&root().join(list))).collect(),
            tests: sources.iter().flat_map(|path| tests_of(&read(path))).collect(),
            weakenings: lists.flat_map(|path| weakenings_of(&read(&path))).collect(),
            texts: cites.map(|path| (path.display().to_string(), read(&path))).collect(),
        }
    }

    fn invariants(&self) -> Vec<Invariant> {
        self.lists.iter().flat_map(|list| invariants(list)).collect()
    }

    /// What is wrong, one line each.
    fn errors(&self) -> Vec<String> {
        let mut errors = vec![];
        let mut names = BTreeSet::new();
        for Invariant { name, models, weakenings, is_explained } in self.invariants() {
            let mut complain = |what: String| errors.push(format!("{name}: {what}"));
            if !is_explained {
                complain("no statement, or no reason".into());
            }
            if models.is_empty() {
                complain("no model".into());
            }
            for model in models.iter().filter(|model| !self.tests.contains(*model)) {
                complain(format!("no test is named {model}"));
            }
            for weakening in weakenings.iter().filter(|weakening| !self.weakenings.contains(*weakening)) {
                complain(format!("no weakening is named {weakening}"));
            }
            let cites = |(path, text): &(String, String)| path.ends_with(".rs") && cited(text).contains(&name);
            if !self.texts.iter().any(cites) {
                complain("no source cites it".into());
            }
            if !names.insert(name.clone()) {
                complain("listed twice".into());
            }
        }
        for (path, text) in &self.texts {
            for name in cited(text).into_iter().filter(|name| !names.contains(name)) {
                errors.push(format!("{path}: {name} is not listed"));
            }
        }
        errors
    }
}

#[test]
fn every_name_in_the_list_exists_and_every_citation_is_listed() {
    let this = Crate::this();
    let listed = this.invariants().len();
    assert!(listed >= 10 && this.tests.len() > 300 && this.weakenings.len() > 150, "{listed} invariants found");
    let errors = this.errors();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

const SOUND: &str = "# Invariants
### INV-A
It holds.

Why: because.

Models: `loom_a`, `b_is_so`

Weakenings: `a-relaxed`,
`b-stored`

## More

### INV-B-C
It holds, too (INV-A).

Why: the same.

Models: `loom_a`
";

/// The complaints about a list that is sound but for one replacement.
fn complaints(from: &str, to: &str) -> Vec<String> {
    let list = SOUND.replacen(from, to, 1);
    assert!(from == to || list != SOUND, "{from:?} is not there");
    let tests =
        tests_of("#[test]\nfn loom_a() {}\n    #[test]\n    #[should_panic]\n    fn b_is_so() {}\nfn helper() {}\n");
    let weakenings = weakenings_of("mutation a-relaxed\nabout mutation c\nmutation b-stored\n");
    let texts = vec![("list".into(), list.clone()), ("source.rs".into(), "//! By INV-A and INV-B-C.".into())];
    Crate { lists: vec![list], tests: tests.into_iter().collect(), weakenings: weakenings.into_iter().collect(), texts }
        .errors()
}

#[test]
fn a_sound_list_has_no_errors() {
    assert_eq!(complaints("", ""), Vec::<String>::new());
}

#[test]
fn each_kind_of_error_is_found() {
    for (from, to, expected) in [
        ("loom_a", "loom_z", "INV-A: no test is named loom_z"),
        ("b_is_so", "helper", "INV-A: no test is named helper"),
        ("b-stored", "b-store", "INV-A: no weakening is named b-store"),
        ("Models: `loom_a`, `b_is_so`\n", "", "INV-A: no model"),
        ("It holds.\n", "", "INV-A: no statement, or no reason"),
        ("Why: because.\n", "", "INV-A: no statement, or no reason"),
        ("(INV-A)", "(INV-D)", "list: INV-D is not listed"),
        ("### INV-B-C", "### INV-B", "source.rs: INV-B-C is not listed"),
        ("### INV-B-C", "### INV-A", "INV-A: listed twice"),
        ("### INV-B-C", "### INV-C", "INV-C: no source cites it"),
    ] {
        let found = complaints(from, to);
        assert!(found.iter().any(|error| error == expected), "{from:?} -> {to:?}: {found:?}");
    }
}
