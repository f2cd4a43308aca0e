//! AMALTHEA models (Eclipse APP4MC, `.amxmi`): periodic tasks of runnables whose ticks have an upper bound.
//!
//! Owns: which of the model a set of tasks can say. A task with another stimulus, or an item that takes a time which
//! ticks do not say, is an error that names it. Must not: read models of before 0.9.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_time::Span;
use roxmltree::Node;

use super::decimal::Round;
use super::xml::{self, attribute, bad, decimal, elements, named, needed, refused};
use super::{Import, ImportNotes, ImportedTaskSet};
use crate::{Assignment, Preemption, Scheduler, Task, TaskSet};

/// Runnables within runnables, and groups within groups.
const DEEPEST: usize = 64;

/// Items of runnables that one task goes through.
const MOST_ITEMS: usize = 100_000;

pub(super) fn read(text: &str) -> Import<ImportedTaskSet> {
    let document = xml::parse(text)?;
    let root = document.root_element();
    let model = Model::of(root);
    let mut notes = ImportNotes::default();
    let mut set = TaskSet { assignment: Some(Assignment::Given), ..TaskSet::default() };
    let mut kinds: Vec<Scheduler> = Vec::new();
    for software in sections(root, "swModel") {
        if let Some(interrupt) = named(software, "isrs").next() {
            return Err(refused(
                interrupt,
                "an interrupt service routine is not translated; make it a task",
            ));
        }
        for node in sections(software, "tasks") {
            let (task, scheduler) = model.task(node, &mut notes)?;
            set.tasks.push(task);
            kinds.push(scheduler);
        }
    }
    let different = kinds.iter().position(|kind| *kind != kinds[0]);
    if let Some(position) = different {
        let first = &set.tasks[position].name;
        let message = format!(
            "task '{first}' has another scheduling algorithm than the tasks before it; a set has one"
        );
        return Err(refused(root, &message));
    }
    set.scheduler = kinds.first().copied().unwrap_or_default();
    if set.scheduler == Scheduler::Edf {
        set.assignment = None;
        set.tasks.iter_mut().for_each(|task| task.priority = None);
    }
    for section in elements(root) {
        let name = section.tag_name().name();
        let read =
            ["swModel", "hwModel", "osModel", "stimuliModel", "mappingModel", "constraintsModel"];
        if !read.contains(&name) && section.has_children() {
            notes.file(&format!("{name} is passed over"));
        }
    }
    Ok(ImportedTaskSet { set, notes: notes.sentences() })
}

fn sections<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(node).filter(move |child| child.tag_name().name() == name)
}

struct Model<'a, 'i> {
    ids: BTreeMap<&'a str, Node<'a, 'i>>,
    allocations: BTreeMap<&'a str, Vec<Node<'a, 'i>>>,
    /// The processing units for which each scheduler is responsible.
    responsible: BTreeMap<&'a str, &'a str>,
    cpus: BTreeMap<&'a str, u32>,
    /// Limits on response times by task.
    limits: BTreeMap<&'a str, Node<'a, 'i>>,
}

const XMI: &str = "http://www.omg.org/XMI";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The last part of the type, as `PeriodicStimulus` of `am:PeriodicStimulus`.
fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    let kind = node.attribute((XSI, "type")).unwrap_or("");
    kind.rsplit(':').next().unwrap_or(kind)
}

/// The name in a reference, for messages.
fn short(reference: &str) -> String {
    let name = reference.split('?').next().unwrap_or(reference);
    name.escape_debug().to_string()
}

