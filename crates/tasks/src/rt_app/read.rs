//! The objects of a file: global, resources, tasks, and in these phases.
//!
//! Owns: keys and their values. Must not: interpret what a thread does.

use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;

use super::events;
use super::{Import, ImportNote, Thread};
use crate::error::Location;
use crate::keys::remedy;
use crate::node::Node;
use crate::{Phase, Program};

pub(super) struct File {
    pub(super) duration: Option<Span>,
    pub(super) inherits: bool,
    pub(super) threads: Vec<Thread>,
}

/// Keys of `global` that say nothing about scheduling.
const GLOBAL_IGNORED: [&str; 12] = [
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "spacing",
];

const GLOBAL_READ: [&str; 3] = ["duration", "default_policy", "pi_enabled"];

/// Keys of threads and phases that say nothing that a task could say.
const IGNORED: [&str; 4] = ["taskgroup", "util_min", "util_max", "nodes_membind"];

/// Keys of threads and phases that are no events.
const PROPERTIES: [&str; 9] = [
    "loop",
    "policy",
    "priority",
    "cpus",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "instance",
    "delay",
];

type Entries = [(String, Node)];

pub(super) fn table<'a>(place: &Location, node: &'a Node) -> Import<&'a Entries> {
    match node {
        Node::Table(entries) => Ok(entries),
        _ => Err(place.contradiction(format!("{} is not an object", node.kind()))),
    }
}

fn find<'a>(entries: &'a Entries, key: &str) -> Option<&'a Node> {
    // As in json-c, the last of two equal keys counts.
    entries.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node)
}

/// A number of microseconds that is not negative.
pub(super) fn micros(place: &Location, key: &str, node: &Node) -> Import<Span> {
    let Node::Whole(number) = node else {
        return Err(place.bad(key, node, "give a whole number of microseconds"));
    };
    if *number < 0 {
        return Err(place.bad(key, node, "it must not be negative"));
    }
    number
        .checked_mul(1_000)
        .and_then(|ns| Span::try_from_nanos(ns).ok())
        .ok_or_else(|| place.bad(key, node, "longer than 292 years"))
}

pub(super) fn file(node: &Node, notes: &mut Vec<ImportNote>) -> Import<File> {
    let place = Location::file();
    let entries = table(&place, node)?;
    let parts = ["global", "resources", "tasks"];
    known(&place, entries, |key| parts.contains(&key), parts.into_iter())?;
    let global = Location::part("global");
    let settings = match find(entries, "global") {
        Some(node) => table(&global, node)?,
        None => &[],
    };
    let is_setting = |key: &str| GLOBAL_IGNORED.contains(&key) || GLOBAL_READ.contains(&key);
    known(&global, settings, is_setting, GLOBAL_READ.into_iter().chain(GLOBAL_IGNORED))?;
    let inherits = match find(settings, "pi_enabled") {
        None => false,
        Some(Node::Bool(value)) => *value,
        Some(node) => return Err(global.bad("pi_enabled", node, "give true or false")),
    };
    let standard = match find(settings, "default_policy") {
        None => "SCHED_OTHER",
        Some(node) => policy_name(&global, "default_policy", node)?,
    };
    let Some(tasks) = find(entries, "tasks") else {
        return Err(place.missing("tasks", "describe the threads in it"));
    };
    let mut threads = Vec::new();
    for (name, node) in table(&Location::part("tasks"), tasks)? {
        threads.push(thread(name, node, standard, notes)?);
    }
    Ok(File { duration: duration(&global, settings)?, inherits, threads })
}

fn duration(place: &Location, settings: &Entries) -> Import<Option<Span>> {
    match find(settings, "duration") {
        None | Some(Node::Whole(-1)) => Ok(None),
        Some(Node::Whole(seconds)) if *seconds >= 0 => seconds
            .checked_mul(1_000_000_000)
            .and_then(|ns| Span::try_from_nanos(ns).ok())
            .map(Some)
            .ok_or_else(|| place.bad("duration", Node::Whole(*seconds), "longer than 292 years")),
        Some(node) => Err(place.bad("duration", node, "give seconds, or -1 for no end")),
    }
}

