//! Random sets of tasks, as experiments of schedulability draw them.
//!
//! Owns: utilisations with a fixed sum by the four ways of the literature ([`UtilisationMethod`]), periods,
//! deadlines, jitter, and their rounding to whole nanoseconds. A [`Recipe`] and the number of a set
//! determine the set, in any thread and any order.
//! Must not: judge, read a clock, draw from anything but its own streams.
//!
//! Utilisations, periods and shares are drawn in floating point, whose logarithms and powers another
//! system's mathematical library may round differently: a seed replays on one build of the program.
//! What is rounded is exact again, and their rounding keeps the sum at or below what was asked for by
//! integers alone. No verdict ever sees one of these floating-point numbers.

mod error;
mod fixed_sum;
mod generator;
mod millionths;
mod periods;
mod rescale;
mod rounding;
mod stream;
#[cfg(test)]
mod tests;
mod utilisations;

pub use error::{GenerateError, WordError};
pub use generator::{Deadlines, DrawnTask, MOST_PROCESSORS, MOST_TASKS, Recipe, Source};
pub use millionths::Millionths;
pub use periods::Periods;
pub use rounding::scaled_costs;
pub use utilisations::{Bound, UtilisationMethod};
