//! The causes of a run's gaps: what its manifest tells the inference, and what a reader must know
//! of how sound the answer is.
//!
//! Owns: facts from a manifest, warnings from what the inference remarked. Must not: infer.

use std::collections::BTreeSet;

use hourglass_documents::document::{RunDocument, ThreadReport, Warning};
use hourglass_documents::host::{CpuInterrupts, Host, HostChange, HostTick, RealTimeThread};
use hourglass_documents::host::{LEAVE_THE_GUEST, MOST_REAL_TIME};
use hourglass_documents::host_limits;
use hourglass_documents::kernel::KernelFacts;
use hourglass_documents::manifest::{EvidenceFacts, Manifest};
use hourglass_documents::{Cause, Policy};
use hourglass_time::Span;
use hourglass_trace::cause::{
    self, AttributedGap, AttributedGaps, AttributionCounts, CauseTally, Indication, InterruptFacts,
    KernelCoverage, Patterns, Quota, RtLimit, RunFacts, SwitchFacts, ThreadFacts, TickClock,
};
use hourglass_trace::{Interval, KernelEvent};

use crate::drift;
use crate::inferences;

/// How far a record of a switch may be off on the run's time line, ns: both clocks are read within less, twice, and
/// the counter runs evenly beside the raw clock.
pub const SWITCH_ERROR_NS: u64 = 2_000;

const NS_PER_S: f64 = 1e9;

/// The first word of the workload of a program's own loop; no model has it.
pub const LOOP: &str = "LOOP";
/// The workload of a program's thread whose spans were recorded; no model has it.
pub const SPANS: &str = "SPANS";

/// Whether a workload is a program's own loop or spans; also one of which nothing is known.
fn is_own(workload: &str) -> bool {
    let word = workload.split(' ').next().unwrap_or_default();
    word.is_empty() || word == LOOP || word == SPANS
}

/// What gives the gaps of one run their causes.
///
/// A trace is read twice: to make this, and to go through the gaps.
#[derive(Clone, Debug)]
pub struct Explanation {
    facts: RunFacts,
    patterns: Patterns,
}

impl Explanation {
    /// Reads the trace of a run once, in order of start.
    ///
    /// # Errors
    /// The first interval that cannot be read.
    pub fn new<E>(
        document: &RunDocument,
        intervals: impl IntoIterator<Item = Result<Interval, E>>,
    ) -> Result<Explanation, E> {
        let facts = facts(document);
        let patterns = cause::survey(&facts, intervals)?;
        Ok(Explanation { facts, patterns })
    }

    /// The gaps of the same trace with their causes. `events` in order of time: those of the
    /// run, or none if the kernel was not traced.
    pub fn gaps<I, K, E>(
        &self,
        intervals: I,
        events: K,
    ) -> AttributedGaps<'_, I::IntoIter, K::IntoIter>
    where
        I: IntoIterator<Item = Result<Interval, E>>,
        K: IntoIterator<Item = Result<KernelEvent, E>>,
    {
        cause::attribute(&self.facts, &self.patterns, intervals, events)
    }

