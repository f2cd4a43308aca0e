//! A case as a set of tasks.
//!
//! Owns: which noun of [`tasks`](crate) each field becomes. Must not: judge.

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::{Case, CaseFlow, CaseTask};
use crate::{
    Activation, Assignment, CriticalSection, Location, Preemption, Protocol, Resource, Scheduler,
    Server, ServerKind, Task, TaskSet, TaskSetError,
};

impl Case {
    /// The case as a set of tasks, one unit of its time being a nanosecond. Tasks are called
    /// `task-1` and so on, steps of chains `flow-1.1` and so on.
    ///
    /// # Errors
    /// The case has no tasks, or a number in it cannot be meant or has more than 63 bits.
    pub fn task_set(&self) -> Result<TaskSet, TaskSetError> {
        let mut set =
            TaskSet { name: self.id.clone(), scheduler: self.scheduler(), ..TaskSet::default() };
        if let Some(count) = self.m {
            set.machine.cpus = Some(cpus(count)?);
        }
        let tasks = if self.tasks.is_empty() { &self.periodic } else { &self.tasks };
        for (position, task) in tasks.iter().enumerate() {
            set.tasks.push(self.task(task, position, tasks.len())?);
        }
        for (position, flow) in self.flows.iter().enumerate() {
            add_flow(&mut set, flow, position, &self.processors())?;
        }
        let has_priorities = set.tasks.iter().any(|task| task.priority.is_some());
        set.assignment = has_priorities.then_some(Assignment::Given);
        if self.cs.is_some() {
            let (name, protocol) = (LOCK.to_owned(), Protocol::Spin);
            set.resources.push(Resource { name, protocol, ceiling: None });
        }
        self.add_servers(&mut set)?;
        set.check_names()?;
        set.check()?;
        Ok(set)
    }

    fn scheduler(&self) -> Scheduler {
        match self.kind.as_str() {
            "edf-preemptive"
            | "edf-nonpreemptive"
            | "edf-floating-np"
            | "edf-limited-preemptive"
            | "edf-feasibility"
            | "edf-trace"
            | "global-edf"
            | "cbs"
            | "dbf"
            | "dl-admission" => Scheduler::Edf,
            "fifo" => Scheduler::Fifo,
            _ => Scheduler::FixedPriority,
        }
    }

    fn task(&self, task: &CaseTask, position: usize, count: usize) -> Result<Task, TaskSetError> {
        let name = format!("task-{}", position + 1);
        let place = Location::named("task", &name);
        let time = |key: &str, value: u64| span(&place, key, value);
        let mut model = Task {
            activation: Activation::Sporadic,
            deadline: task.d.map(|d| time("d", d)).transpose()?,
            jitter: time("j", task.j)?,
            blocking: time("b", task.b)?,
            suspension: time("s", task.s)?,
            ..Task::new(&name, time("c", task.c)?, time("t", task.t)?)
        };
        let longest = time("np", task.np)?;
        model.preemption = match self.kind.as_str() {
            "fp-nonpreemptive" | "edf-nonpreemptive" => Preemption::None,
            // Of a floating segment it is not known where it lies, so that the last is not either.
            "fp-floating-np" | "edf-floating-np" if longest.is_positive() => {
                Preemption::Floating { longest }
            }
            "fp-limited-preemptive" | "edf-limited-preemptive" if longest.is_positive() => {
                Preemption::Limited { longest, last: time("last", task.last.max(1))? }
            }
            _ => Preemption::Full,
        };
        if self.kind == SPIN_LOCK {
            let mut one = CpuSet::default();
            one.insert(small(&place, "p", task.p.unwrap_or(0))?);
            model.cpus = Some(one);
            model.critical_sections = self.sections(&place)?;
        }
        if self.scheduler() == Scheduler::FixedPriority {
            let by_order = u32::try_from(count - position).ok();
            let given = task.p.filter(|_| self.kind != SPIN_LOCK);
            let given = given.map(|p| small(&place, "p", p)).transpose()?;
            model.priority = given.or(by_order);
        }
        Ok(model)
    }

