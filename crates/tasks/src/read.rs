//! Reading a set of tasks from TOML or JSON.
//!
//! Owns: the way from a document to a [`TaskSet`] that has been checked. Must not: open files,
//! judge values that only make sense together (`check` does).

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::error::{Location, TaskSetError};
use super::keys::{KeyResult, Keys, remedy};
use super::keywords;
use super::language;
use super::node::Node;
use super::{
    Background, CriticalSection, Fraction, Interference, MachineModel, Overheads, Phase,
    Preemption, Program, ProgramStep, Resource, Server, Task, TaskSet,
};

impl TaskSet {
    /// Reads TOML; the format is described in [`language`](super::language).
    ///
    /// # Errors
    /// The text is no TOML, or something in it is not understood or cannot be meant.
    pub fn from_toml(text: &str) -> Result<TaskSet, TaskSetError> {
        let node = toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            TaskSetError::Syntax {
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                message: error.message().trim().replace('\n', ", "),
            }
        })?;
        from_node(&node)
    }

    /// Reads JSON with the same keys as TOML.
    ///
    /// # Errors
    /// The text is no JSON, or something in it is not understood or cannot be meant.
    pub fn from_json(text: &str) -> Result<TaskSet, TaskSetError> {
        from_node(&parse_json(text)?)
    }
}

pub(crate) fn parse_json(text: &str) -> KeyResult<Node> {
    serde_json::from_str(text).map_err(|error| syntax(&error))
}

/// The error of the JSON parser, after its place.
pub(crate) fn syntax(error: &serde_json::Error) -> TaskSetError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let message = message.get(..end).unwrap_or_default().replace('\n', " ");
    TaskSetError::Syntax { line, column, message }
}

pub(crate) fn from_node(node: &Node) -> KeyResult<TaskSet> {
    let file = Keys::open(Location::file(), node, &language::FILE, None)?;
    if let Some(schema) = file.text("schema")?
        && schema != keywords::TASKS_SCHEMA
    {
        let reason = format!("another format; this version reads {}", keywords::TASKS_SCHEMA);
        return Err(file.bad("schema", &Node::text(schema), reason));
    }
    let unit = file.span("unit")?;
    if let (Some(false), Some(node)) = (unit.map(Span::is_positive), file.get("unit")) {
        return Err(file.bad("unit", node, "it must be above zero"));
    }
    let machine = file.get("machine").map(|node| machine(node, unit)).transpose()?;
    let mut set = TaskSet {
        name: file.text("name")?.unwrap_or_default().to_owned(),
        scheduler: file.word("scheduler", &keywords::SCHEDULERS)?.unwrap_or_default(),
        assignment: file.word("priorities", &keywords::ASSIGNMENTS)?,
        machine: machine.unwrap_or_default(),
        resources: read_list(&file, "resource", resource)?,
        servers: read_list(&file, "server", |place, node| server(place, node, unit))?,
        tasks: Vec::new(),
        interference: read_list(&file, "interference", interference)?,
        background: read_list(&file, "background", background)?,
        horizon: file.span("horizon")?,
    };
    let drafts = read_list(&file, "task", |place, node| task(place, node, unit))?;
    set.tasks = inherit_periods(drafts)?;
    set.check()?;
    Ok(set)
}

/// Reads each table of a list, which is named in messages by its own name or by its number.
fn read_list<T>(
    file: &Keys<'_>,
    kind: &str,
    read: impl Fn(Location, &Node) -> KeyResult<T>,
) -> KeyResult<Vec<T>> {
    let place = |(position, node): (usize, &Node)| {
        let Node::Table(entries) = node else { return Location::numbered(kind, position) };
        match entries.iter().find(|(key, _)| key == "name") {
            Some((_, Node::Text(name))) => Location::named(kind, name),
            _ => Location::numbered(kind, position),
        }
    };
    let tables = file.list(kind)?;
    tables.iter().enumerate().map(|entry| read(place(entry), entry.1)).collect()
}

