//! Steps as the simulator takes them: programs become scripts, names become numbers.
//!
//! Owns: what each step means in a simulation, and saying what takes an unknown time. Must not:
//! decide which threads follow their steps.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::{CpuSet, Policy};
use hourglass_sim::{self as sim, Class, Script, SimPhase, SimStep, System};
use hourglass_tasks::{Background, Program, ProgramStep, Protocol, Task, TaskSet};

use super::SimulationFailure;
use super::system::{Warnings, ns, warn};

/// The numbers of what the threads of a set share by name.
pub(super) struct Numbers {
    locks: BTreeMap<String, usize>,
    conditions: BTreeMap<String, usize>,
    suspends: BTreeMap<String, usize>,
    semaphores: BTreeMap<String, usize>,
    barriers: BTreeMap<String, usize>,
    /// Threads that come to each barrier.
    parties: Vec<u32>,
    timers: BTreeMap<(String, String), usize>,
    starts: BTreeMap<String, usize>,
    events: usize,
}

/// The number of a name, the next one if it has none.
fn number<K: Ord>(numbers: &mut BTreeMap<K, usize>, name: K) -> usize {
    let next = numbers.len();
    *numbers.entry(name).or_insert(next)
}

impl Numbers {
    pub(super) fn of(set: &TaskSet) -> Numbers {
        let locks = set.resources.iter().zip(0..);
        Numbers {
            locks: locks.map(|(resource, number)| (resource.name.clone(), number)).collect(),
            conditions: BTreeMap::new(),
            suspends: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            barriers: BTreeMap::new(),
            parties: Vec::new(),
            timers: BTreeMap::new(),
            starts: BTreeMap::new(),
            events: 0,
        }
    }

    /// Conditions and suspended threads are events of one kind, by names of two.
    fn event(&mut self, suspends: bool, name: &str) -> usize {
        let names = if suspends { &mut self.suspends } else { &mut self.conditions };
        *names.entry(name.to_owned()).or_insert_with(|| {
            self.events += 1;
            self.events - 1
        })
    }

    fn lock(&mut self, name: &str) -> usize {
        number(&mut self.locks, name.to_owned())
    }

    /// The script of a program whose thread starts then, ns.
    pub(super) fn script(
        &mut self,
        thread: &str,
        program: &Program,
        start: u64,
        cpus: &[u32],
    ) -> Script {
        let mut met = BTreeSet::new();
        let is_forked = program.forked().is_some();
        let mut phases = Vec::new();
        for phase in &program.phases {
            let acts = phase.steps.iter().map(|step| self.act(thread, step, is_forked, &mut met));
            let on = phase
                .cpus
                .as_ref()
                .map_or(Vec::new(), |on| super::system::positions(on.iter(), cpus));
            phases.push(SimPhase {
                loops: phase.loops,
                class: phase.policy.map(class_of),
                cpus: on,
                acts: acts.flatten().collect(),
            });
        }
        Script { start, loops: program.loops, phases, beginning: program.beginning() }
    }

    /// Each thread with a barrier is one of its parties, however often its steps come to it; but a thread that
    /// is forked, as in a run.
    fn barrier(&mut self, name: &str, is_forked: bool, met: &mut BTreeSet<usize>) -> usize {
        let barrier = number(&mut self.barriers, name.to_owned());
        if barrier == self.parties.len() {
            self.parties.push(0);
        }
        if met.insert(barrier) && !is_forked {
            self.parties[barrier] += 1;
        }
        barrier
    }

    /// The acts of a step; none where it takes no time in a simulation.
    fn act(
        &mut self,
        thread: &str,
        step: &ProgramStep,
        is_forked: bool,
        met: &mut BTreeSet<usize>,
    ) -> Option<SimStep> {
        Some(match step {
            ProgramStep::Run(time) => SimStep::Run(ns(*time)),
            ProgramStep::RunFor(time) => SimStep::RunFor(ns(*time)),
            ProgramStep::Sleep(time) => SimStep::Sleep(ns(*time)),
            ProgramStep::Timer { name, period, absolute } => {
                // Timers are shared by name, but for those that rt-app calls unique.
                let owner = if name.starts_with("unique") { thread } else { "" };
                let timer = number(&mut self.timers, (owner.to_owned(), name.clone()));
                SimStep::Timer { timer, period: ns(*period), absolute: *absolute }
            }
            ProgramStep::Lock(name) => SimStep::Lock(self.lock(name)),
            ProgramStep::Unlock(name) => SimStep::Unlock(self.lock(name)),
            ProgramStep::Wait { condition, mutex } => {
                SimStep::Wait { event: self.event(false, condition), lock: self.lock(mutex) }
            }
            ProgramStep::Signal(name) => SimStep::Signal(self.event(false, name)),
            ProgramStep::Broadcast(name) => SimStep::Broadcast(self.event(false, name)),
            ProgramStep::Barrier(name) => SimStep::Barrier(self.barrier(name, is_forked, met)),
            ProgramStep::Suspend(name) => SimStep::Suspend(self.event(true, name)),
            ProgramStep::Resume(name) => SimStep::Broadcast(self.event(true, name)),
            ProgramStep::Post(name) => SimStep::Post(number(&mut self.semaphores, name.clone())),
            ProgramStep::Take(name) => SimStep::Take(number(&mut self.semaphores, name.clone())),
            ProgramStep::Yield => SimStep::Yield,
            ProgramStep::Fork(name) => SimStep::Fork(number(&mut self.starts, name.clone())),
            ProgramStep::Forked { name, number: which } => SimStep::Forked {
                start: number(&mut self.starts, name.clone()),
                number: u64::from(*which),
            },
            ProgramStep::StartAfter(time) => SimStep::StartAt(ns(*time)),
            // The time of these steps is not known.
            _ => return None,
        })
    }

