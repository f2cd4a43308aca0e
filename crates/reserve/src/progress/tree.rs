//! One count over all threads of a process and its descendants.
//!
//! A counter that is inherited (`perf_event_open(2)`) counts what its thread forks from then on as well, threads and
//! processes, also when these have ended. So one for each thread that is there counts everything that comes later.
//!
//! Owns: which threads get a counter. Must not: count a thread twice: a thread that was forked while counters were
//! being opened may be in the count of its parent already, so that it gets no counter of its own.

use crate::backend::members;
use crate::target::Target;

use super::instructions::Counter;

/// While threads are being made, counters are opened anew, so often.
const PASSES: u32 = 8;

#[derive(Debug)]
pub(crate) struct Tree<C>(Vec<C>);

impl<C> Tree<C> {
    /// A counter for each thread of `target`: `open` makes one for a thread, inherited by what it forks if its second
    /// argument says so. `gone` says of a refusal that the thread has ended.
    ///
    /// Where threads are made faster than counters, some of them are not counted: the sum is too low then, never too
    /// high.
    ///
    /// # Errors
    /// The first refusal of another reason, or the last one if no thread is left.
    pub(crate) fn over<E>(
        target: &Target,
        mut open: impl FnMut(u32, bool) -> Result<C, E>,
        gone: impl Fn(&E) -> bool,
    ) -> Result<Tree<C>, E> {
        if let Target::Thread(tid) = target {
            return Ok(Tree(vec![open(*tid, false)?]));
        }
        let mut pass = 0;
        loop {
            pass += 1;
            let threads = members::threads_in(target);
            let mut counters = Vec::with_capacity(threads.len());
            let mut ended = None;
            for tid in &threads {
                match open(*tid, true) {
                    Ok(counter) => counters.push(counter),
                    Err(error) if gone(&error) => ended = Some(error),
                    Err(error) => return Err(error),
                }
            }
            let settled = members::threads_in(target).iter().all(|tid| threads.contains(tid));
            match ended {
                Some(error) if counters.is_empty() => return Err(error),
                _ if settled || pass == PASSES => return Ok(Tree(counters)),
                _ => {}
            }
        }
    }
}

/// Known only as long as all of them are: a sum without one of them would fall.
impl<C: Counter> Counter for Tree<C> {
    fn count(&mut self) -> Option<u64> {
        self.0.iter_mut().try_fold(0u64, |sum, one| Some(sum.saturating_add(one.count()?)))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use hourglass_skip::{Requirement, skip};
    use hourglass_sys::task_clock::TaskClock;

    use super::super::ProgressSource;
    use super::super::instructions::{InstructionProgress, SingleThreadRate};
    use super::*;
    use crate::testing::{Program, soon};

    /// A stand-in where there is no PMU, and as well where there is one: processor time, which the kernel counts and
    /// has inherited in the same way; a nanosecond is an "instruction".
    fn clock(tid: u32, inherited: bool) -> Result<TaskClock, String> {
        TaskClock::open(tid, inherited).map_err(|refused| refused.to_string())
    }

    fn of_process(pid: u32) -> Option<Tree<TaskClock>> {
        let gone = |_: &String| members::state_of(pid).is_none();
        match Tree::over(&Target::Process(pid), clock, gone) {
            Ok(tree) => Some(tree),
            Err(refused) => {
                skip(Requirement::PERF_EVENTS, refused);
                None
            }
        }
    }

    /// The bug: instructions were counted for `--thread` only. Children that come later count, and go on to count when
    /// they have ended; so do those that are there already, once.
    #[test]
    fn members_that_come_and_go_are_counted() {
        let spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let script =
            format!("read word; sh -c '{spin}'; {spin}; read word; sh -c '{spin}'; read word");
        let mut command = Command::new("sh");
        let mut child = Program::spawn(command.args(["-c", &script]).stdin(Stdio::piped()));
        let Some(mut tree) = of_process(child.pid()) else { return };
        assert_eq!(tree.0.len(), 1);
        let mut orders = child.0.stdin.take().unwrap();
        let mut go = || std::io::Write::write_all(&mut orders, b"\n").unwrap();
        let before = tree.count().unwrap();
        go();
        soon("2 ms are counted", || tree.count().unwrap() >= before + 2_000_000);
        // It waits for the next order: all that it made has ended.
        let mut last = 0;
        soon("it waits", || {
            std::thread::sleep(Duration::from_millis(50));
            let now = tree.count().unwrap();
            std::mem::replace(&mut last, now) == now
        });
        // One that is opened later has the past of none, and the future of all.
        let mut late = of_process(child.pid()).unwrap();
        let (old, new) = (tree.count().unwrap(), late.count().unwrap());
        go();
        drop(orders);
        child.0.wait().unwrap();
        let (old, new) = (tree.count().unwrap() - old, late.count().unwrap() - new);
        assert!(old >= 1_000_000 && old.abs_diff(new) <= old / 10, "{old} {new}");
    }

    /// Progress of a command whose work is done by its children, at a known rate of one.
    #[test]
    fn progress_is_that_of_all_members() {
        let script =
            "read word; sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'; read word";
        let mut command = Command::new("sh");
        let mut child = Program::spawn(command.args(["-c", script]).stdin(Stdio::piped()));
        let trees = (of_process(child.pid()), of_process(child.pid()));
        if let (Some(counter), Some(mut time)) = trees {
            let rate = SingleThreadRate::of_windows(&[(1, 1)]);
            let mut source = InstructionProgress::new(counter, move || time.count(), rate, 0);
            source.begin(3_000_000);
            assert!(source.done_ns() < 3_000_000);
            let orders = child.0.stdin.as_mut().unwrap();
            std::io::Write::write_all(orders, b"\n").unwrap();
            soon("it is done", || source.done_ns() >= 3_000_000);
        }
    }

    /// A thread that cannot be counted causes a refusal; an ended thread does not, as long as others exist.
    #[test]
    fn a_refusal_is_handed_on() {
        let target = Target::Process(std::process::id());
        let refused = Tree::<TaskClock>::over(&target, |_, _| Err("no PMU"), |_| false);
        assert_eq!(refused.unwrap_err(), "no PMU");
        let refused = Tree::<TaskClock>::over(&target, |_, _| Err("ended"), |_| true);
        assert_eq!(refused.unwrap_err(), "ended");
        let thread = Target::Thread(hourglass_sys::thread::id());
        let inherited =
            |_: u32, inherited: bool| Ok::<_, String>(move || Some(u64::from(inherited)));
        assert_eq!(Tree::over(&thread, inherited, |_| false).unwrap().count(), Some(0));
        // One that cannot be read makes the sum unknown, and not lower.
        let mut known = [Some(5), None].into_iter();
        let each =
            |_: u32, _: bool| Ok::<_, String>(known.next().map(|count| move || count).unwrap());
        assert_eq!(Tree::over(&thread, each, |_| false).unwrap().count(), Some(5));
    }
}
