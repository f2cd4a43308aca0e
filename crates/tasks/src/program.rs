//! What a thread does step by step: phases of run, sleep, timer, lock and the like, as rt-app has
//! them, so that a run can replay them.
//!
//! Owns: [`Program`], [`Phase`], [`ProgramStep`] and the text form of a step. Must not: execute anything.

use std::fmt;
use std::str::FromStr;

use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;
use thiserror::Error;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// How often all phases are gone through; without a number, for ever.
    pub loops: Option<u64>,
    pub phases: Vec<Phase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The name of the phase; may be empty.
    pub name: String,
    /// How often it is gone through before the next; without a number, for ever.
    pub loops: Option<u64>,
    /// The policy that the thread takes when the phase begins, if it is another.
    pub policy: Option<Policy>,
    /// The CPUs that it moves to when the phase begins; without them, those of the thread.
    pub cpus: Option<CpuSet>,
    pub steps: Vec<ProgramStep>,
}

impl Program {
    /// The name by which the thread is started and which of these starts it waits for, if it waits
    /// for one.
    #[must_use]
    pub fn forked(&self) -> Option<(&str, u32)> {
        match self.phases.first()?.steps.first()? {
            ProgramStep::Forked { name, number } => Some((name, *number)),
            _ => None,
        }
    }

    /// What a job begins with, as the importer of rt-app's files cuts threads into jobs.
    #[must_use]
    pub fn beginning(&self) -> JobTrigger {
        let steps = || self.phases.iter().flat_map(|phase| &phase.steps);
        let triggers = [JobTrigger::Timer, JobTrigger::Event, JobTrigger::Sleep];
        let first = triggers.into_iter().find(|trigger| steps().any(|step| trigger.is_step(step)));
        first.unwrap_or_default()
    }
}

/// What a job of a thread in phases begins with; the job before it ends there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobTrigger {
    Timer,
    /// Another thread, in a thread without timers.
    Event,
    /// A job begins at the end of a sleep, in a thread without other waits.
    Sleep,
    /// Nothing: the thread never waits and has one job.
    #[default]
    Start,
}

impl JobTrigger {
    /// Whether a job begins after `step` in a thread with this trigger.
    pub(crate) fn is_step(self, step: &ProgramStep) -> bool {
        match (self, step) {
            (JobTrigger::Timer, ProgramStep::Timer { period, .. }) => period.is_positive(),
            (JobTrigger::Sleep, ProgramStep::Sleep(time)) => time.is_positive(),
            (JobTrigger::Event, ProgramStep::Wait { .. } | ProgramStep::Suspend(_)) => true,
            (JobTrigger::Event, ProgramStep::Barrier(_) | ProgramStep::Take(_)) => true,
            _ => false,
        }
    }
}

/// One step of a phase.
///
/// Written as a word and its operands: `run 3ms`, `timer wake 8ms`, `lock bus`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProgramStep {
    /// Executes an amount of work, calibrated to take this time at full speed.
    Run(Span),
    /// Executes until this time has passed, however fast the CPU is.
    RunFor(Span),
    /// Sleeps for this time from now.
    Sleep(Span),
    /// Sleeps until a period after the last expiry of this timer.
    Timer {
        /// The timer; shared by threads that use the same name, but for names that begin with
        /// `unique`.
        name: String,
        period: Span,
        /// Whether late expiries are caught up with, rather than counted anew from the late one.
        absolute: bool,
    },
    Lock(String),
    Unlock(String),
    /// Waits for a condition, with its mutex released meanwhile.
    Wait {
        condition: String,
        mutex: String,
    },
    Signal(String),
    Broadcast(String),
    /// Waits until all threads with this barrier have come to it.
    Barrier(String),
    /// Stops until a thread resumes the one with this name.
    Suspend(String),
    Resume(String),
    Post(String),
    /// Takes one from a semaphore, which is 0 in the beginning; waits until there is one.
    Take(String),
    Yield,
    /// Writes this number of bytes of memory.
    Memory(u64),
    /// Reads bytes of a buffer, one after the other, and from its beginning again at its end.
    Read {
        bytes: u64,
        /// Bytes of the buffer, from 1 to [`MOST_BUFFER`].
        buffer: u64,
    },
    Write {
        bytes: u64,
        /// Bytes of the buffer, from 1 to [`MOST_BUFFER`].
        buffer: u64,
    },
    /// Follows pointers that go round a buffer, each one read before the next is known.
    Chase {
        hops: u64,
        /// Bytes of the buffer, from two strides to [`MOST_BUFFER`].
        buffer: u64,
        /// Bytes between two pointers, at least 8.
        stride: u64,
        /// Whether each points to the one behind it, rather than far away.
        sequential: bool,
    },
    /// Writes this number of bytes to a device.
    Io(u64),
    /// Starts another thread of the description: the next of those that begin with
    /// [`ProgramStep::Forked`] and this name.
    Fork(String),
    /// Waits until threads of this name were started more often than `number`; what has happened
    /// is not waited for again.
    Forked {
        name: String,
        /// The number of the start, from 0.
        number: u32,
    },
    /// Waits until this time after the thread's start, if that is not past.
    StartAfter(Span),
}

