//! What a person at the terminal sees while a run or a sweep goes on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{SystemTime, UNIX_EPOCH};

use hourglass_documents::document::{Premise, Warning};
use hourglass_documents::live::ReserveMoment;
use hourglass_documents::premise::is_fatal;
use hourglass_report::text;
use hourglass_time::Span;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::lab::compare::rounds::{RoundsRequest, RoundsWatch, Side};
use crate::lab::{ExperimentObserver, shows_lines, sweep};
use crate::messages;

/// What the bar looks like; its message is the duration of the run.
const TEMPLATE: &str = "measuring {bar:40} {passed} of {msg}";

/// Progress moves by tenths of a second.
const STEP_MS: i64 = 100;

/// How the names of warnings begin that may keep a user from starting the run: threads that
/// starve the machine, or are throttled.
const GRAVE: &str = "rt-";

/// Follows a run: warnings before it, progress during it.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
    /// The summary, which repeats the warnings, will be printed.
    summary_follows: bool,
    on_terminal: bool,
    bar: Option<ProgressBar>,
    warned: Vec<Warning>,
    /// Which run of several this is.
    which: String,
    duration: Option<Span>,
    /// A line says that nothing moves until the end.
    is_still: bool,
}

impl Progress {
    /// Progress on stderr, if that is a terminal and may be written to.
    pub(crate) fn new(quiet: bool, summary_follows: bool) -> Progress {
        Progress {
            quiet,
            summary_follows,
            on_terminal: io::stderr().is_terminal(),
            bar: None,
            warned: Vec::new(),
            which: String::new(),
            duration: None,
            is_still: false,
        }
    }

    fn say(&self, line: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(line),
            None => line(),
        }
    }

    /// Whether this warning was given before the run.
    pub(crate) fn has_warned(&self, warning: &Warning) -> bool {
        self.warned.contains(warning)
    }
}

impl ExperimentObserver for Progress {
    fn warn(&mut self, warnings: &[Warning]) {
        let new = |warning: &&Warning| !self.warned.contains(warning);
        let new: Vec<Warning> = warnings.iter().filter(new).cloned().collect();
        let now = |warning: &&Warning| match self.quiet {
            true => is_fatal(warning),
            false => !self.summary_follows || warning.id.starts_with(GRAVE) || is_fatal(warning),
        };
        new.iter().filter(now).for_each(messages::warn);
        self.warned.extend(new);
    }

    fn started(&mut self, duration: Span, ticking: bool) {
        self.duration = Some(duration);
        if self.quiet || !self.on_terminal {
            return;
        }
        if !ticking {
            messages::say(&without_ticks(duration, &self.which));
            self.is_still = true;
            return;
        }
        // A bar draws only when it is moved: it has no thread of its own that could run on a
        // measured CPU.
        let bar = ProgressBar::with_draw_target(
            Some(steps(duration).max(1)),
            ProgressDrawTarget::stderr(),
        );
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.with_key(
                "passed",
                |state: &ProgressState, out: &mut dyn Write| {
                    // Text into a line of the bar does not fail.
                    let _ = write!(out, "{}", time_of(state.pos()));
                },
            ));
        }
        bar.set_message(format!("{duration}{}", self.which));
        self.bar = Some(bar);
    }

    fn tick(&mut self, elapsed: Span) {
        if let Some(bar) = &self.bar {
            bar.set_position(steps(elapsed));
        }
    }

    /// Also where it is to be quiet: somebody wants to know.
    fn status_requested(&mut self, elapsed: Span) {
        let of = self.duration.map_or_else(String::new, |duration| format!(" of {duration}"));
        let passed = time_of(steps(elapsed));
        self.say(|| messages::say(&format!("measuring: {passed}{of}{}", self.which)));
    }

    fn broke(&mut self, premise: &Premise) {
        self.say(|| messages::no_verdict(premise, &self.which));
    }

    fn ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if std::mem::take(&mut self.is_still) && self.which.is_empty() {
            messages::say("measured; now the records are evaluated");
        }
    }
}

/// Follows rounds of runs: each warning once, and which run it is.
#[derive(Debug)]
pub(crate) struct RoundsProgress(Progress, BTreeSet<(String, String)>);

impl RoundsProgress {
    /// Progress on stderr, if that is a terminal and may be written to.
    pub(crate) fn new(quiet: bool) -> RoundsProgress {
        RoundsProgress(Progress::new(quiet, false), BTreeSet::new())
    }
}

impl ExperimentObserver for RoundsProgress {
    fn warn(&mut self, warnings: &[Warning]) {
        // The load average of each run is another number, and the same warning.
        let words = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let mut is_new =
            |warning: &&Warning| self.1.insert((warning.id.clone(), words(&warning.text)));
        let new: Vec<Warning> =
            warnings.iter().filter(|warning| is_new(warning)).cloned().collect();
        self.0.warn(&new);
    }

    fn started(&mut self, duration: Span, ticking: bool) {
        self.0.started(duration, ticking);
    }

    fn tick(&mut self, elapsed: Span) {
        self.0.tick(elapsed);
    }

