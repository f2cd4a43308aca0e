//! What was understood of a description, with everything that was not said filled in.
//!
//! Owns: the facts, in their order, each with where it comes from. Must not: lay them out
//! (`report` does), judge.

use std::fmt;

use hourglass_documents::explanation::{Explanation, Fact, FactOrigin, Subject};

use super::keywords::{self, word};
use super::{
    Assignment, Background, Preemption, Protocol, Resource, Scheduler, Server, Task, TaskSet,
};

impl TaskSet {
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let mut subjects = vec![about_set(self), about_machine(self)];
        subjects.extend(self.resources.iter().map(|resource| about_resource(self, resource)));
        subjects.extend(self.servers.iter().map(about_server));
        let priorities = self.priorities();
        let tasks = self.tasks.iter().zip(priorities);
        subjects.extend(tasks.map(|(task, priority)| about_task(self, task, priority)));
        subjects.extend(self.interference.iter().map(|entry| {
            let mut facts = FactList::default();
            facts.or("task", entry.task.as_ref(), "any");
            facts.or("beside", entry.beside.as_ref(), "any");
            facts.given("rate", entry.rate);
            facts.about("interference", "")
        }));
        subjects.extend(self.background.iter().map(about_background));
        let warnings = self.warnings().iter().map(ToString::to_string).collect();
        Explanation { subjects, warnings }
    }
}

#[derive(Default)]
struct FactList(Vec<Fact>);

impl FactList {
    fn put(&mut self, key: &'static str, value: impl fmt::Display, origin: FactOrigin) {
        self.0.push(Fact { key, value: value.to_string(), origin });
    }

    fn given(&mut self, key: &'static str, value: impl fmt::Display) {
        self.put(key, value, FactOrigin::Given);
    }

    fn derived(&mut self, key: &'static str, value: impl fmt::Display) {
        self.put(key, value, FactOrigin::Derived);
    }

