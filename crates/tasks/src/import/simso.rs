//! SimSo's XML: tasks, processors and one of the schedulers that a set of tasks has.
//!
//! Owns: its elements and attributes. Must not: know schedulers that hourglass does not have.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_time::Span;
use roxmltree::Node;

use super::decimal::Round;
use super::xml::{self, attribute, bad, decimal, known, named, needed, refused, time, whole};
use super::{Import, ImportNotes, ImportedTaskSet};
use crate::{Activation, Assignment, Scheduler, Task, TaskSet};

/// Times of tasks are milliseconds.
const UNIT_NS: u128 = 1_000_000;

/// Tasks that activate one another, at most.
const LONGEST_CHAIN: usize = 1_000;

/// Attributes that say nothing where execution times are the WCET, and not computed from caches.
const OF_CACHES: [&str; 4] = ["instructions", "mix", "stack", "base_cpi"];

pub(super) fn read(text: &str) -> Import<ImportedTaskSet> {
    let document = xml::parse(text)?;
    let root = document.root_element();
    let settings =
        ["duration", "cycles_per_ms", "etm", "use_wcet", "penalty_preemption", "penalty_migration"];
    known(root, &settings, &["sched", "caches", "processors", "tasks"])?;
    let mut notes = ImportNotes::default();
    let mut set = TaskSet::default();
    execution_model(root, &mut notes);
    scheduler(root, &mut set, &mut notes)?;
    let cycles = match attribute(root, "cycles_per_ms") {
        Some(value) => whole(root, "cycles_per_ms", value)?,
        None => 1_000_000,
    };
    set.horizon = duration(root, cycles)?;
    processors(root, cycles, &mut set, &mut notes)?;
    let mut inexact = false;
    tasks(root, &mut set, &mut notes, &mut inexact)?;
    notes.rounded(inexact);
    Ok(ImportedTaskSet { set, notes: notes.sentences() })
}

fn execution_model(root: Node<'_, '_>, notes: &mut ImportNotes) {
    let etm = attribute(root, "etm").unwrap_or("wcet");
    if etm != "wcet" {
        notes.file(&format!("etm '{etm}': every job is taken to execute for its WCET"));
    }
    let penalties = ["penalty_preemption", "penalty_migration"];
    if etm == "fixedpenalty" && penalties.iter().any(|key| attribute(root, key).is_some()) {
        notes.file("penalty_preemption and penalty_migration are passed over");
    }
}

/// The last word of a class or file: `EDF` of `simso.schedulers.EDF` and of `./EDF.py`.
fn scheduler(root: Node<'_, '_>, set: &mut TaskSet, notes: &mut ImportNotes) -> Import<()> {
    let Some(node) = named(root, "sched").next() else {
        return Err(refused(root, "it has no element 'sched'; name a scheduler"));
    };
    let keys = ["class", "className", "overhead", "overhead_activate", "overhead_terminate"];
    known(node, &keys, &["field"])?;
    let class = attribute(node, "class").or_else(|| attribute(node, "className")).unwrap_or("");
    let name = class.strip_suffix(".py").unwrap_or(class);
    let name = name.rsplit(['.', '/', '\\']).next().unwrap_or(name);
    match name {
        "EDF" | "EDF2" | "EDF_mono" => set.scheduler = Scheduler::Edf,
        "RM" | "RM_mono" => set.assignment = Some(Assignment::RateMonotonic),
        "FP" => set.assignment = Some(Assignment::Given),
        _ => {
            let text =
                format!("unsupported scheduler '{}'; expected EDF, RM or FP", name.escape_debug());
            return Err(refused(node, &text));
        }
    }
    for key in &keys[2..] {
        if let Some(value) = attribute(node, key)
            && !decimal(node, key, value)?.is_zero()
        {
            notes.about("sched", &format!("{key} is passed over; count it in each WCET"));
        }
    }
    Ok(())
}

