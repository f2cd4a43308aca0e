//! The kernel's switches and wake-ups as scheduling events, from which Perfetto makes its tables `sched` and
//! `thread_state` and its row of each CPU.

use std::collections::BTreeSet;
use std::io::{self, Write};

use hourglass_trace::{KernelEvent, KernelEventKind};

use super::{SEQUENCE, Trace, field};
use crate::export::protobuf::Message;
use crate::run::RunView;

/// Field numbers of the messages, as `protos/perfetto/trace/ftrace` has them.
mod ftrace {
    /// `TracePacket`.
    pub(super) const EVENTS: u64 = 1;
    /// `FtraceEventBundle`.
    pub(super) const CPU: u64 = 1;
    pub(super) const EVENT: u64 = 2;
    /// `FtraceEvent`.
    pub(super) const TIMESTAMP: u64 = 1;
    pub(super) const TID: u64 = 2;
    pub(super) const SWITCH: u64 = 4;
    pub(super) const WAKING: u64 = 20;
    /// `SchedSwitchFtraceEvent`.
    pub(super) const PREV_COMM: u64 = 1;
    pub(super) const PREV_TID: u64 = 2;
    pub(super) const PREV_PRIORITY: u64 = 3;
    pub(super) const PREV_STATE: u64 = 4;
    pub(super) const NEXT_COMM: u64 = 5;
    pub(super) const NEXT_TID: u64 = 6;
    pub(super) const NEXT_PRIORITY: u64 = 7;
    /// `SchedWakingFtraceEvent`.
    pub(super) const COMM: u64 = 1;
    pub(super) const WOKEN: u64 = 2;
    pub(super) const PRIORITY: u64 = 3;
    pub(super) const SUCCESS: u64 = 4;
    pub(super) const TARGET_CPU: u64 = 5;
}

/// The kernel's number of nice value 0: a run does not keep priorities at each switch.
const UNKNOWN_PRIORITY: i64 = 120;

/// Events of one packet, at most.
const CHUNK: usize = 1_000;

/// The CPUs of which every switch is known.
pub(super) fn cpus(run: &RunView<'_>) -> BTreeSet<u32> {
    let Some(facts) = &run.document.manifest.kernel else { return BTreeSet::new() };
    let switches = run.events.iter().filter(|event| event.kind == KernelEventKind::Switch);
    switches.map(|event| event.cpu).filter(|cpu| facts.covers(*cpu)).collect()
}

impl<W: Write> Trace<W> {
    pub(super) fn scheduling(&mut self, run: &RunView<'_>) -> io::Result<()> {
        for cpu in self.traced.clone() {
            let mut running = 0;
            let of_cpu = run.events.iter().filter(|event| event.cpu == cpu);
            let events: Vec<Message> = of_cpu
                .filter_map(|event| self.scheduling_event(run, event, &mut running))
                .collect();
            for chunk in events.chunks(CHUNK) {
                let bundle = Message::new().uint(ftrace::CPU, u64::from(cpu));
                let bundle =
                    chunk.iter().fold(bundle, |all, event| all.message(ftrace::EVENT, event));
                let packet = Message::new()
                    .uint(field::SEQUENCE_ID, SEQUENCE)
                    .message(ftrace::EVENTS, &bundle);
                self.packet(&packet)?;
            }
        }
        Ok(())
    }

    /// `running` is the thread that took the CPU last; 0 is idle.
    fn scheduling_event(
        &self,
        run: &RunView<'_>,
        event: &KernelEvent,
        running: &mut u32,
    ) -> Option<Message> {
        let at = |tid: u32| {
            let stamped = Message::new().uint(ftrace::TIMESTAMP, self.at(event.ns));
            stamped.uint(ftrace::TID, u64::from(tid))
        };
        let name = |tid: u32| match tid {
            0 => "swapper",
            _ => run.names.threads.get(&tid).map_or("", String::as_str),
        };
        let number = |message: Message, field, tid: u32| message.int(field, i64::from(tid));
        match event.kind {
            KernelEventKind::Switch => {
                *running = event.b;
                let switch = Message::new().text(ftrace::PREV_COMM, name(event.a));
                let switch = number(switch, ftrace::PREV_TID, event.a)
                    .int(ftrace::PREV_PRIORITY, UNKNOWN_PRIORITY)
                    .uint(ftrace::PREV_STATE, event.value)
                    .text(ftrace::NEXT_COMM, name(event.b));
                let switch = number(switch, ftrace::NEXT_TID, event.b)
                    .int(ftrace::NEXT_PRIORITY, UNKNOWN_PRIORITY);
                Some(at(event.a).message(ftrace::SWITCH, &switch))
            }
            KernelEventKind::Waking => {
                let waking = Message::new().text(ftrace::COMM, name(event.a));
                let waking = number(waking, ftrace::WOKEN, event.a)
                    .int(ftrace::PRIORITY, UNKNOWN_PRIORITY)
                    .int(ftrace::SUCCESS, 1);
                let waking = number(waking, ftrace::TARGET_CPU, event.b);
                Some(at(*running).message(ftrace::WAKING, &waking))
            }
            _ => None,
        }
    }
}
