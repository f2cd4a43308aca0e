//! The set of tasks as a whole.
//!
//! Owns: [`TaskSet`], who is more urgent than whom, what a set says about its CPUs and rates.
//! Must not: judge whether deadlines hold (`sched` does).

use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;

use super::{Fraction, Interference, MachineModel, Program, Protocol, Resource, Server, Task};

/// Tasks, what they share, and the machine that they run on.
///
/// Fields may be set freely; [`TaskSet::check`] says whether it all makes sense. Whatever reads
/// or imports a set has checked it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskSet {
    /// The name of the set; may be empty.
    pub name: String,
    /// Who runs next on each CPU, or on all of them where tasks may move.
    pub scheduler: Scheduler,
    /// How priorities come about, if it was said.
    pub assignment: Option<Assignment>,
    pub machine: MachineModel,
    pub resources: Vec<Resource>,
    pub servers: Vec<Server>,
    /// The tasks, at least one.
    pub tasks: Vec<Task>,
    pub interference: Vec<Interference>,
    /// Threads that are no tasks, because nothing bounds how often they run.
    pub background: Vec<Background>,
    /// The default length of a simulation, above zero: a scenario ends where it has shown what it
    /// is for.
    pub horizon: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// The highest priority; equals first come, first served.
    #[default]
    FixedPriority,
    /// The earliest absolute deadline.
    Edf,
    /// First come, first served, at any priority.
    Fifo,
    /// One after the other for a time slice.
    RoundRobin,
    /// Equal shares.
    Fair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// Every task says its own.
    Given,
    /// The shorter the period, the more urgent (Liu and Layland 1973).
    RateMonotonic,
    /// The shorter the deadline, the more urgent (Leung and Whitehead 1982).
    DeadlineMonotonic,
    /// Priorities as the analysis finds them (Audsley 1991).
    Optimal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// The name of the thread, unlike that of any task.
    pub name: String,
    /// The policy of the thread; `None` for time-sharing at nice 0.
    pub policy: Option<Policy>,
    /// CPUs on which it may run; without them, all of the machine.
    pub cpus: Option<CpuSet>,
    pub program: Program,
}

impl TaskSet {
    /// A set of these tasks on one CPU, by fixed priorities.
    #[must_use]
    pub fn new(tasks: Vec<Task>) -> TaskSet {
        TaskSet { tasks, ..TaskSet::default() }
    }

    #[must_use]
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    #[must_use]
    pub fn server_of(&self, task: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.tasks.iter().any(|name| name == task))
    }

    /// How priorities come about: as it was said; else given if any task has one, else
    /// deadline-monotonic, which for deadlines equal to periods is rate-monotonic.
    #[must_use]
    pub fn assignment(&self) -> Assignment {
        let given = || self.tasks.iter().any(|task| task.priority().is_some());
        self.assignment.unwrap_or_else(|| match given() {
            true => Assignment::Given,
            false => Assignment::DeadlineMonotonic,
        })
    }

    /// The priority of each task, in the order of the set: the larger is more urgent. `None`
    /// stands for a task that has none, and for all tasks where the analysis is to find them.
    ///
    /// Assigned priorities count down to 1 and are all different: of two tasks with equal periods
    /// (or deadlines), the one that stands first is the more urgent.
    #[must_use]
    pub fn priorities(&self) -> Vec<Option<u32>> {
        let key = match self.assignment() {
            Assignment::Given => return self.tasks.iter().map(Task::priority).collect(),
            Assignment::Optimal => return vec![None; self.tasks.len()],
            Assignment::RateMonotonic => |task: &Task| task.period,
            Assignment::DeadlineMonotonic => |task: &Task| task.deadline(),
        };
        let with = |task: &Task| task.has_fixed_priority();
        let mut order: Vec<usize> =
            (0..self.tasks.len()).filter(|position| with(&self.tasks[*position])).collect();
        order.sort_by_key(|position| key(&self.tasks[*position]));
        let mut priorities = vec![None; self.tasks.len()];
        for (priority, position) in (1..).zip(order.into_iter().rev()) {
            priorities[position] = Some(priority);
        }
        priorities
    }

    /// The priority that the holder of `resource` runs at under the ceiling protocol: as given,
    /// else the highest of its users. `None` for other protocols or without a user.
    #[must_use]
    pub fn ceiling(&self, resource: &Resource) -> Option<u32> {
        if resource.protocol != Protocol::Ceiling {
            return None;
        }
        let uses = |task: &Task| {
            task.critical_sections.iter().any(|section| section.resource == resource.name)
        };
        let users = self.tasks.iter().zip(self.priorities());
        let highest = users.filter(|(task, _)| uses(task)).filter_map(|(_, priority)| priority);
        resource.ceiling.or_else(|| highest.max())
    }

    /// The CPUs of the machine: as it was said; else those that tasks, servers and cores name,
    /// and CPU 0 where none is named.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        if let Some(cpus) = &self.machine.cpus {
            return cpus.clone();
        }
        let named = self.tasks.iter().filter_map(|task| task.cpus.as_ref());
        let named = named.chain(self.servers.iter().filter_map(|server| server.cpus.as_ref()));
        let named = named.chain(self.background.iter().filter_map(|thread| thread.cpus.as_ref()));
        let mut cpus = CpuSet::default();
        for cpu in named.chain(&self.machine.cores).flat_map(CpuSet::iter) {
            cpus.insert(cpu);
        }
        if cpus.is_empty() {
            cpus.insert(0);
        }
        cpus
    }

    /// How fast `task` makes progress while `beside` runs on a sibling CPU: the entry that names
    /// both; else the one that names the task, the one that names the other, the one that names
    /// neither; else full speed.
    #[must_use]
    pub fn rate(&self, task: &str, beside: &str) -> Fraction {
        let find = |task: Option<&str>, beside: Option<&str>| {
            let entry = |entry: &&Interference| {
                entry.task.as_deref() == task && entry.beside.as_deref() == beside
            };
            self.interference.iter().find(entry).map(|entry| entry.rate)
        };
        find(Some(task), Some(beside))
            .or_else(|| find(Some(task), None))
            .or_else(|| find(None, Some(beside)))
            .or_else(|| find(None, None))
            .unwrap_or(Fraction::ONE)
    }

    /// The set with the execution times that are known to be needed, where some `wcet` is only an upper bound: what is late in it
    /// is late. `None` without such, or where nothing sensible is left.
    #[must_use]
    pub fn at_least(&self) -> Option<TaskSet> {
        let mut least = self.clone();
        let mut is_lower = false;
        for task in &mut least.tasks {
            let Some(wcet) = task.wcet_at_least.take().filter(|wcet| *wcet < task.wcet) else {
                continue;
            };
            is_lower = true;
            task.wcet = wcet;
            task.bcet = task.bcet.map(|bcet| bcet.min(wcet));
            task.execution_time = None;
        }
        (is_lower && least.check().is_ok()).then_some(least)
    }

    /// The share of a CPU that a task needs in the long run, exactly: wcet / period. `None` for a
    /// period that is not above zero.
    #[must_use]
    pub fn utilisation(task: &Task) -> Option<Fraction> {
        Fraction::new(task.wcet.nanos_or_zero(), task.period.nanos_or_zero())
    }
}
