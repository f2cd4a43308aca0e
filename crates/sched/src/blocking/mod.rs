//! How long tasks keep each other from shared resources, on one processor.
//!
//! Owns: [`LockProtocol`], which is a property of a resource and not of a task; [`Usage`], tasks with their
//! critical sections ([`crate::task::Task::with_critical_sections`]) and the protocols of what they hold;
//! and what of it delays a task under each protocol:
//! ceilings (Sha, Rajkumar and Lehoczky, IEEE TC 1990; Baker, RTSJ 1991), inheritance (Sha,
//! Rajkumar and Lehoczky 1990), spinning without preemption, plain mutexes. Under EDF see [`edf`].
//! Must not: know names, or bound what other processors do.
//!
//! All bounds are of a whole busy window, however many jobs it has: in it, a task of lower priority
//! executes only a section that it had entered before, one at most. That needs sections of a task
//! that do not lie in each other, unless all are under ceilings or spin, where the outermost
//! counts; and jobs that do not suspend themselves.

pub mod edf;

use std::collections::BTreeMap;

use crate::fixed_priority::TimeModel;
use crate::task::{CriticalSection, Task, TaskFeature, TaskSet};

/// Rules of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockProtocol {
    /// The holder runs at the ceiling: the highest priority of all users, or one that is stated.
    /// Under EDF, the stack resource policy, whose ceilings follow from deadlines.
    Ceiling(Option<u32>),
    /// The holder inherits the urgency of the tasks that it blocks.
    Inheritance,
    /// The holder is not preempted.
    Spin,
    /// Nothing is done.
    Plain,
}

/// Sections that cannot be meant, or that are not bounded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A task with something besides sections that is not known here.
    #[error("task {0} has bursts, a phase or a threshold, with which blocking is not bounded")]
    OutsideModel(usize),
    /// A section of a resource without a protocol.
    #[error("a critical section is of resource {0}, which has no protocol")]
    NoResource(usize),
    /// A section that is longer than the job.
    #[error("task {task}: a critical section of {length} is longer than the cost of {cost}")]
    OverCost {
        /// Position of the task.
        task: usize,
        /// The section's length.
        length: u64,
        /// The task's cost.
        cost: u64,
    },
    /// A ceiling below a user's priority.
    #[error(
        "resource {resource}: a ceiling of {ceiling} is below the priority {priority} of a user"
    )]
    LowCeiling {
        /// The resource.
        resource: usize,
        /// The priority to which the ceiling raises a holder.
        ceiling: u32,
        /// The user's priority.
        priority: u32,
    },
    /// After each suspension a job may be blocked again, and how often it suspends is not known.
    #[error(
        "task {0} suspends itself and may be blocked again after each suspension; this is not bounded"
    )]
    Suspension(usize),
}

/// Tasks with what they hold, and the protocol of each resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    set: TaskSet,
    protocols: Vec<LockProtocol>,
    /// The highest priority of the users of each resource, or the ceiling stated.
    ceilings: Vec<u32>,
}

impl Usage {
    /// Resources are numbered by `protocols`.
    ///
    /// # Errors
    /// Sections of a resource without a protocol, or longer than the job; a ceiling that is too low; a
    /// task that suspends itself in a set with sections, or that has bursts, a phase or a threshold.
    pub fn new(set: TaskSet, protocols: Vec<LockProtocol>) -> Result<Usage, UsageError> {
        let known = |task: &Task| task.is_plain_but(TaskFeature::Sections);
        if let Some(task) = set.tasks().iter().position(|task| !known(task)) {
            return Err(UsageError::OutsideModel(task));
        }
        let mut ceilings = vec![0; protocols.len()];
        for (task, section) in all_sections(&set) {
            let CriticalSection { resource, length, .. } = *section;
            let of = &set.tasks()[task];
            if length > of.cost {
                return Err(UsageError::OverCost { task, length, cost: of.cost });
            }
            let ceiling = ceilings.get_mut(resource).ok_or(UsageError::NoResource(resource))?;
            *ceiling = of.priority.max(*ceiling);
        }
        for (resource, protocol) in protocols.iter().enumerate() {
            if let LockProtocol::Ceiling(Some(ceiling)) = *protocol {
                let priority = ceilings[resource];
                if ceiling < priority {
                    return Err(UsageError::LowCeiling { resource, ceiling, priority });
                }
                ceilings[resource] = ceiling;
            }
        }
        let suspends = set.tasks().iter().position(|task| task.suspension > 0);
        match suspends.filter(|_| all_sections(&set).next().is_some()) {
            Some(task) => Err(UsageError::Suspension(task)),
            None => Ok(Usage { set, protocols, ceilings }),
        }
    }

