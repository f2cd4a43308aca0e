//! What a person at the terminal sees while a run or a sweep goes on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{self, IsTerminal};

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
        if self.quiet || !self.on_terminal {
            return;
        }
        if !ticking {
            messages::say(&format!(
                "measuring for {duration}{}; every CPU is being measured, so nothing moves here",
                self.which
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

    fn broke(&mut self, premise: &Premise) {
        let say = || messages::no_verdict(premise, &self.which);
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    fn ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
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
