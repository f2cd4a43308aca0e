//! What can be wrong with a description of tasks, and what merely deserves a warning.
//!
//! Owns: the messages, one line each, with the culprit and the remedy. Must not: find the faults
//! (`read` and `check` do).

use std::fmt;

use hourglass_time::Span;
use thiserror::Error;

/// The place of a fault in a description: `task 'video'`, `machine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location(String);

impl Location {
    /// The description as a whole.
    pub(crate) fn file() -> Location {
        Location("the file".to_owned())
    }

    /// A part that has no name.
    pub(crate) fn part(name: &str) -> Location {
        Location(name.to_owned())
    }

    /// A part with a name.
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
    /// A key that means nothing there.
    #[error("{place}: unknown key '{key}'; {remedy}")]
    UnknownKey {
        place: Location,
        key: String,
        /// The key that may be meant, or those that there are.
        remedy: String,
    },
    /// A key that stands there twice.
    #[error("{place}: duplicate key {key}; keep one of them")]
    KeyTwice { place: Location, key: String },
    /// A key that must be there.
    #[error("{place}: {key} is missing; {remedy}")]
    MissingKey {
        place: Location,
        key: &'static str,
        /// The text to write instead.
        remedy: String,
    },
    /// A value that its key cannot have.
    #[error("{place}: {key} = {value}: {reason}")]
    BadValue {
        place: Location,
        key: String,
        /// The value as it stands in the file, or as it is printed.
        value: String,
        /// The error, and the right form.
        reason: String,
    },
    /// Two parts of one kind with one name.
    #[error("two {kind}s are called '{name}'; give each a name of its own")]
    DuplicateName {
        /// `task`, `resource`, `server`.
        kind: &'static str,
        name: String,
    },
    /// A name that nothing has.
    #[error("{place}: {key} names '{name}', but there is no such {kind}; {remedy}")]
    UnknownName {
        place: Location,
        key: &'static str,
        name: String,
        /// The kind of item that it should name.
        kind: &'static str,
        /// The name that may be meant, or those that there are.
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
    /// Two statements of which one is wrong.
    #[error("{place}: {message}")]
    Contradiction {
        place: Location,
        /// The contradiction, and how to resolve it.
        message: String,
    },
    #[error("no tasks; add a table [[task]] for each")]
    NoTasks,
}

/// Something that may not be meant, although the description can be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSetWarning {
    /// Priorities that the kernel does not have. Analyses do not mind.
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
    /// A priority where the class decides.
    #[error(
        "server '{server}': its priority is not used; a constant-bandwidth server is chosen by its deadline, \
         before every fixed priority, as in the kernel's deadline class"
    )]
    PriorityNotUsed { server: String },
    /// A job that cannot be finished in time even alone.
    #[error(
        "task '{task}': the execution time of {wcet} is longer than the deadline of {deadline}; \
         it is infeasible on any processor of this speed"
    )]
    WcetOverDeadline { task: String, wcet: Span, deadline: Span },
    /// A distribution that reaches beyond the worst case.
    #[error(
        "task '{task}': execution times drawn from {drawn} may exceed the wcet of {wcet}; bounds \
         do not hold for such jobs"
    )]
    DrawsOverWcet { task: String, drawn: String, wcet: Span },
    /// Tasks that need more than their server has.
    #[error(
        "server '{server}': its tasks need more processor time than {budget} every {period}; \
         no deadline in it can be kept for long"
    )]
    ServerOverloaded { server: String, budget: Span, period: Span },
    /// A server in which nothing runs.
    #[error("server '{server}': no task runs in it; name some with tasks = [...]")]
    EmptyServer { server: String },
    /// A resource that no task uses.
    #[error("resource '{resource}': no task uses it")]
    UnusedResource { resource: String },
    /// Rates between siblings on a machine without siblings.
    #[error(
        "interference is described, but no core has two CPUs; give machine.cores, for example \
         [[0, 1]]"
    )]
    NoSiblings,
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", and so is that of 1 other task".to_owned(),
        others => format!(", and so are those of {others} other tasks"),
    }
}