/// The length of the simulation.
fn duration(root: Node<'_, '_>, cycles: u128) -> Import<Option<Span>> {
    let Some(value) = attribute(root, "duration") else { return Ok(None) };
    let time = decimal(root, "duration", value)?.span(1_000_000, cycles, Round::Down);
    let (time, _) = time.ok_or_else(|| bad(root, "duration", value, "out of range"))?;
    Ok(Some(time).filter(|time| time.is_positive()))
}

fn processors(
    root: Node<'_, '_>,
    cycles: u128,
    set: &mut TaskSet,
    notes: &mut ImportNotes,
) -> Import<()> {
    let all: Vec<Node<'_, '_>> = named(root, "processors").collect();
    let mut cpus = CpuSet::default();
    let mut costs = Vec::new();
    for node in all.iter().flat_map(|node| named(*node, "processor")) {
        if let Some(value) = attribute(node, "speed")
            && !decimal(node, "speed", value)?.is_one()
        {
            return Err(bad(node, "speed", value, "Hourglass supports only processors of speed 1"));
        }
        if xml::elements(node).next().is_some() {
            notes.about("processor", "its caches are passed over");
        }
        let mut cost = 0;
        for key in ["cs_overhead", "cl_overhead"] {
            if let Some(value) = attribute(node, key) {
                let time = decimal(node, key, value)?.span(1_000_000, cycles, Round::Up);
                let time = time.ok_or_else(|| bad(node, key, value, "out of range"))?;
                cost += time.0.nanos_or_zero();
            }
        }
        cpus.insert(u32::try_from(costs.len()).unwrap_or(u32::MAX));
        costs.push(cost);
    }
    let migrations = all.iter().filter_map(|node| attribute(*node, "migration_overhead"));
    if migrations.into_iter().any(|value| value != "0") {
        notes.file("migration_overhead is passed over; count it in each WCET");
    }
    if let Some(most) = costs.iter().max().filter(|most| **most > 0) {
        let most = Span::saturating_from_nanos(*most);
        set.machine.overheads.context_switch = Some(most);
        if costs.iter().min() != costs.iter().max() {
            notes.file("the longest context switch of the processors is taken for all");
        }
    }
    if !cpus.is_empty() {
        set.machine.cpus = Some(cpus);
    }
    Ok(())
}

/// SimSo's own attributes of a task; a file may add fields.
const TASK: [&str; 14] = [
    "name",
    "id",
    "task_type",
    "periodic",
    "abort_on_miss",
    "period",
    "activationDate",
    "list_activation_dates",
    "deadline",
    "WCET",
    "ACET",
    "preemption_cost",
    "et_stddev",
    "followed_by",
];

fn tasks(
    root: Node<'_, '_>,
    set: &mut TaskSet,
    notes: &mut ImportNotes,
    inexact: &mut bool,
) -> Import<()> {
    let mut nodes = Vec::new();
    let mut fields: Vec<&str> = Vec::new();
    for list in named(root, "tasks") {
        known(list, &[], &["field", "task"])?;
        fields.extend(named(list, "field").filter_map(|node| node.attribute("name")));
        nodes.extend(named(list, "task"));
    }
    for field in fields.iter().filter(|field| **field != "priority") {
        notes.file(&format!("the field '{}' of tasks is passed over", field.escape_debug()));
    }
    let attributes: Vec<&str> =
        TASK.into_iter().chain(OF_CACHES).chain(fields.iter().copied()).collect();
    let by_priority = set.assignment == Some(Assignment::Given);
    let mut followers: BTreeMap<String, String> = BTreeMap::new();
    let mut numbers = Vec::new();
    for node in &nodes {
        known(*node, &attributes, &[])?;
        let name = needed(*node, "name")?;
        if let Some(next) = attribute(*node, "followed_by") {
            followers.insert(next.to_owned(), name.to_owned());
        }
        if by_priority {
            let value = needed(*node, "priority")?;
            numbers.push(whole::<i64>(*node, "priority", value)?);
        }
        set.tasks.push(task(*node, notes, inexact)?);
    }
    // Any whole number is a priority there; here they count from 1.
    let mut levels = numbers.clone();
    levels.sort_unstable();
    levels.dedup();
    for (task, number) in set.tasks.iter_mut().zip(&numbers) {
        let level = levels.binary_search(number).unwrap_or(0);
        task.priority = u32::try_from(level + 1).ok();
    }
    follow(&nodes, &followers, set)
}

