//! Wake-up methods: what a thread blocks on until a time comes (Hourglass paper, section 3.3).
//!
//! A method is one file here and one line in [`ALL`].

mod epoll;
mod futex;
mod nanosleep;
mod rtc;
mod sleeper;
mod spin;
mod tick;
mod timerfd;

use std::fmt::{Debug, Display};
use std::sync::Arc;

use hourglass_documents::Policy;
use hourglass_time::Span;
use thiserror::Error;

use crate::tokens::WordError;

pub const ALL: [&MethodEntry; 9] = [
    &nanosleep::NATIVE,
    &nanosleep::HR,
    &rtc::ENTRY,
    &tick::ENTRY,
    &timerfd::ENTRY,
    &futex::ENTRY,
    &epoll::ENTRY,
    &sleeper::ENTRY,
    &spin::ENTRY,
];

/// Reads what follows the colon behind a method's name.
pub type Parse = fn(Option<&str>) -> Result<Arc<dyn WakeUpMethod>, WordError>;

#[derive(Debug)]
pub struct MethodEntry {
    pub name: &'static str,
    /// Name and parameter: `TICK:HZ`.
    pub synopsis: &'static str,
    pub about: &'static str,
    pub aliases: &'static [&'static str],
    /// Reads what follows the colon, if anything does.
    pub parse: Parse,
}

/// A method with its parameter. Prints as it is written on the command line.
pub trait WakeUpMethod: Debug + Display + Send + Sync {
    /// Opens what a thread needs to be woken, on that thread, before it is measured.
    ///
    /// # Errors
    /// The machine does not have it.
    fn open(&self, thread: &Sleeper) -> Result<OpenWakeUp, Unavailable>;

    fn busy_waits(&self) -> bool {
        false
    }

    /// The time between two moments at which it wakes, if it wakes on a grid that begins with the
    /// run.
    fn grid(&self) -> Option<Span> {
        None
    }

    /// A thread under `policy` that asks for a time no farther away than this keeps the CPU until
    /// then.
    fn busy_wait(&self, policy: Policy) -> Span {
        let _ = policy;
        if self.busy_waits() { Span::MAX } else { Span::ZERO }
    }

    /// Whether it is an emulation by its very name, so that it is not taken for the device.
    fn is_emulation(&self) -> bool {
        false
    }

    fn most_users(&self) -> Option<usize> {
        None
    }
}

/// What a method may want to know of the thread that will wait.
#[derive(Clone, Copy, Debug)]
pub struct Sleeper {
    pub policy: Policy,
    /// Whether to emulate a device that is missing.
    pub best_effort: bool,
}

pub struct OpenWakeUp {
    pub wake_up: Box<dyn WakeUp>,
    pub emulated: Option<String>,
}

impl OpenWakeUp {
    /// A device of the machine.
    fn native(wait: impl FnMut(WakeUpTime) + Send + 'static) -> OpenWakeUp {
        OpenWakeUp { wake_up: Box::new(wait), emulated: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUpTime {
    /// Now, `CLOCK_MONOTONIC`.
    pub now_ns: u64,
    /// The time asked for, `CLOCK_MONOTONIC`; later than `now_ns`.
    pub due_ns: u64,
    /// The run's start, `CLOCK_MONOTONIC`, to which emulated devices align their ticks.
    pub epoch_ns: u64,
}

/// A means of waiting.
///
/// `wait` MUST return when the time has come or soon after, and SHOULD return when a signal
/// comes; it MAY return early, and is then called again. It MUST NOT allocate or panic.
pub trait WakeUp: Send {
    fn wait(&mut self, alarm: WakeUpTime);
}

impl<F: FnMut(WakeUpTime) + Send> WakeUp for F {
    fn wait(&mut self, alarm: WakeUpTime) {
        self(alarm);
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("timer {method} is not available: {reason}; {remedy}")]
pub struct Unavailable {
    pub method: String,
    pub reason: String,
    pub remedy: String,
}

/// The method of a thread of which nothing was said: native timers.
pub fn default_method() -> Arc<dyn WakeUpMethod> {
    Arc::new(nanosleep::Nanosleep::NATIVE)
}

/// Reads a method as it is written on the command line.
///
/// # Errors
/// An unknown name or a bad parameter; `MM`, which is Windows only.
pub fn parse(text: &str) -> Result<Arc<dyn WakeUpMethod>, WordError> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    if name == "MM" {
        return Err(WordError::WindowsOnly);
    }
    let entry = ALL.iter().find(|entry| entry.name == name || entry.aliases.contains(&name));
    match entry {
        Some(entry) => (entry.parse)(parameter),
        None => {
            let known = ALL.iter().flat_map(|entry| [&[entry.synopsis], entry.aliases].concat());
            Err(WordError::UnknownTimer { name: text.to_owned(), known: known.collect() })
        }
    }
}

/// A method whose kernel wait can be late by timer slack: the slack to set, if any was given.
fn slack(synopsis: &'static str, parameter: Option<&str>) -> Result<Option<Span>, WordError> {
    match parameter {
        None => Ok(None),
        Some(given) => crate::tokens::TokenReader::new(synopsis, &[given]).time("SLACK").map(Some),
    }
}

/// A method that takes nothing behind a colon.
fn bare(synopsis: &'static str, parameter: Option<&str>) -> Result<(), WordError> {
    match parameter {
        None => Ok(()),
        Some(extra) => Err(WordError::Extra { synopsis, extra: extra.to_owned() }),
    }
}
