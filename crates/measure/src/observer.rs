//! Who hears how a run goes.

use hourglass_documents::document::{Premise, Warning};
use hourglass_documents::premise::is_fatal;
use hourglass_time::Span;
use hourglass_workload::LiveThreads;

/// Hears what happens, on the thread that called [`run`](crate::run).
pub trait ExperimentObserver {
    /// Right before the run: what will spoil its numbers.
    fn warn(&mut self, warnings: &[Warning]);
    /// The run is about to begin. If not `ticking`, every CPU is measured and nothing may wake up
    /// until the end.
    fn started(&mut self, duration: Span, ticking: bool);
    /// `elapsed` of the run has passed; called about ten times a second, if the run ticks.
    fn tick(&mut self, elapsed: Span);
    /// Before the run begins: where it can be seen how the threads are doing.
    fn live_threads(&mut self, live_threads: &LiveThreads) {
        let _ = live_threads;
    }
    /// SIGUSR1 asked for the state of the run; only if the specification allows it.
    fn status_requested(&mut self, elapsed: Span) {
        let _ = elapsed;
    }
    /// Something that the run rests on did not hold; each once, as soon as it is noticed, which may be after the end.
    fn broke(&mut self, premise: &Premise) {
        let _ = premise;
    }
    fn ended(&mut self);
}

impl ExperimentObserver for () {
    fn warn(&mut self, _warnings: &[Warning]) {}
    fn started(&mut self, _duration: Span, _ticking: bool) {}
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {}
}

/// Warns at once of what may end the process before there is a run: later it says nothing.
pub(crate) fn warn_of_the_end(watch: &mut dyn ExperimentObserver, warnings: &[Warning]) {
    let fatal: Vec<Warning> =
        warnings.iter().filter(|warning| is_fatal(warning)).cloned().collect();
    if !fatal.is_empty() {
        watch.warn(&fatal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `prlimit --rttime=200000:200000 hourglass noise -f 10 -c 1 -D2` was killed without a word.
    #[test]
    fn what_kills_the_process_is_said_before_the_run() {
        #[derive(Default)]
        struct WarningRecorder(Vec<String>);
        impl ExperimentObserver for WarningRecorder {
            fn warn(&mut self, warnings: &[Warning]) {
                self.0.extend(warnings.iter().map(|warning| warning.id.clone()));
            }
            fn started(&mut self, _duration: Span, _ticking: bool) {}
            fn tick(&mut self, _elapsed: Span) {}
            fn ended(&mut self) {}
        }
        let warning =
            |id: &str| Warning { id: id.to_owned(), text: String::new(), remedy: String::new() };
        let mut heard = WarningRecorder::default();
        warn_of_the_end(
            &mut heard,
            &[warning("governor"), warning("rt-time-limit"), warning("cpu-time-limit")],
        );
        warn_of_the_end(&mut heard, &[warning("governor")]);
        assert_eq!(heard.0, ["rt-time-limit", "cpu-time-limit"]);
    }
}
