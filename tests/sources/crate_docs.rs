//! The documentation of the crate agrees with what it repeats: the manifest, and code that is
//! compiled elsewhere.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn text_of(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The documentation at the head of `src/lib.rs`.
fn docs() -> String {
    let source = text_of("src/lib.rs");
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// The lines of a text between one that is `start` and the next that begins with `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let after = text.lines().skip_while(|line| *line != start).skip(1);
    after.take_while(|line| !line.starts_with(end)).collect()
}

#[test]
fn the_table_of_features_is_that_of_the_manifest() {
    let manifest = text_of("Cargo.toml");
    let names = between(&manifest, "[features]", "[").into_iter().filter_map(|line| line.split_once(" = "));
    let mut declared: Vec<&str> = names.map(|(name, _)| name).filter(|name| *name != "default").collect();
    let docs = docs();
    let rows = between(&docs, "# Features", "The program").into_iter().filter_map(|line| line.strip_prefix("| `"));
    let mut told: Vec<&str> = rows.map(|row| row.split_once('`').unwrap().0).collect();
    declared.sort_unstable();
    told.sort_unstable();
    assert!(!told.is_empty());
    assert_eq!(told, declared);
}

#[test]
fn the_version_of_rust_is_that_of_the_manifest() {
    let manifest = text_of("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(docs().contains(&format!("Rust {version} or later")), "{version}");
}

#[test]
fn the_recipe_for_axum_is_compiled_as_the_example_of_the_crate_for_tower() {
    let compiled = text_of("crates/tollgate-tower/README.md");
    let docs = docs();
    let axum = between(&docs, "## axum", "## ").join("\n");
    let recipe = between(&axum, "```text", "```");
    assert!(recipe.len() > 3, "{axum}");
    for line in recipe {
        assert!(compiled.lines().any(|other| other.trim() == line.trim()), "not in the example: {line}");
    }
}

#[test]
fn the_program_for_axum_in_the_readme_is_that_of_the_crate_for_tower() {
    let (readme, compiled) = (text_of("README.md"), text_of("crates/tollgate-tower/README.md"));
    let program = between(&readme[readme.find("An HTTP service").unwrap()..], "```text", "```");
    assert_eq!(program, between(&compiled, "```rust,no_run", "```"));
}

/// The tests of `login_service` play the session in the README of the crate for tower.
#[test]
fn the_session_in_the_readme_is_part_of_the_one_that_is_played() {
    let (readme, played) = (text_of("README.md"), text_of("crates/tollgate-tower/README.md"));
    let played = between(&played, "```console", "```");
    let session = between(&readme, "```console", "```");
    assert_eq!(session[0], played[0]);
    let start = played.iter().position(|line| *line == session[1]).expect("the same command");
    assert_eq!(session[1..], played[start..start + session.len() - 1]);
}

#[test]
fn the_readme_is_short() {
    let words = text_of("README.md").split_whitespace().count();
    assert!(words <= 900, "{words} words");
}

/// The steps of a decision, in docs/performance.md, add up to the instructions that are counted.
#[test]
fn the_steps_of_a_decision_add_up() {
    let (page, figures) = (text_of("docs/performance.md"), text_of("benches/instructions/figures.tsv"));
    let rows = between(&page, "## The steps of a decision", "## ").into_iter().filter(|line| line.starts_with("| "));
    let cells = |row: &str| -> Vec<String> { row.split('|').map(|it| it.trim().replace('*', "")).collect() };
    let rows: Vec<Vec<String>> = rows.map(cells).skip(2).collect();
    let (all, steps) = rows.split_last().unwrap();
    assert!(steps.len() > 10 && all[1] == "all", "{rows:?}");
    for (column, path) in [(2, "admitted, token bucket"), (3, "one for all, admitted, token bucket")] {
        let sum: u32 =
            steps.iter().filter(|row| !row[column].is_empty()).map(|row| row[column].parse::<u32>().unwrap()).sum();
        let counted = figures.lines().find_map(|line| line.strip_prefix(path)?.strip_prefix('\t')).unwrap();
        let counted: f64 = counted.split('\t').next().unwrap().parse().unwrap();
        assert_eq!((sum.to_string(), sum.to_string()), (all[column].clone(), format!("{counted:.0}")), "{path}");
    }
}

/// The README and the changelog tell how much `unsafe` there is. The other crates forbid it.
#[test]
fn the_readme_counts_the_unsafe_blocks() {
    let sources = ["lib.rs", "record.rs", "sync.rs"].map(|file| text_of(&format!("crates/tollgate-root/src/{file}")));
    let blocks: usize = sources.iter().map(|text| text.matches("unsafe {").count()).sum();
    assert_eq!(blocks, 10);
    for page in ["README.md", "CHANGELOG.md"] {
        assert!(text_of(page).contains("ten blocks"), "{page}");
    }
}

/// The names of tests, files and items in the changelog lead to something, and each stands there once.
#[test]
fn names_in_the_changelog_exist() {
    let changelog = text_of("CHANGELOG.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for folder in ["src", "tests", "crates", "benches", "examples"] {
        read_all(&root.join(folder), &mut sources);
    }
    let words: HashSet<&str> = sources
        .iter()
        .flat_map(|source| source.text.split(|char: char| !char.is_alphanumeric() && char != '_'))
        .collect();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (mut tests, mut items, mut seen) = (0, 0, HashSet::new());
    for name in changelog.split('`').skip(1).step_by(2) {
        assert!(seen.insert(name), "{name} is there twice");
        if ["tests/", "crates/", "examples/"].iter().any(|folder| name.starts_with(folder)) && !name.contains(' ') {
            assert!(root.join(name).exists(), "no file {name}");
            tests += 1;
        } else if name.bytes().all(is_word) && name.split('_').filter(|word| !word.is_empty()).count() > 3 {
            assert!(sources.iter().any(|source| source.has("fn", name)), "no function {name}");
            tests += 1;
        } else if name.bytes().all(|byte| is_word(byte) || byte == b':') && !name.contains("governor") {
            let lost: Vec<&str> = name.split("::").filter(|word| !words.contains(word)).collect();
            assert!(lost.is_empty(), "no {name}");
            items += 1;
        }
    }
    assert!(tests > 20 && items > 60, "{tests} tests and files, {items} items");
}

/// The changelog of a first version says what the crates do, not how they came to be.
#[test]
fn the_changelog_tells_no_story() {
    let text = text_of("CHANGELOG.md").to_lowercase();
    for phrase in ["no longer", "used to", "any more", "in place of"] {
        assert!(!text.contains(phrase), "{phrase}");
    }
    let lost = text.split(|char: char| !char.is_alphanumeric()).find(|word| *word == "now");
    assert_eq!(lost, None);
}

/// The names and files in the chapters of the design exist in the sources: a function of a module in
/// the file of that module, a method beside its type.
#[test]
fn names_in_the_design_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    ["src", "tests", "crates", "benches"].iter().for_each(|folder| read_all(&root.join(folder), &mut sources));
    let (mut names, mut files, mut lost) = (0, 0, Vec::new());
    for page in fs::read_dir(root.join("docs")).unwrap() {
        let page = page.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        for code in text.split('`').skip(1).step_by(2).filter(|code| !code.contains([' ', '*', '\n'])) {
            if let Some((owner, name)) = code.rsplit_once("::").filter(|(owner, _)| *owner != "u64") {
                names += 1;
                if !is_there(&sources, owner.rsplit("::").next().unwrap(), name) {
                    lost.push(format!("{}: {code}", page.display()));
                }
            } else if code.ends_with(".rs") && code.contains('/') {
                files += 1;
                if !["", "src", "crates/tollgate-cli/src"].iter().any(|folder| root.join(folder).join(code).exists()) {
                    lost.push(format!("{}: {code}", page.display()));
                }
            }
        }
    }
    assert!(lost.is_empty(), "not in the sources: {lost:#?}");
    assert!(names > 100 && files > 40, "{names} names, {files} files");
}

