//! First in, first out, on one processor.
//!
//! Owns: the view of FIFO as fixed priorities that are all equal. Must not: contain an equation of its
//! own.

use crate::fixed_priority::{self, Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::Analysis;

/// Bounds the response times of a set whose jobs run in the order of their releases. A job that
/// runs is not overtaken by a later one, so that segments make no difference.
#[must_use]
pub fn analyse(set: &TaskSet) -> Analysis {
    let equal = set.tasks().iter().map(|task: &Task| task.with_priority(0)).collect();
    fixed_priority::analyse(&TaskSet::new(equal), Sections::Preemptive, TimeModel::Discrete)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where nothing jitters all tasks have the same bound: 79 + 11 + 1.
    #[test]
    fn everybody_waits_for_everybody() {
        let tasks = [(79, 120), (11, 34), (1, 190)];
        let tasks = tasks.map(|(c, t)| Task::new(c, t, t).unwrap());
        let found = analyse(&TaskSet::in_order(tasks.to_vec()));
        assert_eq!(found.from_arrival(), [Some(91); 3]);
    }
}
