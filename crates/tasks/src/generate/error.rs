//! What cannot be drawn, and what would help.
//!
//! Owns: the two error types. Must not: know options or files.

use hourglass_time::Span;
use thiserror::Error;

use super::millionths::Millionths;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WordError {
    #[error("'{0}' is not a number with up to six decimals; write for example 0.85")]
    Number(String),
    #[error("bad time '{text}': {reason}; write for example 10ms")]
    Time { text: String, reason: String },
    #[error("'{given}' is not understood; write {wanted}")]
    Form { given: String, wanted: &'static str },
    #[error("'{0}' ends before it begins; give the smaller one first")]
    Backwards(String),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GenerateError {
    #[error("{0} tasks cannot be drawn; take 1 to {most}", most = super::MOST_TASKS)]
    Tasks(usize),
    #[error("{0} processors are out of range; take 1 to {most}", most = super::MOST_PROCESSORS)]
    Processors(u32),
    #[error("a utilisation of 0 asks for nothing; take one above 0")]
    NoUtilisation,
    #[error(
        "utilisation {utilisation} is over the number of processors, {processors}; take a smaller \
         one, or more processors"
    )]
    OverProcessors { utilisation: Millionths, processors: u32 },
    #[error(
        "utilisation {utilisation} is over {most}, the most that {tasks} tasks can have together; \
         take more tasks, larger bounds or a smaller utilisation"
    )]
    OverTasks {
        utilisation: Millionths,
        /// The sum of the upper bounds.
        most: Millionths,
        tasks: usize,
    },
    #[error(
        "utilisation {utilisation} is under {least}, the sum of the lower bounds of {tasks} tasks; \
         take smaller bounds or a larger utilisation"
    )]
    UnderTasks {
        utilisation: Millionths,
        /// The sum of the lower bounds.
        least: Millionths,
        tasks: usize,
    },
    #[error("{bounds} bounds for {tasks} tasks; give one for all, or one for each task")]
    Bounds { bounds: usize, tasks: usize },
    #[error("invalid bound {0}: its ends go from 0 to 1, the lower one first")]
    Bound(String),
    #[error(
        "uunifast can give a task more than its bound or more than 1; take uunifast-discard, \
         randfixedsum or drs where there are bounds or several processors"
    )]
    NeedsDiscard,
    #[error("randfixedsum has the same bounds for all tasks; take drs for bounds of each task")]
    NeedsRescale,
    #[error(
        "{tries} draws of {tasks} tasks with utilisation {utilisation} had a task outside its \
         bounds; take randfixedsum or drs"
    )]
    Discarded { tries: u32, tasks: usize, utilisation: Millionths },
    #[error("no multiple of the granularity {granularity} lies in {periods}; take a finer one")]
    NoPeriod { granularity: Span, periods: String },
    #[error("the list of periods is empty; write for example list:5ms,10ms,20ms")]
    NoPeriods,
    #[error("the {0} must be above zero; take for example 1us")]
    NoGranularity(&'static str),
    #[error(
        "{tasks} tasks of at least {granularity} every {period} use more than {utilisation}; take \
         a finer cost granularity, longer periods, fewer tasks or a larger utilisation"
    )]
    TooCoarse { tasks: usize, granularity: Span, period: Span, utilisation: Millionths },
    #[error("deadlines may be 0 by '{0}'; take a share above 0")]
    NoDeadline(String),
}