/// Each name in the map is in the file before it, and each item in its picture exists.
#[test]
fn names_in_the_map_are_in_the_file_before_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = text_of("docs/map.md");
    let (mut before, mut files, mut names, mut lost) = (None, 0, 0, Vec::new());
    for code in page.split('`').skip(1).step_by(2).filter(|code| !code.contains([' ', '\n'])) {
        if code.contains('/') {
            files += 1;
            let text = fs::read_to_string(root.join(code)).unwrap_or_default();
            lost.extend((!root.join(code).exists()).then(|| code.to_owned()));
            before = Some(Source { path: code.into(), text });
        } else if let (Some(file), Some((owner, name))) = (&before, code.rsplit_once("::")) {
            names += 1;
            if !is_there(std::slice::from_ref(file), owner, name) {
                lost.push(format!("{}: {code}", file.path.display()));
            }
        }
    }
    let mut sources = Vec::new();
    ["src", "crates"].iter().for_each(|folder| read_all(&root.join(folder), &mut sources));
    let picture = between(&page, "```text", "```").join(" ");
    let items: Vec<&str> = picture
        .split(|char: char| !char.is_alphanumeric() && char != '_')
        .filter(|word| word.starts_with(char::is_uppercase) || word.contains('_'))
        .collect();
    let is_item = |item: &str| ["struct", "enum", "fn"].iter().any(|kind| sources.iter().any(|it| it.has(kind, item)));
    lost.extend(items.iter().filter(|item| !is_item(item)).map(|item| (*item).to_owned()));
    assert!(lost.is_empty(), "not there: {lost:#?}");
    assert!(names > 100 && files > 80 && items.len() > 15, "{names} names, {files} files, {items:?}");
}