fn name(keys: &Keys<'_>) -> KeyResult<String> {
    let missing = || keys.missing("name", "give it one, as in name = \"video\"");
    let name = keys.text("name")?.ok_or_else(missing)?;
    if !is_name(name) {
        return Err(keys.bad("name", &Node::text(name), NAME));
    }
    Ok(name.to_owned())
}

pub(crate) const NAME: &str = "a name has letters and no line breaks";

pub(crate) fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.chars().any(char::is_control)
}

/// `cpus`, or the same as `cpu`.
fn cpus(keys: &Keys<'_>) -> KeyResult<Option<CpuSet>> {
    if keys.get("cpu").is_some() && keys.get("cpus").is_some() {
        return Err(keys.place.contradiction("cpu and cpus are the same; give one of them"));
    }
    Ok(keys.cpus("cpus")?.or(keys.cpus("cpu")?))
}

/// A task whose period may still have to be taken from the one that it follows.
struct TaskDraft {
    task: Task,
    has_period: bool,
}

fn task(place: Location, node: &Node, unit: Option<Span>) -> KeyResult<TaskDraft> {
    let keys = Keys::open(place, node, &language::TASK, unit)?;
    let name = name(&keys)?;
    let execution_time: Option<hourglass_documents::ExecutionTime> =
        keys.parsed("execution_time")?;
    let longest = execution_time.as_ref().map(|times| times.longest());
    let wcet = match (keys.span("wcet")?, longest) {
        (Some(wcet), _) | (None, Some(Some(wcet))) => wcet,
        (None, longest) => {
            let remedy = match longest {
                Some(_) => "the execution_time has no upper limit; give wcet as well",
                None => "give the longest execution time of a job, for example wcet = \"3ms\"",
            };
            return Err(keys.missing("wcet", remedy));
        }
    };
    let period = keys.span("period")?;
    let task = Task {
        activation: keys.word("activation", &keywords::ACTIVATIONS)?.unwrap_or_default(),
        wcet_at_least: keys.span("wcet_at_least")?,
        bcet: keys.span("bcet")?,
        execution_time,
        deadline: keys.span("deadline")?,
        jitter: keys.span("jitter")?.unwrap_or_default(),
        offset: keys.span("offset")?,
        blocking: keys.span("blocking")?.unwrap_or_default(),
        suspension: keys.span("suspension")?.unwrap_or_default(),
        preemption: preemption(&keys)?,
        priority: keys.whole("priority")?,
        policy: keys.parsed("policy")?,
        cpus: cpus(&keys)?,
        arrivals: keys.spans("arrivals")?,
        after: keys.names("after")?,
        critical_sections: critical_sections(&keys, unit)?,
        timer: keys.text("timer")?.map(str::to_owned),
        tick_jitter: keys.span("tick_jitter")?,
        program: program(&keys)?,
        ..Task::new(&name, wcet, period.unwrap_or_default())
    };
    if period.is_none() && task.after.is_empty() {
        let remedy = "give the shortest time between two jobs, for example period = \"8ms\"";
        return Err(keys.missing("period", remedy));
    }
    Ok(TaskDraft { task, has_period: period.is_some() })
}

/// A task without a period has that of the first task that it is after.
fn inherit_periods(drafts: Vec<TaskDraft>) -> KeyResult<Vec<Task>> {
    let mut tasks: Vec<Task> = drafts.iter().map(|draft| draft.task.clone()).collect();
    let mut periods: BTreeMap<String, Span> = BTreeMap::new();
    for position in super::check::in_order(&tasks)? {
        let task = &mut tasks[position];
        if !drafts[position].has_period {
            // A task without a period is after another, which stands earlier in this order.
            let first = task.after.first().and_then(|first| periods.get(first));
            task.period = first.copied().unwrap_or_default();
        }
        periods.insert(task.name.clone(), task.period);
    }
    Ok(tasks)
}

