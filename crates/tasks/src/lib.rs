//! Sets of tasks: what runs how often, for how long and by when, on which machine, under which
//! rules.
//!
//! Owns: [`TaskSet`] and its parts, their file format, the importers of other formats. Times are
//! exact nanoseconds, fractions are exact. Must not: open files, read a clock, judge whether
//! deadlines hold (`sched` does), lay out text (`report` does).
//!
//! ```
//! use hourglass_tasks::TaskSet;
//!
//! let set = TaskSet::from_toml(
//!     r#"
//!     [[task]]
//!     name = "audio"
//!     wcet = "3ms"
//!     period = "8ms"
//!
//!     [[task]]
//!     name = "video"
//!     wcet = "17ms"
//!     period = "33ms"
//!     "#,
//! )?;
//! assert_eq!(set.priorities(), [Some(2), Some(1)]);
//! # Ok::<(), hourglass_tasks::TaskSetError>(())
//! ```
//!
//! The keys of each table are in [`language::TABLES`]. The handbook's chapter "Files of tasks", the manual page
//! hourglass-tasks(5) and the JSON Schema are made from them.
//!
#![doc = include_str!("format.md")]
#![forbid(unsafe_code)]

mod check;
pub mod corpus;
mod error;
pub mod exact_fraction;
mod explain;
mod fraction;
pub mod from_model;
pub mod from_run;
pub mod generate;
pub mod import;
mod keys;
mod keywords;
pub mod language;
mod machine;
mod node;
pub mod program;
mod read;
mod resource;
pub mod rt_app;
mod server;
mod spelling;
mod task;
mod task_set;
mod write;

pub use error::{Location, TaskSetError, TaskSetWarning};
pub use fraction::{Fraction, ParseFractionError};
pub use hourglass_documents::explanation::{Explanation, Fact, FactOrigin, Subject};
pub use import::format::Format;
pub use keywords::TASKS_SCHEMA;
pub use machine::{Interference, MachineModel, Overheads};
pub use program::{JobTrigger, LEAST_STRIDE, MOST_BUFFER, Phase, Program, ProgramStep};
pub(crate) use read::syntax;
pub use resource::{Protocol, Resource};
pub use server::{Server, ServerKind};
pub use task::{Activation, CriticalSection, Preemption, Task};
pub use task_set::{Assignment, Background, Scheduler, TaskSet};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
