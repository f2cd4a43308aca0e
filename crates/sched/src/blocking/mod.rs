//! How long tasks keep each other from shared resources, on one processor.
//!
//! Owns: [`Usage`], who holds what for how long, and what of it delays a task under each protocol:
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
use crate::task::TaskSet;

/// One task holds one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalSection {
    /// Position of the task in its set.
    pub task: usize,
    /// Which resource, by its position among the protocols.
    pub resource: usize,
    /// For how long the task executes in it at most.
    pub length: u64,
}

/// Rules of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The holder runs at the ceiling: the highest priority of all users, or one that is stated.
    /// Under EDF, the stack resource policy, whose ceilings follow from deadlines.
    Ceiling(Option<u32>),
    /// The holder inherits the urgency of whom it blocks.
    Inheritance,
    /// The holder is not preempted.
    Spin,
    /// Nothing is done.
    Plain,
}

/// Sections that cannot be meant, or that are not bounded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A section of a task that is not in the set.
    #[error("a critical section belongs to task {0}, which is not in the set")]
    NoTask(usize),
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
        /// Its ceiling.
        ceiling: u32,
        /// The user's priority.
        priority: u32,
    },
    /// After each suspension a job may be blocked again, and how often it suspends is not known.
    #[error(
        "task {0} suspends itself, and may be blocked anew after each time; this is not bounded"
    )]
    Suspension(usize),
}

/// Tasks, the resources with their protocols, and who holds what for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    set: TaskSet,
    protocols: Vec<Protocol>,
    sections: Vec<CriticalSection>,
    /// The highest priority of the users of each resource, or the ceiling stated.
    ceilings: Vec<u32>,
}

impl Usage {
    /// Resources are numbered by `protocols`. Sections of no length are left out.
    ///
    /// # Errors
    /// Sections without task or resource, or longer than the job; a ceiling that is too low; a task
    /// that suspends itself in a set with sections.
    pub fn new(
        set: TaskSet,
        protocols: Vec<Protocol>,
        sections: &[CriticalSection],
    ) -> Result<Usage, UsageError> {
        let sections: Vec<_> = sections.iter().copied().filter(|s| s.length > 0).collect();
        let mut ceilings = vec![0; protocols.len()];
        for section in &sections {
            let CriticalSection { task, resource, length } = *section;
            let of = set.tasks().get(task).ok_or(UsageError::NoTask(task))?;
            if length > of.cost {
                return Err(UsageError::OverCost { task, length, cost: of.cost });
            }
            let ceiling = ceilings.get_mut(resource).ok_or(UsageError::NoResource(resource))?;
            *ceiling = of.priority.max(*ceiling);
        }
        for (resource, protocol) in protocols.iter().enumerate() {
            if let Protocol::Ceiling(Some(ceiling)) = *protocol {
                let priority = ceilings[resource];
                if ceiling < priority {
                    return Err(UsageError::LowCeiling { resource, ceiling, priority });
                }
                ceilings[resource] = ceiling;
            }
        }
        let suspends = set.tasks().iter().position(|task| task.suspension > 0);
        match suspends.filter(|_| !sections.is_empty()) {
            Some(task) => Err(UsageError::Suspension(task)),
            None => Ok(Usage { set, protocols, sections, ceilings }),
        }
    }

    /// The tasks.
    #[must_use]
    pub fn set(&self) -> &TaskSet {
        &self.set
    }

    /// The protocol of each resource.
    #[must_use]
    pub fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// All sections that have a length.
    #[must_use]
    pub fn sections(&self) -> &[CriticalSection] {
        &self.sections
    }

    /// Sections of tasks of lower priority on resources that somebody of at least this task's
    /// priority uses, or whose ceiling reaches it, or that are not preempted.
    fn against(&self, position: usize) -> Vec<CriticalSection> {
        let Some(own) = self.set.tasks().get(position).map(|task| task.priority) else {
            return Vec::new();
        };
        let blocks = |section: &&CriticalSection| {
            let lower = self.set.tasks()[section.task].priority < own;
            let spins = self.protocols[section.resource] == Protocol::Spin;
            lower && (spins || self.ceilings[section.resource] >= own)
        };
        self.sections.iter().filter(blocks).copied().collect()
    }

    /// How long tasks of lower priority hold up the one at `position`, in all of a busy window;
    /// `None` where nothing bounds it: a plain mutex that it, or somebody more urgent, may have to
    /// wait for while tasks in between prolong the wait.
    ///
    /// Under ceilings and spinning, it is the longest section: the only one that can have begun.
    /// Under inheritance, a section of each task or a section of each resource, whichever sum is
    /// less. If both occur, their sum.
    #[must_use]
    pub fn blocking(&self, position: usize, time: TimeModel) -> Option<u64> {
        total(&self.against(position), &self.protocols, time)
    }

