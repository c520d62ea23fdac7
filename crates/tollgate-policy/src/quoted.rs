//! Texts as TOML has them.

use core::fmt;

/// Displays a text as a basic string of TOML.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                _ if char.is_control() => write!(f, "\\u{:04X}", u32::from(char))?,
                _ => write!(f, "{char}")?,
            }
        }
        f.write_str("\"")
    }
}
