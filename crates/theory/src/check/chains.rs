//! Tasks that are released by others: chains across the CPUs that their tasks are pinned to, or share.
//!
//! Owns: which descriptions are chains of steps, and what the answer for chains says of their tasks.
//! Must not: bound anything itself.

use hourglass_documents::check::{TaskFacts, Verdict};
use hourglass_sched::catalogue::{AnalysisEntry, Method, Rule, Situation};
use hourglass_sched::chains::holistic::{self, Holistic};
use hourglass_sched::chains::{ChainSystem, Flow, Service, Step};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::TimeModel;
use hourglass_sched::sensitivity::ScaleTest;
use hourglass_sched::{Refusal, ResponseBound, Verdict as Judged, checker};
use hourglass_tasks::{Preemption, TaskSet};

use super::parameters::NO_OFFSETS;
use super::placement;
use super::processor::{NoteList, Processor};
use super::proof;
use super::solve::{NO_PROOF, ProcessorSolution, TOO_MUCH, note_response};

/// A set whose tasks release each other, as the analysis knows it.
pub(super) struct ChainedTasks {
    pub(super) processors: Vec<Processor>,
    /// The positions of tasks, by chain and step.
    chains: Vec<Vec<usize>>,
    system: ChainSystem,
}

/// The answer for each processor; notes say what was assumed.
///
/// # Errors
/// The tasks are no chains that the analysis knows, in a sentence.
pub(super) fn solve(
    set: &TaskSet,
    asked: Option<&AnalysisEntry>,
    notes: &mut NoteList,
) -> Result<Vec<ProcessorSolution>, String> {
    if let Some(other) = asked.filter(|entry| !matches!(entry.method, Method::Chains)) {
        return Err(format!(
            "tasks release each other, which {} does not know; ask holistic",
            other.name
        ));
    }
    let ChainedTasks { processors, chains, system } = ChainedTasks::of(set, notes)?;
    let found = holistic::analyse(&system, TimeModel::Continuous);
    if checker::holistic(&system, TimeModel::Continuous, &found).is_err() {
        return Err(NO_PROOF.to_owned());
    }
    let solved = processors.iter().map(|processor| answer(set, processor, &chains, &found));
    Ok(solved.collect())
}

impl ChainedTasks {
    /// The chains of a set; notes say what is assumed.
    ///
    /// # Errors
    /// They are none that the analysis knows, in a sentence.
    pub(super) fn of(set: &TaskSet, notes: &mut NoteList) -> Result<ChainedTasks, String> {
        if placement::rule(set.scheduler)? != Rule::FixedPriority {
            return Err(
                "chains are analysed under fixed priorities only: scheduler = \"fixed-priority\""
                    .to_owned(),
            );
        }
        // Without the order, each task by itself has the numbers of its step.
        let mut alone = set.clone();
        alone.tasks.iter_mut().for_each(|task| task.after.clear());
        let mut assumed = NoteList::default();
        if alone.tasks.iter_mut().any(|task| task.offset.take().is_some()) {
            alone.tasks.iter_mut().for_each(|task| task.offset = None);
            assumed.say(NO_OFFSETS);
        }
        let processors = placement::processors(&alone, true, &mut assumed)?;
        processors.iter().try_for_each(|processor| is_plain(set, processor))?;
        let mut chains = chains(set)?;
        chains.retain(|chain| !chain.iter().all(|task| unknown(&processors, *task).is_some()));
        if let Some(why) = chains.iter().flatten().find_map(|task| unknown(&processors, *task)) {
            return Err(why.clone());
        }
        let flows = chains.iter().map(|chain| flow(set, chain, &processors));
        let flows = flows.collect::<Result<Vec<_>, _>>()?;
        let services = processors.iter().map(|processor| service(set, processor));
        let services = services.collect::<Result<Vec<_>, _>>()?;
        let order = chains.iter().map(|chain| order(set, chain)).collect();
        let system = ChainSystem::graph(flows, services, order).map_err(|why| why.to_string())?;
        assumed.say(
        "a task in a chain is released when all before it are done; its deadline counts from the \
         arrival of the first",
    );
        notes.0.extend(assumed.0);
        Ok(ChainedTasks { processors, chains, system })
    }

    /// Positions of the tasks of the chain that a task is in.
    pub(super) fn chain_of(&self, task: usize) -> &[usize] {
        self.chains.iter().find(|chain| chain.contains(&task)).map_or(&[], Vec::as_slice)
    }

