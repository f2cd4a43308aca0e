//! The kernel's events that a run records, and what their fields mean to it.
//!
//! Owns: names of events and fields. Where a field stands in an event is the kernel's to say.

use std::collections::BTreeSet;
use std::fs;

use hourglass_sys::tracefs::{Field, Format, Instance, Tracefs};
use hourglass_trace::{KernelEventKind as Kind, Vector};

use super::waiting_calls::{self, CallDecoding};

#[derive(Clone, Copy, Debug)]
enum Source {
    Is(u64),
    Field(&'static str),
    /// The upper half of a field of 64 bits.
    Upper(&'static str),
    /// A thread's state when it left the CPU.
    State(&'static str),
    /// The lower half of a number and its upper half.
    Pair(&'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Threads,
    Irqs,
}

struct EventRequest {
    system: &'static str,
    name: &'static str,
    kind: Kind,
    a: Source,
    b: Source,
    value: Source,
    names: &'static [(Table, &'static str, &'static str)],
}

const NOTHING: Source = Source::Is(0);

const fn bare(system: &'static str, name: &'static str, kind: Kind) -> EventRequest {
    EventRequest { system, name, kind, a: NOTHING, b: NOTHING, value: NOTHING, names: &[] }
}

const WANTED: [EventRequest; 14] = [
    EventRequest {
        a: Source::Field("prev_pid"),
        b: Source::Field("next_pid"),
        value: Source::State("prev_state"),
        names: &[
            (Table::Threads, "prev_pid", "prev_comm"),
            (Table::Threads, "next_pid", "next_comm"),
        ],
        ..bare("sched", "sched_switch", Kind::Switch)
    },
    EventRequest {
        a: Source::Field("pid"),
        b: Source::Field("target_cpu"),
        value: Source::Pair("common_flags", "common_pid"),
        names: &[(Table::Threads, "pid", "comm")],
        ..bare("sched", "sched_waking", Kind::Waking)
    },
    EventRequest {
        a: Source::Field("pid"),
        b: Source::Field("dest_cpu"),
        value: Source::Field("orig_cpu"),
        ..bare("sched", "sched_migrate_task", Kind::Migrate)
    },
    EventRequest {
        a: Source::Field("irq"),
        names: &[(Table::Irqs, "irq", "name")],
        ..bare("irq", "irq_handler_entry", Kind::IrqEntry)
    },
    EventRequest { a: Source::Field("irq"), ..bare("irq", "irq_handler_exit", Kind::IrqExit) },
    EventRequest { a: Source::Field("vec"), ..bare("irq", "softirq_entry", Kind::SoftirqEntry) },
    EventRequest { a: Source::Field("vec"), ..bare("irq", "softirq_exit", Kind::SoftirqExit) },
    EventRequest {
        a: Source::Field("expires"),
        b: Source::Upper("expires"),
        value: Source::Field("hrtimer"),
        ..bare("timer", "hrtimer_start", Kind::HrtimerStart)
    },
    EventRequest {
        value: Source::Field("hrtimer"),
        ..bare("timer", "hrtimer_expire_entry", Kind::HrtimerEntry)
    },
    EventRequest {
        value: Source::Field("hrtimer"),
        ..bare("timer", "hrtimer_expire_exit", Kind::HrtimerExit)
    },
    EventRequest {
        a: Source::Is(1),
        value: Source::Field("address"),
        ..bare("exceptions", "page_fault_user", Kind::PageFault)
    },
    EventRequest {
        value: Source::Field("address"),
        ..bare("exceptions", "page_fault_kernel", Kind::PageFault)
    },
    EventRequest { a: Source::Field("sig"), ..bare("signal", "signal_deliver", Kind::Signal) },
    // Elsewhere than on x86, where the processor's own interrupts have a system of events.
    EventRequest {
        a: Source::Is(Vector::Other as u64),
        ..bare("ipi", "ipi_entry", Kind::VectorEntry)
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    Scheduling,
}

/// The system of the events that [`Scope::Scheduling`] keeps to.
const SCHEDULING: &str = "sched";

/// The events of the processor's own interrupts on x86, by what stands before `_entry`, `_exit`.
const VECTORS: &str = "irq_vectors";

#[derive(Clone, Debug)]
pub(super) struct EventDecoding {
    pub(super) kind: Kind,
    pub(super) a: ValueSource,
    pub(super) b: ValueSource,
    pub(super) value: ValueSource,
    /// Table, number, name.
    pub(super) names: Vec<(Table, Field, Field)>,
    /// For an interrupt of the processor itself: what the kernel calls it.
    pub(super) vector: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ValueSource {
    Is(u64),
    Field(Field),
    Upper(Field),
    Pair(Field, Field),
    /// The bits of a state, all below `preempted`, which stands for a thread that could run.
    State {
        field: Field,
        preempted: u64,
    },
}

impl ValueSource {
    #[inline]
    pub(super) fn of(self, entry: &[u8]) -> u64 {
        // An entry that is too short was damaged, and says nothing.
        match self {
            ValueSource::Is(number) => number,
            ValueSource::Field(field) => field.read(entry).unwrap_or(0),
            ValueSource::Upper(field) => field.read(entry).unwrap_or(0) >> 32,
            ValueSource::Pair(lower, upper) => {
                let half = |field: Field| field.read(entry).unwrap_or(0) & u64::from(u32::MAX);
                half(upper) << 32 | half(lower)
            }
            ValueSource::State { field, preempted } => {
                let state = field.read(entry).unwrap_or(0);
                if state & preempted != 0 { 0 } else { state & (preempted - 1) }
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Plans {
    /// By the number of the event.
    pub(super) by_id: Vec<Option<EventDecoding>>,
    /// `sched/sched_switch`.
    pub(super) events: Vec<String>,
    pub(super) missing: Vec<String>,
    /// Where every entry has the number of its event.
    pub(super) id: Option<Field>,
    pub(super) softirqs: Vec<(u32, String)>,
    /// The number of the event of system calls, and what it says.
    pub(super) calls: Option<(usize, CallDecoding)>,
}

impl Plans {
    pub(super) fn enable(tracefs: &Tracefs, instance: &Instance, scope: Scope) -> Plans {
        let mut plans = Plans::default();
        if scope == Scope::Scheduling {
            for wanted in WANTED.iter().filter(|wanted| wanted.system == SCHEDULING) {
                plans.take(tracefs, instance, wanted, None);
            }
            return plans;
        }
        let has_vectors = tracefs.path().join("events").join(VECTORS).is_dir();
        let elsewhere = |wanted: &&EventRequest| !has_vectors || wanted.system != "ipi";
        for wanted in WANTED.iter().filter(elsewhere) {
            plans.take(tracefs, instance, wanted, None);
        }
        for (name, kind, vector, called) in vectors(tracefs) {
            let own = EventRequest {
                system: VECTORS,
                a: Source::Is(u64::from(vector.code())),
                b: Source::Field("vector"),
                ..bare(VECTORS, "", kind)
            };
            plans.take(tracefs, instance, &own, Some((name, called)));
        }
        if !has_vectors {
            let exit = EventRequest {
                a: Source::Is(u64::from(Vector::Other.code())),
                ..bare("ipi", "ipi_exit", Kind::VectorExit)
            };
            plans.take(tracefs, instance, &exit, None);
        }
        plans
    }

    /// The system calls in which threads may wait; of no thread until one is wanted.
    pub(super) fn enable_calls(&mut self, tracefs: &Tracefs, instance: &Instance) {
        let (system, name) = (waiting_calls::SYSTEM, waiting_calls::EVENT);
        let thread = Source::Field("common_pid");
        let wanted = EventRequest { a: thread, ..bare(system, name, Kind::Call) };
        let decoding = tracefs.format(system, name).and_then(|format| {
            let decoding = CallDecoding::of(format.field("id")?, format.field("args")?)?;
            waiting_calls::want(instance, &BTreeSet::new()).ok()?;
            Some((usize::from(format.id), decoding))
        });
        match decoding {
            Some(decoding) => {
                self.take(tracefs, instance, &wanted, None);
                self.calls = Some(decoding);
            }
            None => self.missing.push(format!("{system}/{name}")),
        }
    }

    /// One event; `named` where its name is known only here: the event's, the interrupt's.
    fn take(
        &mut self,
        tracefs: &Tracefs,
        instance: &Instance,
        wanted: &EventRequest,
        named: Option<(String, String)>,
    ) {
        let (name, vector) = match named {
            Some((name, vector)) => (name, Some(vector)),
            None => (wanted.name.to_owned(), None),
        };
        let full = format!("{}/{name}", wanted.system);
        let format = tracefs.format(wanted.system, &name);
        let enabled = format.filter(|_| instance.enable(wanted.system, &name).is_ok());
        let Some(format) = enabled else {
            self.missing.push(full);
            return;
        };
        if wanted.kind == Kind::SoftirqEntry {
            let symbols = format.symbols().iter();
            let named = symbols.filter_map(|(n, s)| Some((u32::try_from(*n).ok()?, s.clone())));
            self.softirqs = named.collect();
        }
        let plan = self.plan(&full, wanted, &format, vector);
        let place = usize::from(format.id);
        if self.by_id.len() <= place {
            self.by_id.resize(place + 1, None);
        }
        self.by_id[place] = Some(plan);
        self.id = self.id.or_else(|| format.field(Format::ID));
        self.events.push(full);
    }

    fn plan(
        &mut self,
        full: &str,
        wanted: &EventRequest,
        format: &Format,
        vector: Option<String>,
    ) -> EventDecoding {
        let mut number = |source| match source {
            Source::Is(number) => ValueSource::Is(number),
            Source::Field(name) => {
                self.field(full, format, name).map_or(ValueSource::Is(0), ValueSource::Field)
            }
            Source::Upper(name) => {
                format.field(name).map_or(ValueSource::Is(0), ValueSource::Upper)
            }
            Source::Pair(lower, upper) => {
                let both = format.field(lower).zip(format.field(upper));
                both.map_or(ValueSource::Is(0), |(lower, upper)| ValueSource::Pair(lower, upper))
            }
            Source::State(name) => match self.field(full, format, name) {
                // The kernel marks a thread that it took off the CPU by the bit above all states.
                Some(field) => {
                    ValueSource::State { field, preempted: above(format.symbols().keys().copied()) }
                }
                None => ValueSource::Is(0),
            },
        };
        let (a, b, value) = (number(wanted.a), number(wanted.b), number(wanted.value));
        let names = wanted.names.iter().filter_map(|(table, key, text)| {
            Some((*table, format.field(key)?, format.field(text)?))
        });
        EventDecoding { kind: wanted.kind, a, b, value, names: names.collect(), vector }
    }

    fn field(&mut self, full: &str, format: &Format, name: &str) -> Option<Field> {
        let field = format.field(name);
        if field.is_none() {
            self.missing.push(format!("{full}: {name}"));
        }
        field
    }
}

/// The lowest power of two above all `states`; without states, the largest of the type.
fn above(states: impl Iterator<Item = u64>) -> u64 {
    match states.max() {
        Some(most) => most.checked_add(1).map_or(1 << 63, |next| next.next_power_of_two()),
        None => 1 << 63,
    }
}

/// The events of the processor's own interrupts: name, kind, what they mean, the interrupt's name.
fn vectors(tracefs: &Tracefs) -> Vec<(String, Kind, Vector, String)> {
    let folder = tracefs.path().join("events").join(VECTORS);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let ends = [("_entry", Kind::VectorEntry), ("_exit", Kind::VectorExit)];
        let Some((called, kind)) =
            ends.into_iter().find_map(|(end, kind)| Some((name.strip_suffix(end)?, kind)))
        else {
            continue;
        };
        let vector = match called {
            "local_timer" => Vector::LocalTimer,
            "reschedule" => Vector::Reschedule,
            "call_function" | "call_function_single" => Vector::CallFunction,
            "irq_work" => Vector::IrqWork,
            _ => Vector::Other,
        };
        found.push((name.clone(), kind, vector, called.to_owned()));
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18 names states up to 0x80 and marks preemption by 0x100.
    #[test]
    fn the_mark_of_preemption_is_above_all_states() {
        assert_eq!(above([1, 2, 0x40, 0x80].into_iter()), 0x100);
        assert_eq!(above([].into_iter()), 1 << 63);
        assert_eq!(above([u64::MAX].into_iter()), 1 << 63);
    }
}
