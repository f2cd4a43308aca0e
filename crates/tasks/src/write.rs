//! Writing a set of tasks as TOML or JSON.
//!
//! Owns: what is left out because it is the default, and the layout of the TOML. Must not: lose
//! anything: what is written reads back as the same set.

use std::fmt::{self, Write};

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::keywords::{self, word};
use super::node::Node;
use super::{
    Activation, Background, CriticalSection, Interference, MachineModel, Phase, Preemption,
    Program, Resource, Scheduler, Server, Task, TaskSet,
};

impl TaskSet {
    /// The set as TOML, to be read by [`TaskSet::from_toml`].
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = toml(&self.to_node(), &mut text);
        text
    }

    /// The set as JSON, to be read by [`TaskSet::from_json`].
    #[must_use]
    pub fn to_json(&self) -> String {
        // A tree of texts, numbers and lists has no value that JSON lacks.
        serde_json::to_string_pretty(&self.to_node()).unwrap_or_default()
    }

    fn to_node(&self) -> Node {
        let mut table = Table::default();
        table.text("schema", keywords::TASKS_SCHEMA);
        table.if_some("name", Some(&self.name).filter(|name| !name.is_empty()));
        table.text("scheduler", word(&keywords::SCHEDULERS, &self.scheduler));
        let assignment = self.assignment.map(|given| word(&keywords::ASSIGNMENTS, &given));
        table.if_some("priorities", assignment);
        table.if_some("horizon", self.horizon);
        table.if_any("machine", machine(&self.machine));
        table.list("resource", &self.resources, resource);
        table.list("server", &self.servers, server);
        table.list("task", &self.tasks, task);
        table.list("interference", &self.interference, interference);
        table.list("background", &self.background, background);
        Node::Table(table.0)
    }
}

/// The keys of a table, in their order.
#[derive(Default)]
struct Table(Vec<(String, Node)>);

impl Table {
    fn put(&mut self, key: &str, node: Node) {
        self.0.push((key.to_owned(), node));
    }

    fn text(&mut self, key: &str, value: impl fmt::Display) {
        self.put(key, Node::text(value));
    }

