//! Drains the ring buffers and decodes their events, on a CPU that is not measured where there is one.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use hourglass_documents::kernel::KernelNames;
use hourglass_sys::tracefs::{Field, Page, PageLayout, Reader};
use hourglass_trace::KernelEventKind;
use hourglass_workload::marker::LATE_MARK;

use super::catalogue::{Plans, Table};
use super::event_store::{CpuEvents, Raw};
use super::stacks::Stacks;
use crate::time_namespace::Offset;

/// What every mark of ours begins with; its number follows.
pub(super) const MARK: &str = "hourglass-mark ";

/// Stack of the draining thread; small, since all of it may be locked.
const STACK_BYTES: usize = 256 << 10;

/// Turns pieces into events. Fields by name, offset and size, as the kernel described them.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) plans: Plans,
    /// Number of the kernel's event for marks, and where its text is.
    mark: Option<(u16, Field)>,
    pub(super) names: KernelNames,
    /// Marks that were found: number and time.
    pub(super) marks: BTreeMap<u64, u64>,
    pub(super) stacks: Stacks,
    /// From the kernel's clock, on which timers are set, to the process's.
    offset: Option<Offset>,
}

impl Decoder {
    pub(super) fn new(plans: Plans, mark: Option<(u16, Field)>, stacks: Stacks) -> Decoder {
        let softirqs = plans.softirqs.iter().cloned().collect();
        let names = KernelNames { softirqs, ..KernelNames::default() };
        let offset = Offset::of_this_process();
        Decoder { plans, mark, names, marks: BTreeMap::new(), stacks, offset }
    }

    /// Takes a piece apart and keeps its events in `lane`, as far as there is `room`.
    pub(super) fn take(
        &mut self,
        layout: &PageLayout,
        bytes: &[u8],
        lane: &mut CpuEvents,
        room: &mut u64,
    ) {
        let Some(page) = Page::new(layout, bytes) else {
            lane.damaged += 1;
            return;
        };
        if let Some(lost) = page.lost() {
            lane.lose(page.time(), lost);
        }
        let mut entries = page.entries();
        for entry in entries.by_ref() {
            self.entry(entry.time, entry.data, lane, room);
        }
        lane.damaged += u64::from(entries.damaged());
    }

    fn entry(&mut self, time: u64, data: &[u8], lane: &mut CpuEvents, room: &mut u64) {
        let Some(id) = self.plans.id.and_then(|field| field.read(data)) else { return };
        let plan = usize::try_from(id).ok().and_then(|id| self.plans.by_id.get(id));
        let Some(plan) = plan.and_then(Option::as_ref) else {
            self.stacks.take(id, time, lane.cpu, data);
            self.look_for_mark(id, time, data, lane, room);
            return;
        };
        let (a, b) = (plan.a.of(data) as u32, plan.b.of(data) as u32);
        let mut raw = Raw { time, value: plan.value.of(data), a, b, kind: plan.kind };
        if let Some((_, calls)) = self.plans.calls.as_ref().filter(|(event, _)| *event as u64 == id)
        {
            let Some((call, object)) = calls.read(data) else { return };
            (raw.b, raw.value) = (call.code(), object);
        }
        match self.offset {
            Some(offset) => lane.push(raw.on(offset), room),
            // For when a timer was set is not known.
            None if raw.kind == KernelEventKind::HrtimerStart => {}
            None => lane.push(raw, room),
        }
        for (table, number, name) in &plan.names {
            let table = match table {
                Table::Threads => &mut self.names.threads,
                Table::Irqs => &mut self.names.irqs,
            };
            if let (Some(number), Some(name)) = (number.read(data), name.text(data)) {
                remember_name(table, number as u32, &name);
            }
        }
        if let Some(name) = &plan.vector {
            remember_name(&mut self.names.vectors, b, name);
        }
    }

    /// A mark of ours: one that checks the clock, or one of a thread behind its latest wake-up.
    fn look_for_mark(
        &mut self,
        id: u64,
        time: u64,
        data: &[u8],
        lane: &mut CpuEvents,
        room: &mut u64,
    ) {
        let mark = self.mark.filter(|(mark, _)| u64::from(*mark) == id);
        let Some((_, text)) = mark else { return };
        let text =
            text.rest(data).map(|bytes| bytes.split(|byte| *byte == 0).next().unwrap_or(bytes));
        let Some(text) = text.and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::trim)
        else {
            return;
        };
        if let Some(number) = text.strip_prefix(MARK).and_then(|number| number.parse().ok()) {
            self.marks.insert(number, time);
        } else if let Some((a, value)) = late_mark(text) {
            lane.push(Raw { time, value, a, b: 0, kind: KernelEventKind::Mark }, room);
        }
    }
}

