//! What a person at the terminal sees while a run goes on.

use std::io::{self, IsTerminal};

use hourglass_model::document::Warning;
use hourglass_time::Span;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::lab::Watch;
use crate::messages;

/// What the bar looks like; its message is the time that has passed.
const TEMPLATE: &str = "measuring {bar:40} {msg}";

/// Progress moves by tenths of a second.
const STEP_MS: i64 = 100;

/// Follows a run: warnings before it, progress during it.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
    on_terminal: bool,
    duration: Span,
    bar: Option<ProgressBar>,
    warned: Vec<Warning>,
}

impl Progress {
    /// Progress on stderr, if that is a terminal and may be written to.
    pub(crate) fn new(quiet: bool) -> Progress {
        Progress {
            quiet,
            on_terminal: io::stderr().is_terminal(),
            duration: Span::ZERO,
            bar: None,
            warned: Vec::new(),
        }
    }

    /// Whether this warning was given before the run.
    pub(crate) fn has_warned(&self, warning: &Warning) -> bool {
        self.warned.contains(warning)
    }
}

impl Watch for Progress {
    fn warn(&mut self, warnings: &[Warning]) {
        if self.quiet {
            return;
        }
        warnings.iter().for_each(messages::warn);
        self.warned.extend_from_slice(warnings);
    }

    fn started(&mut self, duration: Span, ticking: bool) {
        if self.quiet || !self.on_terminal {
            return;
        }
        self.duration = duration;
        if !ticking {
            messages::say(&format!(
                "measuring for {duration}; every CPU is being measured, so nothing moves here"
            ));
            return;
        }
        // A bar draws only when it is moved: it has no thread of its own that could run on a
        // measured CPU.
        let bar = ProgressBar::with_draw_target(
            Some(steps(duration).max(1)),
            ProgressDrawTarget::stderr(),
        );
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        self.bar = Some(bar);
    }

    fn tick(&mut self, elapsed: Span) {
        if let Some(bar) = &self.bar {
            let passed = steps(elapsed);
            let shown =
                Span::from_millis(passed.try_into().unwrap_or(i64::MAX).saturating_mul(STEP_MS));
            bar.set_message(format!("{shown} of {}", self.duration));
            bar.set_position(passed);
        }
    }

    fn ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn steps(span: Span) -> u64 {
    span.nanos_or_zero() / Span::from_millis(STEP_MS).nanos_or_zero().max(1)
}