    /// Whether all tasks of chains keep their deadlines.
    pub(super) fn test(&self, set: &TaskSet, effort: &mut StepLimit) -> ScaleTest {
        let found = holistic::analyse_by(&self.system, TimeModel::Continuous, effort);
        let steps = self.chains.iter().zip(&found.flows).flat_map(|(c, f)| c.iter().zip(&f.steps));
        let mut late = steps.filter(|(task, step)| {
            let deadline = set.tasks[**task].deadline().nanos_or_zero();
            step.outcome.response().is_none_or(|bound| bound.from_arrival > deadline)
        });
        let failing = late.next().map(|(task, _)| *task);
        let unknown = |_| Judged::Unknown(Refusal::NotExact);
        ScaleTest { verdict: failing.map_or(Judged::Feasible, unknown), failing }
    }
}

/// Why nothing is known of a task, which is then less urgent than all of which something is.
fn unknown(processors: &[Processor], task: usize) -> Option<&String> {
    let members = processors.iter().flat_map(|processor| &processor.members);
    members.filter(|member| member.position == Some(task)).find_map(|m| m.unknown.as_ref())
}

/// Checks that a processor has nothing that the analysis of chains does not support.
fn is_plain(set: &TaskSet, processor: &Processor) -> Result<(), String> {
    if let Some(why) = &processor.refused {
        return Err(why.clone());
    }
    let none = |what: &str| {
        Err(format!("no analysis of Hourglass covers {what} where tasks release others"))
    };
    let members = || processor.members.iter();
    if !set.servers.is_empty() || members().any(|member| member.position.is_none()) {
        none("servers or ticks")
    } else if processor.finds_priorities {
        none("priorities that are not known")
    } else if processor.has_bursts() || processor.has_thresholds() {
        none("bursts or preemption thresholds")
    } else if members().any(|member| member.task.blocking() > 0) {
        none("blocking")
    } else {
        Ok(())
    }
}

fn service(set: &TaskSet, processor: &Processor) -> Result<Service, String> {
    let kinds = || {
        let positions = processor.members.iter().filter_map(|member| member.position);
        positions.map(|position| set.tasks[position].preemption)
    };
    if let Situation::Shared(cpus) = processor.situation {
        Ok(Service::Shared(cpus))
    } else if kinds().all(|kind| kind == Preemption::Full) {
        Ok(Service::Preemptive)
    } else if let Some(why) = processor.members.iter().find_map(|member| member.unknown.clone()) {
        // It may have begun.
        Err(why)
    } else if kinds().all(|kind| kind == Preemption::None) {
        Ok(Service::NonPreemptive)
    } else {
        Err(format!(
            "on CPU {} some tasks are preemptive and some are not, which no analysis of chains in Hourglass \
             has",
            processor.cpus
        ))
    }
}

/// Positions of the tasks of each chain, each after those that release it; a task that is in none is a
/// chain by itself. A chain may fork and join, but has one task at its beginning.
fn chains(set: &TaskSet) -> Result<Vec<Vec<usize>>, String> {
    let granular = set.machine.overheads.timer_granularity.is_some_and(|step| step.is_positive());
    for task in set.tasks.iter().filter(|task| !task.after.is_empty()) {
        if granular || task.jitter.is_positive() || task.tick_delay().is_positive() {
            return Err(format!(
                "task '{}' has a jitter of its own behind the task that releases it, which no \
                 analysis here has",
                task.name
            ));
        }
    }
    let mut chain_of: Vec<Option<usize>> = vec![None; set.tasks.len()];
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for (position, task) in set.tasks.iter().enumerate() {
        if task.after.is_empty() {
            chain_of[position] = Some(chains.len());
            chains.push(vec![position]);
        }
    }
    let mut left: Vec<usize> = (0..set.tasks.len()).filter(|at| chain_of[*at].is_none()).collect();
    while !left.is_empty() {
        let open = left.len();
        let mut waiting = Vec::new();
        for position in left {
            let before = before(set, position);
            let Some(known) = before.iter().map(|at| chain_of[*at]).collect::<Option<Vec<_>>>()
            else {
                waiting.push(position);
                continue;
            };
            let Some(first) = known.first().copied() else { continue };
            if known.iter().any(|chain| *chain != first) {
                return Err(format!(
                    "task '{}' waits for tasks of different chains, whose arrivals are not related; no analysis of Hourglass handles that",
                    set.tasks[position].name
                ));
            }
            chain_of[position] = Some(first);
            chains[first].push(position);
        }
        if waiting.len() == open {
            return Err("tasks wait for each other in a circle".to_owned());
        }
        left = waiting;
    }
    Ok(chains)
}

