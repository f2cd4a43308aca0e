//! The kernel's own events of a run (`--trace`), on the run's counter.
//!
//! Owns: which events, on which clock, in how large a ring, emptied when; their conversion to
//! [`KernelEvent`]; what of them was lost.
//! Must not: infer anything from them, leave an instance of the trace behind, touch the trace of
//! others.
//!
//! Everything that disturbs a machine (making the rings, patching the kernel's code where events
//! are switched on) is done before the run and undone after it.
//!
//! # How the kernel is traced
//!
//! `measure::kernel_trace` makes a private instance of the kernel's trace before the run (`sys::tracefs`): its own
//! rings on the measured CPUs, its own events, the run's counter as trace clock. Formats and layouts are read
//! from the kernel's files. A CPU that is not measured drains the rings while the run goes on. Marks written
//! at both ends show that the trace clock is the counter, or how one becomes the other. The instance is
//! removed when it is dropped; after SIGKILL by a tiny process that waits for the end of its maker.
//! `trace::wakeup` joins the events with the thread's own wake-ups.

mod catalogue;
mod clock;
mod drain;
mod event_store;
pub(crate) mod live;
mod missing;
mod stacks;
mod trace_warnings;
mod waiting_calls;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hourglass_clock::{Choice, CounterKind};
use hourglass_documents::CpuSet;
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_documents::kernel::{ClockCheck, KernelCpu, KernelFacts};
use hourglass_machine::refusal::Refusal;
use hourglass_sys::thread as os;
use hourglass_sys::tracefs::{Instance, RingCounts, TraceFileError, Tracefs};
use hourglass_time::Span;
use hourglass_trace::KernelEvent;
use hourglass_workload::spec::RunSpec;
use hourglass_workload::{AnyCounter, Timeline};

use crate::failure::RunFailure;
use crate::time_namespace::Offset;
use catalogue::{Plans, Scope};
use clock::{Map, Marks, TraceClock};
use drain::{Decoder, Drainer, Recording};
use stacks::Stacks;
pub(crate) use trace_warnings::SWITCHES_MISSING;
use trace_warnings::{failed, refused, warnings};

const MIB: u64 = 1 << 20;

/// Room in a ring for each second, bytes: twice what a CPU with 10,000 switches a second and
/// their timers and interrupts was seen to need.
const BYTES_PER_SECOND: u64 = MIB;

/// Ring of a CPU whose events are taken out while the run goes on.
const DRAINED_RING: u64 = 8 * MIB;

/// Largest ring of a CPU whose events are taken out afterwards.
const LARGEST_RING: u64 = 64 * MIB;
const SMALLEST_RING: u64 = MIB / 4;

/// All rings together take no more than this part of the memory.
const RING_SHARE: u64 = 8;

/// How often rings are emptied where a CPU is free to do it.
const DRAIN_PERIOD: Duration = Duration::from_millis(100);

/// Events kept at most; each takes 32 bytes.
const MOST_EVENTS: u64 = 32 << 20;
const EVENT_BYTES: u64 = 32;

/// Kept events take no more than this part of the memory.
const EVENT_SHARE: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainMode {
    /// During the run, on CPUs that are not measured.
    Elsewhere,
    Afterwards,
    /// Now and then, on measured CPUs: the run is longer than any ring.
    Sparsely(Duration),
}

/// What the recording needs of the machine, decided before anything is made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Size {
    cpus: Vec<u32>,
    ring_bytes: u64,
    emptied: DrainMode,
    most_events: u64,
}

impl Size {
    fn choose(measured: &CpuSet, allowed: &CpuSet, duration: Span, memory: Option<u64>) -> Size {
        let cpus: Vec<u32> = measured.iter().collect();
        let free = !allowed.difference(measured).is_empty();
        let seconds = duration.nanos_or_zero().div_ceil(1_000_000_000).saturating_add(1);
        let wanted = seconds.saturating_mul(BYTES_PER_SECOND);
        let share = memory.map_or(u64::MAX, |bytes| bytes / RING_SHARE / cpus.len().max(1) as u64);
        let most = LARGEST_RING.min(share).max(SMALLEST_RING);
        let (ring_bytes, emptied) = if free {
            (DRAINED_RING.min(most), DrainMode::Elsewhere)
        } else if wanted <= most {
            (wanted.max(DRAINED_RING).min(most), DrainMode::Afterwards)
        } else {
            // Twice as often as the ring should need.
            let millis = most * 1000 / BYTES_PER_SECOND / 2;
            (most, DrainMode::Sparsely(Duration::from_millis(millis)))
        };
        let room = memory.map_or(u64::MAX, |bytes| bytes / EVENT_SHARE / EVENT_BYTES);
        Size { cpus, ring_bytes, emptied, most_events: MOST_EVENTS.min(room) }
    }
}