/// The thread, and how late it woke, ns.
fn late_mark(text: &str) -> Option<(u32, u64)> {
    let (thread, ns) = text.strip_prefix(LATE_MARK)?.split_once(' ')?;
    Some((thread.parse().ok()?, ns.parse().ok()?))
}

fn remember_name(names: &mut BTreeMap<u32, String>, number: u32, name: &str) {
    if names.get(&number).is_none_or(|known| known != name) {
        names.insert(number, name.to_owned());
    }
}

/// All that is needed to empty the rings, and what came out of them.
#[derive(Debug)]
pub(super) struct Recording {
    layout: PageLayout,
    readers: Vec<Reader>,
    pub(super) lanes: Vec<CpuEvents>,
    pub(super) decoder: Decoder,
    piece: Vec<u8>,
    room: u64,
    pub(super) refused: Option<io::Error>,
}

impl Recording {
    /// `most` events are kept.
    pub(super) fn new(
        layout: PageLayout,
        readers: Vec<Reader>,
        decoder: Decoder,
        most: u64,
    ) -> Recording {
        let lanes = readers.iter().map(|reader| CpuEvents::new(reader.cpu())).collect();
        let piece = vec![0; layout.size()];
        Recording { layout, readers, lanes, decoder, piece, room: most, refused: None }
    }

    /// Takes what is in the rings; of each at most `pieces`, since more may come all the time.
    pub(super) fn drain(&mut self, pieces: u64) {
        for (reader, lane) in self.readers.iter_mut().zip(&mut self.lanes) {
            for _ in 0..pieces {
                match reader.take(&mut self.piece) {
                    Ok(Some(length)) => {
                        let bytes = self.piece.get(..length).unwrap_or(&self.piece);
                        self.decoder.take(&self.layout, bytes, lane, &mut self.room);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.refused.get_or_insert(error);
                        break;
                    }
                }
            }
        }
    }

    pub(super) fn make_room(&mut self, most: u64) {
        self.room = most;
    }

    /// Closes the rings, without which the instance cannot be removed.
    pub(super) fn close(&mut self) {
        self.readers.clear();
    }

    /// How many pieces a ring of `ring_bytes` has.
    pub(super) fn pieces(&self, ring_bytes: u64) -> u64 {
        ring_bytes.div_ceil(self.layout.size().max(1) as u64).saturating_add(1)
    }
}

#[derive(Debug)]
pub(super) struct Drainer {
    /// Closing it is the word to stop.
    stop: Sender<()>,
    thread: JoinHandle<Option<Recording>>,
}

impl Drainer {
    /// Starts it, on the CPUs of the calling thread. Gives everything back if it cannot.
    pub(super) fn start(
        recording: Recording,
        every: Duration,
        pieces: u64,
    ) -> Result<Drainer, Box<Recording>> {
        let (stop, stopped) = channel();
        // Handed over after the start: if the thread does not start, it is not lost.
        let (give, given) = channel();
        let live = move || {
            let recording: Recording = given.recv().ok()?;
            Some(drain_until(recording, every, pieces, &stopped))
        };
        let named = Builder::new().name("hourglass-drain".to_owned()).stack_size(STACK_BYTES);
        match named.spawn(live) {
            Ok(thread) => match give.send(recording) {
                Ok(()) => Ok(Drainer { stop, thread }),
                Err(unsent) => Err(Box::new(unsent.0)),
            },
            Err(_) => Err(Box::new(recording)),
        }
    }

    /// Ends it. `None` if it panicked, which is a defect.
    pub(super) fn stop(self) -> Option<Recording> {
        drop(self.stop);
        self.thread.join().ok().flatten()
    }
}

fn drain_until(
    mut recording: Recording,
    every: Duration,
    pieces: u64,
    stopped: &Receiver<()>,
) -> Recording {
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        recording.drain(pieces);
    }
    recording
}
