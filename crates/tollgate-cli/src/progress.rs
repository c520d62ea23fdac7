//! A progress bar on standard error, for long input at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Input shorter than this is read before a bar could be looked at.
const LONG: u64 = 16 << 20;

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
        Some(_) => "reading {wide_bar} {bytes}/{total_bytes}, {eta} left",
        None => "reading {spinner} {bytes}, {bytes_per_sec}",
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