/// Positions of the tasks that release a task.
fn before(set: &TaskSet, position: usize) -> Vec<usize> {
    let place = |name: &String| set.tasks.iter().position(|other| other.name == *name);
    set.tasks[position].after.iter().filter_map(place).collect()
}

/// Of each task of a chain, the places in the chain of those that release it.
fn order(set: &TaskSet, chain: &[usize]) -> Vec<Vec<usize>> {
    let place = |position: usize| chain.iter().position(|other| *other == position);
    let places = |position: &usize| before(set, *position).into_iter().filter_map(place).collect();
    chain.iter().map(places).collect()
}

fn flow(set: &TaskSet, chain: &[usize], processors: &[Processor]) -> Result<Flow, String> {
    let first = *chain.first().ok_or("a chain without tasks")?;
    let deadlines = chain.iter().map(|task| set.tasks[*task].deadline().nanos_or_zero());
    let find = |position: usize| {
        let here = processors.iter().enumerate().find_map(|(at, processor)| {
            let member = processor.members.iter().find(|m| m.position == Some(position))?;
            Some((at, member))
        });
        here.ok_or_else(|| format!("task '{}' has no CPU", set.tasks[position].name))
    };
    let step = |position: &usize| {
        let (processor, member) = find(*position)?;
        // Slowed or burdened by overheads, a job still may take no longer than described.
        let least = set.tasks[*position].bcet.map_or(0, |least| least.nanos_or_zero());
        let cost = member.task.cost();
        let (suspension, priority) = (member.task.suspension(), member.task.priority());
        Ok(Step { cost, bcet: least.min(cost), suspension, processor, priority })
    };
    Ok(Flow {
        period: set.tasks[first].period.nanos_or_zero(),
        // Each task has its own; on CPUs that they share, none is bounded beyond it.
        deadline: deadlines.max().unwrap_or(0),
        jitter: find(first)?.1.jitter,
        steps: chain.iter().map(step).collect::<Result<_, String>>()?,
    })
}

/// The answer for the tasks of one processor.
fn answer(
    set: &TaskSet,
    processor: &Processor,
    chains: &[Vec<usize>],
    found: &Holistic,
) -> ProcessorSolution {
    let mut solved = ProcessorSolution::new(processor, "holistic", &processor.numbers());
    for (position, facts) in &mut solved.tasks {
        let place = chains.iter().enumerate().find_map(|(flow, chain)| {
            Some((flow, chain.iter().position(|task| task == position)?))
        });
        let Some((flow, step)) = place else {
            let why = unknown(std::slice::from_ref(processor), *position);
            (facts.verdict, facts.reason) = (Verdict::Unknown, why.cloned().unwrap_or_default());
            continue;
        };
        let deadline = set.tasks[*position].deadline().nanos_or_zero();
        one(found, flow, step, deadline, facts);
        let here = found.processors.iter().find(|p| p.steps.contains(&(flow, step)));
        if let Some(proven) = here
            && let Some(index) = proven.steps.iter().position(|known| *known == (flow, step))
        {
            proof::add_steps(&proven.analysis, index, facts);
        }
    }
    solved.facts.verified_points = solved.tasks.iter().map(|(_, f)| f.fixed_point_count).sum();
    solved.facts.verified_by = Some("substitution".to_owned());
    solved.conclude(Ok(None));
    solved
}

fn one(found: &Holistic, flow: usize, step: usize, deadline: u64, facts: &mut TaskFacts) {
    let reason = match found.flows[flow].steps[step].outcome {
        ResponseBound::Bounded(bound) => {
            note_response(facts, bound, deadline);
            if bound.from_arrival <= deadline {
                facts.verdict = Verdict::Feasible;
                return;
            }
            "the bound is over the deadline, but the worst cases of the steps of a chain need not \
             come together"
                .to_owned()
        }
        ResponseBound::Unbounded => TOO_MUCH.to_owned(),
        ResponseBound::Unknown(why) => why.to_string(),
    };
    (facts.verdict, facts.reason) = (Verdict::Unknown, reason);
}
