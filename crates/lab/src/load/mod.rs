//! Background work that takes a CPU from what is measured there: network receive processing, and a search
//! through files, as in sections 5.3 and 5.4 of the Hourglass paper.
//!
//! Owns: the work, where it runs, and that nothing of it is left when it is dropped. Must not: know what
//! is measured. All of it is of the time-sharing class, so that no thread of it can hold a CPU.

mod network;
mod search;
mod wires;

pub use network::{NetworkLoad, Path};
pub use search::SearchLoad;
