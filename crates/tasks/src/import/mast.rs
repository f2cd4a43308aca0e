//! MAST's text models: transactions of activities on fixed-priority or EDF processors.
//!
//! Owns: which elements a set of tasks can say. An activity becomes a task; activities behind one another in a
//! transaction come `after` each other. Must not: guess: whatever else stands there is named in an error.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::decimal::{Decimal, Round};
use super::mast_text::{self, Element, MastEntry, Value};
use super::{Import, ImportNotes, ImportedTaskSet};
use crate::error::{Location, TaskSetError};
use crate::{
    Activation, Assignment, CriticalSection, Preemption, Protocol, Resource, Scheduler, Task,
    TaskSet,
};

/// The file has no unit; milliseconds leave room for six decimals.
const UNIT_NS: u128 = 1_000_000;

pub(super) fn read(text: &str) -> Import<ImportedTaskSet> {
    let mut model = Model::default();
    for element in mast_text::parse(text)? {
        match element.kind.as_str() {
            "model" => {}
            "processing_resource" => model.processor(&element)?,
            "scheduler" => model.scheduler(&element)?,
            "scheduling_server" => model.server(&element)?,
            "shared_resource" => model.resource(&element)?,
            "operation" => model.operation(&element)?,
            "transaction" => model.transactions.push(element),
            kind => {
                let place = Location::part(&format!("line {}, {kind}", element.line));
                return Err(place.contradiction("this element is not translated"));
            }
        }
    }
    model.finish()
}

#[derive(Default)]
struct Model {
    notes: ImportNotes,
    inexact: bool,
    /// Numbers of processors by their names.
    processors: BTreeMap<String, u32>,
    /// The processor of each scheduler.
    schedulers: BTreeMap<String, String>,
    uses_edf: bool,
    context_switch: Option<Span>,
    /// Period and cost of the ticker that all processors have.
    tick: Option<(Span, Span)>,
    servers: BTreeMap<String, Server>,
    resources: Vec<Resource>,
    operations: BTreeMap<String, Operation>,
    transactions: Vec<Element>,
}

struct Server {
    host: String,
    preemption: Preemption,
    priority: Option<u32>,
    /// The deadline by which EDF orders it.
    deadline: Option<Span>,
}

#[derive(Clone)]
struct Operation {
    wcet: Span,
    bcet: Span,
    sections: Vec<CriticalSection>,
}

/// A name as MAST compares it.
fn key_of(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Entries of an element or a list, each taken once, so that what is left is not known here.
struct Fields<'a> {
    place: Location,
    left: Vec<&'a MastEntry>,
}

impl<'a> Fields<'a> {
    fn of(element: &'a Element) -> Fields<'a> {
        let name = element.entries.iter().find(|entry| entry.key == "name");
        let place = match name.map(|entry| &entry.value) {
            Some(Value::Word(name)) => Location::named(&element.kind, name),
            _ => Location::part(&element.kind),
        };
        let place = place.within(format_args!("line {}", element.line));
        Fields { place, left: element.entries.iter().collect() }
    }

    fn within(&self, key: &str, entries: &'a [MastEntry]) -> Fields<'a> {
        Fields { place: self.place.within(key), left: entries.iter().collect() }
    }

    fn take(&mut self, key: &str) -> Option<&'a MastEntry> {
        let at = self.left.iter().position(|entry| entry.key == key)?;
        Some(self.left.remove(at))
    }

    fn word(&mut self, key: &str) -> Import<Option<&'a str>> {
        match self.take(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Word(word)) => Ok(Some(word)),
            Some(Value::List(_)) => Err(self.wrong(&format!("{key} must be a single value"))),
        }
    }

    fn needed(&mut self, key: &'static str) -> Import<&'a str> {
        self.word(key)?.ok_or_else(|| self.place.missing(key, "give it"))
    }

    fn list(&mut self, key: &str) -> Import<&'a [MastEntry]> {
        match self.take(key).map(|entry| &entry.value) {
            None => Ok(&[]),
            Some(Value::List(entries)) => Ok(entries),
            Some(Value::Word(_)) => Err(self.wrong(&format!("{key} must stand in brackets"))),
        }
    }

    fn wrong(&self, message: &str) -> TaskSetError {
        self.place.contradiction(message)
    }

    fn untranslated(&self, what: &str, name: &str) -> TaskSetError {
        self.wrong(&format!("{what} {} is not translated", name.escape_debug()))
    }

    fn whole(&mut self, key: &str, shown: &str) -> Import<Option<u32>> {
        let number = self.word(key)?.map(str::parse::<u32>).transpose();
        number.map_err(|_| self.wrong(&format!("{shown} must be a whole number")))
    }

    fn decimal(&mut self, key: &str) -> Import<Option<Decimal>> {
        let Some(word) = self.word(key)? else { return Ok(None) };
        match Decimal::read(word) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(&format!("{key} = {}: give a number", word.escape_debug()))),
        }
    }

    fn time(&mut self, key: &str, round: Round, inexact: &mut bool) -> Import<Option<Span>> {
        let Some(number) = self.decimal(key)? else { return Ok(None) };
        let found = number.span(UNIT_NS, 1, round).filter(|(span, _)| !span.is_negative());
        let (span, exact) = found.ok_or_else(|| self.wrong(&format!("{key}: out of range")))?;
        *inexact |= !exact;
        Ok(Some(span))
    }

    /// That nothing is left but what begins with one of these, which bounds of tasks do not need.
    fn done(self, passed: &[&str]) -> Import<()> {
        let is_passed =
            |entry: &&&MastEntry| passed.iter().any(|begin| entry.key.starts_with(begin));
        match self.left.iter().find(|entry| !is_passed(entry)) {
            None => Ok(()),
            Some(entry) => {
                Err(self.wrong(&format!("'{}' is not translated", entry.key.escape_debug())))
            }
        }
    }
}

