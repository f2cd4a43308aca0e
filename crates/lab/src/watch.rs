//! Who hears how a run goes.

use hourglass_model::document::Warning;
use hourglass_time::Span;
use hourglass_workload::LiveThreads;

/// Hears what happens, on the thread that called [`run`](crate::run).
pub trait Watch {
    /// Right before the run: what will spoil its numbers.
    fn warn(&mut self, warnings: &[Warning]);
    /// The run is about to begin. If not `ticking`, every CPU is measured and nothing may wake up
    /// until the end.
    fn started(&mut self, duration: Span, ticking: bool);
    /// So much has passed; about ten times a second, if ticking.
    fn tick(&mut self, elapsed: Span);
    /// Before the run begins: where it can be seen how the threads are doing.
    fn live_threads(&mut self, live_threads: &LiveThreads) {
        let _ = live_threads;
    }
    /// Somebody asked by SIGUSR1 how the run goes, if the specification says that one may.
    fn asked(&mut self, elapsed: Span) {
        let _ = elapsed;
    }
    /// All threads have ended.
    fn ended(&mut self);
}

/// Nobody watches.
impl Watch for () {
    fn warn(&mut self, _warnings: &[Warning]) {}
    fn started(&mut self, _duration: Span, _ticking: bool) {}
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {}
}
