//! What the kernel's own events say about a gap, by rules that the inference does not use.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use hourglass_documents::Cause;
use hourglass_documents::document::RunDocument;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{KernelEvent, KernelEventKind as Kind, Vector};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroundTruth {
    Waited,
    Preempted,
    Stopped,
    Tick,
    Irq,
    Softirq,
    Fault,
    /// Nothing that the kernel recorded.
    Below,
}

/// A delivery takes no longer than this; what is silent for longer is below the kernel, ns.
const DELIVERY_NS: u64 = 50_000;

/// A thread in a stopped or traced state (`trace/events/sched.h`), and in one that waits.
const STOPPED: u64 = 0x4 | 0x8;
const WAITING: u64 = 0xff;

/// Softirqs for timers, the scheduler, high-resolution timers and RCU.
const OF_TICKS: [u32; 4] = [1, 7, 8, 9];

/// The kernel's events of a run, by CPU and tick of the counter.
pub(super) struct Record {
    tid: u32,
    cpus: BTreeMap<u32, Vec<KernelEvent>>,
    tick_timers: BTreeMap<u32, u64>,
    ns_per_tick: f64,
}

impl Record {
    pub(super) fn new(document: &RunDocument, events: Vec<KernelEvent>) -> Result<Record> {
        let kernel = document.manifest.kernel.as_ref().context("the kernel was not traced")?;
        anyhow::ensure!(kernel.lost() == 0, "{} kernel events were lost", kernel.lost());
        anyhow::ensure!(kernel.same_counter, "the trace clock is not the run's counter");
        let tid = document.result.threads.first().and_then(|thread| thread.tid);
        let tid = tid.context("the thread has no number")?;
        let mut cpus: BTreeMap<u32, Vec<KernelEvent>> = BTreeMap::new();
        events.into_iter().for_each(|event| cpus.entry(event.cpu).or_default().push(event));
        let period_ns = document.manifest.host.tick.map_or(4_000_000, |tick| tick.period_ns);
        let tick_timers =
            cpus.iter().filter_map(|(cpu, events)| Some((*cpu, tick_timer(events, period_ns)?)));
        let tick_timers = tick_timers.collect();
        let ns_per_tick = 1e9 / document.manifest.clock.frequency_hz;
        Ok(Record { tid, cpus, tick_timers, ns_per_tick })
    }

    /// What took the time between two reads of the counter on a CPU, and which thread had the CPU for the
    /// longest, where one had it.
    pub(super) fn look(&self, cpu: u32, from: u64, to: u64) -> (GroundTruth, Option<u32>) {
        let none = Vec::new();
        let all = self.cpus.get(&cpu).unwrap_or(&none);
        let first = all.partition_point(|event| event.ticks < from);
        let last = all.partition_point(|event| event.ticks <= to);
        let events = &all[first..last.max(first)];
        let out = events.iter().find(|event| event.kind == Kind::Switch && event.a == self.tid);
        if out.is_some() {
            return self.switched(events, to);
        }
        (self.truth_between(cpu, events, from, to), None)
    }

    fn switched(&self, events: &[KernelEvent], to: u64) -> (GroundTruth, Option<u32>) {
        let switches: Vec<&KernelEvent> =
            events.iter().filter(|event| event.kind == Kind::Switch).collect();
        let left = switches.iter().filter(|event| event.a == self.tid);
        let states = left.fold(0, |states, event| states | event.value);
        let mut had: BTreeMap<u32, u64> = BTreeMap::new();
        let ends = switches.iter().skip(1).map(|event| event.ticks).chain([to]);
        for (event, end) in switches.iter().zip(ends).filter(|(event, _)| event.b != self.tid) {
            *had.entry(event.b).or_default() += end.saturating_sub(event.ticks);
        }
        let most = had.into_iter().max_by_key(|(_, ticks)| *ticks).map(|(tid, _)| tid);
        let truth = match states {
            states if states & STOPPED != 0 => GroundTruth::Stopped,
            states if states & WAITING != 0 => GroundTruth::Waited,
            _ => GroundTruth::Preempted,
        };
        (truth, most)
    }