    /// The tasks.
    #[must_use]
    pub fn set(&self) -> &TaskSet {
        &self.set
    }

    /// The protocol of each resource.
    #[must_use]
    pub fn protocols(&self) -> &[LockProtocol] {
        &self.protocols
    }

    /// All sections, each with the position of its task.
    pub fn sections(&self) -> impl Iterator<Item = (usize, &CriticalSection)> {
        all_sections(&self.set)
    }

    /// Sections of tasks of lower priority on resources that a task of at least this priority uses,
    /// or whose ceiling reaches it, or that are not preempted.
    fn against(&self, position: usize) -> Vec<(usize, &CriticalSection)> {
        let Some(own) = self.set.tasks().get(position).map(|task| task.priority) else {
            return Vec::new();
        };
        let blocks = |(task, section): &(usize, &CriticalSection)| {
            let lower = self.set.tasks()[*task].priority < own;
            let spins = self.protocols[section.resource] == LockProtocol::Spin;
            lower && (spins || self.ceilings[section.resource] >= own)
        };
        self.sections().filter(blocks).collect()
    }

    /// How long tasks of lower priority hold up the one at `position`, in all of a busy window;
    /// `None` where nothing bounds it: a plain mutex that it, or a more urgent task, may have to
    /// wait for while tasks in between prolong the wait.
    ///
    /// Under ceilings and spinning, it is the longest section: the only one that can have begun.
    /// Under inheritance, a section of each task or a section of each resource, whichever sum is
    /// less. If both occur, their sum.
    #[must_use]
    pub fn blocking(&self, position: usize, time: TimeModel) -> Option<u64> {
        total(&self.against(position), &self.protocols, time)
    }

    /// The set with these delays added to what its tasks state, in the place of their sections; `None` if one is not bounded or has
    /// more than 64 bits.
    #[must_use]
    pub fn with_blocking(&self, time: TimeModel) -> Option<TaskSet> {
        let add = |(position, task): (usize, &Task)| {
            let blocking = task.blocking.checked_add(self.blocking(position, time)?)?;
            Some(task.plain().with_blocking(blocking))
        };
        let tasks = self.set.tasks().iter().enumerate().map(add).collect::<Option<Vec<_>>>()?;
        Some(TaskSet::new(tasks))
    }
}

fn all_sections(set: &TaskSet) -> impl Iterator<Item = (usize, &CriticalSection)> {
    set.tasks()
        .iter()
        .enumerate()
        .flat_map(|(at, task)| task.critical_sections().iter().map(move |section| (at, section)))
}

