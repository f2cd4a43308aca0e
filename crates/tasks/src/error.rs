//! What can be wrong with a description of tasks, and what merely deserves a warning.
//!
//! Owns: the messages, one line each, with the culprit and the remedy. Must not: find the faults
//! (`read` and `check` do).

use std::fmt;

use hourglass_time::Span;
use thiserror::Error;

use super::keys::remedy;

/// The place of a fault in a description: `task 'video'`, `machine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location(String);

impl Location {
    pub(crate) fn file() -> Location {
        Location("the file".to_owned())
    }

    pub(crate) fn part(name: &str) -> Location {
        Location(name.to_owned())
    }

    pub(crate) fn named(kind: &str, name: &str) -> Location {
        Location(format!("{kind} '{}'", name.escape_debug()))
    }

    /// A part whose name is not known: `the 2nd task`.
    pub(crate) fn numbered(kind: &str, position: usize) -> Location {
        Location(format!("{kind} number {}", position + 1))
    }

    pub(crate) fn within(&self, part: impl fmt::Display) -> Location {
        Location(format!("{}, {part}", self.0))
    }

    pub(crate) fn bad(
        &self,
        key: &str,
        value: impl fmt::Display,
        reason: impl fmt::Display,
    ) -> TaskSetError {
        TaskSetError::BadValue {
            place: self.clone(),
            key: key.to_owned(),
            value: value.to_string(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn missing(&self, key: &'static str, remedy: &str) -> TaskSetError {
        TaskSetError::MissingKey { place: self.clone(), key, remedy: remedy.to_owned() }
    }

    pub(crate) fn unknown_key<'k>(
        &self,
        key: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> TaskSetError {
        let remedy = remedy(key, known);
        TaskSetError::UnknownKey {
            place: self.clone(),
            key: key.escape_debug().to_string(),
            remedy,
        }
    }

    pub(crate) fn contradiction(&self, message: impl Into<String>) -> TaskSetError {
        TaskSetError::Contradiction { place: self.clone(), message: message.into() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A description of tasks that cannot be used. The text is one line and says what to change.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSetError {
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        message: String,
    },
    #[error("{place}: unknown key '{key}'; {remedy}")]
    UnknownKey { place: Location, key: String, remedy: String },
    #[error("{place}: duplicate key {key}; keep one of them")]
    KeyTwice { place: Location, key: String },
    #[error("{place}: {key} is missing; {remedy}")]
    MissingKey { place: Location, key: &'static str, remedy: String },
    #[error("{place}: {key} = {value}: {reason}")]
    BadValue {
        place: Location,
        key: String,
        /// The value as it stands in the file, or as it is printed.
        value: String,
        reason: String,
    },
    #[error("two {kind}s are called '{name}'; give each a name of its own")]
    DuplicateName {
        /// `task`, `resource`, `server`.
        kind: &'static str,
        name: String,
    },
    #[error("{place}: {key} names '{name}', but there is no such {kind}; {remedy}")]
    UnknownName {
        place: Location,
        key: &'static str,
        name: String,
        kind: &'static str,
        remedy: String,
    },
    #[error(
        "tasks wait for each other: {}; take one name out of an 'after'",
        names.join(" after ")
    )]
    Circle {
        /// The tasks, each after the next; the last is the first again.
        names: Vec<String>,
    },
    #[error("{place}: {message}")]
    Contradiction { place: Location, message: String },
    #[error("no tasks; add a table [[task]] for each")]
    NoTasks,
}

/// Something that may not be meant, although the description can be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSetWarning {
    #[error(
        "task '{task}': priority {priority} is outside the kernel's 1 to 99{}; the set can be \
         analysed and simulated, but not run",
        and_others(*.others)
    )]
    PriorityOutOfRange {
        /// The first such task.
        task: String,
        priority: u32,
        /// How many other tasks have such a priority.
        others: usize,
    },
    #[error(
        "server '{server}': its priority is not used; a constant-bandwidth server is chosen by its deadline, \
         before every fixed priority, as in the kernel's deadline class"
    )]
    PriorityNotUsed { server: String },
    #[error(
        "servers of constant bandwidth have more than 95 % of {cpus}, which the kernel's deadline class does not admit \
         unless sched_rt_runtime_us is raised; the set can be analysed and simulated, but not run by that class"
    )]
    NotAdmitted {
        /// `CPU 2`, `2 CPUs`.
        cpus: String,
    },
    #[error(
        "server '{server}': the kernel's deadline class refuses threads that may not run on all CPUs (EPERM){}, unless a \
         partition of cpusets makes their CPUs a root domain of their own; leave out cpus where there is none",
        and_servers(*.others)
    )]
    PinnedServer {
        /// The first such server.
        server: String,
        /// How many other servers are pinned.
        others: usize,
    },
    #[error(
        "server '{server}': the kernel's deadline class has periods of 100us to 4.194304s and budgets of 1.024us at least; \
         the set can be analysed and simulated, but not run by that class"
    )]
    OutsideDeadlineClass { server: String },
    #[error(
        "task '{task}': the execution time of {wcet} is longer than the deadline of {deadline}; \
         it is infeasible on any processor of this speed"
    )]
    WcetOverDeadline { task: String, wcet: Span, deadline: Span },
    #[error(
        "task '{task}': execution times drawn from {drawn} may exceed the wcet of {wcet}; bounds \
         do not hold for such jobs"
    )]
    DrawsOverWcet { task: String, drawn: String, wcet: Span },
    #[error(
        "server '{server}': its tasks need more processor time than {budget} every {period}; \
         no deadline in it can be kept for long"
    )]
    ServerOverloaded { server: String, budget: Span, period: Span },
    #[error("server '{server}': no task runs in it; name some with tasks = [...]")]
    EmptyServer { server: String },
    #[error("resource '{resource}': no task uses it")]
    UnusedResource { resource: String },
    #[error(
        "interference is described, but no core has two CPUs; give machine.cores, for example \
         [[0, 1]]"
    )]
    NoSiblings,
}

fn and_servers(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", as those of 1 other server".to_owned(),
        others => format!(", as those of {others} other servers"),
    }
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", and so is that of 1 other task".to_owned(),
        others => format!(", and so are those of {others} other tasks"),
    }
}