/// Steps through the marked decision, instruction by instruction, and prints each file when it comes
/// to it.
const STEPS: &str = r#"
import gdb
for setting in ["pagination off", "confirm off", "debuginfod enabled off"]:
    gdb.execute("set " + setting)
gdb.execute("break step_through.rs:LINE")
gdb.execute("run")
at = lambda: gdb.selected_frame().find_sal()
here = lambda: at().symtab.filename if at().symtab else ""
seen = []
while not (here().endswith("step_through.rs") and at().line > LINE):
    gdb.execute("stepi", to_string=True)
    if here().startswith("src/") and here() not in seen:
        seen.append(here())
        print("stepped into " + here())
gdb.execute("kill")
"#;

/// The example is built without optimization, or functions would be gone and files out of order.
#[test]
fn a_debugger_comes_to_the_files_of_a_decision_in_the_order_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = text_of("docs/internals.md");
    let steps =
        between(&page, "## Where to start reading", "## ").into_iter().filter_map(|line| line.split_once(". `src/"));
    let told: Vec<String> = steps.map(|(_, path)| format!("src/{}", path.split('`').next().unwrap())).collect();
    assert!((5..=10).contains(&told.len()), "{told:?}");
    if Command::new("gdb").arg("--version").output().is_err() {
        return eprintln!("SKIPPED the order of the files of a decision: there is no gdb");
    }
    let build = ["build", "--workspace", "--all-features", "--example", "step_through", "--message-format=json"];
    let built = Command::new(env!("CARGO")).args(build).current_dir(root).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let built = String::from_utf8(built.stdout).unwrap();
    let program = built.split("\"executable\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let example = text_of("examples/step_through.rs");
    let line = example.split_once("break step_through.rs:").unwrap().1.split('\'').next().unwrap();
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("step_through.py");
    fs::write(&script, STEPS.replace("LINE", line)).unwrap();
    let gdb =
        Command::new("gdb").args(["-nx", "-batch", "-x"]).arg(&script).arg(program).current_dir(root).output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&gdb.stdout), String::from_utf8_lossy(&gdb.stderr));
    if errors.contains("ptrace") || errors.contains("Couldn't get") {
        return eprintln!("SKIPPED the order of the files of a decision: gdb may not trace here: {errors}");
    }
    let found: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("stepped into ")).collect();
    assert_eq!(told, found, "{errors}");
}

/// Whether a module, or a file that speaks of a type, declares that name.
fn is_there(sources: &[Source], owner: &str, name: &str) -> bool {
    let is_module = owner.starts_with(char::is_lowercase);
    sources.iter().any(|source| {
        let belongs = if is_module { source.is_of(owner) } else { source.words(owner).next().is_some() };
        belongs && source.declares(name)
    })
}

#[test]
fn a_name_that_begins_like_another_is_not_that_one() {
    let text = "mod inner { const LAST: u8 = 0; }\nimpl Words {\n    pub(crate) fn time_of_day(&self) {}\n}";
    let sources = [Source { path: "src/state/cells.rs".into(), text: text.to_owned() }];
    for (owner, name) in [("Words", "time_of_day"), ("cells", "time_of_day"), ("inner", "LAST")] {
        assert!(is_there(&sources, owner, name), "{owner}::{name}");
    }
    for (owner, name) in
        [("Words", "time_of"), ("Word", "time_of_day"), ("cell", "time_of_day"), ("inn", "LAST"), ("inner", "LAS")]
    {
        assert!(!is_there(&sources, owner, name), "{owner}::{name}");
    }
}