fn preemption(keys: &Keys<'_>) -> KeyResult<Preemption> {
    let preemptive = match keys.get("preemptive") {
        None => None,
        Some(Node::Bool(value)) => Some(*value),
        Some(node) => return Err(keys.bad("preemptive", node, "give true or false")),
    };
    let threshold = keys.whole("preemption_threshold")?;
    let longest = keys.span("longest_section")?;
    let last = keys.span("last_section")?;
    let floating = keys.span("floating_section")?;
    Ok(match (preemptive, threshold, longest, last, floating) {
        (None | Some(true), None, None, None, None) => Preemption::Full,
        (Some(false), None, None, None, None) => Preemption::None,
        (None, Some(threshold), None, None, None) => Preemption::Threshold(threshold),
        (None, None, Some(longest), last, None) => {
            Preemption::Limited { longest, last: last.unwrap_or(longest) }
        }
        (None, None, None, None, Some(longest)) => Preemption::Floating { longest },
        (None, None, None, Some(_), None) => {
            return Err(keys.missing("longest_section", "it belongs to last_section"));
        }
        _ => {
            return Err(keys.place.contradiction(
                "preemptive, preemption_threshold, longest_section and floating_section exclude \
                 each other; keep one of them",
            ));
        }
    })
}

fn critical_sections(keys: &Keys<'_>, unit: Option<Span>) -> KeyResult<Vec<CriticalSection>> {
    let section = |(position, node): (usize, &Node)| {
        let place = keys.place.within(format_args!("critical section {}", position + 1));
        let keys = Keys::open(place, node, &language::CRITICAL_SECTION, unit)?;
        let resource = keys.text("resource")?.map(str::to_owned);
        Ok(CriticalSection {
            resource: resource.ok_or_else(|| keys.missing("resource", "name what it holds"))?,
            length: keys.needed_span("length", "say for how long at most")?,
            count: keys.whole("count")?.unwrap_or(1),
        })
    };
    keys.list("critical_sections")?.iter().enumerate().map(section).collect()
}

fn program(keys: &Keys<'_>) -> KeyResult<Option<Program>> {
    if keys.get("phases").is_none() {
        return match keys.get("loops") {
            None => Ok(None),
            Some(_) => Err(keys.missing("phases", "loops says how often to go through them")),
        };
    }
    let phase = |(position, node): (usize, &Node)| {
        let place = keys.place.within(format_args!("phase {}", position + 1));
        let keys = Keys::open(place, node, &language::PHASE, None)?;
        let step = |node: &Node| match node {
            Node::Text(text) => {
                text.parse::<ProgramStep>().map_err(|error| keys.bad("steps", node, error))
            }
            _ => Err(keys.bad("steps", node, "give texts such as \"run 3ms\"")),
        };
        Ok(Phase {
            name: keys.text("name")?.unwrap_or_default().to_owned(),
            loops: loops(&keys, Some(1))?,
            policy: keys.parsed("policy")?,
            cpus: keys.cpus("cpus")?,
            steps: keys.list("steps")?.iter().map(step).collect::<KeyResult<_>>()?,
        })
    };
    let phases = keys.list("phases")?.iter().enumerate().map(phase).collect::<KeyResult<_>>()?;
    Ok(Some(Program { loops: loops(keys, None)?, phases }))
}

/// A number of rounds, or `"forever"`.
fn loops(keys: &Keys<'_>, default: Option<u64>) -> KeyResult<Option<u64>> {
    match keys.get("loops") {
        None => Ok(default),
        Some(Node::Text(text)) if text == "forever" => Ok(None),
        Some(Node::Whole(_)) => keys.whole("loops"),
        Some(node) => Err(keys.bad("loops", node, "give a number of rounds or \"forever\"")),
    }
}

fn resource(place: Location, node: &Node) -> KeyResult<Resource> {
    let keys = Keys::open(place, node, &language::RESOURCE, None)?;
    Ok(Resource {
        name: name(&keys)?,
        protocol: keys.word("protocol", &keywords::PROTOCOLS)?.unwrap_or_default(),
        ceiling: keys.whole("ceiling")?,
    })
}