fn task(node: Node<'_, '_>, notes: &mut ImportNotes, inexact: &mut bool) -> Import<Task> {
    let name = needed(node, "name")?;
    let about = format!("task '{}'", name.escape_debug());
    let kind = match (attribute(node, "task_type"), attribute(node, "periodic")) {
        (Some(kind), _) => kind,
        (None, Some("no")) => "APeriodic",
        _ => "Periodic",
    };
    let (_, _) = (needed(node, "WCET")?, needed(node, "period")?);
    let wcet = time(node, "WCET", UNIT_NS, Round::Up, inexact)?.unwrap_or(Span::ZERO);
    let period = time(node, "period", UNIT_NS, Round::Down, inexact)?.unwrap_or(Span::ZERO);
    let mut task = Task {
        deadline: time(node, "deadline", UNIT_NS, Round::Down, inexact)?,
        offset: time(node, "activationDate", UNIT_NS, Round::Down, inexact)?,
        ..Task::new(name, wcet, period)
    };
    match kind {
        "Periodic" => {}
        "Sporadic" => {
            (task.activation, task.offset) = (Activation::Sporadic, None);
            if attribute(node, "list_activation_dates").is_some() {
                notes.about(
                    &about,
                    "list_activation_dates is passed over; jobs come a period apart or more",
                );
            }
        }
        "APeriodic" => task.activation = Activation::Sporadic,
        kind => return Err(bad(node, "task_type", kind, "use Periodic or Sporadic")),
    }
    if attribute(node, "abort_on_miss") != Some("no") {
        notes.about(
            &about,
            "abort_on_miss: Hourglass does not abort a job that misses its deadline",
        );
    }
    if let Some(cost) = attribute(node, "preemption_cost")
        && !decimal(node, "preemption_cost", cost)?.is_zero()
    {
        notes.about(&about, "preemption_cost is passed over; count it in the WCET");
    }
    Ok(task)
}

/// A task that another one activates comes after it, with the period of the first in the chain. Of others that are not
/// periodic nothing is known.
fn follow(
    nodes: &[Node<'_, '_>],
    followers: &BTreeMap<String, String>,
    set: &mut TaskSet,
) -> Import<()> {
    for (position, node) in nodes.iter().enumerate() {
        let before = attribute(*node, "id").and_then(|id| followers.get(id));
        let is_aperiodic = attribute(*node, "task_type") == Some("APeriodic")
            || attribute(*node, "periodic") == Some("no");
        match (before, is_aperiodic) {
            (None, false) => {}
            (None, true) => {
                let text =
                    "an aperiodic task without a predecessor has no period; make it sporadic";
                return Err(refused(*node, text));
            }
            (Some(_), false) => {
                let text = "followed_by names a task that also comes by itself; make it APeriodic";
                return Err(refused(*node, text));
            }
            (Some(before), true) => {
                let task = &mut set.tasks[position];
                task.after = vec![before.clone()];
                task.offset = None;
            }
        }
    }
    // A chain has at most `LONGEST_CHAIN` tasks; a circular one is refused later.
    let places: BTreeMap<String, usize> =
        set.tasks.iter().enumerate().map(|(at, task)| (task.name.clone(), at)).collect();
    for position in 0..set.tasks.len() {
        let mut first = position;
        for _ in 0..LONGEST_CHAIN {
            let before = set.tasks[first].after.first().and_then(|name| places.get(name));
            let Some(before) = before else { break };
            first = *before;
        }
        let (period, activation) = (set.tasks[first].period, set.tasks[first].activation);
        let task = &mut set.tasks[position];
        (task.period, task.activation) = (period, activation);
    }
    Ok(())
}