impl Model {
    fn processor(&mut self, element: &Element) -> Import<()> {
        let mut fields = Fields::of(element);
        let kind = fields.needed("type")?;
        let known = ["fixed_priority_processor", "regular_processor"];
        if !known.contains(&key_of(kind).as_str()) {
            return Err(fields.untranslated("the type", kind));
        }
        let name = fields.needed("name")?;
        if fields.decimal("speed_factor")?.is_some_and(|speed| !speed.is_one()) {
            return Err(fields.wrong("the Speed_Factor must be 1; scale the execution times"));
        }
        self.costs(&mut fields, name)?;
        let timer = fields.list("system_timer")?;
        self.timer(&fields, name, timer)?;
        let number = u32::try_from(self.processors.len()).unwrap_or(u32::MAX);
        self.processors.insert(key_of(name), number);
        // Interrupts are not tasks of the model unless a server has their priority.
        fields.done(&["max_", "min_", "avg_", "best_"])
    }

    /// The timer of a processor. A ticker takes time at each tick, on all CPUs of a set of tasks.
    fn timer(&mut self, fields: &Fields<'_>, name: &str, timer: &[MastEntry]) -> Import<()> {
        let mut tick = None;
        if !timer.is_empty() {
            let mut timer = fields.within("System_Timer", timer);
            let kind = key_of(timer.needed("type")?);
            let cost = timer.time("worst_overhead", Round::Up, &mut self.inexact)?;
            let cost = cost.unwrap_or(Span::ZERO);
            match kind.as_str() {
                "ticker" => {
                    let period = timer.time("period", Round::Down, &mut self.inexact)?;
                    let period = period.ok_or_else(|| timer.wrong("Period is missing"))?;
                    tick = Some((period, cost)).filter(|_| cost.is_positive());
                }
                "alarm_clock" if cost.is_positive() => self.notes.about(
                    &format!("processor '{}'", name.escape_debug()),
                    "the Worst_Overhead of its Alarm_Clock is passed over; count it in each \
                     Worst_Case_Execution_Time",
                ),
                "alarm_clock" => {}
                other => return Err(timer.untranslated("the type", other)),
            }
            timer.done(&["avg_", "best_"])?;
        }
        if !self.processors.is_empty() && self.tick != tick {
            return Err(fields.wrong(
                "its System_Timer is not that of the other processors, and a set of tasks has one tick",
            ));
        }
        self.tick = tick;
        Ok(())
    }