/// The recording of a run's kernel events: prepared, begun, ended.
#[derive(Debug)]
pub(crate) struct TraceSession {
    // Dropped in this order: an instance whose rings are open cannot be removed.
    drainer: Option<Drainer>,
    recording: Option<Recording>,
    counter: AnyCounter,
    clock: TraceClock,
    size: Size,
    ring_bytes: u64,
    marks: Marks,
    counts: Vec<RingCounts>,
    troubles: Vec<String>,
    marker: Option<Arc<File>>,
    stackless: bool,
    instance: Instance,
}

#[derive(Debug)]
pub(crate) struct KernelRecording {
    pub(crate) facts: KernelFacts,
    /// What a reader must know.
    pub(crate) warnings: Vec<Warning>,
    lanes: Vec<event_store::CpuEvents>,
    stacks: Vec<stacks::StackSample>,
    stack_names: BTreeMap<u32, Vec<String>>,
    map: Option<Map>,
}

pub(crate) fn start(
    wanted: bool,
    spec: &RunSpec,
    choice: &Choice,
    host: &Host,
    warnings: &mut Vec<Warning>,
) -> Result<Option<TraceSession>, RunFailure> {
    if !wanted {
        return Ok(None);
    }
    match TraceSession::prepare(spec, choice.kind, host) {
        Ok(session) => Ok(Some(session)),
        Err(refused) if spec.best_effort => {
            warnings.push(refused.into_warning("trace-refused"));
            Ok(None)
        }
        Err(refused) => Err(RunFailure::Refused(vec![refused])),
    }
}

impl TraceSession {
    /// Makes everything that the recording needs, switched off.
    ///
    /// # Errors
    /// The machine cannot, or this user may not; the line that grants it is in the refusal.
    pub(crate) fn prepare(
        spec: &RunSpec,
        kind: CounterKind,
        host: &Host,
    ) -> Result<TraceSession, Refusal> {
        let tracefs = Tracefs::find().map_err(|missing| refused(&missing))?;
        let (measured, allowed) = cpus(spec);
        let size = Size::choose(&measured, &allowed, spec.duration, host.memory.total_bytes);
        let mut instance = Instance::create(&tracefs).map_err(|error| failed(&error))?;
        let offered = instance.clocks();
        let clock =
            TraceClock::choose(kind, &offered, Offset::of_this_process()).ok_or_else(|| {
                Refusal {
                    what: "--trace".to_owned(),
                    reason: format!(
                        "no trace clock of this kernel fits the run's: {}",
                        offered.join(" ")
                    ),
                    remedy: "drop --trace".to_owned(),
                }
            })?;
        instance.set_clock(clock.name).map_err(|error| failed(&error))?;
        set_rings(&instance, &size).map_err(|error| failed(&error))?;
        let plans = Plans::enable(&tracefs, &instance, Scope::Everything);
        let layout = tracefs.page_layout().map_err(|error| failed(&error))?;
        let readers = size.cpus.iter().map(|cpu| instance.reader(*cpu));
        let readers = readers.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
        let mark = tracefs.format("ftrace", "print");
        let mark = mark.and_then(|format| Some((format.id, format.field("buf")?)));
        let decoder = Decoder::new(plans, mark, Stacks::of(&tracefs));
        let recording = Recording::new(layout, readers, decoder, size.most_events);
        let least = size.cpus.iter().filter_map(|cpu| instance.ring_bytes(*cpu)).min();
        Ok(TraceSession {
            drainer: None,
            recording: Some(recording),
            counter: AnyCounter::from(kind),
            clock,
            ring_bytes: least.unwrap_or(size.ring_bytes),
            size,
            marks: Marks::default(),
            counts: Vec::new(),
            troubles: Vec::new(),
            // Refused, it is refused again for the marks that check the clock, which is said then.
            marker: instance.marker().ok().map(Arc::new),
            stackless: false,
            instance,
        })
    }

    /// The file into which the run's threads write marks, as long as the session lasts.
    pub(crate) fn marker(&self) -> Option<Weak<File>> {
        self.marker.as_ref().map(Arc::downgrade)
    }

    /// Begins, on the thread that will supervise the run and on its CPUs. `tids`: the run's threads.
    pub(crate) fn begin(&mut self, tids: &[u32]) {
        // Without, the events say all but that; `missing` has it.
        self.stackless = stacks::want(&self.instance, tids).is_err();
        self.trouble(self.instance.switch(true));
        self.mark();
        let every = match self.size.emptied {
            DrainMode::Elsewhere => DRAIN_PERIOD,
            DrainMode::Sparsely(every) => every,
            DrainMode::Afterwards => return,
        };
        if let Some(recording) = self.recording.take() {
            let pieces = recording.pieces(self.ring_bytes);
            match Drainer::start(recording, every, pieces) {
                Ok(drainer) => self.drainer = Some(drainer),
                Err(recording) => {
                    self.recording = Some(*recording);
                    self.troubles.push("no thread could be started to empty the ring".to_owned());
                }
            }
        }
    }