fn known<'k>(
    place: &Location,
    entries: &Entries,
    is_known: impl Fn(&str) -> bool,
    all: impl Iterator<Item = &'k str> + Clone,
) -> Import<()> {
    match entries.iter().find(|(key, _)| !is_known(key)) {
        None => Ok(()),
        Some((key, _)) => Err(place.unknown_key(key, all)),
    }
}

const POLICIES: [&str; 6] =
    ["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"];

fn policy_name<'a>(place: &Location, key: &str, node: &'a Node) -> Import<&'a str> {
    match node {
        Node::Text(name) if POLICIES.contains(&name.as_str()) => Ok(name),
        Node::Text(name) => {
            let reason = format!("unknown policy; {}", remedy(name, POLICIES.into_iter()));
            Err(place.bad(key, node, &reason))
        }
        _ => Err(place.bad(key, node, "give a text such as \"SCHED_FIFO\"")),
    }
}

/// The policy that the keys of a thread or phase describe, `standard` where they name none.
fn policy(place: &Location, entries: &Entries, standard: &str) -> Import<Policy> {
    let name = match find(entries, "policy") {
        None => standard,
        Some(node) => policy_name(place, "policy", node)?,
    };
    let priority = match find(entries, "priority") {
        None => None,
        Some(Node::Whole(number)) => Some(*number),
        Some(node) => return Err(place.bad("priority", node, "give a whole number")),
    };
    let wrong =
        |reason: &str| place.bad("priority", Node::Whole(priority.unwrap_or_default()), reason);
    let real_time = || {
        let number = u8::try_from(priority.unwrap_or(10)).ok().filter(|p| (1..=99).contains(p));
        number.ok_or_else(|| wrong("real-time priorities are from 1 to 99"))
    };
    Ok(match name {
        "SCHED_FIFO" => Policy::Fifo(real_time()?),
        "SCHED_RR" => Policy::RoundRobin(real_time()?),
        "SCHED_DEADLINE" => Policy::Deadline,
        "SCHED_IDLE" => Policy::Idle,
        "SCHED_BATCH" => Policy::Batch,
        _ => {
            let nice = i8::try_from(priority.unwrap_or(0));
            let nice = nice.ok().filter(|nice| (-20..=19).contains(nice));
            Policy::Other(nice.ok_or_else(|| wrong("nice values are from -20 to 19"))?)
        }
    })
}

fn cpus(place: &Location, entries: &Entries) -> Import<Option<CpuSet>> {
    let Some(node) = find(entries, "cpus") else { return Ok(None) };
    let wrong = || place.bad("cpus", node, "give a list of CPU numbers, as in [0, 2]");
    let Node::List(items) = node else { return Err(wrong()) };
    let text: Vec<String> = items.iter().map(ToString::to_string).collect();
    text.join(",").parse().map(Some).map_err(|_| wrong())
}

/// How often: a number, or for ever if it is -1.
fn loops(place: &Location, entries: &Entries, standard: Option<u64>) -> Import<Option<u64>> {
    match find(entries, "loop") {
        None => Ok(standard),
        Some(Node::Whole(-1)) => Ok(None),
        Some(node) => {
            let number =
                if let Node::Whole(number) = node { u64::try_from(*number).ok() } else { None };
            let wrong = || place.bad("loop", node, "give a number, or -1 for ever");
            number.map(Some).ok_or_else(wrong)
        }
    }
}

