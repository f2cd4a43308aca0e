//! How far reserved work is: the word that a program may write, its instructions where the processor counts them, and
//! its processor time, of which only what is proven counts.
//!
//! Owns: which of these there are for a target. Must not: believe any of them further than it goes.

use hourglass_sys::clock::cpu_time::{ProcessTime, ThreadTime};
use hourglass_sys::instructions::{CounterUnavailable, Instructions};
use hourglass_sys::pidfd::PidFd;
use hourglass_sys::task_clock::TaskClock;

use super::super::{CoRunnerSettings, ProgressFrom, SessionFailure};
use crate::backend::members;
use crate::progress::ProgressSource;
use crate::progress::cpu_time::CpuTime;
use crate::progress::idle_aware::IdleAwareProgress;
use crate::progress::instructions::{Counter, InstructionProgress};
use crate::progress::max_progress::MaxProgress;
use crate::progress::page::ProgressPage;
use crate::progress::tree::Tree;
use crate::progress::word_progress::WordProgress;
use crate::target::Target;

/// The counter of a target's instructions; `None` where they are not counted.
pub(in super::super) type InstructionCounter = Option<Tree<Instructions>>;

/// Begins to count the instructions of each target, with all that it forks from now on.
pub(in super::super) fn counters<'a>(
    siblings: &CoRunnerSettings,
    targets: impl Iterator<Item = &'a Target>,
) -> Result<Vec<InstructionCounter>, SessionFailure> {
    let gone = |why: &CounterUnavailable| matches!(why, CounterUnavailable::Gone);
    let counter = |target: &Target| match siblings.progress {
        Some(ProgressFrom::Word | ProgressFrom::CpuTime) => Ok(None),
        None => Ok(Tree::over(target, Instructions::open, gone).ok()),
        Some(ProgressFrom::Instructions) => Tree::over(target, Instructions::open, gone)
            .map(Some)
            .map_err(|why| SessionFailure::Progress(format!("instructions: {why}"))),
    };
    targets.map(counter).collect()
}

/// The source of progress of a target. `page` is the one that its program was started with.
pub(super) fn source(
    target: &Target,
    page: Option<ProgressPage>,
    counted: InstructionCounter,
    siblings: &CoRunnerSettings,
    settle_ns: u64,
) -> Result<IdleAwareProgress<Clock, Wanting>, SessionFailure> {
    let mut sources: Vec<Box<dyn ProgressSource>> = Vec::new();
    if let Some(page) = word_page(target, page, siblings)? {
        sources.push(Box::new(WordProgress::new(page)));
    }
    if let Some(counter) = counted {
        let source = InstructionProgress::new(counter, time_of(target), None, settle_ns);
        sources.push(Box::new(source));
    }
    sources.push(Box::new(CpuTime::new(time_of(target), siblings.alpha, settle_ns)));
    let first = sources.remove(0);
    let all: Box<dyn ProgressSource> =
        if sources.is_empty() { first } else { Box::new(MaxProgress::of(first, sources)) };
    Ok(IdleAwareProgress::new(all, time_of(target), wanting(target)))
}

pub(super) fn until_end(
    source: IdleAwareProgress<Clock, Wanting>,
    target: &Target,
) -> IdleAwareProgress<Clock, Wanting> {
    match PidFd::open(target.id()) {
        Ok(file) => source.until(move || file.has_ended().unwrap_or(false)),
        // It has ended already.
        Err(_) => source.until(|| true),
    }
}

/// The page of the program's word, if it has one that counts.
fn word_page(
    target: &Target,
    page: Option<ProgressPage>,
    siblings: &CoRunnerSettings,
) -> Result<Option<ProgressPage>, SessionFailure> {
    match (siblings.progress, target) {
        (Some(ProgressFrom::Instructions | ProgressFrom::CpuTime), _) => Ok(None),
        (_, _) if page.is_some() => Ok(page),
        // One that tells its progress already.
        (None, Target::Process(pid)) => Ok(ProgressPage::of_process(*pid).ok()),
        (None, Target::Thread(_)) => Ok(None),
        (Some(ProgressFrom::Word), Target::Process(pid)) => {
            let wrong =
                |why| SessionFailure::Progress(format!("word: process {pid} reports none: {why}"));
            ProgressPage::of_process(*pid).map(Some).map_err(wrong)
        }
        (Some(ProgressFrom::Word), Target::Thread(tid)) => Err(SessionFailure::Progress(format!(
            "word: thread {tid} cannot be distinguished from the others of its process; use --pid for the whole process"
        ))),
    }
}

/// Whether any thread of a target runs or waits for a processor.
pub(super) type Wanting = Box<dyn FnMut() -> Option<bool> + Send>;

fn wanting(target: &Target) -> Wanting {
    let target = target.clone();
    Box::new(move || {
        let states: Vec<char> =
            members::threads_in(&target).into_iter().filter_map(members::state_of).collect();
        // Without threads nothing is known. A thread in an uninterruptible wait has asked for it.
        (!states.is_empty()).then(|| states.contains(&'R'))
    })
}

/// Processor time so far, ns; `None` where it is not known.
pub(super) type Clock = Box<dyn FnMut() -> Option<u64> + Send>;

/// The processor time of the target, exact where the kernel lets it be watched; else up to a tick
/// old, which is never too much.
fn time_of(target: &Target) -> Clock {
    // A target that has ended uses no further time.
    if let Ok(mut clocks) = Tree::over(target, TaskClock::open, |_| false) {
        return Box::new(move || clocks.count());
    }
    match target {
        Target::Process(pid) => {
            let clock = ProcessTime::for_task(*pid);
            Box::new(move || clock.read_ns().ok())
        }
        Target::Thread(tid) => match ThreadTime::for_task(*tid) {
            Ok(clock) => Box::new(move || clock.read().ok().map(|waited| waited.run_ns)),
            Err(_) => Box::new(|| None),
        },
    }
}
