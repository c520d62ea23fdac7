//! The words and signs of Rust source, without comments, texts and tests.

/// A word or a sign, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|char: char| char.is_alphabetic() || char == '_')
    }
}

/// The tokens of a source file that are compiled outside of tests.
pub(crate) fn tokens_of(source: &str) -> Vec<Token> {
    without_tests(all_tokens(source))
}

fn all_tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let rest = &chars[at..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().position(|char| *char == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => quoted(rest),
            ['\'', ..] => character_or_lifetime(rest),
            [first, ..] if first.is_alphanumeric() || *first == '_' => {
                let length = word(rest);
                raw_text(rest, length).unwrap_or_else(|| {
                    tokens.push(Token { text: rest[..length].iter().collect(), line });
                    length
                })
            }
            [':', ':', ..] => {
                tokens.push(Token { text: "::".to_owned(), line });
                2
            }
            [first, ..] if first.is_whitespace() => 1,
            _ => {
                tokens.push(Token { text: rest[0].to_string(), line });
                1
            }
        };
        line += rest[..length].iter().filter(|char| **char == '\n').count();
        at += length;
    }
    tokens
}

fn word(rest: &[char]) -> usize {
    rest.iter().position(|char| !char.is_alphanumeric() && *char != '_').unwrap_or(rest.len())
}

/// Comments nest.
fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn character_or_lifetime(rest: &[char]) -> usize {
    match rest {
        [_, '\\', _, more @ ..] => 3 + more.iter().position(|char| *char == '\'').map_or(more.len(), |end| end + 1),
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

/// The length of a raw text that begins with a word of that length, such as `r#"..."#`, or of a
/// word such as `r#type`.
fn raw_text(rest: &[char], length: usize) -> Option<usize> {
    let prefix: String = rest[..length].iter().collect();
    if !matches!(prefix.as_str(), "r" | "br" | "cr") {
        return None;
    }
    let hashes = rest[length..].iter().take_while(|char| **char == '#').count();
    if rest.get(length + hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = core::iter::once('"').chain(core::iter::repeat_n('#', hashes)).collect();
    let body = &rest[length + hashes + 1..];
    let found = body.windows(end.len()).position(|window| window == end.as_slice());
    Some(found.map_or(rest.len(), |found| length + hashes + 1 + found + end.len()))
}

/// Leaves out each item under a `#[cfg(test)]`, or under a `cfg` that needs `test` among others.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let end = attribute_end(&tokens, at);
        match end {
            Some(end) if is_for_tests(&tokens[at..end]) => at = item_end(&tokens, end),
            Some(end) => {
                kept.extend_from_slice(&tokens[at..end]);
                at = end;
            }
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// Where the attribute ends that begins there.
fn attribute_end(tokens: &[Token], at: usize) -> Option<usize> {
    (tokens[at].is("#") && tokens.get(at + 1)?.is("[")).then(|| closed(tokens, at + 1))
}

/// Behind the bracket that closes the one at that place.
fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let (mut words, mut at) = (Vec::new(), 0);
    while at < attribute.len() {
        // What is inside `not(...)` does not ask for tests.
        if attribute[at].is("not") {
            at = closed(attribute, at + 1);
            continue;
        }
        if attribute[at].is_word() {
            words.push(attribute[at].text.as_str());
        }
        at += 1;
    }
    matches!(words.as_slice(), ["cfg", "test"] | ["cfg", "all", ..] if words.contains(&"test"))
}

/// Behind the item that begins there: its body, or its semicolon.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            // The braces of a `use` are followed by a semicolon, those of a body are the end.
            "{" if tokens[at - 1].is("::") => at = closed(tokens, at),
            "{" => return closed(tokens, at),
            "(" | "[" => at = closed(tokens, at),
            ";" => return at + 1,
            _ => at += 1,
        }
    }
    at
}