    pub fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// Puts the causes of all gaps into the document, and warnings of what they lack.
    ///
    /// # Errors
    /// The first interval or event that cannot be read; the causes of what could be are there.
    pub fn fill<E>(
        &self,
        document: &mut RunDocument,
        intervals: impl IntoIterator<Item = Result<Interval, E>>,
        events: impl IntoIterator<Item = Result<KernelEvent, E>>,
    ) -> Result<(), E> {
        let mut tally = CauseTally::default();
        let (mut failed, mut hosts) = (None, 0_u64);
        let mut gaps = self.gaps(intervals, events);
        for gap in gaps.by_ref() {
            match gap {
                Ok(gap) => {
                    tally.push(&gap);
                    hosts += u64::from(is_hosts(&gap));
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        tally.know(gaps.ran());
        let remarks = gaps.remarks();
        let result = &mut document.result;
        result.causes = tally.reports();
        if let Some(kernel) = &document.manifest.kernel {
            let named = result.causes.iter_mut().flat_map(|cause| &mut cause.ran);
            named.for_each(|ran| {
                ran.name = ran.tid.and_then(|tid| kernel.names.threads.get(&tid).cloned());
            });
        }
        let mut warnings = warnings(&remarks, &result.threads);
        warnings.extend(other_quotas(&document.manifest.host));
        warnings.extend(self.host_period().filter(|_| hosts >= FEWEST_OF_HOST));
        warnings.retain(|new| result.warnings.iter().all(|known| known.id != new.id));
        result.warnings.extend(warnings);
        failed.map_or(Ok(()), Err)
    }

    fn host_period(&self) -> Option<Warning> {
        self.facts.virtual_machine.filter(|virtual_machine| *virtual_machine)?;
        // The longest gaps tell most.
        let found = self.patterns.repeats().max_by_key(|repeat| repeat.from_ns)?;
        // Three digits tell what it is.
        let rounded =
            |ns: u64, to: u64| Span::saturating_from_nanos(ns.saturating_add(to / 2) / to * to);
        let period = rounded(found.period_ns, 100_000);
        Some(Warning {
            id: "below-kernel-period".to_owned(),
            text: format!(
                "CPU {}: gaps of {} to {} below the kernel come back every {period}: the host's \
                 own tick, or another guest's",
                found.cpu,
                rounded(found.from_ns, 1_000),
                rounded(found.to_ns, 1_000),
            ),
            remedy: LEAVE_THE_GUEST.to_owned(),
        })
    }
}

/// The gaps of a simulation that have a cause, in order of thread and then of end.
pub fn of_simulation(document: &RunDocument, intervals: &[Interval]) -> Vec<AttributedGap> {
    let reserved = |id: u32| {
        let thread = document.manifest.threads.iter().find(|thread| thread.id == id);
        thread.is_some_and(|thread| thread.reservation.is_some())
    };
    cause::attribute_simulated(intervals, reserved)
}

/// Puts the causes of a simulation's gaps into its document.
pub fn fill_simulated(document: &mut RunDocument, gaps: &[AttributedGap]) {
    let mut tally = CauseTally::default();
    gaps.iter().for_each(|gap| tally.push(gap));
    let result = &mut document.result;
    result.causes = tally.reports();
    for ran in result.causes.iter_mut().flat_map(|cause| &mut cause.ran) {
        let thread = result.threads.iter().find(|thread| Some(thread.id) == ran.thread);
        ran.name = thread.and_then(|thread| thread.name.clone());
    }
}

/// Whether it is proven that a periodic gap was no interrupt of this kernel.
fn is_hosts(gap: &AttributedGap) -> bool {
    let proofs =
        [Indication::NoInterruptCounted, Indication::FewInterrupts, Indication::KernelSilent];
    let periodic = gap.evidence.contains(Indication::Periodic);
    let proven = proofs.into_iter().any(|sign| gap.evidence.contains(sign));
    gap.cause == Cause::BelowKernel && periodic && proven
}

/// With fewer such gaps the host's period is not reported.
const FEWEST_OF_HOST: u64 = 5;

/// The quota, and how often it stopped the process: at most each period where the process came under other quotas
/// meanwhile, since then neither count has all.
fn quota(host: &Host, elapsed_ns: u64) -> Option<Quota> {
    let change = host.change.as_ref();
    let others = change.and_then(|change| change.quotas.as_ref());
    let at_start = host_limits::tightest_quota(host);
    let quota = others.and_then(|quotas| quotas.first()).or(at_start)?;
    let period_ns = quota.period_us.saturating_mul(1_000);
    let counted = change.and_then(|change| change.quota_throttled).unwrap_or(0);
    let all = || (elapsed_ns / period_ns.max(1)).saturating_add(1);
    Some(Quota {
        period_ns,
        throttled: if others.is_some() { all() } else { counted },
        throttled_ns: change.and_then(|change| change.quota_throttled_ns),
    })
}

/// That the counts of quotas are not those of the run.
fn other_quotas(host: &Host) -> Option<Warning> {
    host.change.as_ref()?.quotas.as_ref()?;
    Some(Warning {
        id: "quota-changed".to_owned(),
        text: "the process came under other quotas meanwhile (moved to another control group, or cpu.max was set): how \
               often quotas stopped it is not known, and switches forced on it are less than certain"
            .to_owned(),
        remedy: "start the command in the group in which it is to be measured".to_owned(),
    })
}

fn facts(document: &RunDocument) -> RunFacts {
    let manifest = &document.manifest;
    let host = &manifest.host;
    let change = host.change.as_ref();
    let logged = change.and_then(|change| change.rt_throttling_logged).is_some_and(|n| n > 0);
    let rt_limit = host_limits::real_time_limit_ns(host).map(|(runtime_ns, period_ns)| RtLimit {
        runtime_ns,
        period_ns,
        logged,
        others_ns: real_time_others_ns(document),
        others_ended: above_own(manifest).any(|other| other.ended),
    });
    let tick_ns = host.tick.map(|tick| tick.period_ns);
    let of_cpu = |of: &CpuInterrupts| (of.cpu, interrupts(of, tick_ns, manifest.elapsed_ns));
    RunFacts {
        threads: threads(manifest, &document.result.threads),
        tick_hz: host.tick_hz,
        tick_clock: host
            .tick
            .filter(|_| drifted_ns(manifest).is_some())
            .and_then(|tick| tick_clock(tick, manifest.epoch.monotonic_ns)),
        interrupts: change.into_iter().flat_map(|change| &change.interrupts).map(of_cpu).collect(),
        virtual_machine: host.virtual_machine.present,
        rt_limit,
        real_time: change.and_then(real_time),
        quota: quota(host, manifest.elapsed_ns),
        kernel: manifest.kernel.as_ref().and_then(|kernel| coverage(kernel, manifest)),
        switches: switch_facts(manifest),
        ..RunFacts::default()
    }
}

/// For how long real-time threads of other processes ran in the run that may take the CPU of one of the run, if they ran
/// evenly between the looks at them.
fn real_time_others_ns(document: &RunDocument) -> u64 {
    let manifest = &document.manifest;
    let ns = above_own(manifest).map(|other| other.ran_ns).fold(0, u64::saturating_add);
    let change = manifest.host.change.as_ref();
    let over_ns = change.and_then(|change| change.real_time_others_over_ns).unwrap_or(0);
    let part = u128::from(ns) * u128::from(manifest.elapsed_ns) / u128::from(over_ns.max(1));
    u64::try_from(part).map_or(ns, |part| part.min(ns))
}

/// Real-time threads of other processes that may take the CPU of one of the run.
fn above_own(manifest: &Manifest) -> impl Iterator<Item = &RealTimeThread> {
    let own = manifest.threads.iter().filter_map(|thread| priority(&thread.policy)).min();
    let others = manifest.host.change.iter().flat_map(|change| &change.real_time_others);
    others.filter(move |other| priority(&other.policy) >= own)
}

/// The numbers of all real-time threads of other processes, where so few ran that all are known.
fn real_time(change: &HostChange) -> Option<BTreeSet<u32>> {
    change.real_time_others_over_ns?;
    let few = change.real_time_others.len() < MOST_REAL_TIME;
    few.then(|| change.real_time_others.iter().map(|thread| thread.tid).collect())
}

/// Where a real-time policy stands among those: the deadline class is above all.
fn priority(text: &str) -> Option<u8> {
    match policy(text)? {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
        Policy::Deadline => Some(u8::MAX),
        _ => None,
    }
}

/// Interrupts that were no ticks, at most: those of the timer may all be, but for as many as a tick has
/// periods.
fn interrupts(counted: &CpuInterrupts, tick_ns: Option<u64>, elapsed_ns: u64) -> InterruptFacts {
    let ticks = tick_ns.and_then(|ns| elapsed_ns.checked_div(ns)).unwrap_or(0);
    let most = counted.others.saturating_add(counted.timer.saturating_sub(ticks));
    let (others, timer) = (counted.others, counted.timer);
    InterruptFacts { most, others, timer, quiet: counted.quiet.clone() }
}

/// The tick on the time line of a run that began at `begun_ns` of `CLOCK_MONOTONIC`, against which it was
/// calibrated at both ends.
fn tick_clock(tick: HostTick, begun_ns: u64) -> Option<TickClock> {
    let begun_ns = begun_ns.checked_rem(tick.period_ns)?;
    let at_ns = i64::try_from(tick.phase_ns?).ok()?.checked_sub(i64::try_from(begun_ns).ok()?)?;
    Some(TickClock { period_ns: tick.period_ns, at_ns, skew_ns: tick.skew_ns })
}

fn threads(
    manifest: &Manifest,
    reports: &[ThreadReport],
) -> std::collections::BTreeMap<u32, ThreadFacts> {
    let known = inferences::facts(manifest);
    let facts = manifest.threads.iter().zip(&known).map(|(thread, known)| {
        let report = reports.iter().find(|report| report.id == thread.id);
        let reservation = thread.reservation.as_deref().and_then(budget_and_period);
        let facts = ThreadFacts {
            policy: policy(&thread.policy),
            never_waits: known.never_blocks,
            // A program's own loop waits by its own means.
            waits_unseen: is_own(&thread.workload),
            highest: known.highest,
            reservation: reservation.or_else(|| budget_and_period(&thread.policy)),
            in_user_space: thread.policy.starts_with(RESERVED[1]),
            number: report.and_then(|report| report.tid),
        };
        (thread.id, facts)
    });
    facts.collect()
}

/// How a policy in force names a reservation: in the deadline class, and in user space.
const RESERVED: [&str; 2] = ["DEADLINE:", "USER:"];

fn policy(text: &str) -> Option<Policy> {
    let reserved = RESERVED.iter().any(|name| text.starts_with(name));
    if reserved { Some(Policy::Deadline) } else { text.parse().ok() }
}

/// The times in `DEADLINE:3.1ms/8ms+`, `USER:3.1ms/8ms` or `3.1ms/8ms/5ms`, whose deadline is left out, in nanoseconds.
fn budget_and_period(text: &str) -> Option<(u64, u64)> {
    let text = RESERVED.iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text);
    let mut times = text.trim_end_matches('+').splitn(3, '/');
    let (budget, period) = times.next().zip(times.next())?;
    let ns = |text: &str| u64::try_from(text.trim().parse::<Span>().ok()?.nanos()).ok();
    Some((ns(budget)?, ns(period)?))
}

/// `None` where the events' clock cannot be put beside the trace's, because that drifted.
fn coverage(kernel: &KernelFacts, manifest: &Manifest) -> Option<KernelCoverage> {
    // Between two reads of the counter the event may be anywhere.
    let widest = kernel.checks.iter().map(|check| check.after.saturating_sub(check.before)).max();
    let ns_per_tick = NS_PER_S / manifest.clock.frequency_hz.max(1.0);
    let error_ns = match kernel.same_counter {
        true => 0,
        false => {
            let width_ns = (widest.unwrap_or(0) as f64 * ns_per_tick).ceil() as u64;
            width_ns.saturating_add(drifted_ns(manifest)?)
        }
    };
    let cpus = kernel.cpus.iter().map(|cpu| (cpu.cpu, cpu.lost.saturating_add(cpu.damaged)));
    Some(KernelCoverage { cpus: cpus.collect(), error_ns })
}

/// By how much moments of another clock are off because the counter drifted; `None` for too much.
fn drifted_ns(manifest: &Manifest) -> Option<u64> {
    let ns = drift::from_manifest(manifest).map_or(0, |drift| drift.moment_ns);
    (ns <= drift::MOST_NS).then_some(ns)
}

/// What the records of switches cover, if the run has some.
fn switch_facts(manifest: &Manifest) -> Option<SwitchFacts> {
    let of_perf = |facts: &&EvidenceFacts| facts.source == EvidenceFacts::PERF && facts.used;
    let perf = manifest.evidence.iter().find(of_perf)?;
    let complete = perf.complete == Some(true);
    let error_ns = SWITCH_ERROR_NS.saturating_add(drifted_ns(manifest)?);
    Some(SwitchFacts { complete, error_ns })
}

/// What a reader must know of how the causes were found.
fn warnings(remarks: &AttributionCounts, threads: &[ThreadReport]) -> Vec<Warning> {
    let warning = |id: &str, text: String, remedy: &str| Warning {
        id: id.to_owned(),
        text,
        remedy: remedy.to_owned(),
    };
    let mut warnings = Vec::new();
    // Threads that measure latency alone write no trace, however much room there is.
    let writes = |thread: &ThreadReport| thread.latency.is_none() && thread.intervals > 0;
    if remarks.intervals == 0 && threads.iter().any(writes) {
        warnings.push(warning(
            "no-records",
            "the trace has no records: no gap has a cause".to_owned(),
            "record again with more room (-e)",
        ));
    }
    if remarks.events_refused {
        warnings.push(warning(
            "kernel-clock",
            format!(
                "{} of {} kernel events lie where threads were seen to run: their clock is not \
                 the trace's, so causes rest on what the threads found out themselves",
                remarks.events_inside, remarks.events
            ),
            "record again; if it comes back, the counters of this machine are not in step",
        ));
    }
    if remarks.in_holes > 0 {
        warnings.push(warning(
            "kernel-holes",
            format!(
                "{} gaps lie where kernel events were lost: their causes rest on what the threads \
                 found out themselves",
                remarks.in_holes
            ),
            "trace a shorter run, or fewer CPUs",
        ));
    }
    if remarks.gaps > 0 && remarks.with_evidence == 0 && remarks.with_events == 0 {
        warnings.push(warning(
            "no-evidence",
            "the trace has no evidence about its gaps: causes follow from interleaving, \
             priorities and statistics alone"
                .to_owned(),
            "record again with this version",
        ));
    }
    // Losses of spans are drawn in the middle of them, beside what others of the CPU really did.
    let drawn = threads.iter().any(|thread| thread.workload == SPANS);
    if !drawn && (remarks.overlapping > 0 || remarks.out_of_order > 0) {
        warnings.push(warning(
            "records-overlap",
            format!(
                "{} records began while another of the same CPU or thread went on, {} are not in \
                 order of time: the clocks of the CPUs were not in step",
                remarks.overlapping, remarks.out_of_order
            ),
            "pin threads with --cpu, so that no interval spans two counters",
        ));
    }
    warnings
}

#[cfg(test)]
#[path = "causes/tests.rs"]
mod tests;
