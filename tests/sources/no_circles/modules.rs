//! The tree of modules, and which of them depends on which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::tokens::{Token, tokens_of};

/// A module's place: the names from the root on, which has none.
pub(crate) type Place = Vec<String>;

/// One module depends on another there.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) on: Place,
    /// As `file.rs:12: crate::a::Item`.
    pub(crate) shown: String,
}

/// A path in the source of a module, from the root on.
#[derive(Debug)]
struct Mention {
    path: Place,
    /// What it is called there, if it is a `use`.
    name: Option<String>,
    shown: String,
}

/// The modules of a crate by their places.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    mentions: BTreeMap<Place, Vec<Mention>>,
}

impl Modules {
    /// # Panics
    ///
    /// Panics if the directory has no `main.rs` or `lib.rs`, or a module has no file.
    pub(crate) fn of(directory: &Path) -> Self {
        let root = ["lib.rs", "main.rs"].map(|name| directory.join(name)).into_iter().find(|file| file.exists());
        let root = root.unwrap_or_else(|| panic!("{} has no lib.rs and no main.rs", directory.display()));
        let mut modules = Self::default();
        modules.load(&root, directory, Vec::new());
        modules
    }

    /// Reads a file, and those of the modules that it declares, which are in `directory`.
    fn load(&mut self, file: &Path, directory: &Path, place: Place) {
        let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens = tokens_of(&source);
        let is_mod = |at: usize, end| tokens[at].is("mod") && tokens.get(at + 2).is_some_and(|token| token.is(end));
        let children = (0..tokens.len()).filter(|&at| is_mod(at, ";")).map(|at| tokens[at + 1].text.clone());
        let children: Vec<String> = children.collect();
        let mut reader = Reader { tokens: &tokens, file, place: &place, children: &children, mentions: Vec::new() };
        reader.read();
        self.mentions.insert(place.clone(), reader.mentions);
        for child in &children {
            let within = directory.join(child);
            let candidates: [PathBuf; 2] = [directory.join(format!("{child}.rs")), within.join("mod.rs")];
            let found = candidates.iter().find(|candidate| candidate.exists());
            let found = found.unwrap_or_else(|| panic!("{}: mod {child} has no file", file.display()));
            self.load(found, &within, [place.as_slice(), core::slice::from_ref(child)].concat());
        }
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.mentions.keys()
    }

    /// What a module depends on, each other module once.
    pub(crate) fn dependencies(&self, of: &Place) -> Vec<Dependency> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for mention in &self.mentions[of] {
            let on = self.home(&mention.path, &mut BTreeSet::new());
            if on != *of && seen.insert(on.clone()) {
                all.push(Dependency { on, shown: mention.shown.clone() });
            }
        }
        all
    }

    /// The module that a path leads to: where its name is defined, not where it is passed on.
    fn home(&self, path: &[String], visited: &mut BTreeSet<Place>) -> Place {
        let length = (0..=path.len()).rev().find(|&length| self.mentions.contains_key(&path[..length])).unwrap_or(0);
        let (module, rest) = path.split_at(length);
        let Some((name, more)) = rest.split_first() else { return module.to_vec() };
        let passed_on = self.mentions[module].iter().find(|mention| mention.name.as_ref() == Some(name));
        match passed_on {
            Some(mention) if visited.insert(mention.path.clone()) => {
                self.home(&[mention.path.as_slice(), more].concat(), visited)
            }
            _ => module.to_vec(),
        }
    }
}

/// Finds the paths in one file.
struct Reader<'a> {
    tokens: &'a [Token],
    file: &'a Path,
    place: &'a Place,
    children: &'a [String],
    mentions: Vec<Mention>,
}

impl Reader<'_> {
    fn read(&mut self) {
        // How many modules within the file are open, and at which depth of braces each was.
        let (mut inner, mut depth) = (Vec::new(), 0_usize);
        let mut at = 0;
        while at < self.tokens.len() {
            let token = &self.tokens[at];
            let next_is = |ahead: usize, text| self.tokens.get(at + ahead).is_some_and(|token| token.is(text));
            // `use<'a>` says which lifetimes a type captures.
            if token.is("use") && !next_is(1, "<") {
                at = self.read_use(at + 1, &[], inner.len());
                continue;
            }
            // `pub(in path)` says where an item is seen.
            if token.is("in") && at > 1 && self.tokens[at - 1].is("(") && self.tokens[at - 2].is("pub") {
                at += self.tokens[at..].iter().position(|token| token.is(")")).unwrap_or(1);
                continue;
            }
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if inner.last() == Some(&depth) {
                        inner.pop();
                    }
                }
                "mod" if next_is(2, "{") => inner.push(depth),
                _ => {}
            }
            if token.is_word() && next_is(1, "::") && (at == 0 || !self.tokens[at - 1].is("::")) {
                let mut names = vec![token.text.clone()];
                while self.tokens.get(at + 1).is_some_and(|token| token.is("::"))
                    && self.tokens.get(at + 2).is_some_and(Token::is_word)
                {
                    names.push(self.tokens[at + 2].text.clone());
                    at += 2;
                }
                self.add(&names, None, token.line, inner.len());
            }
            at += 1;
        }
    }

    /// Reads one branch of a `use`, which begins there, and tells where it ends.
    fn read_use(&mut self, start: usize, before: &[String], inner: usize) -> usize {
        let mut names = before.to_vec();
        let mut at = start;
        let line = self.tokens[start].line;
        loop {
            let token = &self.tokens[at];
            match token.text.as_str() {
                "::" => at += 1,
                "{" => {
                    at += 1;
                    while !self.tokens[at].is("}") {
                        at = self.read_use(at, &names, inner);
                        at += usize::from(self.tokens[at].is(","));
                    }
                    return at + 1;
                }
                "as" => {
                    let alias = self.tokens[at + 1].text.clone();
                    self.add(&names, Some(alias), line, inner);
                    return at + 2;
                }
                "," | "}" | ";" => {
                    let name = names.last().cloned();
                    self.add(&names, name, line, inner);
                    return at;
                }
                // `a::{self}` is `a`.
                "self" if !names.is_empty() => at += 1,
                _ => {
                    names.push(token.text.clone());
                    at += 1;
                }
            }
        }
    }

    /// Adds a path that begins in this crate, seen from so many modules within the file.
    fn add(&mut self, names: &[String], name: Option<String>, line: usize, inner: usize) {
        let mut inner = inner;
        let mut path: Place = match names[0].as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.place.clone(),
            child if self.children.iter().any(|other| other == child) && inner == 0 => self.place.clone(),
            _ => return,
        };
        for name in names {
            match name.as_str() {
                "crate" | "self" => {}
                "super" if inner > 0 => inner -= 1,
                "super" => drop(path.pop()),
                other => path.push(other.to_owned()),
            }
        }
        // What a module within the file is called is no name of the file's own module.
        let name = name.filter(|_| inner == 0);
        let shown = format!("{}:{line}: {}", self.file.display(), names.join("::"));
        self.mentions.push(Mention { path, name, shown });
    }
}
