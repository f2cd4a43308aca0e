//! Switches, wakings and migrations of the whole machine, handed out while they come.
//!
//! Owns: an instance on `CLOCK_MONOTONIC` without a known end. Each call drains the rings and returns the events since
//! the last call. Must not: store events.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::CpuSet;
use hourglass_documents::kernel::{KernelCpu, KernelFacts};
use hourglass_machine::refusal::Refusal;
use hourglass_sys::tracefs::{Instance, Tracefs};
use hourglass_trace::{KernelEvent, KernelEventKind as Kind};

use super::catalogue::{Plans, Scope};
use super::drain::{Decoder, Recording};
use super::event_store::{CpuEvents, merged};
use super::missing::MissingSwitches;
use super::stacks::Stacks;
use super::trace_warnings::{failed_live, refused};
use super::waiting_calls;
use super::{
    DRAINED_RING, DrainMode, EVENT_BYTES, EVENT_SHARE, MOST_EVENTS, RING_SHARE, SMALLEST_RING,
    Size, set_rings,
};
use crate::time_namespace::Offset;

const CLOCK: &str = "mono";

/// Events that are younger than this wait for the next time: another CPU may be about to write one that is older.
const SETTLING_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct LiveRecording {
    // Dropped in this order: an instance whose rings are open cannot be removed.
    recording: Recording,
    size: Size,
    ring_bytes: u64,
    handed: BTreeMap<u32, u64>,
    missing: MissingSwitches,
    offset: Offset,
    instance: Instance,
}

impl LiveRecording {
    /// Begins to record the events of `cpus`, and with `calls` the system calls in which the followed threads may wait; `memory`
    /// is what the machine has, bytes.
    ///
    /// # Errors
    /// The machine cannot, or this user may not; the line that grants it is in the refusal.
    pub(crate) fn begin(
        cpus: &CpuSet,
        memory: Option<u64>,
        calls: bool,
    ) -> Result<LiveRecording, Refusal> {
        let tracefs = Tracefs::find().map_err(|missing| refused(&missing))?;
        let offset = Offset::of_this_process().ok_or_else(|| Refusal {
            what: "--trace".to_owned(),
            reason: "/proc/self/timens_offsets does not say how far CLOCK_MONOTONIC is from the kernel's".to_owned(),
            remedy: "drop --trace".to_owned(),
        })?;
        let size = streamed(cpus, memory);
        let mut instance = Instance::create(&tracefs).map_err(|error| failed_live(&error))?;
        instance.set_clock(CLOCK).map_err(|error| failed_live(&error))?;
        set_rings(&instance, &size).map_err(|error| failed_live(&error))?;
        let mut plans = Plans::enable(&tracefs, &instance, Scope::Scheduling);
        if calls {
            plans.enable_calls(&tracefs, &instance);
        }
        let layout = tracefs.page_layout().map_err(|error| failed_live(&error))?;
        let readers = size.cpus.iter().map(|cpu| instance.reader(*cpu));
        let readers = readers.collect::<Result<_, _>>().map_err(|error| failed_live(&error))?;
        let recording = Recording::new(
            layout,
            readers,
            Decoder::new(plans, None, Stacks::default()),
            size.most_events,
        );
        let least = size.cpus.iter().filter_map(|cpu| instance.ring_bytes(*cpu)).min();
        instance.switch(true).map_err(|error| failed_live(&error))?;
        let ring_bytes = least.unwrap_or(size.ring_bytes);
        Ok(LiveRecording {
            recording,
            ring_bytes,
            size,
            handed: BTreeMap::new(),
            missing: MissingSwitches::default(),
            offset,
            instance,
        })
    }