    /// Ends: takes the last events out of the rings.
    pub(crate) fn end(&mut self) {
        self.mark();
        self.trouble(self.instance.switch(false));
        self.collect();
        let (size, instance) = (&self.size, &self.instance);
        self.counts = size.cpus.iter().map(|cpu| instance.counts(*cpu)).collect();
        if let Some(recording) = &mut self.recording {
            let pieces = recording.pieces(self.ring_bytes);
            recording.drain(pieces);
            recording.close();
        }
    }

    /// Writes marks on a measured CPU, so that they are recorded.
    fn mark(&mut self) {
        let home = os::affinity().unwrap_or_default();
        let there = self.size.cpus.iter().any(|cpu| os::set_affinity([*cpu]).is_ok());
        let marked =
            self.instance.marker().map_err(|error| error.to_string()).and_then(|mut file| {
                self.marks.write(&mut file, self.counter).map_err(|error| error.to_string())
            });
        if let Err(error) = marked {
            self.troubles.push(format!("the trace clock could not be checked: {error}"));
        }
        if there {
            // Refused only if these CPUs went away meanwhile.
            let _ = os::set_affinity(home);
        }
    }

    fn trouble(&mut self, done: Result<(), TraceFileError>) {
        self.troubles.extend(done.err().map(|error| error.to_string()));
    }

    /// Gets the recording back from the thread that empties the rings.
    fn collect(&mut self) {
        if let Some(drainer) = self.drainer.take() {
            self.recording = drainer.stop();
        }
    }

    /// What was recorded; the instance is removed.
    pub(crate) fn finish(mut self) -> KernelRecording {
        self.collect();
        let mut troubles = std::mem::take(&mut self.troubles);
        let Some(mut recording) = self.recording.take() else {
            troubles
                .push("the thread that emptied the ring was lost; please report this".to_owned());
            return KernelRecording::nothing(self.facts(Vec::new(), Vec::new()), troubles);
        };
        recording.close();
        troubles
            .extend(recording.refused.take().map(|error| format!("a ring was refused: {error}")));
        for (lane, counts) in recording.lanes.iter_mut().zip(&self.counts) {
            lane.order();
            // What was overwritten at the very end is counted by the kernel only.
            lane.lost = lane.lost.max(counts.lost());
        }
        let checks = self.marks.checks(&recording.decoder.marks);
        let map = Map::new(self.clock, &checks);
        let missing = missing::of(&recording.lanes);
        let cpus = recording.lanes.iter().map(|lane| KernelCpu {
            cpu: lane.cpu,
            events: lane.events,
            lost: lane.lost,
            damaged: lane.damaged,
            missing_switches: lane.missing(&missing),
        });
        let mut facts = self.facts(checks, cpus.collect());
        let plans = &recording.decoder.plans;
        (facts.events, facts.missing) = (plans.events.clone(), plans.missing.clone());
        facts.names = std::mem::take(&mut recording.decoder.names);
        facts.missing.extend(self.stackless.then(|| "sched/sched_switch: stacktrace".to_owned()));
        let warnings = warnings(&facts, map.is_some(), &troubles);
        let stack_names = recording.decoder.stacks.names();
        let mut stacks = std::mem::take(&mut recording.decoder.stacks.seen);
        stacks.sort_by_key(|seen| seen.time);
        KernelRecording { facts, warnings, lanes: recording.lanes, stacks, stack_names, map }
    }

    fn facts(&self, checks: Vec<ClockCheck>, cpus: Vec<KernelCpu>) -> KernelFacts {
        let drained = match self.size.emptied {
            DrainMode::Elsewhere => "during the run, on CPUs that were not measured".to_owned(),
            DrainMode::Afterwards => "after the run".to_owned(),
            DrainMode::Sparsely(every) => {
                format!("every {} s during the run, on measured CPUs", every.as_secs_f64())
            }
        };
        KernelFacts {
            clock: self.clock.name.to_owned(),
            same_counter: self.clock.same,
            checks,
            buffer_bytes: self.ring_bytes,
            drained,
            cpus,
            ..KernelFacts::default()
        }
    }
}

impl Drop for TraceSession {
    fn drop(&mut self) {
        self.collect();
        // The rings are open in it, and must not be when the instance is removed.
        self.recording = None;
    }
}

