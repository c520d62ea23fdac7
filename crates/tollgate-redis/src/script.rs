//! The script, and the commands that run it.

use core::time::Duration;
use std::time::SystemTime;

use redis::{Cmd, Script};
use tollgate::{AnyClock, Clock as _};

pub(crate) const TEXT: &str = concat!(
    include_str!("script/fast.lua"),
    include_str!("script/head.lua"),
    include_str!("script/log.lua"),
    include_str!("script/account.lua"),
    include_str!("script/steps.lua"),
    include_str!("script/entries.lua"),
    include_str!("script/main.lua")
);

/// The script that looks at the rights of the user.
pub(crate) const RIGHTS: &str = include_str!("script/rights.lua");

/// A script and its digest, by which the server knows it.
#[derive(Clone)]
pub(crate) struct Scripted {
    text: String,
    hash: String,
    /// The time of requests, if it is not the server's.
    clock: Option<AnyClock>,
}

/// How the script reads its clock.
pub(crate) const TIME: &str = "redis.call('TIME')";

/// How it sets the times at which keys expire, and how it does so by another clock: a day after.
const EXPIRIES: [(&str, &str); 2] = [
    ("'PEXPIREAT', key, string.format('%.0f', math.ceil(time / 1000) + 1)", "'PEXPIRE', key, 86400000"),
    ("'PXAT', string.format('%.0f', ends)", "'PX', 86400000"),
];

impl Scripted {
    pub(crate) fn production() -> Self {
        Self::of(TEXT.to_owned())
    }

    /// The script on another clock than the server's: the time is its last argument. Keys expire after
    /// a day by the server's.
    pub(crate) fn on_clock(clock: AnyClock) -> Self {
        let text = TEXT.replace(TIME, "{ 0, ARGV[#ARGV] }");
        let text = EXPIRIES.iter().fold(text, |text, (by_server, by_clock)| text.replace(by_server, by_clock));
        Self { clock: Some(clock), ..Self::of(text) }
    }

    pub(crate) fn of(text: String) -> Self {
        let hash = Script::new(&text).get_hash().to_owned();
        Self { text, hash, clock: None }
    }

    /// The time since 1970 by the clock of the script, or by that of this process.
    pub(crate) fn since_1970(&self) -> Duration {
        match &self.clock {
            Some(clock) => Duration::from_nanos(clock.now()),
            None => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
        }
    }

    /// The command by the digest of the script.
    pub(crate) fn by_hash(&self, keys: &[String], arguments: &[Argument]) -> Cmd {
        self.command("EVALSHA", &self.hash, keys, arguments)
    }

    /// The command with the text, which the server then knows.
    pub(crate) fn by_text(&self, keys: &[String], arguments: &[Argument]) -> Cmd {
        self.command("EVAL", &self.text, keys, arguments)
    }

    fn command(&self, name: &str, script: &str, keys: &[String], arguments: &[Argument]) -> Cmd {
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
        if let Some(clock) = &self.clock {
            command.arg(clock.now() / 1_000);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_on_another_clock_reads_no_other_time() {
        let Scripted { text, .. } = Scripted::on_clock(AnyClock::default());
        for part in [TIME].into_iter().chain(EXPIRIES.map(|(by_server, _)| by_server)) {
            assert_eq!((TEXT.matches(part).count(), text.matches(part).count()), (1, 0), "{part}");
        }
        // No other time of the server's: `PEXPIREAT`, `PXAT` and their like.
        assert!(!text.contains("EXPIREAT") && !text.contains("XAT") && !text.contains("'TIME'"));
    }
}