impl<'a, 'i: 'a> Model<'a, 'i> {
    fn of(root: Node<'a, 'i>) -> Model<'a, 'i> {
        let mut model = Model {
            ids: BTreeMap::new(),
            allocations: BTreeMap::new(),
            responsible: BTreeMap::new(),
            cpus: BTreeMap::new(),
            limits: BTreeMap::new(),
        };
        for node in root.descendants().filter(Node::is_element) {
            let id = node.attribute((XMI, "id"));
            if let Some(id) = id {
                model.ids.insert(id, node);
            }
            match node.tag_name().name() {
                "taskAllocation" => {
                    let task = node.attribute("task").unwrap_or("");
                    model.allocations.entry(task).or_default().push(node);
                }
                "schedulerAllocation" => {
                    let both = node.attribute("scheduler").zip(node.attribute("responsibility"));
                    model.responsible.extend(both);
                }
                "requirements" if kind(node) == "ProcessRequirement" => {
                    model.limits.extend(node.attribute("process").map(|task| (task, node)));
                }
                "modules" if kind(node) == "ProcessingUnit" => {
                    let number = u32::try_from(model.cpus.len()).unwrap_or(u32::MAX);
                    model.cpus.extend(id.map(|id| (id, number)));
                }
                _ => {}
            }
        }
        model
    }

    fn task(&self, node: Node<'a, 'i>, notes: &mut ImportNotes) -> Import<(Task, Scheduler)> {
        let name = needed(node, "name")?;
        let id = node.attribute((XMI, "id")).unwrap_or(name);
        let (scheduler, priority, units) = self.allocation(node, id)?;
        let cost = self.cost(node, &units, notes, name)?;
        let mut task = Task::new(name, cost, Span::ZERO);
        self.stimulus(node, &mut task)?;
        task.preemption = match attribute(node, "preemption") {
            Some("preemptive") | None => Preemption::Full,
            Some("non_preemptive") => Preemption::None,
            Some(other) => {
                return Err(bad(
                    node,
                    "preemption",
                    other,
                    "preemptive and non_preemptive are translated",
                ));
            }
        };
        task.priority = priority;
        let cpus: CpuSet = units.iter().filter_map(|unit| self.cpus.get(unit).copied()).collect();
        task.cpus = Some(cpus);
        task.deadline = self.limits.get(id).map(|limit| limit_of(*limit)).transpose()?.flatten();
        Ok((task, scheduler))
    }

    fn find(&self, node: Node<'_, '_>, reference: &str) -> Import<Node<'a, 'i>> {
        let found = self.ids.get(reference).copied();
        found.ok_or_else(|| {
            refused(node, &format!("'{}' is nowhere in the model", short(reference)))
        })
    }

    fn allocation(
        &self,
        node: Node<'a, 'i>,
        id: &str,
    ) -> Import<(Scheduler, Option<u32>, Vec<&'a str>)> {
        let [allocation] = self.allocations.get(id).map_or(&[][..], |all| &all[..]) else {
            return Err(refused(
                node,
                "a task with one taskAllocation in the mappingModel is translated, no other",
            ));
        };
        let reference = needed(*allocation, "scheduler")?;
        let scheduler = self.find(*allocation, reference)?;
        let algorithm = named(scheduler, "schedulingAlgorithm").map(kind).next().unwrap_or("");
        let order = match algorithm {
            "FixedPriorityPreemptive" | "OSEK" => Scheduler::FixedPriority,
            "EarliestDeadlineFirst" => Scheduler::Edf,
            other => {
                let text = format!("the scheduling algorithm '{}' is not translated", short(other));
                return Err(refused(scheduler, &text));
            }
        };
        let units = attribute(*allocation, "affinity").or(self.responsible.get(reference).copied());
        let units: Vec<&str> = units.unwrap_or("").split_whitespace().collect();
        if units.is_empty() || units.iter().any(|unit| !self.cpus.contains_key(unit)) {
            return Err(refused(
                *allocation,
                "nothing says on which processing units the task runs",
            ));
        }
        let mut priority = None;
        for parameters in sections(*allocation, "schedulingParameters") {
            let value = match attribute(parameters, "key") {
                Some("priority") => {
                    sections(parameters, "value").next().and_then(|v| v.attribute("value"))
                }
                Some(_) => None,
                None => attribute(parameters, "priority"),
            };
            if let Some(value) = value {
                priority = Some(xml::whole::<u32>(parameters, "priority", value)?);
            }
        }
        if order == Scheduler::FixedPriority && priority.is_none() {
            return Err(refused(*allocation, "the task has no priority"));
        }
        Ok((order, priority, units))
    }

    /// Hertz and definition of the processing units, which must be alike.
    fn clock(&self, node: Node<'_, '_>, units: &[&'a str]) -> Import<(u128, &'a str)> {
        let mut found: Option<(u128, &str)> = None;
        for unit in units {
            let unit = self.find(node, unit)?;
            let domain = self.find(unit, needed(unit, "frequencyDomain")?)?;
            let Some(value) = named(domain, "defaultValue").next() else {
                return Err(refused(domain, "it has no frequency"));
            };
            let hertz = match attribute(value, "unit") {
                Some("Hz") => 1,
                Some("kHz") => 1_000,
                Some("MHz") => 1_000_000,
                Some("GHz") => 1_000_000_000,
                other => {
                    return Err(bad(value, "unit", other.unwrap_or(""), "use Hz, kHz, MHz or GHz"));
                }
            };
            let text = needed(value, "value")?;
            let hertz = decimal(value, "value", text)?.scaled(hertz, 1, Round::Down);
            let hertz =
                hertz.and_then(|(hertz, _)| u128::try_from(hertz).ok()).filter(|hz| *hz > 0);
            let hertz = hertz.ok_or_else(|| bad(value, "value", text, "give a frequency"))?;
            let here = (hertz, attribute(unit, "definition").unwrap_or(""));
            if found.is_some_and(|known| known != here) {
                return Err(refused(
                    node,
                    "it may run on processing units of different speed or kind; allocate it to one kind",
                ));
            }
            found = Some(here);
        }
        found.ok_or_else(|| refused(node, "it has no processing unit"))
    }

    /// The longest execution time: the upper bounds of all ticks, at the units' frequency.
    fn cost(
        &self,
        node: Node<'a, 'i>,
        units: &[&'a str],
        notes: &mut ImportNotes,
        name: &str,
    ) -> Import<Span> {
        let (hertz, definition) = self.clock(node, units)?;
        let mut stack: Vec<(Node<'a, 'i>, usize)> = vec![(node, 0)];
        let mut total = Span::ZERO;
        let mut items = 0;
        while let Some((of, depth)) = stack.pop() {
            if depth > DEEPEST {
                return Err(refused(of, "runnables call each other without an end"));
            }
            let graphs = elements(of).filter(|child| {
                ["activityGraph", "callGraph", "runnableItems", "items"]
                    .contains(&child.tag_name().name())
            });
            for graph in graphs {
                items += 1;
                if items > MOST_ITEMS {
                    return Err(refused(of, "it goes through too many items"));
                }
                match kind(graph) {
                    "" | "Group" | "CallSequence" => stack.push((graph, depth + 1)),
                    "RunnableCall" | "TaskRunnableCall" => {
                        stack.push((self.find(graph, needed(graph, "runnable")?)?, depth + 1));
                    }
                    "Ticks" => {
                        let time = ticks(graph, definition, hertz)?;
                        total = total.saturating_add(time);
                    }
                    "LabelAccess" => notes.about(
                        &format!("task '{name}'"),
                        "accesses of labels take no time of their own",
                    ),
                    other => {
                        let text = format!(
                            "the item {} takes a time that ticks do not say; it is not translated",
                            short(other)
                        );
                        return Err(refused(graph, &text));
                    }
                }
            }
        }
        Ok(total)
    }

    fn stimulus(&self, node: Node<'a, 'i>, task: &mut Task) -> Import<()> {
        let reference = needed(node, "stimuli")?;
        if reference.split_whitespace().count() > 1 {
            return Err(refused(node, "a task with several stimuli is not translated"));
        }
        let stimulus = self.find(node, reference)?;
        if kind(stimulus) != "PeriodicStimulus" {
            let text = format!(
                "the stimulus '{}' is a {}; only a PeriodicStimulus is translated",
                short(reference),
                kind(stimulus).escape_debug()
            );
            return Err(refused(node, &text));
        }
        for part in elements(stimulus) {
            match part.tag_name().name() {
                "recurrence" => task.period = time(part, Round::Down)?,
                "offset" => task.offset = Some(time(part, Round::Down)?),
                "jitter" => {
                    let upper = elements(part)
                        .find(|p| ["upperBound", "value"].contains(&p.tag_name().name()));
                    let upper =
                        upper.ok_or_else(|| refused(part, "a jitter without an upper bound"))?;
                    task.jitter = time(upper, Round::Up)?;
                }
                _ => {
                    return Err(refused(part, "this part of a PeriodicStimulus is not translated"));
                }
            }
        }
        Ok(())
    }
}

/// The upper bound of ticks on a kind of processing unit, as a time.
fn ticks(node: Node<'_, '_>, definition: &str, hertz: u128) -> Import<Span> {
    let own = named(node, "extended").find(|node| node.attribute("key") == Some(definition));
    let own = own.and_then(|node| sections(node, "value").next());
    let value = own.or_else(|| sections(node, "default").next());
    let value = value.ok_or_else(|| {
        refused(node, &format!("it has no ticks for '{}', and no default", short(definition)))
    })?;
    let key = if kind(value) == "DiscreteValueConstant" { "value" } else { "upperBound" };
    let text = attribute(value, key);
    let text = text.ok_or_else(|| {
        refused(value, "ticks without an upper bound have no longest execution time")
    })?;
    let time = decimal(value, key, text)?.span(1_000_000_000, hertz, Round::Up);
    time.map(|(time, _)| time).ok_or_else(|| bad(value, key, text, "out of range"))
}

fn time(node: Node<'_, '_>, round: Round) -> Import<Span> {
    let (unit, per) = match attribute(node, "unit") {
        Some("s") => (1_000_000_000, 1),
        Some("ms") => (1_000_000, 1),
        Some("us" | "µs") => (1_000, 1),
        Some("ns") => (1, 1),
        Some("ps") => (1, 1_000),
        other => return Err(bad(node, "unit", other.unwrap_or(""), "use s, ms, us, ns or ps")),
    };
    let text = needed(node, "value")?;
    let time = decimal(node, "value", text)?.span(unit, per, round);
    time.map(|(time, _)| time).ok_or_else(|| bad(node, "value", text, "out of range"))
}

/// The limit on a response time, if the requirement is one.
fn limit_of(node: Node<'_, '_>) -> Import<Option<Span>> {
    let Some(limit) = named(node, "limit").next() else { return Ok(None) };
    let is_deadline = attribute(limit, "metric") == Some("ResponseTime")
        && attribute(limit, "limitType") == Some("UpperLimit");
    if !is_deadline {
        return Ok(None);
    }
    named(limit, "limitValue").next().map(|value| time(value, Round::Down)).transpose()
}
