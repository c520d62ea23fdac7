//! The script, and the commands that run it.

use redis::{Cmd, Script};

const TEXT: &str = concat!(
    include_str!("script/fast.lua"),
    include_str!("script/head.lua"),
    include_str!("script/log.lua"),
    include_str!("script/account.lua"),
    include_str!("script/steps.lua"),
    include_str!("script/main.lua")
);

/// A script and its digest, by which the server knows it.
#[derive(Clone)]
pub(crate) struct Scripted {
    text: String,
    hash: String,
}

impl Scripted {
    pub(crate) fn production() -> Self {
        Self::of(TEXT.to_owned())
    }

    fn of(text: String) -> Self {
        let hash = Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// The command by the digest of the script.
    pub(crate) fn by_hash(&self, keys: &[String], arguments: &[Argument]) -> Cmd {
        Self::command("EVALSHA", &self.hash, keys, arguments)
    }

    /// The command with the text, which the server then knows.
    pub(crate) fn by_text(&self, keys: &[String], arguments: &[Argument]) -> Cmd {
        Self::command("EVAL", &self.text, keys, arguments)
    }

    fn command(name: &str, script: &str, keys: &[String], arguments: &[Argument]) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(keys.len());
        for key in keys {
            command.arg(key);
        }
        for argument in arguments {
            match argument {
                Argument::Word(word) => command.arg(*word),
                Argument::Number(number) => command.arg(*number),
            };
        }
        command
    }
}

/// An argument of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    Word(&'static str),
    Number(u64),
}

/// What this crate's own tests use. Nothing here is part of the interface.
pub mod testing {
    use super::{Scripted, TEXT};
    use crate::store::StoreBuilder;

    /// A store whose script reads its time, in microseconds, from a key of the server.
    ///
    /// # Panics
    ///
    /// If the script does not read its clock exactly once.
    pub fn with_time_from(builder: StoreBuilder, key: &str) -> StoreBuilder {
        let (real, other) = ("redis.call('TIME')", format!("{{ 0, redis.call('GET', '{key}') }}"));
        assert!(TEXT.matches(real).count() == 1, "the script reads its clock once");
        builder.script(Scripted::of(TEXT.replace(real, &other)))
    }
}
