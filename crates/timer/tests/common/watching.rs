//! What tests of threads share: watches of deadlines, handlers that report faults, states of threads.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};
use hourglass_sys::sched;
use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, DeadlineHandler, DeadlineWatch, Fault, FaultAction, FaultVerdict, Scheduling,
    WatchSettings, deadline_handler,
};

pub(crate) use super::now;

pub(crate) const SOON: Span = Span::from_millis(2);
pub(crate) const FAR: Span = Span::from_secs(3_600);
/// Surely enough for a thread of a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn watch(strength: FaultAction) -> DeadlineWatch {
    DeadlineWatch::new(WatchSettings::with_strength(strength)).unwrap()
}

pub(crate) fn handled<A: Send + 'static>(
    watch: &DeadlineWatch,
    argument: A,
    entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
) -> DeadlineHandler {
    deadline_handler(&watch.thread(), Attributes::DEFAULT, entry, argument).unwrap()
}

/// A handler that answers with `verdict`, and the faults that it was called with.
pub(crate) fn answering(
    watch: &DeadlineWatch,
    verdict: FaultVerdict,
) -> (DeadlineHandler, mpsc::Receiver<Fault>) {
    let (sender, faults) = mpsc::channel();
    let handler = handled(watch, sender, move |fault, sender| {
        sender.send(*fault).unwrap();
        verdict
    });
    (handler, faults)
}

/// In a thread of its own, which is watched.
pub(crate) fn watched(strength: FaultAction, test: impl FnOnce(&mut DeadlineWatch) + Send) {
    in_a_thread(|| test(&mut watch(strength)));
}

/// Works until this many deadlines have been passed, those before included.
pub(crate) fn work_until_late(watch: &DeadlineWatch, faults: u64) {
    let begun = now();
    while watch.faults() < faults {
        assert!(now() - begun < 20_000_000_000, "no fault came");
    }
}

pub(crate) fn in_a_thread<R: Send>(test: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(test).join().unwrap())
}

pub(crate) fn wait_until_asleep(id: u32) {
    let path = format!("/proc/self/task/{id}/stat");
    let begun = now();
    loop {
        let stat = std::fs::read_to_string(&path).unwrap();
        // Its name may hold anything but is in parentheses.
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        if state == Some("S") {
            return;
        }
        assert!(now() - begun < 20_000_000_000, "thread {id} does not sleep: {stat}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Puts the calling thread into `SCHED_DEADLINE`; `None`, with a counted skip, where that is refused.
pub(crate) fn enter_deadline_class() -> Option<Scheduling> {
    let own = Scheduling::Deadline {
        runtime_ns: 2_000_000,
        deadline_ns: 50_000_000,
        period_ns: 50_000_000,
        reclaim: false,
        overrun_signal: false,
    };
    if sched::set(own).is_ok() {
        return Some(own);
    }
    let reason = "no SCHED_DEADLINE here (CAP_SYS_NICE, and all CPUs of a root domain)";
    skip(Requirement::DEADLINE_CLASS, reason);
    None
}
