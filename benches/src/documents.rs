//! Puts tables between the marks of a document, and leaves everything else of it alone.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A document of the repository whose tables are written anew.
pub struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// When the file can't be read.
    pub fn open(name: &str) -> Result<Self, Box<dyn Error>> {
        let path = root().join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, text })
    }

    /// Replaces what is between `<!-- begin: NAME -->` and `<!-- end: NAME -->`.
    ///
    /// # Errors
    ///
    /// When the marks are not there, exactly once and in this order.
    pub fn put(&mut self, name: &str, content: &str) -> Result<(), Box<dyn Error>> {
        self.text = replaced(&self.text, name, content)
            .ok_or_else(|| format!("{}: there is no one place called {name}", self.path.display()))?;
        Ok(())
    }

    /// Writes it back.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn save(self) -> Result<(), Box<dyn Error>> {
        std::fs::write(&self.path, self.text).map_err(|error| format!("{}: {error}", self.path.display()).into())
    }
}

fn replaced(text: &str, name: &str, content: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin: {name} -->"), format!("<!-- end: {name} -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    let once = !after.contains(&begin) && !after.contains(&end) && !before.contains(&end);
    once.then(|| format!("{before}{begin}\n{}\n{end}{after}", content.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_the_text_between_the_marks() {
        let text = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n<!-- begin: y -->\n<!-- end: y -->\n";
        let expected = "a\n<!-- begin: x -->\nnew\n<!-- end: x -->\nb\n<!-- begin: y -->\n<!-- end: y -->\n";
        assert_eq!(replaced(text, "x", "new\n").as_deref(), Some(expected));
        assert_eq!(replaced(expected, "x", "new").as_deref(), Some(expected));
        assert_eq!(replaced(text, "z", "new"), None);
        assert_eq!(replaced(&format!("{text}{text}"), "x", "new"), None);
    }
}