    fn status_requested(&mut self, elapsed: Span) {
        self.0.status_requested(elapsed);
    }

    fn broke(&mut self, premise: &Premise) {
        self.0.broke(premise);
    }

    fn ended(&mut self) {
        self.0.ended();
    }
}

impl RoundsWatch for RoundsProgress {
    fn planned(&mut self, request: &RoundsRequest) {
        if self.0.quiet {
            return;
        }
        if request.a_is_control {
            messages::say(
                "no CPU is left free by --cpu: control (A) and run (B) take turns on the same CPUs",
            );
        }
        messages::say(&format!(
            "{} rounds of two runs in turn: {} of measuring, and the time to begin {} runs; they {}; seed {}",
            request.rounds,
            request.duration(),
            request.rounds.saturating_mul(2),
            request.can_decide(),
            request.rules.seed
        ));
    }

    fn run_of(&mut self, round: u32, rounds: u32, side: Side) {
        let side = side.letter().to_ascii_uppercase();
        self.0.which = format!(", round {round} of {rounds}, {side}");
    }
}

/// What is said before a run that measures every CPU: nothing wakes up on one of them to show progress.
pub(crate) fn without_ticks(duration: Span, which: &str) -> String {
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let end = end_of_day_time(begin.as_secs(), duration);
    let long = match end {
        Some(end) => format!("for {duration}{which}, until {end} UTC"),
        None if duration < ENDLESS => format!("for {duration}{which}"),
        None => format!("until Ctrl-C{which}"),
    };
    format!(
        "measuring {long}; every CPU is being measured, so no progress is drawn: kill -USR1 {} prints it",
        std::process::id()
    )
}

/// The duration of a run that a signal ends: longer than any run, and short enough for every counter.
pub(crate) const ENDLESS: Span = Span::from_secs(10 * 365 * 86_400);

/// The time of day at which something ends that takes less than a day.
fn end_of_day_time(begin_s: u64, duration: Span) -> Option<String> {
    const DAY: u64 = 86_400;
    let takes_s = duration.nanos_or_zero().div_ceil(1_000_000_000);
    let s = begin_s.checked_add(takes_s).filter(|_| takes_s < DAY)? % DAY;
    Some(format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60))
}

fn time_of(steps: u64) -> Span {
    Span::from_millis(i64::try_from(steps).unwrap_or(i64::MAX).saturating_mul(STEP_MS))
}

fn steps(span: Span) -> u64 {
    span.nanos_or_zero() / Span::from_millis(STEP_MS).nanos_or_zero().max(1)
}

/// What the bar of a sweep looks like.
const SETS_TEMPLATE: &str = "judging {bar:40} {pos} of {len} sets, {eta} left";

/// Follows a sweep.
#[derive(Debug)]
pub(crate) struct SetsProgress {
    shown: bool,
    bar: Option<ProgressBar>,
}

impl SetsProgress {
    /// Progress on stderr, if that is a terminal and may be written to.
    pub(crate) fn new(quiet: bool) -> SetsProgress {
        SetsProgress { shown: !quiet && io::stderr().is_terminal(), bar: None }
    }
}

impl sweep::SweepObserver for SetsProgress {
    fn started(&mut self, done: u64, all: u64) {
        if !self.shown || done == all {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(SETS_TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_position(done);
        bar.reset_eta();
        self.bar = Some(bar);
    }

    fn moved(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    fn ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Follows a reservation in a line.
#[derive(Debug)]
pub(crate) struct ReserveProgress(Option<ProgressBar>);

impl ReserveProgress {
    /// On stderr, if that is a terminal and may be written to.
    pub(crate) fn new(quiet: bool) -> ReserveProgress {
        let style = ProgressStyle::with_template("{wide_msg}").ok();
        ReserveProgress(style.filter(|_| !quiet && io::stderr().is_terminal()).map(|style| {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
        }))
    }

    /// Draws it anew; not where the command draws on all of the terminal.
    pub(crate) fn show(&self, moment: &ReserveMoment) {
        if let Some(bar) = self.0.as_ref().filter(|_| shows_lines(io::stderr())) {
            bar.set_message(text::reserve_moment(moment));
        }
    }

    pub(crate) fn ended(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_a_time_of_day() {
        let end = |begin_s, span: &str| end_of_day_time(begin_s, span.parse().unwrap());
        for (begin_s, span, wanted) in [
            (0, "10s", Some("00:00:10")),
            (86_399, "1500ms", Some("00:00:01")),
            (1_575_388_617, "1h", Some("16:56:57")),
            (0, "24h", None),
        ] {
            assert_eq!(end(begin_s, span).as_deref(), wanted, "{begin_s} {span}");
        }
        let line = |span| without_ticks(span, ", round 2 of 6, B");
        assert!(line(Span::from_secs(3)).starts_with("measuring for 3s, round 2 of 6, B, until "));
        assert!(line(Span::MAX).starts_with("measuring until Ctrl-C, round 2 of 6, B; every CPU"));
    }
}
