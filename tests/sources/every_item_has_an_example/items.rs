//! The public items of source files, and the examples in their documentation.
//!
//! Sources are read line by line, as rustfmt leaves them: a block ends with a brace in the column
//! in which its first line begins. `pub` means public, because the lint `unreachable_pub` is
//! denied.

/// A public item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The type or trait that it is a member of; empty for other items.
    pub(crate) of: String,
    pub(crate) name: String,
    /// The line of its declaration, counted from 1.
    pub(crate) line: usize,
    /// The lines of its examples that a reader sees.
    pub(crate) example: String,
}

impl Item {
    /// `Type::method`, or the name alone.
    pub(crate) fn path(&self) -> String {
        if self.of.is_empty() { self.name.clone() } else { format!("{}::{}", self.of, self.name) }
    }

    /// Whether the example of its type uses this member, or implements it.
    pub(crate) fn is_shown_in(&self, example: &str) -> bool {
        let Self { of, name, .. } = self;
        let forms = [format!(".{name}("), format!(".{name}::<"), format!("{of}::{name}"), format!("fn {name}(")];
        forms.iter().any(|form| example.contains(form))
    }
}

/// What the lines of a block belong to.
enum Block {
    /// A module or the implementation of a trait.
    Other,
    /// The methods of a type.
    Inherent(String),
    Trait(String),
    /// Tests, and traits that are sealed.
    Hidden,
}

/// The documentation and the attributes in front of an item.
#[derive(Default)]
struct Before {
    docs: Vec<String>,
    is_hidden: bool,
    is_test: bool,
}

/// The public items of a source file.
pub(crate) fn items_of(source: &str) -> Vec<Item> {
    let lines: Vec<&str> = source.lines().collect();
    let (mut items, mut blocks, mut before) = (Vec::new(), Vec::<(usize, Block)>::new(), Before::default());
    let mut at = 0;
    while at < lines.len() {
        let (start, text) = (at, lines[at].trim_start());
        let indent = lines[at].len() - text.len();
        at += 1;
        if let Some(doc) = text.strip_prefix("///") {
            before.docs.push(doc.to_owned());
            continue;
        }
        if text.starts_with("//") {
            continue;
        }
        if text.starts_with("#[") {
            at = end_of_attribute(&lines, start) + 1;
            let attribute = lines[start..at].concat();
            before.is_hidden |= attribute.contains("doc(hidden)");
            before.is_test |= attribute.contains("cfg(") && attribute.contains("test");
            continue;
        }
        let Before { docs, is_hidden, is_test } = std::mem::take(&mut before);
        if text.starts_with('}') && blocks.last().is_some_and(|(own, _)| *own == indent) {
            blocks.pop();
            continue;
        }
        let within = blocks.last().map_or(&Block::Other, |(_, block)| block);
        if matches!(within, Block::Hidden) {
            continue;
        }
        if let Some((kind, name)) = declared(text, within) {
            let of = match within {
                Block::Inherent(of) | Block::Trait(of) => of.clone(),
                Block::Other | Block::Hidden => String::new(),
            };
            if !is_hidden && !is_test && kind != "mod" {
                items.push(Item { of, name: name.clone(), line: start + 1, example: example_in(&docs) });
            }
            if !matches!(kind, "mod" | "trait") {
                continue;
            }
        }
        if let Some(block) = block_that_begins(&lines, start, is_test) {
            blocks.push((indent, block));
        }
    }
    items
}

fn end_of_attribute(lines: &[&str], start: usize) -> usize {
    let ends = |line: &&str| line.trim_end().ends_with(']');
    start + lines[start..].iter().position(ends).unwrap_or(0)
}

/// The kind and the name of the public item that this line declares.
fn declared<'a>(text: &'a str, within: &Block) -> Option<(&'a str, String)> {
    let rest = match text.strip_prefix("pub ") {
        Some(rest) => rest,
        None if matches!(within, Block::Trait(_)) => text,
        None => return None,
    };
    let mut words = rest.split_whitespace().peekable();
    let mut kind = words.next()?;
    while ["async", "unsafe", "const"].contains(&kind)
        && words.peek().is_some_and(|next| ["async", "unsafe", "fn"].contains(next))
    {
        kind = words.next()?;
    }
    let kinds = ["const", "enum", "fn", "macro", "mod", "static", "struct", "trait", "type", "union"];
    if !kinds.contains(&kind) {
        return None;
    }
    let end = |char: char| !char.is_alphanumeric() && char != '_';
    let name = words.next()?.split(end).next()?;
    Some((kind, name.to_owned()))
}

/// The block of declarations that begins with this line.
fn block_that_begins(lines: &[&str], start: usize, is_test: bool) -> Option<Block> {
    let text = lines[start].trim_start();
    let after = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|before| text.strip_prefix(before));
    let text = after.unwrap_or(text);
    let first = text.split([' ', '<']).next().unwrap_or_default();
    if !["impl", "mod", "trait"].contains(&first) {
        return None;
    }
    let end = start + lines[start..].iter().position(|line| line.contains(['{', ';']))?;
    if !lines[end].trim_end().ends_with('{') {
        return None;
    }
    let header = format!("{} {}", text, lines[start + 1..=end].iter().map(|line| line.trim()).collect::<String>());
    let name_after = |text: &str| text.trim_start().split([' ', '<', ':', '{']).next().unwrap_or_default().to_owned();
    Some(match first {
        _ if is_test => Block::Hidden,
        "mod" if name_after(&header[3..]) == "sealed" => Block::Hidden,
        "mod" => Block::Other,
        "trait" if after.is_none() || lines[start].trim_start().starts_with("pub(") => Block::Hidden,
        "trait" => Block::Trait(name_after(&header[5..])),
        _ => {
            let implemented = after_generics(&header[4..]);
            let end = implemented.find(" where ").unwrap_or(implemented.len());
            if implemented[..end].contains(" for ") { Block::Other } else { Block::Inherent(name_after(implemented)) }
        }
    })
}

/// The rest of a text that may begin with generics in angle brackets.
fn after_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let (mut depth, mut last) = (0, ' ');
    for (at, char) in text.char_indices() {
        match char {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        last = char;
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    text
}

/// The lines of code that rustdoc compiles and shows.
fn example_in(docs: &[String]) -> String {
    let (mut example, mut in_code, mut in_example) = (String::new(), false, false);
    for line in docs {
        let line = line.trim();
        if let Some(kind) = line.strip_prefix("```") {
            in_code = !in_code;
            in_example = in_code && kind.split(',').all(is_of_an_example);
        } else if in_example && line != "#" && !line.starts_with("# ") {
            example += line;
            example.push('\n');
        }
    }
    example
}

/// Whether a block of code of this kind shows how something is used.
fn is_of_an_example(kind: &str) -> bool {
    ["", "rust", "no_run", "should_panic"].contains(&kind.trim())
}
