//! SchedCAT's XML (`schedcat.model.serialize`): sporadic tasks, their partitions and their requests of resources.
//!
//! Owns: its elements and attributes. Must not: read more than one set of a file.

use std::collections::BTreeSet;

use hourglass_documents::CpuSet;
use hourglass_time::Span;
use roxmltree::Node;

use super::decimal::Round;
use super::xml::{self, attribute, known, named, needed, place, refused, time, whole};
use super::{Import, ImportNotes, ImportedTaskSet};
use crate::{Activation, CriticalSection, Protocol, Resource, Task, TaskSet};

/// SchedCAT's generators draw whole microseconds.
const UNIT_NS: u128 = 1_000;

pub(super) fn read(text: &str) -> Import<ImportedTaskSet> {
    let document = xml::parse(text)?;
    let root = document.root_element();
    let taskset = match root.tag_name().name() {
        "taskset" => root,
        _ => only_set(root)?,
    };
    known(taskset, &[], &["properties", "task"])?;
    let mut notes = ImportNotes::default();
    notes.file("the file has no unit; its times are taken as microseconds");
    notes.file("the file names no scheduler; fixed priorities by deadline are taken");
    let mut set = TaskSet::default();
    let mut inexact = false;
    for (position, node) in named(taskset, "task").enumerate() {
        set.tasks.push(task(node, position, &mut notes, &mut inexact)?);
    }
    let sections = set.tasks.iter().flat_map(|task| &task.critical_sections);
    let resources: BTreeSet<String> = sections.map(|section| section.resource.clone()).collect();
    if !resources.is_empty() {
        notes.file("the file names no locking protocol; the priority ceiling is taken");
    }
    let resource = |name| Resource { name, protocol: Protocol::Ceiling, ceiling: None };
    set.resources = resources.into_iter().map(resource).collect();
    let placed = set.tasks.iter().filter(|task| task.cpus.is_some()).count();
    if placed == 0 && set.tasks.len() > 1 {
        notes.file("no task has a partition or an affinity; they share one CPU");
    }
    notes.rounded(inexact);
    Ok(ImportedTaskSet { set, notes: notes.sentences() })
}

/// The set of a test point, if it has just one.
fn only_set<'a, 'i>(root: Node<'a, 'i>) -> Import<Node<'a, 'i>> {
    let mut sets = named(root, "taskset");
    match (sets.next(), sets.count()) {
        (Some(only), 0) => Ok(only),
        (_, more) => Err(refused(
            root,
            &format!(
                "a test point with {} task sets, and one is read from a file; write each with \
                 schedcat.model.serialize.write",
                if more == 0 { 0 } else { more + 1 }
            ),
        )),
    }
}

fn task(
    node: Node<'_, '_>,
    position: usize,
    notes: &mut ImportNotes,
    inexact: &mut bool,
) -> Import<Task> {
    let attributes = ["id", "period", "wcet", "deadline", "partition", "response_time", "wss"];
    known(node, &attributes, &["resources", "affinity", "critical_sections"])?;
    let name = match attribute(node, "id") {
        Some(id) => format!("T{id}"),
        None => format!("T{}", position + 1),
    };
    let (_, _) = (needed(node, "wcet")?, needed(node, "period")?);
    let wcet = time(node, "wcet", UNIT_NS, Round::Up, inexact)?.unwrap_or(Span::ZERO);
    let period = time(node, "period", UNIT_NS, Round::Down, inexact)?.unwrap_or(Span::ZERO);
    for (key, text) in [
        ("wss", "the working-set size is passed over; overheads are not counted"),
        ("response_time", "the response time in the file is passed over"),
    ] {
        if attribute(node, key).is_some() {
            notes.about(&format!("task '{name}'"), text);
        }
    }
    let mut task = Task {
        activation: Activation::Sporadic,
        deadline: time(node, "deadline", UNIT_NS, Round::Down, inexact)?,
        cpus: cpus(node)?,
        ..Task::new(&name, wcet, period)
    };
    for requirements in named(node, "resources") {
        known(requirements, &[], &["requirement"])?;
        for requirement in named(requirements, "requirement") {
            let about = format!("task '{name}'");
            task.critical_sections.extend(requests(requirement, &about, notes, inexact)?);
        }
    }
    for sections in named(node, "critical_sections") {
        known(sections, &[], &["critical_section"])?;
        for section in named(sections, "critical_section") {
            task.critical_sections.push(critical_section(section, inexact)?);
        }
    }
    Ok(task)
}

/// The partition, or the affinity.
fn cpus(node: Node<'_, '_>) -> Import<Option<CpuSet>> {
    let mut all = CpuSet::default();
    if let Some(value) = attribute(node, "partition") {
        all.insert(cpu(node, "partition", value)?);
    }
    for affinity in named(node, "affinity") {
        known(affinity, &[], &["cpu"])?;
        for node in named(affinity, "cpu") {
            all.insert(cpu(node, "id", needed(node, "id")?)?);
        }
    }
    Ok((!all.is_empty()).then_some(all))
}

fn cpu(node: Node<'_, '_>, key: &str, value: &str) -> Import<u32> {
    let number: u32 = whole(node, key, value)?;
    match number.to_string().parse::<CpuSet>() {
        Ok(_) => Ok(number),
        Err(error) => Err(xml::bad(node, key, value, &error.to_string())),
    }
}

/// Writes and reads of a resource. A reader excludes others as a writer does, which no bound misses.
fn requests(
    node: Node<'_, '_>,
    about: &str,
    notes: &mut ImportNotes,
    inexact: &mut bool,
) -> Import<Vec<CriticalSection>> {
    let keys = ["res_id", "max_writes", "max_write_length", "max_reads", "max_read_length"];
    known(node, &keys, &[])?;
    let resource = resource(node)?;
    let count = |key: &str, standard: u32| {
        attribute(node, key).map_or(Ok(standard), |value| whole(node, key, value))
    };
    let (writes, reads) = (count("max_writes", 1)?, count("max_reads", 0)?);
    let mut sections = Vec::new();
    for (count, key) in [(writes, "max_write_length"), (reads, "max_read_length")] {
        if count == 0 {
            continue;
        }
        // A missing length is SchedCAT's default: 1 for writes.
        let length = time(node, key, UNIT_NS, Round::Up, inexact)?.unwrap_or(Span::from_micros(1));
        if length.is_positive() {
            sections.push(CriticalSection { resource: resource.clone(), length, count });
        }
    }
    if reads > 0 {
        notes.about(about, "reads of a resource exclude others as writes do");
    }
    Ok(sections)
}

fn critical_section(node: Node<'_, '_>, inexact: &mut bool) -> Import<CriticalSection> {
    known(node, &["res_id", "length"], &["critical_section"])?;
    if xml::elements(node).next().is_some() {
        let text = "a critical section within another; tasks have no nested sections, so group the locks of both";
        return Err(refused(node, text));
    }
    let length = time(node, "length", UNIT_NS, Round::Up, inexact)?;
    let length = length.filter(|length| length.is_positive());
    let length = length.ok_or_else(|| place(node).missing("length", "give a length above 0"))?;
    Ok(CriticalSection { resource: resource(node)?, length, count: 1 })
}

fn resource(node: Node<'_, '_>) -> Import<String> {
    Ok(format!("R{}", needed(node, "res_id")?))
}