impl KernelRecording {
    fn nothing(facts: KernelFacts, troubles: Vec<String>) -> KernelRecording {
        let warnings = warnings(&facts, true, &troubles);
        KernelRecording {
            facts,
            warnings,
            lanes: Vec::new(),
            stacks: Vec::new(),
            stack_names: BTreeMap::new(),
            map: None,
        }
    }

    /// The events in order of ticks, on the run's time line. None if the trace clock could not
    /// be put on the counter.
    pub(crate) fn events<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = KernelEvent> + 'a {
        let map = self.map;
        let lanes = if map.is_some() { &self.lanes[..] } else { &[] };
        event_store::merged(lanes).map(move |(cpu, raw)| {
            let ticks = map.map_or(raw.time, |map| map.ticks(raw.time));
            let ns = timeline.ns_at(ticks);
            KernelEvent { ns, ticks, value: raw.value, cpu, a: raw.a, b: raw.b, kind: raw.kind }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackAt<'a> {
    pub(crate) ns: i64,
    pub(crate) cpu: u32,
    /// Whose it is, by the kernel's number; that thread left the CPU then.
    pub(crate) tid: u32,
    /// Functions, the innermost first.
    pub(crate) frames: &'a [String],
}

impl KernelRecording {
    /// The stacks of which the kernel gave the functions, in order of time.
    pub(crate) fn stacks<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = StackAt<'a>> + 'a {
        let map = self.map;
        self.stacks.iter().filter_map(move |seen| {
            let ticks = map?.ticks(seen.time);
            let frames = self.stack_names.get(&seen.stack)?;
            Some(StackAt { ns: timeline.ns_at(ticks), cpu: seen.cpu, tid: seen.tid, frames })
        })
    }
}

/// The CPUs on which threads of the run may be, and those that this process may use.
pub(crate) fn cpus(spec: &RunSpec) -> (CpuSet, CpuSet) {
    let allowed: CpuSet = os::affinity().unwrap_or_default().into_iter().collect();
    let mut measured = CpuSet::default();
    for thread in &spec.threads {
        let own = thread.cpus.as_ref().unwrap_or(&allowed);
        own.iter().for_each(|cpu| measured.insert(cpu));
    }
    (measured, allowed)
}

/// What a reader of a recording must know that goes on while it is read.
pub(crate) fn live_warnings(facts: &KernelFacts, troubles: &[String]) -> Vec<Warning> {
    let mut warnings = warnings(facts, true, troubles);
    for warning in &mut warnings {
        let remedy = match warning.id.as_str() {
            trace_warnings::EVENTS_LOST => {
                "ask for a shorter --interval, at which the ring is emptied"
            }
            trace_warnings::SWITCHES_MISSING => {
                "move the threads to another CPU (taskset -pc), or watch after a reboot"
            }
            _ => continue,
        };
        remedy.clone_into(&mut warning.remedy);
    }
    warnings
}

/// Makes rings of the size wanted, or smaller ones if there is not the memory.
fn set_rings(instance: &Instance, size: &Size) -> Result<(), TraceFileError> {
    let mut bytes = size.ring_bytes;
    loop {
        match instance.set_cpus(&size.cpus, bytes / 1024) {
            Err(error)
                if error.source.kind() == io::ErrorKind::OutOfMemory && bytes > SMALLEST_RING =>
            {
                bytes /= 2;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().copied().collect()
    }

    #[test]
    fn a_free_cpu_empties_the_rings() {
        let hour = Span::from_secs(3600);
        let size = Size::choose(&set(&[1, 3]), &set(&[0, 1, 3]), hour, Some(8 << 30));
        let expected = Size {
            cpus: vec![1, 3],
            ring_bytes: DRAINED_RING,
            emptied: DrainMode::Elsewhere,
            most_events: MOST_EVENTS,
        };
        assert_eq!(size, expected);
    }

    #[test]
    fn without_one_the_ring_holds_the_run_if_it_can() {
        let both = set(&[0, 1]);
        let size = |seconds, memory| Size::choose(&both, &both, Span::from_secs(seconds), memory);
        let short = size(10, None);
        assert_eq!((short.ring_bytes, short.emptied), (11 * MIB, DrainMode::Afterwards));
        let long = size(3600, None);
        let every = Duration::from_secs(32);
        assert_eq!((long.ring_bytes, long.emptied), (LARGEST_RING, DrainMode::Sparsely(every)));
        // A small machine: an eighth of 64 MiB for two rings, a quarter for events.
        let small = size(10, Some(64 * MIB));
        let every = Duration::from_secs(2);
        assert_eq!((small.ring_bytes, small.emptied), (4 * MIB, DrainMode::Sparsely(every)));
        assert_eq!(small.most_events, 512 << 10);
    }
}
