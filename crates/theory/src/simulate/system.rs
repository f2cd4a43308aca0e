//! From a set of tasks to the simulator's system.
//!
//! Owns: what each key of a file means in a simulation, and saying what it cannot mean. Must not:
//! simulate, or leave out a key without a word.

use hourglass_documents::Policy;
use hourglass_documents::document::Warning;
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, OverrunPolicy, System, Thread, Throttling,
};
use hourglass_tasks::{Background, Protocol, Scheduler, Task, TaskSet};
use hourglass_time::Span;

use super::job;
use super::script::{self, Numbers};
use super::servers;
use super::{Releases, SimulationFailure};

/// A set of tasks as the simulator takes it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The system. Its first threads are the tasks in the order of the set, then come the
    /// background threads.
    pub system: System,
    /// How many threads are tasks.
    pub tasks: usize,
    /// The name of each thread.
    pub names: Vec<String>,
    /// The machine's number of each simulated CPU.
    pub cpus: Vec<u32>,
    /// Warnings about keys with another or no meaning in a simulation.
    pub warnings: Vec<Warning>,
    /// Whether something is drawn, so that nothing repeats after a hyperperiod.
    pub is_drawn: bool,
}

/// How a set is simulated, as far as its file leaves that open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    pub releases: Releases,
    /// The treatment of jobs that are released while an earlier one runs.
    pub late: OverrunPolicy,
    /// The kernel's limit on fixed priorities.
    pub throttling: Option<Throttling>,
    /// Whether threads with steps follow them; else a task has jobs of its wcet, and a background thread always
    /// wants a CPU.
    pub follows_steps: bool,
}

/// Adds to the list what means something else than it says.
pub(super) type Warnings = Vec<Warning>;

pub(super) fn warn(warnings: &mut Warnings, id: &str, text: String, remedy: &str) {
    warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.to_owned() });
}

/// A length of time that the set has checked not to be negative.
pub(super) fn ns(span: Span) -> u64 {
    span.nanos_or_zero()
}

/// The simulator's system for a set that was checked.
///
/// # Errors
/// Something that cannot be simulated and without which the outcome would be of another set.
pub fn model(set: &TaskSet, choices: Choices) -> Result<Model, SimulationFailure> {
    let mut warnings = Warnings::new();
    for warning in set.warnings() {
        warn(&mut warnings, "task-set", warning.to_string(), "");
    }
    let mut cpus = set.cpus();
    if choices.follows_steps {
        script::cpus(set).for_each(|cpu| cpus.insert(cpu));
    }
    let cpus: Vec<u32> = cpus.iter().collect();
    let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let mut system = System::new(count);
    system.cores = set.machine.cores.iter().map(|core| positions(core.iter(), &cpus)).collect();
    system.throttling = choices.throttling;
    overheads(set, &mut system);
    let ranks = servers::Ranks::of(set, &mut warnings)?;
    for server in &set.servers {
        system.servers.push(ranks.server(server, &mut warnings));
    }
    for resource in &set.resources {
        let protocol = match resource.protocol {
            Protocol::Spin => sim::SimLockProtocol::Spin,
            Protocol::Plain => sim::SimLockProtocol::Plain,
            Protocol::Inheritance => sim::SimLockProtocol::Inheritance,
            Protocol::Ceiling => ranks.ceiling(set, resource, &mut warnings),
        };
        system.resources.push(protocol);
    }
    let mut numbers = Numbers::of(set);
    if choices.follows_steps {
        script::check(set, &mut warnings)?;
    }
    for (position, task) in set.tasks.iter().enumerate() {
        let class = class(set, task, ranks.priority(position));
        let mut thread = job::thread(set, task, class, choices, &mut warnings)?;
        if let Some(program) = task.program.as_ref().filter(|_| choices.follows_steps) {
            let start = task.offset.map_or(0, ns);
            let script = numbers.script(&task.name, program, start, &cpus);
            thread = job::scripted(thread, script);
        }
        let on = set.server_of(&task.name).and_then(|server| server.cpus.as_ref());
        let on = task.cpus.as_ref().or(on);
        let on = on.map_or(Vec::new(), |allowed| positions(allowed.iter(), &cpus));
        system.threads.push(thread.on(&on));
    }
    for thread in &set.background {
        let on = thread.cpus.as_ref().map_or(Vec::new(), |on| positions(on.iter(), &cpus));
        let follows = choices.follows_steps && script::has_steps(thread);
        let found = match follows {
            true => {
                let script = numbers.script(&thread.name, &thread.program, 0, &cpus);
                Thread::scripted(background_class(thread), script, u64::MAX)
            }
            false => background(thread, &mut warnings),
        };
        system.threads.push(found.on(&on));
    }
    numbers.complete(set, &mut system);
    let names: Vec<String> = set.tasks.iter().map(|task| &task.name).cloned().collect();
    let background = set.background.iter().map(|thread| thread.name.clone());
    let names: Vec<String> = names.into_iter().chain(background).collect();
    interference(set, &names, &mut system);
    if choices.releases == Releases::Critical && set.tasks.iter().all(|task| task.offset.is_none())
    {
        system.align_worst_releases();
    }
    phases(set, &mut warnings);
    let is_drawn = set.tasks.iter().any(|task| is_drawn(task, choices.releases));
    Ok(Model { system, tasks: set.tasks.len(), names, cpus, warnings, is_drawn })
}

