//! Kernel events in words.

use hourglass_trace::{KernelEvent, KernelEventKind, Vector, WaitCall};

use hourglass_documents::kernel::KernelNames;

use crate::units::rounded;

/// What a softirq vector is for, in the kernel's order.
const SOFTIRQS: [&str; 10] = [
    "high tasklets",
    "timers",
    "network transmit",
    "network receive",
    "block",
    "poll",
    "tasklets",
    "scheduler",
    "hrtimers",
    "RCU",
];

/// Whether an event begins or ends something, or is only a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Begin,
    /// The end of what began last on the same CPU.
    End,
    Moment,
}

/// Which of them `kind` is.
pub(crate) fn phase(kind: KernelEventKind) -> Phase {
    match kind {
        KernelEventKind::IrqEntry
        | KernelEventKind::SoftirqEntry
        | KernelEventKind::VectorEntry
        | KernelEventKind::HrtimerEntry => Phase::Begin,
        KernelEventKind::IrqExit
        | KernelEventKind::SoftirqExit
        | KernelEventKind::VectorExit
        | KernelEventKind::HrtimerExit => Phase::End,
        _ => Phase::Moment,
    }
}

/// The event in a few words: `switch from sh to kworker/0:1`, `interrupt 24 (virtio0)`.
pub(crate) fn words(event: &KernelEvent, names: &KernelNames) -> String {
    let thread = |number: u32| match names.threads.get(&number) {
        _ if number == 0 => "idle".to_owned(),
        _ if number == KernelEvent::UNTOLD => "another thread".to_owned(),
        Some(name) => format!("{name} ({number})"),
        None => format!("thread {number}"),
    };
    match event.kind {
        KernelEventKind::Switch => {
            format!("switch from {} to {}", thread(event.a), thread(event.b))
        }
        KernelEventKind::Waking => format!("waking {} for CPU {}", thread(event.a), event.b),
        KernelEventKind::Migrate => {
            format!("{} moves from CPU {} to CPU {}", thread(event.a), event.value, event.b)
        }
        KernelEventKind::IrqEntry | KernelEventKind::IrqExit => match names.irqs.get(&event.a) {
            Some(device) => format!("interrupt {} ({device})", event.a),
            None => format!("interrupt {}", event.a),
        },
        KernelEventKind::SoftirqEntry | KernelEventKind::SoftirqExit => {
            let vector = usize::try_from(event.a).ok().and_then(|at| SOFTIRQS.get(at));
            let name = vector.copied().or(names.softirqs.get(&event.a).map(String::as_str));
            name.map_or_else(|| format!("softirq {}", event.a), |name| format!("softirq {name}"))
        }
        KernelEventKind::VectorEntry | KernelEventKind::VectorExit => {
            match (Vector::from_code(event.a), names.vectors.get(&event.b)) {
                (Vector::Other, Some(name)) => format!("interrupt {name}"),
                (known, _) => vector(known).to_owned(),
            }
        }
        KernelEventKind::HrtimerEntry | KernelEventKind::HrtimerExit => "timer handler".to_owned(),
        KernelEventKind::HrtimerStart => "timer armed".to_owned(),
        KernelEventKind::PageFault => "page fault".to_owned(),
        KernelEventKind::Signal => format!("signal {}", event.a),
        KernelEventKind::Mark => {
            format!("mark: thread {} woke {} late, later than ever", event.a, rounded(event.value))
        }
        KernelEventKind::Call => format!("{} {}", thread(event.a), call(event)),
        KernelEventKind::Lost if event.value == 0 => "events lost".to_owned(),
        KernelEventKind::Lost => format!("{} events lost", event.value),
    }
}

/// What a thread does that may wait: `sleeps until a time`, `waits at futex 0x7f00`.
fn call(event: &KernelEvent) -> String {
    match WaitCall::from_code(event.b) {
        Some(WaitCall::Sleep) => "sleeps for a length".to_owned(),
        Some(WaitCall::SleepUntil) => "sleeps until a time".to_owned(),
        Some(WaitCall::Futex) => format!("waits at futex {:#x}", event.value),
        Some(WaitCall::Lock) => format!("takes the lock {:#x}", event.value),
        Some(WaitCall::Descriptor) => format!("uses descriptor {}", event.value),
        Some(WaitCall::Several) => "waits for descriptors".to_owned(),
        Some(WaitCall::Other) => format!("begins system call {}", event.value),
        None => "begins a system call".to_owned(),
    }
}

fn vector(vector: Vector) -> &'static str {
    match vector {
        Vector::LocalTimer => "local timer interrupt",
        Vector::Reschedule => "reschedule interrupt",
        Vector::CallFunction => "function call interrupt",
        Vector::IrqWork => "interrupt work",
        Vector::Other => "interrupt of the processor",
    }
}