    /// From here on these threads are followed.
    ///
    /// # Errors
    /// The kernel refuses to record their system calls; those of the threads before them are recorded.
    pub(crate) fn follow(&mut self, tids: &BTreeSet<u32>) -> Result<(), String> {
        match self.recording.decoder.plans.calls {
            Some(_) => waiting_calls::want(&self.instance, tids).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Hands over what came since the last time, in order of time: all but what is younger than a millisecond.
    /// `now_ns` is `CLOCK_MONOTONIC` before the call, `epoch_ns` its value at the beginning of the run.
    pub(crate) fn take(&mut self, now_ns: u64, epoch_ns: u64, each: impl FnMut(KernelEvent)) {
        let before = self.offset.kernel_ns(now_ns.saturating_sub(SETTLING_NS));
        self.hand_over(before, epoch_ns, each);
    }

    /// Ends, hands over the rest, and tells how it went.
    pub(crate) fn finish(
        mut self,
        epoch_ns: u64,
        each: impl FnMut(KernelEvent),
    ) -> (KernelFacts, Vec<String>) {
        let mut troubles: Vec<String> =
            self.instance.switch(false).err().map(|error| error.to_string()).into_iter().collect();
        self.hand_over(u64::MAX, epoch_ns, each);
        let refused = self.recording.refused.take();
        troubles.extend(refused.map(|error| format!("a ring was refused: {error}")));
        (self.facts(), troubles)
    }

    pub(crate) fn names(&self) -> &BTreeMap<u32, String> {
        &self.recording.decoder.names.threads
    }

    fn hand_over(&mut self, before: u64, epoch_ns: u64, mut each: impl FnMut(KernelEvent)) {
        self.recording.drain(self.recording.pieces(self.ring_bytes));
        let lanes: Vec<CpuEvents> =
            self.recording.lanes.iter_mut().map(|lane| lane.take_before(before)).collect();
        self.recording.make_room(self.size.most_events);
        let (handed, missing, offset) = (&mut self.handed, &mut self.missing, self.offset);
        merged(&lanes).for_each(|(cpu, raw)| {
            missing.event(cpu, &raw);
            *handed.entry(cpu).or_default() += u64::from(raw.kind != Kind::Lost);
            let ticks = offset.own_ns(raw.time);
            let since = i128::from(ticks) - i128::from(epoch_ns);
            let ns = i64::try_from(since).unwrap_or(if since < 0 { i64::MIN } else { i64::MAX });
            each(KernelEvent {
                ns,
                ticks,
                value: raw.value,
                cpu,
                a: raw.a,
                b: raw.b,
                kind: raw.kind,
            });
        });
    }

    fn facts(&mut self) -> KernelFacts {
        let of_lane = |lane: &CpuEvents| KernelCpu {
            cpu: lane.cpu,
            events: self.handed.get(&lane.cpu).copied().unwrap_or(0),
            lost: lane.lost.max(self.instance.counts(lane.cpu).lost()),
            damaged: lane.damaged,
            missing_switches: lane.missing(&self.missing),
        };
        let cpus = self.recording.lanes.iter().map(of_lane).collect();
        let plans = &self.recording.decoder.plans;
        let (events, missing) = (plans.events.clone(), plans.missing.clone());
        KernelFacts {
            clock: CLOCK.to_owned(),
            same_counter: true,
            buffer_bytes: self.ring_bytes,
            drained: "at every sample".to_owned(),
            events,
            missing,
            cpus,
            names: std::mem::take(&mut self.recording.decoder.names),
            ..KernelFacts::default()
        }
    }
}

impl Drop for LiveRecording {
    fn drop(&mut self) {
        self.recording.close();
    }
}

fn streamed(cpus: &CpuSet, memory: Option<u64>) -> Size {
    let cpus: Vec<u32> = cpus.iter().collect();
    let share = memory.map_or(u64::MAX, |bytes| bytes / RING_SHARE / cpus.len().max(1) as u64);
    let room = memory.map_or(u64::MAX, |bytes| bytes / EVENT_SHARE / EVENT_BYTES);
    Size {
        cpus,
        ring_bytes: DRAINED_RING.min(share.max(SMALLEST_RING)),
        emptied: DrainMode::Elsewhere,
        most_events: MOST_EVENTS.min(room),
    }
}