/// Bytes of the buffer of a step, at most.
pub const MOST_BUFFER: u64 = 1 << 28;

/// The shortest stride of a chase, bytes: a pointer.
pub const LEAST_STRIDE: u64 = 8;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "not a step; write run TIME, run_for TIME, sleep TIME, timer NAME TIME [absolute], lock NAME, \
     unlock NAME, wait CONDITION MUTEX, signal NAME, broadcast NAME, barrier NAME, suspend NAME, resume NAME, \
     post NAME, take NAME, yield, memory BYTES, read BYTES BUFFER, write BYTES BUFFER, chase HOPS BUFFER STRIDE \
     [sequential], io BYTES, fork NAME, forked NAME NUMBER or start_after TIME"
)]
pub struct ParseStepError;

impl ProgramStep {
    /// The time for which the step wants the processor.
    #[must_use]
    pub fn execution(&self) -> Span {
        match self {
            ProgramStep::Run(time) | ProgramStep::RunFor(time) => *time,
            _ => Span::ZERO,
        }
    }
}

impl fmt::Display for ProgramStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramStep::Run(time) => write!(f, "run {time}"),
            ProgramStep::RunFor(time) => write!(f, "run_for {time}"),
            ProgramStep::Sleep(time) => write!(f, "sleep {time}"),
            ProgramStep::Timer { name, period, absolute } => {
                let mode = if *absolute { " absolute" } else { "" };
                write!(f, "timer {name} {period}{mode}")
            }
            ProgramStep::Lock(name) => write!(f, "lock {name}"),
            ProgramStep::Unlock(name) => write!(f, "unlock {name}"),
            ProgramStep::Wait { condition, mutex } => write!(f, "wait {condition} {mutex}"),
            ProgramStep::Signal(name) => write!(f, "signal {name}"),
            ProgramStep::Broadcast(name) => write!(f, "broadcast {name}"),
            ProgramStep::Barrier(name) => write!(f, "barrier {name}"),
            ProgramStep::Suspend(name) => write!(f, "suspend {name}"),
            ProgramStep::Resume(name) => write!(f, "resume {name}"),
            ProgramStep::Post(name) => write!(f, "post {name}"),
            ProgramStep::Take(name) => write!(f, "take {name}"),
            ProgramStep::Yield => f.write_str("yield"),
            ProgramStep::Memory(bytes) => write!(f, "memory {bytes}"),
            ProgramStep::Read { bytes, buffer } => write!(f, "read {bytes} {buffer}"),
            ProgramStep::Write { bytes, buffer } => write!(f, "write {bytes} {buffer}"),
            ProgramStep::Chase { hops, buffer, stride, sequential } => {
                let order = if *sequential { " sequential" } else { "" };
                write!(f, "chase {hops} {buffer} {stride}{order}")
            }
            ProgramStep::Io(bytes) => write!(f, "io {bytes}"),
            ProgramStep::Fork(name) => write!(f, "fork {name}"),
            ProgramStep::Forked { name, number } => write!(f, "forked {name} {number}"),
            ProgramStep::StartAfter(time) => write!(f, "start_after {time}"),
        }
    }
}

impl FromStr for ProgramStep {
    type Err = ParseStepError;