    /// A word of a choice, which counts as said where it is not the one that holds anyway.
    fn choice<T: PartialEq + Default>(
        &mut self,
        key: &'static str,
        words: &[(&'static str, T)],
        value: &T,
    ) {
        let origin = if *value == T::default() { FactOrigin::Default } else { FactOrigin::Given };
        self.put(key, word(words, value), origin);
    }

    fn or(&mut self, key: &'static str, given: Option<impl fmt::Display>, then: impl fmt::Display) {
        match given {
            Some(value) => self.given(key, value),
            None => self.put(key, then, FactOrigin::Default),
        }
    }

    fn list(&mut self, key: &'static str, items: &[impl fmt::Display]) {
        if !items.is_empty() {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            self.given(key, items.join(", "));
        }
    }

    fn about(self, kind: &'static str, name: &str) -> Subject {
        Subject { kind, name: name.to_owned(), facts: self.0 }
    }
}

fn about_set(set: &TaskSet) -> Subject {
    let mut facts = FactList::default();
    facts.choice("scheduler", &keywords::SCHEDULERS, &set.scheduler);
    let assigned = word(&keywords::ASSIGNMENTS, &set.assignment());
    let origin = match (set.assignment, set.assignment()) {
        (Some(_), _) => FactOrigin::Given,
        (None, Assignment::Given) => FactOrigin::Derived,
        (None, _) => FactOrigin::Default,
    };
    let said = set.assignment.is_some() && origin == FactOrigin::Given;
    if said || set.scheduler == Scheduler::FixedPriority {
        facts.put("priorities", assigned, origin);
    }
    if let Some(horizon) = set.horizon {
        facts.given("horizon", horizon);
    }
    facts.derived("tasks", set.tasks.len());
    facts.about("set", &set.name)
}

fn about_machine(set: &TaskSet) -> Subject {
    let mut facts = FactList::default();
    match &set.machine.cpus {
        Some(cpus) => facts.given("cpus", cpus),
        None => facts.derived("cpus", set.cpus()),
    }
    let cores: Vec<String> = set.machine.cores.iter().map(|core| format!("[{core}]")).collect();
    let cores = Some(cores.join(", ")).filter(|cores| !cores.is_empty());
    facts.or("cores", cores, "each CPU its own");
    let overheads = &set.machine.overheads;
    facts.or("context_switch", overheads.context_switch, "0s");
    facts.or("tick_period", overheads.tick_period, "no tick");
    facts.or("tick_cost", overheads.tick_cost, "0s");
    facts.or("timer_granularity", overheads.timer_granularity, "1ns");
    facts.or("cache_delay", overheads.cache_delay, "0s");
    facts.about("machine", "")
}

fn about_resource(set: &TaskSet, resource: &Resource) -> Subject {
    let mut facts = FactList::default();
    facts.choice("protocol", &keywords::PROTOCOLS, &resource.protocol);
    match (resource.ceiling, set.ceiling(resource)) {
        (Some(ceiling), _) => facts.given("ceiling", ceiling),
        (None, Some(ceiling)) => facts.derived("ceiling", ceiling),
        (None, None) if resource.protocol == Protocol::Ceiling => {
            facts.derived("ceiling", "not known before priorities are");
        }
        (None, None) => {}
    }
    facts.about("resource", &resource.name)
}

fn about_server(server: &Server) -> Subject {
    let mut facts = FactList::default();
    facts.given("kind", word(&keywords::SERVER_KINDS, &server.kind));
    facts.given("budget", server.budget);
    facts.given("period", server.period);
    facts.or("deadline", server.deadline, server.period);
    facts.or("priority", server.priority, "none");
    facts.or("cpus", server.cpus.as_ref(), "all");
    facts.choice("scheduler", &keywords::SCHEDULERS, &server.scheduler);
    facts.list("tasks", &server.tasks);
    facts.about("server", &server.name)
}

fn about_task(set: &TaskSet, task: &Task, priority: Option<u32>) -> Subject {
    let mut facts = FactList::default();
    facts.choice("activation", &keywords::ACTIVATIONS, &task.activation);
    facts.given("period", task.period);
    facts.given("wcet", task.wcet);
    facts.or("wcet_at_least", task.wcet_at_least, task.wcet);
    facts.or("bcet", task.bcet, "not known");
    facts.or("execution_time", task.execution_time.as_ref(), task.wcet);
    facts.or("deadline", task.deadline, task.period);
    let zero = |value: hourglass_time::Span| Some(value).filter(|value| !value.is_zero());
    facts.or("jitter", zero(task.jitter), "0s");
    facts.or("offset", task.offset, "any");
    facts.or("blocking", zero(task.blocking), "0s");
    facts.or("suspension", zero(task.suspension), "0s");
    preemption(task, &mut facts);
    match (task.priority, task.policy, priority) {
        (Some(priority), ..) => facts.given("priority", priority),
        (None, Some(policy), _) => facts.given("policy", policy),
        _ if !has_priorities(set, task) => {}
        (None, None, Some(priority)) => facts.derived("priority", priority),
        (None, None, None) => facts.derived("priority", "to be found"),
    }
    facts.or("cpus", task.cpus.as_ref(), "all");
    facts.list("arrivals", &task.arrivals);
    facts.list("after", &task.after);
    let sections = task.critical_sections.iter();
    let section = |s: &super::CriticalSection| format!("{} {} x {}", s.resource, s.count, s.length);
    facts.list("critical_sections", &sections.map(section).collect::<Vec<_>>());
    facts.or("timer", task.timer.as_ref(), "the run's own");
    if let Some(tick) = task.tick() {
        facts.or("tick_jitter", task.tick_jitter, tick);
    }
    if let Some(server) = set.server_of(&task.name) {
        facts.derived("server", &server.name);
    }
    if let Some(program) = &task.program {
        facts.given("phases", program.phases.len());
    }
    if let Some(utilisation) = TaskSet::utilisation(task) {
        facts.derived("utilisation", utilisation);
    }
    facts.about("task", &task.name)
}

/// Whether the scheduler of the task knows priorities.
fn has_priorities(set: &TaskSet, task: &Task) -> bool {
    let inner = set.server_of(&task.name).map(|server| server.scheduler);
    inner.unwrap_or(set.scheduler) == Scheduler::FixedPriority
}

fn preemption(task: &Task, facts: &mut FactList) {
    match task.preemption {
        Preemption::Full => facts.put("preemptive", true, FactOrigin::Default),
        Preemption::None => facts.given("preemptive", false),
        Preemption::Threshold(priority) => facts.given("preemption_threshold", priority),
        Preemption::Limited { longest, last } => {
            facts.given("longest_section", longest);
            facts.given("last_section", last);
        }
        Preemption::Floating { longest } => facts.given("floating_section", longest),
    }
}

fn about_background(thread: &Background) -> Subject {
    let mut facts = FactList::default();
    facts.or("policy", thread.policy, "OTHER:0");
    facts.or("cpus", thread.cpus.as_ref(), "all");
    facts.given("phases", thread.program.phases.len());
    facts.about("background", &thread.name)
}