    fn costs(&mut self, fields: &mut Fields<'_>, name: &str) -> Import<()> {
        let switch = fields.time("worst_context_switch", Round::Up, &mut self.inexact)?;
        self.context_switch = self.context_switch.max(switch.filter(|span| span.is_positive()));
        let interrupt = fields.time("worst_isr_switch", Round::Up, &mut self.inexact)?;
        if interrupt.is_some_and(Span::is_positive) {
            let about = format!("processor '{}'", name.escape_debug());
            self.notes.about(
                &about,
                "Worst_ISR_Switch is passed over; count it in each Worst_Case_Execution_Time",
            );
        }
        Ok(())
    }

    fn scheduler(&mut self, element: &Element) -> Import<()> {
        let mut fields = Fields::of(element);
        let kind = fields.needed("type")?;
        if key_of(kind) != "primary_scheduler" {
            return Err(fields.wrong("only a Primary_Scheduler is translated"));
        }
        let (name, host) = (fields.needed("name")?, fields.needed("host")?);
        let policy = fields.list("policy")?;
        let mut policy = fields.within("Policy", policy);
        match key_of(policy.needed("type")?).as_str() {
            "fixed_priority" => {}
            "edf" => self.uses_edf = true,
            other => return Err(policy.untranslated("the policy", other)),
        }
        self.costs(&mut policy, name)?;
        policy.done(&["max_", "min_", "avg_", "best_"])?;
        self.schedulers.insert(key_of(name), key_of(host));
        fields.done(&[])
    }

    fn server(&mut self, element: &Element) -> Import<()> {
        let mut fields = Fields::of(element);
        let _ = fields.word("type")?;
        let name = fields.needed("name")?;
        let host = match (fields.word("server_processing_resource")?, fields.word("scheduler")?) {
            (Some(host), _) => key_of(host),
            (None, Some(scheduler)) => {
                let host = self.schedulers.get(&key_of(scheduler)).cloned();
                host.ok_or_else(|| fields.wrong("its scheduler is not there, or comes later"))?
            }
            _ => return Err(fields.wrong("it names neither processor nor scheduler")),
        };
        let policy = fields.list("server_sched_parameters")?;
        let mut policy = fields.within("Server_Sched_Parameters", policy);
        let mut deadline = None;
        let preemption = match key_of(policy.needed("type")?).as_str() {
            "fixed_priority_policy" => Preemption::Full,
            "non_preemptible_fp_policy" => Preemption::None,
            "edf_policy" => {
                self.uses_edf = true;
                deadline = policy.time("deadline", Round::Down, &mut self.inexact)?;
                Preemption::Full
            }
            other => return Err(policy.untranslated("the policy", other)),
        };
        let priority = policy.whole("the_priority", "The_Priority")?;
        policy.done(&["preassigned"])?;
        // Synchronisation of EDF servers is that of their resources.
        let _ = fields.take("synchronization_parameters");
        self.servers.insert(key_of(name), Server { host, preemption, priority, deadline });
        fields.done(&[])
    }

    fn resource(&mut self, element: &Element) -> Import<()> {
        let mut fields = Fields::of(element);
        let kind = fields.needed("type")?;
        let name = fields.needed("name")?;
        let protocol = match key_of(kind).as_str() {
            "immediate_ceiling_resource" | "srp_resource" => Protocol::Ceiling,
            "priority_inheritance_resource" => Protocol::Inheritance,
            other => return Err(fields.untranslated("the type", other)),
        };
        let ceiling = fields.whole("ceiling", "Ceiling")?;
        self.resources.push(Resource { name: key_of(name), protocol, ceiling });
        fields.done(&["preassigned", "preemption_level"])
    }

    fn operation(&mut self, element: &Element) -> Import<()> {
        let mut fields = Fields::of(element);
        let kind = key_of(fields.needed("type")?);
        let name = fields.needed("name")?;
        let wcet = fields.time("worst_case_execution_time", Round::Up, &mut self.inexact)?;
        let bcet = fields.time("best_case_execution_time", Round::Down, &mut self.inexact)?;
        let mut made = Operation {
            wcet: wcet.unwrap_or(Span::ZERO),
            bcet: bcet.unwrap_or(Span::ZERO),
            sections: Vec::new(),
        };
        match kind.as_str() {
            "simple" => {
                for resource in names(fields.list("shared_resources_list")?) {
                    let length = made.wcet;
                    made.sections.push(CriticalSection { resource, length, count: 1 });
                }
            }
            "composite" | "enclosing" => {
                let mut inner = (Span::ZERO, Span::ZERO);
                for part in names(fields.list("composite_operation_list")?) {
                    let part = self.operations.get(&part).cloned();
                    let part = part.ok_or_else(|| {
                        fields.wrong("it names an operation that is not there, or comes later")
                    })?;
                    inner = (inner.0.saturating_add(part.wcet), inner.1.saturating_add(part.bcet));
                    made.sections.extend(part.sections);
                }
                if kind == "composite" {
                    (made.wcet, made.bcet) = inner;
                } else if inner.0 > made.wcet {
                    return Err(fields.wrong("its parts execute for longer than itself"));
                }
            }
            _ => return Err(fields.untranslated("the type", &kind)),
        }
        self.operations.insert(key_of(name), made);
        fields.done(&["average_case_execution_time", "max_message", "min_message"])
    }