fn server(place: Location, node: &Node, unit: Option<Span>) -> KeyResult<Server> {
    let keys = Keys::open(place, node, &language::SERVER, unit)?;
    let kinds = || remedy("", keywords::names(&keywords::SERVER_KINDS).into_iter());
    let kind = keys.word("kind", &keywords::SERVER_KINDS)?;
    let kind = kind.ok_or_else(|| keys.missing("kind", &kinds()))?;
    let budget = keys.needed_span("budget", "give the processor time per period")?;
    let period = keys.needed_span("period", "give the time between two replenishments")?;
    Ok(Server {
        deadline: keys.span("deadline")?,
        priority: keys.whole("priority")?,
        cpus: cpus(&keys)?,
        scheduler: keys.word("scheduler", &keywords::SCHEDULERS)?.unwrap_or_default(),
        tasks: keys.names("tasks")?,
        ..Server::new(&name(&keys)?, kind, budget, period)
    })
}

/// The CPU that a list of them names for the second time.
fn named_again(node: &Node) -> Option<u32> {
    let parts: Vec<String> = match node {
        Node::List(items) => items.iter().map(Node::to_string).collect(),
        Node::Text(text) => text.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    let mut known = CpuSet::default();
    for part in parts.iter().filter_map(|part| part.parse::<CpuSet>().ok()) {
        if let Some(cpu) = part.iter().find(|cpu| known.contains(*cpu)) {
            return Some(cpu);
        }
        part.iter().for_each(|cpu| known.insert(cpu));
    }
    None
}

fn machine(node: &Node, unit: Option<Span>) -> KeyResult<MachineModel> {
    let keys = Keys::open(Location::part("machine"), node, &language::MACHINE, None)?;
    let core = |node: &Node| match named_again(node) {
        Some(cpu) => {
            let reason = "it is there twice in a core; name it once";
            Err(keys.place.bad("cores", format_args!("CPU {cpu}"), reason))
        }
        None => keys.as_cpus("cores", node),
    };
    let overheads = keys.get("overheads").map(|node| overheads(node, unit)).transpose()?;
    Ok(MachineModel {
        cpus: keys.cpus("cpus")?,
        cores: keys.list("cores")?.iter().map(core).collect::<KeyResult<_>>()?,
        overheads: overheads.unwrap_or_default(),
    })
}

fn overheads(node: &Node, unit: Option<Span>) -> KeyResult<Overheads> {
    let keys = Keys::open(Location::part("machine.overheads"), node, &language::OVERHEADS, unit)?;
    Ok(Overheads {
        context_switch: keys.span("context_switch")?,
        tick_period: keys.span("tick_period")?,
        tick_cost: keys.span("tick_cost")?,
        timer_granularity: keys.span("timer_granularity")?,
        cache_delay: keys.span("cache_delay")?,
    })
}

fn interference(place: Location, node: &Node) -> KeyResult<Interference> {
    let keys = Keys::open(place, node, &language::INTERFERENCE, None)?;
    let rate = match keys.get("rate") {
        Some(Node::Whole(0)) => Some(Fraction::ZERO),
        Some(Node::Whole(1)) => Some(Fraction::ONE),
        Some(node @ Node::Decimal(number)) => {
            let reason = format!("write it as a text, which is exact: rate = \"{number}\"");
            return Err(keys.bad("rate", node, reason));
        }
        _ => keys.parsed("rate")?,
    };
    Ok(Interference {
        task: keys.text("task")?.map(str::to_owned),
        beside: keys.text("beside")?.map(str::to_owned),
        rate: rate.ok_or_else(|| {
            keys.missing("rate", "give the progress per unit of time, for example \"3/5\"")
        })?,
    })
}

fn background(place: Location, node: &Node) -> KeyResult<Background> {
    let keys = Keys::open(place, node, &language::BACKGROUND, None)?;
    Ok(Background {
        name: name(&keys)?,
        policy: keys.parsed("policy")?,
        cpus: cpus(&keys)?,
        program: program(&keys)?
            .ok_or_else(|| keys.missing("phases", "say what the thread does"))?,
    })
}