/// The position of each CPU in the machine's list.
pub(super) fn positions(wanted: impl Iterator<Item = u32>, cpus: &[u32]) -> Vec<u32> {
    let position = |cpu: u32| cpus.iter().position(|known| *known == cpu);
    wanted.filter_map(|cpu| u32::try_from(position(cpu)?).ok()).collect()
}

fn overheads(set: &TaskSet, system: &mut System) {
    let given = &set.machine.overheads;
    let time = |span: Option<Span>| span.map_or(0, ns);
    system.overheads.context_switch = time(given.context_switch);
    system.overheads.tick_period = time(given.tick_period);
    system.overheads.tick_cost = time(given.tick_cost);
    system.overheads.cache_delay = time(given.cache_delay);
}

/// How a task competes: by the policy that it names, else as the set's scheduler (or its server's)
/// orders.
fn class(set: &TaskSet, task: &Task, priority: u32) -> Class {
    let scheduler = set.server_of(&task.name).map_or(set.scheduler, |server| server.scheduler);
    match (task.policy, scheduler) {
        (Some(Policy::Other(nice)), _) => Class::Fair(nice),
        (Some(Policy::Batch), _) => Class::Fair(0),
        (Some(Policy::Idle), _) => Class::Idle,
        (Some(Policy::Deadline), _) | (_, Scheduler::Edf) => Class::Edf,
        (Some(Policy::RoundRobin(_)), Scheduler::FixedPriority) => Class::RoundRobin(priority),
        (_, Scheduler::FixedPriority) => Class::Fifo(priority),
        (_, Scheduler::Fifo) => Class::Fifo(1),
        (_, Scheduler::RoundRobin) => Class::RoundRobin(1),
        (_, Scheduler::Fair) => Class::Fair(0),
    }
}

/// A background thread wants the CPU for ever; only steps that execute are simulated.
fn background(thread: &Background, warnings: &mut Warnings) -> Thread {
    if script::has_steps(thread) {
        let text = format!(
            "background thread '{}': simulated as if it always wanted a CPU; its steps and loops \
             are not followed",
            thread.name
        );
        warn(warnings, "background-steps", text, "");
    }
    let class = background_class(thread);
    Thread::new(class, ArrivalPattern::Always { offset: 0 }, CostModel::Worst(1), u64::MAX)
}

/// How a background thread competes.
fn background_class(thread: &Background) -> Class {
    thread.policy.map_or(Class::Fair(0), script::class_of)
}

/// Rates below 1, of every thread beside every other.
fn interference(set: &TaskSet, names: &[String], system: &mut System) {
    if !set.machine.has_siblings() {
        return;
    }
    for (thread, name) in names.iter().enumerate() {
        for (beside, other) in names.iter().enumerate() {
            let rate = set.rate(name, other);
            if thread != beside && rate < hourglass_tasks::Fraction::ONE {
                system.interference.set(thread, beside, rate);
            }
        }
    }
}

/// Where phases are open, one of them is simulated.
fn phases(set: &TaskSet, warnings: &mut Warnings) {
    let open = set.tasks.iter().filter(|task| task.offset.is_none()).count();
    if open > 0 && open < set.tasks.len() {
        let all = set.tasks.len();
        let text = format!("{open} of {all} tasks have no offset: their first jobs arrive at 0");
        warn(warnings, "phases", text, "give each task an offset");
    }
}

fn is_drawn(task: &Task, releases: Releases) -> bool {
    let varies = task
        .execution_time
        .as_ref()
        .is_some_and(|times| !matches!(times, hourglass_documents::ExecutionTime::Fixed(_)));
    let released = releases == Releases::Random
        && (task.jitter.is_positive() || task.activation == hourglass_tasks::Activation::Sporadic);
    varies || released
}