    fn finish(mut self) -> Import<ImportedTaskSet> {
        self.notes.file("the file has no unit; its times are taken as milliseconds");
        let mut set = TaskSet::default();
        set.machine.overheads.context_switch = self.context_switch;
        (set.machine.overheads.tick_period, set.machine.overheads.tick_cost) = self.tick.unzip();
        for element in std::mem::take(&mut self.transactions) {
            self.transaction(&element, &mut set)?;
        }
        if self.uses_edf {
            set.scheduler = Scheduler::Edf;
            set.tasks.iter_mut().for_each(|task| task.priority = None);
        } else if set.tasks.iter().all(|task| task.priority.is_some()) {
            set.assignment = Some(Assignment::Given);
        } else {
            return Err(Location::file().contradiction(
                "a scheduling server has no The_Priority, which MAST would assign; give each its priority",
            ));
        }
        set.resources = self.resources;
        self.notes.rounded(self.inexact);
        Ok(ImportedTaskSet { set, notes: self.notes.sentences() })
    }

    /// A transaction: one external event, activities behind one another.
    fn transaction(&mut self, element: &Element, set: &mut TaskSet) -> Import<()> {
        let mut fields = Fields::of(element);
        if key_of(fields.needed("type")?) != "regular" {
            return Err(fields.wrong("only a Regular transaction is translated"));
        }
        let transaction = fields.needed("name")?.to_owned();
        let [MastEntry { value: Value::List(external), .. }] = fields.list("external_events")?
        else {
            return Err(
                fields.wrong("a transaction with one external event is translated, no other")
            );
        };
        let mut event = fields.within("External_Events", external);
        let mut arrival = Task::new(&transaction, Span::ZERO, Span::ZERO);
        let mut at = key_of(event.needed("name")?);
        self.arrivals(&mut event, &mut arrival)?;
        let internal = fields.list("internal_events")?;
        let deadlines = self.deadlines(internal, &fields, &at)?;
        let mut handlers = fields.list("event_handlers")?.to_vec();
        let several = handlers.len() > 1;
        fields.done(&[])?;
        let mut before: Option<String> = None;
        while !handlers.is_empty() {
            let input = |entry: &MastEntry| match &entry.value {
                Value::List(entries) => entries.iter().any(|e| {
                    e.key == "input_event" && matches!(&e.value, Value::Word(w) if key_of(w) == at)
                }),
                Value::Word(_) => false,
            };
            let place = Location::named("transaction", &transaction);
            let Some(position) = handlers.iter().position(input) else {
                let message =
                    format!("no handler, or several, for the event '{}'", at.escape_debug());
                return Err(place.contradiction(message));
            };
            let handler = handlers.remove(position);
            let Value::List(entries) = &handler.value else { continue };
            let mut handler = Fields { place, left: entries.iter().collect() };
            let name = if several {
                format!("{transaction}-{}", set.tasks.len() + 1)
            } else {
                transaction.clone()
            };
            let (mut task, output) = self.activity(&mut handler, &arrival, &name)?;
            handler.done(&[])?;
            at = output;
            let scheduled = task.deadline.take();
            task.deadline = deadlines.get(&at).copied();
            let due = task.deadline();
            if let Some(scheduled) = scheduled.filter(|scheduled| *scheduled != due) {
                let message = format!(
                    "the deadline of {scheduled} in its EDF_Policy is not the deadline of {due} that it must \
                     meet; a task is scheduled by the deadline that it has, so make them equal"
                );
                return Err(Location::named("task", &name).contradiction(message));
            }
            if task.deadline.is_none() {
                self.notes.about(
                    &format!("task '{name}'"),
                    "it has no deadline of its own; the period is taken",
                );
            }
            task.after = before.replace(name).into_iter().collect();
            set.tasks.push(task);
        }
        Ok(())
    }