    fn sections(&self, place: &Location) -> Result<Vec<CriticalSection>, TaskSetError> {
        let section = |length| {
            let length = span(place, "cs", length)?;
            Ok(CriticalSection { resource: LOCK.to_owned(), length, count: 1 })
        };
        self.cs.into_iter().map(section).collect()
    }

    /// The processors of chains, in the order of their first mention.
    fn processors(&self) -> Vec<&str> {
        let mut known: Vec<&str> = Vec::new();
        for (_, processor, _) in self.flows.iter().flat_map(|flow| &flow.steps) {
            if !known.contains(&processor.as_str()) {
                known.push(processor);
            }
        }
        known
    }

    fn add_servers(&self, set: &mut TaskSet) -> Result<(), TaskSetError> {
        for (position, server) in self.servers.iter().enumerate() {
            let name = format!("server-{}", position + 1);
            let place = Location::named("server", &name);
            let (q, p) = (span(&place, "q", server.q)?, span(&place, "p", server.p)?);
            set.servers.push(Server::new(&name, ServerKind::CbsSoft, q, p));
        }
        let (Some(budget), Some(period)) = (self.budget, self.period) else { return Ok(()) };
        let place = Location::named("server", RESERVATION);
        let (budget, period) = (span(&place, "budget", budget)?, span(&place, "period", period)?);
        let kind = match self.deadline {
            Some(_) => ServerKind::ExplicitDeadline,
            None => ServerKind::PeriodicResource,
        };
        set.servers.push(Server {
            deadline: self.deadline.map(|d| span(&place, "deadline", d)).transpose()?,
            tasks: set.tasks.iter().map(|task| task.name.clone()).collect(),
            ..Server::new(RESERVATION, kind, budget, period)
        });
        Ok(())
    }
}

/// Cases whose `p` is a processor, and that have one lock.
const SPIN_LOCK: &str = "mp-spinlock";

const LOCK: &str = "lock";

/// The reservation that all tasks of a case run in.
const RESERVATION: &str = "reservation";

fn span(place: &Location, key: &str, value: u64) -> Result<Span, TaskSetError> {
    let time = i64::try_from(value).map(Span::from_nanos);
    time.map_err(|_| place.bad(key, value, "more than 63 bits"))
}

/// A priority or the number of a processor.
fn small(place: &Location, key: &str, value: u64) -> Result<u32, TaskSetError> {
    u32::try_from(value).map_err(|_| place.bad(key, value, "more than 32 bits"))
}

fn cpus(count: u64) -> Result<CpuSet, TaskSetError> {
    let wrong = || Location::file().bad("m", count, "give the number of CPUs, from 1 to 8192");
    let last = count.checked_sub(1).ok_or_else(wrong)?;
    format!("0-{last}").parse().map_err(|_| wrong())
}

fn add_flow(
    set: &mut TaskSet,
    flow: &CaseFlow,
    position: usize,
    processors: &[&str],
) -> Result<(), TaskSetError> {
    let mut before: Option<String> = None;
    for (step, (cost, processor, priority)) in flow.steps.iter().enumerate() {
        let name = format!("flow-{}.{}", position + 1, step + 1);
        let place = Location::named("task", &name);
        let mut one = CpuSet::default();
        let cpu = processors.iter().position(|known| known == processor);
        one.insert(cpu.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0));
        set.tasks.push(Task {
            activation: Activation::Sporadic,
            deadline: Some(span(&place, "d", flow.d)?),
            priority: Some(small(&place, "priority", *priority)?),
            cpus: Some(one),
            after: before.into_iter().collect(),
            ..Task::new(&name, span(&place, "cost", *cost)?, span(&place, "t", flow.t)?)
        });
        before = Some(name);
    }
    Ok(())
}
