//! What is seen of a latency test while it runs: warnings before it, status lines on a terminal, the
//! state when SIGUSR1 asks for it.

use std::io::{self, IsTerminal, Write};

use console::Term;
use hourglass_documents::document::{Premise, Warning};
use hourglass_documents::premise::is_fatal;
use hourglass_report::text::{CyclicThread, CyclicUnit, cyclic_status};
use hourglass_time::Span;

use super::parse::View;
use crate::lab::{ExperimentObserver, LiveThreads};
use crate::messages;
use crate::progress::without_ticks;

/// Follows the run on stderr.
#[derive(Debug)]
pub(super) struct Status {
    view: View,
    quiet: bool,
    live: bool,
    live_threads: Option<LiveThreads>,
    drawn: usize,
    highest_ns: u64,
    warned: Vec<Warning>,
}

impl Status {
    pub(super) fn new(view: &View, quiet: bool, json: bool) -> Status {
        Status {
            view: view.clone(),
            quiet,
            live: !quiet && !json && io::stderr().is_terminal(),
            live_threads: None,
            drawn: 0,
            highest_ns: 0,
            warned: Vec::new(),
        }
    }

    /// Warnings that only the run could tell.
    pub(super) fn warn_rest(&self, warnings: &[Warning]) {
        warnings
            .iter()
            .filter(|w| !self.warned.contains(w) && self.concerns(w))
            .for_each(messages::warn);
    }

    /// Dropped single samples are no concern where no option requested single samples.
    fn concerns(&self, warning: &Warning) -> bool {
        warning.id != "records-dropped" || self.view.samples
    }

    fn lines(&self) -> Vec<String> {
        let glances = self.live_threads.iter().flat_map(LiveThreads::read);
        let unit = unit(&self.view);
        (0u32..)
            .zip(glances)
            .zip(&self.view.threads)
            .map(|((id, glance), (priority, interval_us))| {
                let thread = CyclicThread {
                    id,
                    tid: glance.tid,
                    priority: real_time_priority(glance.tid).unwrap_or(*priority),
                    interval_us: *interval_us,
                    count: glance.count,
                    min_ns: glance.min_ns,
                    last_ns: glance.last_ns,
                    mean_ns: glance.total_ns.checked_div(glance.count).unwrap_or(0),
                    max_ns: glance.max_ns,
                };
                let lost = match glance.lost {
                    0 => String::new(),
                    lost => format!(" Lost: {lost}"),
                };
                format!("{}{lost}", cyclic_status(&thread, unit))
            })
            .collect()
    }

    /// Draws over what was drawn before. A closed stderr is ignored.
    fn draw(&mut self) {
        let term = Term::stderr();
        let lines = self.lines();
        let _ = term.clear_last_lines(self.drawn);
        self.drawn = rows(&lines, usize::from(term.size().1));
        let _ = term.write_line(&lines.join("\n"));
    }
}

/// The priority that a thread of this process has, which a machine may have refused (--best-effort); 0 without.
fn real_time_priority(tid: u32) -> Option<u8> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    // The name may have blanks and brackets; behind it, the first word is the third of proc_pid_stat(5), and this the 40th.
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(37)?.parse().ok()
}

/// Rows that `lines` take on a terminal of `width` columns, which wraps the longer ones.
fn rows(lines: &[String], width: usize) -> usize {
    lines.iter().map(|line| line.chars().count().div_ceil(width.max(1)).max(1)).sum()
}

/// The unit of the output.
pub(super) fn unit(view: &View) -> CyclicUnit {
    if view.nanos { CyclicUnit::Nanos } else { CyclicUnit::Micros }
}

impl ExperimentObserver for Status {
    fn warn(&mut self, warnings: &[Warning]) {
        let new = |warning: &&Warning| !self.warned.contains(warning);
        let new: Vec<Warning> = warnings.iter().filter(new).cloned().collect();
        let now = |warning: &&Warning| !self.quiet || is_fatal(warning);
        new.iter().filter(now).for_each(messages::warn);
        self.warned.extend(new);
    }

    fn live_threads(&mut self, live_threads: &LiveThreads) {
        self.live_threads = Some(live_threads.clone());
    }

    fn started(&mut self, duration: Span, ticking: bool) {
        self.live &= ticking;
        if !ticking && !self.quiet && io::stderr().is_terminal() {
            let line = without_ticks(duration, "");
            messages::say(&format!("{line}; -a or --mainaffinity leave a CPU for status lines"));
        }
    }

    fn tick(&mut self, _elapsed: Span) {
        if !self.live {
            return;
        }
        let highest =
            self.live_threads.iter().flat_map(LiveThreads::read).map(|glance| glance.max_ns).max();
        let highest = highest.unwrap_or(0);
        if !self.view.on_max || highest > self.highest_ns || self.drawn == 0 {
            self.highest_ns = highest;
            self.draw();
        }
    }

    fn status_requested(&mut self, elapsed: Span) {
        let mut text = format!("# after {elapsed}\n");
        for line in self.lines() {
            text.push_str(&line);
            text.push('\n');
        }
        // The terminal that asked may be closed.
        let _ = io::stderr().write_all(text.as_bytes());
        self.drawn = 0;
    }

    fn broke(&mut self, premise: &Premise) {
        let _ = Term::stderr().clear_last_lines(std::mem::take(&mut self.drawn));
        messages::no_verdict(premise, "");
    }

    fn ended(&mut self) {
        if self.drawn > 0 {
            // The same lines follow on stdout, with the last numbers.
            let _ = Term::stderr().clear_last_lines(self.drawn);
            self.drawn = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_shown_is_that_in_force() {
        assert_eq!(real_time_priority(std::process::id()), Some(0));
        assert_eq!(real_time_priority(0), None);
    }

    #[test]
    fn a_line_longer_than_the_terminal_takes_more_rows() {
        let lines = ["x".repeat(80), "x".repeat(88), String::new()];
        assert_eq!(rows(&lines, 80), 4);
        assert_eq!(rows(&lines, 120), 3);
        assert_eq!(rows(&lines, 0), 169);
    }
}