    /// The set with these delays added to what its tasks state; `None` if one is not bounded or has
    /// more than 64 bits.
    #[must_use]
    pub fn with_blocking(&self, time: TimeModel) -> Option<TaskSet> {
        let add = |(position, task): (usize, &crate::task::Task)| {
            let blocking = task.blocking.checked_add(self.blocking(position, time)?)?;
            Some(task.with_blocking(blocking))
        };
        let tasks = self.set.tasks().iter().enumerate().map(add).collect::<Option<Vec<_>>>()?;
        Some(TaskSet::new(tasks))
    }
}

/// What sections that may all have begun delay: see [`Usage::blocking`].
fn total(sections: &[CriticalSection], protocols: &[Protocol], time: TimeModel) -> Option<u64> {
    let (mut at_once, mut of_tasks, mut of_resources) = (0, BTreeMap::new(), BTreeMap::new());
    for section in sections {
        // In discrete time a unit of it has passed.
        let delay = section.length - u64::from(time == TimeModel::Discrete);
        match protocols[section.resource] {
            Protocol::Plain => return None,
            Protocol::Ceiling(_) | Protocol::Spin => at_once = delay.max(at_once),
            Protocol::Inheritance => {
                let of_task: &mut u64 = of_tasks.entry(section.task).or_default();
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
    use crate::task::Task;

    fn usage(protocol: Protocol, lengths: &[[u64; 3]]) -> Usage {
        let tasks = lengths.iter().map(|_| Task::new(20, 1000, 1000).unwrap()).collect();
        let sections: Vec<CriticalSection> = lengths
            .iter()
            .enumerate()
            .flat_map(|(task, of)| {
                let section = move |(resource, length): (usize, &u64)| CriticalSection {
                    task,
                    resource,
                    length: *length,
                };
                of.iter().enumerate().map(section).collect::<Vec<_>>()
            })
            .collect();
        Usage::new(TaskSet::in_order(tasks), vec![protocol; 3], &sections).unwrap()
    }

    /// Buttazzo, Hard Real-Time Computing Systems, chapter 7: four tasks, three semaphores, with the
    /// sections of each; a section delays by its length less one.
    const BUTTAZZO: [[u64; 3]; 4] = [[1, 2, 0], [0, 9, 3], [8, 7, 0], [6, 5, 4]];

    fn blocking(usage: &Usage) -> Vec<Option<u64>> {
        (0..4).map(|task| usage.blocking(task, TimeModel::Discrete)).collect()
    }

    #[test]
    fn inheritance_takes_the_lesser_of_two_sums() {
        let found = blocking(&usage(Protocol::Inheritance, &BUTTAZZO));
        assert_eq!(found, [Some(15), Some(12), Some(5), Some(0)]);
    }

    #[test]
    fn under_ceilings_one_section_counts() {
        let found = blocking(&usage(Protocol::Ceiling(None), &BUTTAZZO));
        assert_eq!(found, [Some(8), Some(7), Some(5), Some(0)]);
    }

    /// Not preempted: everybody's section counts, also on resources that nobody above uses.
    #[test]
    fn spinning_blocks_all() {
        let found = blocking(&usage(Protocol::Spin, &[[0, 0, 0], [0, 0, 0], [0, 0, 0], [9, 1, 0]]));
        assert_eq!(found, [Some(8), Some(8), Some(8), Some(0)]);
    }

    /// The second task does not use the mutex, but the first one's work comes when it may.
    #[test]
    fn a_plain_mutex_bounds_nothing() {
        let found =
            blocking(&usage(Protocol::Plain, &[[1, 0, 0], [0, 0, 0], [2, 0, 0], [0, 3, 0]]));
        assert_eq!(found, [None, None, Some(0), Some(0)]);
    }

    /// A ceiling that is stated counts for those who do not use the resource.
    #[test]
    fn a_higher_ceiling_blocks_more() {
        let of = |ceiling| {
            let tasks = vec![Task::new(5, 50, 50).unwrap(); 2];
            let section = CriticalSection { task: 1, resource: 0, length: 4 };
            Usage::new(TaskSet::in_order(tasks), vec![Protocol::Ceiling(ceiling)], &[section])
        };
        let first = |ceiling| of(ceiling).unwrap().blocking(0, TimeModel::Continuous);
        assert_eq!((first(None), first(Some(u32::MAX))), (Some(0), Some(4)));
        assert!(matches!(of(Some(0)), Err(UsageError::LowCeiling { .. })));
    }

    #[test]
    fn what_is_not_bounded_is_refused() {
        let tasks = vec![Task::new(5, 50, 50).unwrap(), Task::new(5, 50, 50).unwrap()];
        let section = CriticalSection { task: 1, resource: 0, length: 4 };
        let of = |tasks: &[Task], section| {
            Usage::new(TaskSet::in_order(tasks.to_vec()), vec![Protocol::Inheritance], &[section])
        };
        let suspends = [tasks[0].with_suspension(1), tasks[1]];
        assert_eq!(of(&suspends, section), Err(UsageError::Suspension(0)));
        let nobody = CriticalSection { task: 2, ..section };
        assert_eq!(of(&tasks, nobody), Err(UsageError::NoTask(2)));
        let long = CriticalSection { length: 6, ..section };
        assert!(matches!(of(&tasks, long), Err(UsageError::OverCost { .. })));
    }
}
