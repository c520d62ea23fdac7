//! A progress bar on standard error, for long input at a terminal.

use core::fmt::Write;
use core::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Input shorter than this is read before a bar could be looked at.
const LONG: u64 = 16 << 20;

/// The time left is told after so long, and when a hundredth is done: before, the first reads say
/// little about those that follow.
const FIRST_ESTIMATE: Duration = Duration::from_secs(2);

/// How far reading is, over all files together, in bytes as they are stored.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Bytes in all; `None` where that is not known (standard input).
    total: Option<u64>,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self { total, done: 0, bar: None }
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        if self.total.unwrap_or(self.done) < LONG {
            return;
        }
        self.bar.get_or_insert_with(|| bar(self.total)).set_position(self.done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Draws nothing where standard error is not a terminal: the draw target sees to that.
fn bar(total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "reading {wide_bar} {bytes}/{total_bytes}{left}",
        None => "reading {spinner} {bytes}, {bytes_per_sec}",
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("left", write_left)),
        Err(_) => bar,
    }
}

fn write_left(state: &ProgressState, out: &mut dyn Write) {
    if let Some(left) = left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
        // What can't be drawn is left out.
        let _ = write!(out, ", {left} left", left = HumanDuration(left));
    }
}

/// The time left at the rate so far, in whole seconds; `None` while that says little.
fn left(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    if elapsed < FIRST_ESTIMATE || done < total / 100 {
        return None;
    }
    let rest = u128::from(total.saturating_sub(done));
    let millis = elapsed.as_millis().checked_mul(rest)?.checked_div(u128::from(done))?;
    Some(Duration::from_secs(u64::try_from(millis.div_ceil(1000)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_once_it_can_be_estimated() {
        let seconds = Duration::from_secs;
        assert_eq!(left(Duration::from_millis(1), 1 << 16, 1 << 30), None, "an hour, of eight seconds");
        assert_eq!(left(Duration::from_millis(1999), 1 << 28, 1 << 30), None);
        assert_eq!(left(seconds(2), 1 << 28, 1 << 30), Some(seconds(6)));
        assert_eq!(left(seconds(7), 7 << 27, 1 << 30), Some(seconds(1)));
        assert_eq!(left(seconds(8), 1 << 30, 1 << 30), Some(seconds(0)));
        // A slow start of a long log.
        assert_eq!(left(seconds(3), (1 << 30) / 101, 1 << 30), None);
        assert_eq!(left(seconds(6), 1 << 30, 100 << 30), Some(seconds(594)));
        assert_eq!(left(seconds(2), 0, 0), None, "nothing is done of what is not known");
        assert_eq!(left(Duration::MAX, 1, 2), None, "beyond what can be counted");
    }
}