    fn if_some(&mut self, key: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn number(&mut self, key: &str, value: Option<impl Into<i128>>) {
        if let Some(value) = value {
            self.put(key, Node::Whole(value.into()));
        }
    }

    fn unless_zero(&mut self, key: &str, value: Span) {
        self.if_some(key, Some(value).filter(|value| !value.is_zero()));
    }

    fn cpus(&mut self, cpus: Option<&CpuSet>) {
        self.if_some("cpus", cpus);
    }

    fn list<'a, T>(&mut self, key: &str, items: &'a [T], node: impl Fn(&'a T) -> Node) {
        if !items.is_empty() {
            self.put(key, Node::List(items.iter().map(node).collect()));
        }
    }

    fn if_any(&mut self, key: &str, table: Table) {
        if !table.0.is_empty() {
            self.put(key, Node::Table(table.0));
        }
    }
}

fn task(task: &Task) -> Node {
    let mut table = Table::default();
    table.text("name", &task.name);
    if task.activation != Activation::default() {
        table.text("activation", word(&keywords::ACTIVATIONS, &task.activation));
    }
    table.text("period", task.period);
    table.text("wcet", task.wcet);
    table.if_some("wcet_at_least", task.wcet_at_least);
    table.if_some("bcet", task.bcet);
    table.if_some("execution_time", task.execution_time.as_ref());
    table.if_some("deadline", task.deadline);
    table.unless_zero("jitter", task.jitter);
    table.if_some("offset", task.offset);
    table.unless_zero("blocking", task.blocking);
    table.unless_zero("suspension", task.suspension);
    match task.preemption {
        Preemption::Full => {}
        Preemption::None => table.put("preemptive", Node::Bool(false)),
        Preemption::Threshold(priority) => table.number("preemption_threshold", Some(priority)),
        Preemption::Limited { longest, last } => {
            table.text("longest_section", longest);
            table.text("last_section", last);
        }
        Preemption::Floating { longest } => table.text("floating_section", longest),
    }
    table.number("priority", task.priority);
    table.if_some("policy", task.policy);
    table.cpus(task.cpus.as_ref());
    table.list("arrivals", &task.arrivals, Node::text);
    table.list("after", &task.after, Node::text);
    table.list("critical_sections", &task.critical_sections, section);
    table.if_some("timer", task.timer.as_ref());
    table.if_some("tick_jitter", task.tick_jitter);
    program(&mut table, task.program.as_ref());
    Node::Table(table.0)
}

fn section(section: &CriticalSection) -> Node {
    let mut table = Table::default();
    table.text("resource", &section.resource);
    table.text("length", section.length);
    table.number("count", Some(section.count).filter(|count| *count != 1));
    Node::Table(table.0)
}

fn program(table: &mut Table, program: Option<&Program>) {
    let Some(program) = program else { return };
    table.number("loops", program.loops);
    // An empty list is written, too: a program without phases is still a program.
    table.put("phases", Node::List(program.phases.iter().map(phase).collect()));
}

fn phase(phase: &Phase) -> Node {
    let mut table = Table::default();
    table.if_some("name", Some(&phase.name).filter(|name| !name.is_empty()));
    match phase.loops {
        None => table.text("loops", "forever"),
        Some(1) => {}
        loops => table.number("loops", loops),
    }
    table.if_some("policy", phase.policy);
    table.cpus(phase.cpus.as_ref());
    table.list("steps", &phase.steps, Node::text);
    Node::Table(table.0)
}

fn resource(resource: &Resource) -> Node {
    let mut table = Table::default();
    table.text("name", &resource.name);
    table.text("protocol", word(&keywords::PROTOCOLS, &resource.protocol));
    table.number("ceiling", resource.ceiling);
    Node::Table(table.0)
}

fn server(server: &Server) -> Node {
    let mut table = Table::default();
    table.text("name", &server.name);
    table.text("kind", word(&keywords::SERVER_KINDS, &server.kind));
    table.text("budget", server.budget);
    table.text("period", server.period);
    table.if_some("deadline", server.deadline);
    table.number("priority", server.priority);
    table.cpus(server.cpus.as_ref());
    if server.scheduler != Scheduler::default() {
        table.text("scheduler", word(&keywords::SCHEDULERS, &server.scheduler));
    }
    table.list("tasks", &server.tasks, Node::text);
    Node::Table(table.0)
}

fn machine(machine: &MachineModel) -> Table {
    let mut table = Table::default();
    table.cpus(machine.cpus.as_ref());
    table.list("cores", &machine.cores, Node::text);
    let mut costs = Table::default();
    let overheads = &machine.overheads;
    costs.if_some("context_switch", overheads.context_switch);
    costs.if_some("tick_period", overheads.tick_period);
    costs.if_some("tick_cost", overheads.tick_cost);
    costs.if_some("timer_granularity", overheads.timer_granularity);
    costs.if_some("cache_delay", overheads.cache_delay);
    table.if_any("overheads", costs);
    table
}

fn interference(entry: &Interference) -> Node {
    let mut table = Table::default();
    table.if_some("task", entry.task.as_ref());
    table.if_some("beside", entry.beside.as_ref());
    table.text("rate", entry.rate);
    Node::Table(table.0)
}

fn background(thread: &Background) -> Node {
    let mut table = Table::default();
    table.text("name", &thread.name);
    table.if_some("policy", thread.policy);
    table.cpus(thread.cpus.as_ref());
    program(&mut table, Some(&thread.program));
    Node::Table(table.0)
}

/// Writes the tree of a set: single values, then a table each for its parts; what is inside
/// these stands on one line.
fn toml(node: &Node, text: &mut String) -> fmt::Result {
    let Node::Table(entries) = node else { return Ok(()) };
    for (key, value) in entries {
        match value {
            Node::Table(entries) => {
                writeln!(text, "\n[{key}]")?;
                lines(entries, text)?;
            }
            Node::List(items) => {
                for item in items {
                    let Node::Table(entries) = item else { continue };
                    writeln!(text, "\n[[{key}]]")?;
                    lines(entries, text)?;
                }
            }
            value => line(key, value, text)?,
        }
    }
    Ok(())
}

fn lines(entries: &[(String, Node)], text: &mut String) -> fmt::Result {
    entries.iter().try_for_each(|(key, value)| line(key, value, text))
}

fn line(key: &str, value: &Node, text: &mut String) -> fmt::Result {
    write!(text, "{key} = ")?;
    inline(value, text)?;
    text.write_char('\n')
}

fn inline(node: &Node, text: &mut String) -> fmt::Result {
    let mut separator = "";
    match node {
        Node::List(items) => {
            text.write_char('[')?;
            for item in items {
                text.write_str(separator)?;
                inline(item, text)?;
                separator = ", ";
            }
            text.write_char(']')
        }
        Node::Table(entries) => {
            text.write_str("{ ")?;
            for (key, value) in entries {
                write!(text, "{separator}{key} = ")?;
                inline(value, text)?;
                separator = ", ";
            }
            text.write_str(" }")
        }
        Node::Text(value) => write!(text, "{}", toml::Value::String(value.clone())),
        value => write!(text, "{value}"),
    }
}
