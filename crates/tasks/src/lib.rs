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
#![doc = include_str!("format.md")]
#![forbid(unsafe_code)]

mod check;
pub mod corpus;
mod error;
mod explain;
pub mod foreign;
mod format;
mod fraction;
pub mod generate;
mod keys;
mod machine;
mod near;
mod node;
pub mod program;
mod read;
pub mod recorded;
mod resource;
pub mod rt_app;
mod server;
mod set;
mod task;
mod words;
mod write;

pub use error::{Place, TaskSetError, TaskSetWarning};
pub use format::Format;
pub use fraction::{Fraction, ParseFractionError};
pub use hourglass_model::explanation::{Explanation, Fact, Origin, Subject};
pub use machine::{Interference, Machine, Overheads};
pub use program::{Beginning, LEAST_STRIDE, MOST_BUFFER, Phase, Program, Step};
pub(crate) use read::syntax;
pub use resource::{Protocol, Resource};
pub use server::{Server, ServerKind};
pub use set::{Assignment, Background, Scheduler, TaskSet};
pub use task::{Activation, CriticalSection, Preemption, Task};
pub use words::TASKS_SCHEMA;
