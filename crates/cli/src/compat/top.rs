//! `--top`: a picture of the run on the terminal while it goes on.
//!
//! Owns: whether it may be drawn, from where, and how often. Must not: draw from a measured CPU unless the user puts the
//! main thread there.

use std::io::{self, IsTerminal};

use console::Term;
use hourglass_documents::CpuSet;
use hourglass_documents::document::{Premise, Warning};
use hourglass_report::text;
use hourglass_time::Span;

use super::HostCpus;
use crate::exit::Stop;
use crate::lab::{
    self, ExperimentObserver, Finished, LiveThreads, LiveView, RunFailure, RunOptions, RunSpec,
};
use crate::settings::Settings;

/// How often it is drawn from a measured CPU.
const SELDOM: Span = Span::from_secs(1);

/// Whether a run can be shown while it goes on. `elsewhere`: what leaves a CPU to draw from.
///
/// # Errors
/// `--top` with what excludes it, or every CPU is measured.
pub(super) fn check(
    spec: &RunSpec,
    settings: &Settings,
    machine: &HostCpus,
    elsewhere: &str,
) -> Result<(), Stop> {
    if settings.quiet {
        return Err(Stop::usage("--top: with -q nothing is shown; leave one of them out"));
    }
    if spec.watch_on.is_none() && unmeasured(spec, machine).is_empty() {
        return Err(Stop::usage(format!(
            "--top: every CPU is measured, and a picture drawn from one would be in the numbers; {elsewhere}"
        )));
    }
    Ok(())
}

/// Checks that there is a terminal to draw on.
///
/// # Errors
/// stderr is no terminal.
pub(super) fn check_terminal() -> Result<(), Stop> {
    if io::stderr().is_terminal() {
        return Ok(());
    }
    Err(Stop::usage(
        "--top: stderr is no terminal; leave it out (kill -USR1 prints the state of latency, --json the result)",
    ))
}

/// Runs, with a picture if it `is_shown`. `command` has threads that count wake-ups, or else gaps.
///
/// # Errors
/// As of [`lab::run`].
pub(super) fn run(
    command: &str,
    wake_ups: bool,
    request: RunOptions,
    is_shown: bool,
    observer: &mut dyn ExperimentObserver,
) -> Result<Finished, RunFailure> {
    if !is_shown {
        return lab::run(request, observer);
    }
    let spec = request.spec.clone();
    let machine = HostCpus::for_this_machine();
    lab::run(request, &mut TopView::new(command, wake_ups, &spec, machine, observer))
}

fn measured(spec: &RunSpec, machine: &HostCpus) -> CpuSet {
    let of = |cpus: &Option<CpuSet>| cpus.clone().unwrap_or_else(|| machine.cpus.clone());
    spec.threads.iter().flat_map(|thread| of(&thread.cpus).iter().collect::<Vec<u32>>()).collect()
}

/// As the engine finds it: CPUs with which this program was started and that no thread uses.
fn unmeasured(spec: &RunSpec, machine: &HostCpus) -> CpuSet {
    machine.cpus.difference(&measured(spec, machine))
}

/// Draws a run, and passes all other events on to another view.
struct TopView<'a> {
    rest: &'a mut dyn ExperimentObserver,
    view: LiveView,
    terminal: Term,
    title: String,
    every: Span,
    due: Span,
    drawn: usize,
}

impl TopView<'_> {
    /// Of a run of `command`, whose threads count wake-ups or else gaps.
    fn new<'a>(
        command: &str,
        wake_ups: bool,
        spec: &RunSpec,
        machine: &HostCpus,
        rest: &'a mut dyn ExperimentObserver,
    ) -> TopView<'a> {
        let measured = measured(spec, machine);
        let from = spec.watch_on.clone().unwrap_or_else(|| unmeasured(spec, machine));
        let alone = from.difference(&measured) == from;
        let (every, where_from) = match alone {
            true => (Span::ZERO, format!("drawn from CPU {from}")),
            false => {
                (SELDOM, format!("drawn from CPU {from}, which is measured too: once a second"))
            }
        };
        TopView {
            rest,
            view: LiveView::of(wake_ups),
            terminal: Term::stderr(),
            title: format!("{command}, CPU {measured} ({where_from})"),
            every,
            due: Span::ZERO,
            drawn: 0,
        }
    }

    /// Draws over what was drawn before. A closed stderr is ignored.
    fn draw(&mut self, elapsed: Span) {
        let report = self.view.sample(elapsed);
        let (rows, columns) = self.terminal.size();
        let picture = text::top(&report, &self.title, columns, rows.saturating_sub(1));
        self.clear();
        self.drawn = picture.lines().count();
        let _ = self.terminal.write_str(&picture);
    }

    fn clear(&mut self) {
        let _ = self.terminal.clear_last_lines(std::mem::take(&mut self.drawn));
    }
}

impl ExperimentObserver for TopView<'_> {
    fn warn(&mut self, warnings: &[Warning]) {
        self.rest.warn(warnings);
    }

    fn live_threads(&mut self, live_threads: &LiveThreads) {
        self.view.know(live_threads);
        self.rest.live_threads(live_threads);
    }

    /// Progress is in the picture.
    fn started(&mut self, _duration: Span, _ticking: bool) {}

    fn tick(&mut self, elapsed: Span) {
        if elapsed >= self.due {
            self.due = elapsed.saturating_add(self.every);
            self.draw(elapsed);
        }
    }

    fn broke(&mut self, premise: &Premise) {
        self.clear();
        self.rest.broke(premise);
    }

    fn status_requested(&mut self, elapsed: Span) {
        self.clear();
        self.rest.status_requested(elapsed);
    }

    fn ended(&mut self) {
        self.clear();
        self.rest.ended();
    }
}