    /// Adds to a system what scripts share: locks that no task executes under, and barriers. Such a lock has the
    /// protocol of the others, if these all have the same.
    pub(super) fn complete(self, set: &TaskSet, system: &mut System) {
        let inherits = |protocol: Protocol| protocol == Protocol::Inheritance;
        let all = set.resources.iter().all(|resource| inherits(resource.protocol));
        let protocol = match all && !set.resources.is_empty() {
            true => sim::SimLockProtocol::Inheritance,
            false => sim::SimLockProtocol::Plain,
        };
        system.resources.resize(self.locks.len().max(system.resources.len()), protocol);
        system.barriers = self.parties;
    }
}

/// The class of a policy in a phase.
pub(super) fn class_of(policy: Policy) -> Class {
    match policy {
        Policy::Other(nice) => Class::Fair(nice),
        Policy::Batch => Class::Fair(0),
        Policy::Idle => Class::Idle,
        Policy::Fifo(priority) => Class::Fifo(priority.into()),
        Policy::RoundRobin(priority) => Class::RoundRobin(priority.into()),
        Policy::Deadline => Class::Edf,
    }
}

/// Whether a background thread does more than executing for ever.
pub(super) fn has_steps(thread: &Background) -> bool {
    let program = &thread.program;
    let mut steps = program.phases.iter().flat_map(|phase| &phase.steps);
    let executes = steps.all(|step| matches!(step, ProgramStep::Run(_) | ProgramStep::RunFor(_)));
    let for_ever = program.loops.is_none() || program.phases.iter().any(|p| p.loops.is_none());
    let changes = program.phases.iter().any(|p| p.policy.is_some() || p.cpus.is_some());
    !executes || !for_ever || changes || program.phases.is_empty()
}

/// Whether any thread of a set follows steps in a simulation.
pub(super) fn any(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| task.program.is_some()) || set.background.iter().any(has_steps)
}

/// CPUs that phases name.
pub(super) fn cpus(set: &TaskSet) -> impl Iterator<Item = u32> {
    let tasks = set.tasks.iter().filter_map(|task| task.program.as_ref());
    let programs = tasks.chain(set.background.iter().map(|thread| &thread.program));
    programs
        .flat_map(|program| &program.phases)
        .filter_map(|phase| phase.cpus.as_ref())
        .flat_map(CpuSet::iter)
}

/// Says which steps take no time in a simulation, and refuses forks that start nothing.
pub(super) fn check(set: &TaskSet, warnings: &mut Warnings) -> Result<(), SimulationFailure> {
    let tasks =
        set.tasks.iter().filter_map(|task: &Task| Some((&task.name, task.program.as_ref()?)));
    let all = || tasks.clone().chain(set.background.iter().map(|one| (&one.name, &one.program)));
    let steps = |program: &'_ Program| -> Vec<ProgramStep> {
        program.phases.iter().flat_map(|phase| phase.steps.clone()).collect()
    };
    let started: BTreeSet<String> = all()
        .flat_map(|(_, program)| steps(program))
        .filter_map(|step| match step {
            ProgramStep::Forked { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    for (name, program) in all() {
        let steps = steps(program);
        let lost = steps.iter().find_map(|step| match step {
            ProgramStep::Fork(started_name) if !started.contains(started_name) => {
                Some(started_name)
            }
            _ => None,
        });
        if let Some(lost) = lost {
            return Err(SimulationFailure::Refused(format!(
                "thread '{name}': fork {lost} starts no thread; give one the first step 'forked \
                 {lost} 0', or leave the fork out"
            )));
        }
        let has_no_time = |step: &ProgramStep| {
            matches!(
                step,
                ProgramStep::Memory(_)
                    | ProgramStep::Io(_)
                    | ProgramStep::Read { .. }
                    | ProgramStep::Write { .. }
                    | ProgramStep::Chase { .. }
            )
        };
        if let Some(step) = steps.iter().find(|step| has_no_time(step)) {
            let text = format!(
                "thread '{name}': the step '{step}' takes no time in a simulation, because its \
                 duration is unknown"
            );
            warn(warnings, "steps", text, "measure it with hourglass run, and write run TIME");
        }
    }
    Ok(())
}