/// What sections that may all have begun delay: see [`Usage::blocking`].
fn total(
    sections: &[(usize, &CriticalSection)],
    protocols: &[LockProtocol],
    time: TimeModel,
) -> Option<u64> {
    let (mut at_once, mut of_tasks, mut of_resources) = (0, BTreeMap::new(), BTreeMap::new());
    for (task, section) in sections {
        // In discrete time a unit of the section has passed.
        let delay = section.length - u64::from(time == TimeModel::Discrete);
        match protocols[section.resource] {
            LockProtocol::Plain => return None,
            LockProtocol::Ceiling(_) | LockProtocol::Spin => at_once = delay.max(at_once),
            LockProtocol::Inheritance => {
                let of_task: &mut u64 = of_tasks.entry(*task).or_default();
                *of_task = delay.max(*of_task);
                let of_resource: &mut u64 = of_resources.entry(section.resource).or_default();
                *of_resource = delay.max(*of_resource);
            }
        }
    }
    let sum = |delays: BTreeMap<usize, u64>| {
        delays.into_values().try_fold(0u64, |sum, delay| sum.checked_add(delay))
    };
    let inherited = match (sum(of_tasks), sum(of_resources)) {
        (Some(tasks), Some(resources)) => Some(tasks.min(resources)),
        (one, other) => one.or(other),
    };
    inherited?.checked_add(at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(resource: usize, length: u64) -> CriticalSection {
        CriticalSection { resource, count: 1, length }
    }

    fn usage(protocol: LockProtocol, lengths: &[[u64; 3]]) -> Usage {
        let task = |of: &[u64; 3]| {
            let sections =
                of.iter().enumerate().map(|(resource, length)| section(resource, *length));
            let sections: Vec<CriticalSection> = sections.collect();
            Task::new(20, 1000, 1000).unwrap().with_critical_sections(&sections)
        };
        let tasks = lengths.iter().map(task).collect();
        Usage::new(TaskSet::in_order(tasks), vec![protocol; 3]).unwrap()
    }

    /// Buttazzo, Hard Real-Time Computing Systems, chapter 7: four tasks, three semaphores, with the
    /// sections of each; a section delays by its length less one.
    const BUTTAZZO: [[u64; 3]; 4] = [[1, 2, 0], [0, 9, 3], [8, 7, 0], [6, 5, 4]];

    fn blocking(usage: &Usage) -> Vec<Option<u64>> {
        (0..4).map(|task| usage.blocking(task, TimeModel::Discrete)).collect()
    }

    #[test]
    fn inheritance_takes_the_lesser_of_two_sums() {
        let found = blocking(&usage(LockProtocol::Inheritance, &BUTTAZZO));
        assert_eq!(found, [Some(15), Some(12), Some(5), Some(0)]);
    }

    #[test]
    fn under_ceilings_one_section_counts() {
        let found = blocking(&usage(LockProtocol::Ceiling(None), &BUTTAZZO));
        assert_eq!(found, [Some(8), Some(7), Some(5), Some(0)]);
    }

    /// Without preemption every task's section counts, also on resources that no more urgent task uses.
    #[test]
    fn spinning_blocks_all() {
        let found =
            blocking(&usage(LockProtocol::Spin, &[[0, 0, 0], [0, 0, 0], [0, 0, 0], [9, 1, 0]]));
        assert_eq!(found, [Some(8), Some(8), Some(8), Some(0)]);
    }

    /// The second task does not use the mutex, but the first one's work comes when it may.
    #[test]
    fn a_plain_mutex_bounds_nothing() {
        let found =
            blocking(&usage(LockProtocol::Plain, &[[1, 0, 0], [0, 0, 0], [2, 0, 0], [0, 3, 0]]));
        assert_eq!(found, [None, None, Some(0), Some(0)]);
    }

    /// A ceiling that is stated counts for those who do not use the resource.
    #[test]
    fn a_higher_ceiling_blocks_more() {
        let of = |ceiling| {
            let mut tasks = vec![Task::new(5, 50, 50).unwrap(); 2];
            tasks[1] = tasks[1].with_critical_sections(&[section(0, 4)]);
            Usage::new(TaskSet::in_order(tasks), vec![LockProtocol::Ceiling(ceiling)])
        };
        let first = |ceiling| of(ceiling).unwrap().blocking(0, TimeModel::Continuous);
        assert_eq!((first(None), first(Some(u32::MAX))), (Some(0), Some(4)));
        assert!(matches!(of(Some(0)), Err(UsageError::LowCeiling { .. })));
    }

    #[test]
    fn what_is_not_bounded_is_refused() {
        let task = Task::new(5, 50, 50).unwrap();
        let of = |first: &Task, held: CriticalSection| {
            let tasks = vec![first.clone(), task.with_critical_sections(&[held])];
            Usage::new(TaskSet::in_order(tasks), vec![LockProtocol::Inheritance])
        };
        assert!(of(&task, section(0, 4)).is_ok());
        assert_eq!(of(&task.with_suspension(1), section(0, 4)), Err(UsageError::Suspension(0)));
        assert_eq!(of(&task, section(1, 4)), Err(UsageError::NoResource(1)));
        assert!(matches!(of(&task, section(0, 6)), Err(UsageError::OverCost { task: 1, .. })));
        let burst = task.with_bursts(&[0]).unwrap();
        for beyond in [burst, task.with_phase(Some(1)), task.with_threshold(u32::MAX).unwrap()] {
            assert_eq!(of(&beyond, section(0, 4)), Err(UsageError::OutsideModel(0)));
        }
    }
}