    fn truth_between(&self, cpu: u32, events: &[KernelEvent], from: u64, to: u64) -> GroundTruth {
        let mut sums: BTreeMap<GroundTruth, u64> = BTreeMap::new();
        let (mut stack, mut mark, mut ticked) = (Vec::new(), from, false);
        let mut other_timer = false;
        for event in events {
            let doing = stack.last().copied().unwrap_or(GroundTruth::Below);
            *sums.entry(doing).or_default() += event.ticks.saturating_sub(mark);
            mark = event.ticks;
            match event.kind {
                Kind::VectorEntry if event.a == Vector::LocalTimer.code() => {
                    stack.push(GroundTruth::Tick)
                }
                Kind::VectorEntry | Kind::IrqEntry => stack.push(GroundTruth::Irq),
                // What the tick leaves for later is the tick's.
                Kind::SoftirqEntry if ticked && OF_TICKS.contains(&event.a) => {
                    stack.push(GroundTruth::Tick)
                }
                Kind::SoftirqEntry => stack.push(GroundTruth::Softirq),
                Kind::VectorExit | Kind::IrqExit | Kind::SoftirqExit => drop(stack.pop()),
                Kind::PageFault => *sums.entry(GroundTruth::Fault).or_default() += 1,
                Kind::HrtimerEntry => match self.tick_timers.get(&cpu) == Some(&event.value) {
                    true => ticked = true,
                    false => other_timer = true,
                },
                _ => {}
            }
        }
        let silent = sums.remove(&GroundTruth::Below).unwrap_or(0) + to.saturating_sub(mark);
        let beyond = ((DELIVERY_NS as f64) / self.ns_per_tick) as u64;
        match sums.into_iter().max_by_key(|(_, ticks)| *ticks) {
            Some((_, most)) if silent.saturating_sub(beyond) > most => GroundTruth::Below,
            Some((GroundTruth::Tick, _)) if other_timer && !ticked => GroundTruth::Irq,
            Some((truth, _)) => truth,
            None => GroundTruth::Below,
        }
    }
}

/// The timer of a CPU's tick: of those that expire a period apart the one that does most often.
fn tick_timer(events: &[KernelEvent], period_ns: u64) -> Option<u64> {
    let mut timers: BTreeMap<u64, (i64, u64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == Kind::HrtimerEntry) {
        let (last, apart) = timers.entry(event.value).or_insert((i64::MIN, 0));
        let distance = event.ns.saturating_sub(*last).unsigned_abs();
        *apart += u64::from(distance.abs_diff(period_ns) < period_ns / 8);
        *last = event.ns;
    }
    timers.into_iter().max_by_key(|(_, (_, apart))| *apart).map(|(timer, _)| timer)
}

/// Whether a cause is right by what the kernel recorded. `rivals` are threads of the load with a real-time
/// priority: who lost the CPU to one of them was not throttled.
pub(super) fn is_right(
    gap: &AttributedGap,
    truth: (GroundTruth, Option<u32>),
    rivals: &[u32],
) -> bool {
    let (truth, had) = truth;
    let switched =
        matches!(truth, GroundTruth::Waited | GroundTruth::Preempted | GroundTruth::Stopped);
    match gap.cause {
        Cause::ContextSwitchVoluntary => truth == GroundTruth::Waited,
        Cause::ContextSwitchInvoluntary => truth == GroundTruth::Preempted,
        Cause::ContextSwitch => switched,
        Cause::TimerTick => truth == GroundTruth::Tick,
        Cause::Irq => truth == GroundTruth::Irq || truth == GroundTruth::Softirq,
        Cause::Softirq => truth == GroundTruth::Softirq,
        Cause::Migration => gap.cpu_before != gap.cpu_after,
        Cause::PageFault => truth == GroundTruth::Fault,
        Cause::RtThrottling => {
            truth == GroundTruth::Preempted && had.is_none_or(|tid| !rivals.contains(&tid))
        }
        // The loads have no such limit.
        Cause::DeadlineBudget | Cause::ReservationBudget | Cause::CgroupQuota | Cause::Unknown => {
            false
        }
        Cause::Stopped => truth == GroundTruth::Stopped,
        Cause::IrqOrBelow => {
            matches!(truth, GroundTruth::Irq | GroundTruth::Softirq | GroundTruth::Below)
        }
        Cause::BelowKernel => truth == GroundTruth::Below,
    }
}