    fn arrivals(&mut self, event: &mut Fields<'_>, task: &mut Task) -> Import<()> {
        let kind = event.needed("type")?;
        let inexact = &mut self.inexact;
        let key = match key_of(kind).as_str() {
            "periodic" => "period",
            "sporadic" => {
                task.activation = Activation::Sporadic;
                "min_interarrival"
            }
            other => return Err(event.untranslated("an event of type", other)),
        };
        let period = event.time(key, Round::Down, inexact)?;
        task.period = period.ok_or_else(|| event.wrong(&format!("{key} is missing")))?;
        task.jitter = event.time("max_jitter", Round::Up, inexact)?.unwrap_or(Span::ZERO);
        let phase = event.time("phase", Round::Down, inexact)?;
        task.offset = phase.filter(|phase| phase.is_positive());
        let _ = event.take("avg_interarrival");
        let _ = event.take("distribution");
        std::mem::replace(event, Fields { place: Location::file(), left: Vec::new() }).done(&[])
    }

    /// Deadlines by internal event, from the external one.
    fn deadlines(
        &mut self,
        events: &[MastEntry],
        fields: &Fields<'_>,
        external: &str,
    ) -> Import<BTreeMap<String, Span>> {
        let mut found = BTreeMap::new();
        for entry in events {
            let Value::List(entries) = &entry.value else { continue };
            let mut event = fields.within("Internal_Events", entries);
            let _ = event.word("type")?;
            let name = key_of(event.needed("name")?);
            let requirement = event.list("timing_requirements")?;
            event.done(&[])?;
            if requirement.is_empty() {
                continue;
            }
            let mut requirement = fields.within("Timing_Requirements", requirement);
            let kind = key_of(requirement.needed("type")?);
            let deadline = requirement.time("deadline", Round::Down, &mut self.inexact)?;
            let referenced = requirement.word("referenced_event")?.map(key_of);
            match (kind.as_str(), deadline) {
                ("hard_global_deadline", Some(deadline))
                    if referenced.as_deref() == Some(external) =>
                {
                    found.insert(name, deadline);
                }
                _ => {
                    let text = format!(
                        "{} is not translated; a Hard_Global_Deadline from the external event is",
                        kind.escape_debug()
                    );
                    return Err(requirement.wrong(&text));
                }
            }
            requirement.done(&[])?;
        }
        Ok(found)
    }

    /// The task of an activity, and the event behind it.
    fn activity(
        &mut self,
        handler: &mut Fields<'_>,
        arrival: &Task,
        name: &str,
    ) -> Import<(Task, String)> {
        let kind = key_of(handler.needed("type")?);
        if kind != "activity" {
            return Err(handler.untranslated("the handler", &kind));
        }
        let _ = handler.take("input_event");
        let output = key_of(handler.needed("output_event")?);
        let operation = key_of(handler.needed("activity_operation")?);
        let server = key_of(handler.needed("activity_server")?);
        let operation = self.operations.get(&operation);
        let operation =
            operation.ok_or_else(|| handler.wrong("its Activity_Operation is not there"))?;
        let server = self.servers.get(&server);
        let server = server.ok_or_else(|| handler.wrong("its Activity_Server is not there"))?;
        let cpu = self.processors.get(&server.host);
        let cpu =
            *cpu.ok_or_else(|| handler.wrong("the processor of its Activity_Server is not there"))?;
        let task = Task {
            wcet: operation.wcet,
            bcet: Some(operation.bcet).filter(|bcet| bcet.is_positive()),
            critical_sections: operation.sections.clone(),
            preemption: server.preemption,
            priority: server.priority,
            deadline: server.deadline,
            cpus: Some([cpu].into_iter().collect::<CpuSet>()),
            name: name.to_owned(),
            ..arrival.clone()
        };
        Ok((task, output))
    }
}

fn names(entries: &[MastEntry]) -> Vec<String> {
    let word = |entry: &MastEntry| match &entry.value {
        Value::Word(word) => Some(key_of(word)),
        Value::List(_) => None,
    };
    entries.iter().filter_map(word).collect()
}