fn thread(name: &str, node: &Node, standard: &str, notes: &mut Vec<ImportNote>) -> Import<Thread> {
    let place = Location::named("thread", name);
    let entries = table(&place, node)?;
    let mut note = |text: String| notes.push(ImportNote { thread: name.to_owned(), text });
    let mut phases = Vec::new();
    match find(entries, "phases") {
        Some(node) => {
            let is_known = |key: &str| key == "phases" || is_property(key);
            known(&place, entries, is_known, PROPERTIES.into_iter().chain(["phases"]))?;
            ignored(entries, "", &mut note);
            for (phase_name, node) in table(&place.within("phases"), node)? {
                let place = place.within(format_args!("phase '{}'", phase_name.escape_debug()));
                let entries = table(&place, node)?;
                ignored(entries, &format!("phase '{phase_name}': "), &mut note);
                phases.push(phase(&place, name, phase_name, entries, standard)?);
            }
        }
        None => {
            ignored(entries, "", &mut note);
            let steps = steps(&place, name, entries)?;
            let name = String::new();
            phases.push(Phase { name, loops: Some(1), policy: None, cpus: None, steps });
        }
    }
    let policy = policy(&place, entries, standard)?;
    if policy != Policy::Deadline && find(entries, "dl-runtime").is_some() {
        note("dl-runtime is passed over; it is the slice of a class without a budget".to_owned());
    }
    let instances = match find(entries, "instance") {
        None => 1,
        Some(Node::Whole(number)) if (0..=10_000).contains(number) => *number as u32,
        Some(node) => return Err(place.bad("instance", node, "give a number from 0 to 10000")),
    };
    let delay = find(entries, "delay").map(|node| micros(&place, "delay", node)).transpose()?;
    Ok(Thread {
        name: name.to_owned(),
        instances,
        delay: delay.unwrap_or(Span::ZERO),
        policy,
        cpus: cpus(&place, entries)?,
        reservation: reservation(&place, entries, policy)?,
        program: Program { loops: loops(&place, entries, None)?, phases },
    })
}

fn is_property(key: &str) -> bool {
    PROPERTIES.contains(&key) || IGNORED.contains(&key)
}

fn ignored(entries: &Entries, prefix: &str, note: &mut impl FnMut(String)) {
    for (key, _) in entries.iter().filter(|(key, _)| IGNORED.contains(&key.as_str())) {
        note(format!("{prefix}{key} is passed over; tasks have no such thing"));
    }
}

fn phase(
    place: &Location,
    thread: &str,
    name: &str,
    entries: &Entries,
    standard: &str,
) -> Import<Phase> {
    let says_policy = ["policy", "priority"].iter().any(|key| find(entries, key).is_some());
    let policy = says_policy.then(|| policy(place, entries, standard)).transpose()?;
    Ok(Phase {
        name: name.to_owned(),
        loops: loops(place, entries, Some(1))?,
        policy,
        cpus: cpus(place, entries)?,
        steps: steps(place, thread, entries)?,
    })
}

fn steps(place: &Location, thread: &str, entries: &Entries) -> Import<Vec<crate::ProgramStep>> {
    let mut steps = Vec::new();
    for (key, node) in entries.iter().filter(|(key, _)| !is_property(key)) {
        match events::name_of(key) {
            Some(event) => steps.extend(events::read(place, thread, event, key, node)?),
            None => {
                return Err(place.unknown_key(key, PROPERTIES.into_iter().chain(events::EVENTS)));
            }
        }
    }
    Ok(steps)
}

/// Budget, period and deadline. Without a period the budget is the period, and without a deadline
/// the period is the deadline.
fn reservation(
    place: &Location,
    entries: &Entries,
    policy: Policy,
) -> Import<Option<(Span, Span, Span)>> {
    if policy != Policy::Deadline {
        return Ok(None);
    }
    let time = |key| find(entries, key).map(|node| micros(place, key, node)).transpose();
    let Some(budget) = time("dl-runtime")? else {
        return Err(place.missing("dl-runtime", "SCHED_DEADLINE needs a budget, in microseconds"));
    };
    let period = time("dl-period")?.unwrap_or(budget);
    Ok(Some((budget, period, time("dl-deadline")?.unwrap_or(period))))
}