    fn from_str(text: &str) -> Result<ProgramStep, ParseStepError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = |word: &str| word.to_owned();
        let bytes = |word: &str| word.parse::<u64>().map_err(|_| ParseStepError);
        let timer = |timer: &str, period: &str, absolute: bool| {
            Ok(ProgramStep::Timer { name: name(timer), period: not_negative(period)?, absolute })
        };
        Ok(match words[..] {
            ["run", time] => ProgramStep::Run(not_negative(time)?),
            ["run_for", time] => ProgramStep::RunFor(not_negative(time)?),
            ["sleep", time] => ProgramStep::Sleep(not_negative(time)?),
            ["timer", name, time] => timer(name, time, false)?,
            ["timer", name, time, "absolute"] => timer(name, time, true)?,
            ["lock", mutex] => ProgramStep::Lock(name(mutex)),
            ["unlock", mutex] => ProgramStep::Unlock(name(mutex)),
            ["wait", condition, mutex] => {
                ProgramStep::Wait { condition: name(condition), mutex: name(mutex) }
            }
            ["signal", condition] => ProgramStep::Signal(name(condition)),
            ["broadcast", condition] => ProgramStep::Broadcast(name(condition)),
            ["barrier", barrier] => ProgramStep::Barrier(name(barrier)),
            ["suspend", thread] => ProgramStep::Suspend(name(thread)),
            ["resume", thread] => ProgramStep::Resume(name(thread)),
            ["post", semaphore] => ProgramStep::Post(name(semaphore)),
            ["take", semaphore] => ProgramStep::Take(name(semaphore)),
            ["yield"] => ProgramStep::Yield,
            ["memory", amount] => ProgramStep::Memory(bytes(amount)?),
            ["read", amount, size] => {
                ProgramStep::Read { bytes: bytes(amount)?, buffer: buffer(size)? }
            }
            ["write", amount, size] => {
                ProgramStep::Write { bytes: bytes(amount)?, buffer: buffer(size)? }
            }
            ["chase", hops, size, stride] => chase([hops, size, stride], false)?,
            ["chase", hops, size, stride, "sequential"] => chase([hops, size, stride], true)?,
            ["io", amount] => ProgramStep::Io(bytes(amount)?),
            ["fork", thread] => ProgramStep::Fork(name(thread)),
            ["forked", thread, number] => {
                let number = number.parse().map_err(|_| ParseStepError)?;
                ProgramStep::Forked { name: name(thread), number }
            }
            ["start_after", time] => ProgramStep::StartAfter(not_negative(time)?),
            _ => return Err(ParseStepError),
        })
    }
}

/// The size of a buffer, bytes.
fn buffer(text: &str) -> Result<u64, ParseStepError> {
    let size = text.parse::<u64>().ok().filter(|size| (1..=MOST_BUFFER).contains(size));
    size.ok_or(ParseStepError)
}

fn chase(words: [&str; 3], sequential: bool) -> Result<ProgramStep, ParseStepError> {
    let [hops, size, stride] = words;
    let hops = hops.parse::<u64>().map_err(|_| ParseStepError)?;
    let stride = stride.parse::<u64>().map_err(|_| ParseStepError)?;
    let buffer = buffer(size)?;
    let fits = stride >= LEAST_STRIDE && stride <= buffer / 2;
    fits.then_some(ProgramStep::Chase { hops, buffer, stride, sequential }).ok_or(ParseStepError)
}

fn not_negative(text: &str) -> Result<Span, ParseStepError> {
    text.parse::<Span>().ok().filter(|time| !time.is_negative()).ok_or(ParseStepError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_parses_back() {
        for text in "run 3ms, run_for 20us, sleep 1s, timer unique0 8ms, timer wake 33ms absolute, lock bus, \
                     unlock bus, wait ready bus, signal ready, broadcast ready, barrier start, \
                     suspend video, resume audio, yield, post done, take done, memory 4096, \
                     read 10000 4096, write 10000 4096, chase 1000 1048576 64, \
                     chase 1000 1048576 64 sequential, io 512, fork late, forked late 3, start_after 5ms"
            .split(", ")
        {
            assert_eq!(text.parse::<ProgramStep>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ", run, run 3, run -3ms, lock, lock a b, memory x, read 1 0, write 1 268435457, \
                     chase 1 127 64, chase 1 1024 7, take, forked a -1, jump 3ms"
                .split(", ")
        {
            assert_eq!(text.parse::<ProgramStep>(), Err(ParseStepError), "{text}");
        }
    }
}