/// A file of source.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Whether it is a file of the module or of one in it, or has the module in it.
    fn is_of(&self, module: &str) -> bool {
        let is_root = module == "tollgate" && self.path.ends_with("src/lib.rs");
        let mut names = self.path.iter().map(|name| name.to_str().unwrap().trim_end_matches(".rs"));
        let opens = |(before, after): (&str, &str)| before.ends_with("mod ") && after.starts_with(" {");
        is_root || names.any(|name| name == module) || self.words(module).any(opens)
    }

    fn declares(&self, name: &str) -> bool {
        ["fn", "struct", "enum", "trait", "type", "const"].iter().any(|kind| self.has(kind, name))
            // A variant or a field.
            || self.words(name).any(|(before, after)| {
                [" {", " =", ",", "(", ":"].iter().any(|end| after.starts_with(end))
                    && ["    ", "pub ", ") "].iter().any(|start| before.ends_with(start))
            })
    }

    /// Whether that word is before the name.
    fn has(&self, word: &str, name: &str) -> bool {
        let word = format!("{word} ");
        self.words(name).any(|(before, _)| before.ends_with(&word))
    }

    /// The text before and after each place where the name is a whole word.
    fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let in_word = |char: char| char.is_alphanumeric() || char == '_';
        let around = |(at, _)| (&self.text[..at], &self.text[at + name.len()..]);
        let places = self.text.match_indices(name).map(around);
        places.filter(move |(before, after)| !before.ends_with(in_word) && !after.starts_with(in_word))
    }
}

fn read_all(folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            sources.push(Source { path: path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_owned(), text });
        }
    }
}

/// Names by which people look for a method: of governor, of bucket4j, and of Go's `rate`.
#[test]
fn names_that_people_guess_lead_to_a_method() {
    let keyed = [
        ("try_acquire", &["check_key", "tryConsume", "Allow"][..]),
        ("peek", &["estimateAbilityToConsume"]),
        ("forget", &["reset"]),
    ];
    let direct = [("try_acquire", &["check", "tryConsume", "Allow"][..]), ("peek", &["estimateAbilityToConsume"])];
    let common = [("clear", &["reset"][..])];
    let reserved = [("reserve", &["until_ready", "Wait"][..]), ("refund", &["restore"])];
    let waiting = [("acquire", &["until_ready", "until_key_ready", "Wait"][..])];
    for (file, methods) in [
        ("src/limiter.rs", &keyed[..]),
        ("src/direct.rs", &direct),
        ("src/direct.rs", &common),
        ("src/joint.rs", &keyed),
        ("src/joint.rs", &common),
        ("src/reservation/of_limiters.rs", &reserved),
        ("crates/tollgate-wait/src/waiting.rs", &waiting),
    ] {
        let source = text_of(file);
        let lines: Vec<&str> = source.lines().collect();
        for (method, aliases) in methods {
            let aliases: Vec<String> = aliases.iter().map(|alias| format!("alias = \"{alias}\"")).collect();
            let attribute = format!("    #[doc({})]", aliases.join(", "));
            let starts = [
                format!("    pub fn {method}("),
                format!("    pub fn {method}<"),
                format!("    pub const fn {method}<"),
            ];
            let declared = |line: &str| starts.iter().any(|start| line.starts_with(start));
            let places: Vec<usize> = (0..lines.len()).filter(|place| declared(lines[*place])).collect();
            assert!(!places.is_empty(), "{file}: {method}");
            for place in places {
                assert_eq!(lines[place - 1], attribute, "{file}:{}", place + 1);
            }
        }
    }
}

/// What newcomers look for on the front page.
#[test]
fn the_front_page_leads_to_each_crate_to_waiting_and_to_the_limitations() {
    let page = text_of("src/lib.rs");
    let crates = ["tower", "actix", "http", "serve", "wait", "observe", "redis", "policy"];
    let table = between(&page, "//! | crate | for |", "//! # What");
    for name in crates {
        let row = format!("//! | [`tollgate-{name}`](https://docs.rs/tollgate-{name}) |");
        assert!(table.iter().any(|line| line.starts_with(&row)), "{row}");
    }
    assert!(page.contains("//! | wait for a permit |"));
    assert!(page.contains("//! ## Own networks and `/health` pass"));
    assert!(page.contains("[limitations](design::limitations)"));
}
