//! Who ran meanwhile, by the counts that every user may read.
//!
//! Owns: samples of `/proc/PID/schedstat` of all visible threads: before the run, after it, and during it from the CPU
//! that supervises the run. Must not: sample from a measured CPU during the run; say at which moment a thread ran.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use hourglass_documents::Cause;
use hourglass_documents::concurrent_threads::ConcurrentThreads;
use hourglass_documents::document::OccupantReport;
use hourglass_machine::facts::HostReader;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread as os;

use crate::worst_intervals::WorstInterval;

/// Looking takes no more than this part of the CPU on which it is done.
const LOOKING_ONE_IN: u64 = 50;
/// Looks that are kept, the last ones: an hour of ten a second.
const MOST_LOOKS: usize = 36_000;
/// Threads that are kept of a look: those that ran longest.
const MOST_RAN: usize = 16;
/// Who ran for less between two looks is of no gap that is long, ns.
const LEAST_NS: u64 = 20_000;
/// Of shorter gaps and wake-ups nothing is said, ns: too many others ran between two looks.
const LEAST_SPAN_NS: u64 = 100_000;
/// Asleep for longer than this, ns, and not waiting for a CPU: the supervising thread wakes up every 100 ms.
const LONG_ASLEEP_NS: u64 = 250_000_000;
const NAMED: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunTime {
    tid: u32,
    /// At the second look.
    cpu: u32,
    /// Whether its policy is a real-time one.
    real_time: bool,
    ns: u64,
}

/// What was found between two looks, on `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SampleInterval {
    from_ns: u64,
    to_ns: u64,
    ran: Vec<RunTime>,
}

#[derive(Debug)]
pub(crate) struct RunTimeSampler {
    reader: HostReader,
    looked_ns: Option<u64>,
    due_ns: u64,
    run_ns: BTreeMap<u32, u64>,
    names: BTreeMap<u32, String>,
    between: VecDeque<SampleInterval>,
    /// When the supervising thread was last seen to run, and how long it had waited for CPUs by then.
    awake: Option<(u64, u64)>,
    stopped: StopSpans,
}

/// When the process was stopped, on `CLOCK_MONOTONIC`.
#[derive(Debug, Default)]
struct StopSpans {
    spans: Vec<(u64, u64)>,
}

impl StopSpans {
    /// The supervising thread ran at `from_ns` and next at `to_ns`, and waited for a CPU for `waited_ns` of that.
    fn asleep(&mut self, from_ns: u64, to_ns: u64, waited_ns: u64) {
        let asleep_ns = to_ns.saturating_sub(from_ns);
        let waited = waited_ns >= asleep_ns / 4;
        if asleep_ns > LONG_ASLEEP_NS && !waited && self.spans.len() < MOST_LOOKS {
            self.spans.push((from_ns, to_ns));
        }
    }

    /// Whether the time up to `to_ns` is such a stop: most of it, and no short part of it.
    fn explains(&self, from_ns: u64, to_ns: u64) -> bool {
        let length_ns = to_ns.saturating_sub(from_ns);
        self.spans.iter().any(|(begun, ended)| {
            let within = to_ns.min(*ended).saturating_sub(from_ns.max(*begun));
            within >= length_ns / 2 && within >= ended.saturating_sub(*begun) / 2
        })
    }
}

impl Default for RunTimeSampler {
    fn default() -> RunTimeSampler {
        RunTimeSampler {
            reader: HostReader::new(Path::new("/")),
            looked_ns: None,
            due_ns: 0,
            run_ns: BTreeMap::new(),
            names: BTreeMap::new(),
            between: VecDeque::new(),
            awake: None,
            stopped: StopSpans::default(),
        }
    }
}

impl RunTimeSampler {
    /// Looks, unless the last look took too much for that.
    pub(crate) fn look_if_due(&mut self) {
        let now = now_ns(ClockId::Monotonic);
        if let (Some((from_ns, before_ns)), Some(wait_ns)) = (self.awake, self.waited_ns()) {
            self.stopped.asleep(from_ns, now, wait_ns.saturating_sub(before_ns));
        }
        if now >= self.due_ns {
            self.sample();
        }
        self.awake = self.waited_ns().map(|wait_ns| (now_ns(ClockId::Monotonic), wait_ns));
    }

    pub(crate) fn has_sampled(&self) -> bool {
        !self.between.is_empty()
    }

    fn waited_ns(&self) -> Option<u64> {
        Some(self.reader.thread_times(std::process::id(), os::id())?.wait_ns)
    }

    pub(crate) fn sample(&mut self) {
        let (began_ns, used_ns) = (now_ns(ClockId::Monotonic), os::rusage_time_ns());
        let ran = self.all_that_ran();
        let ended_ns = now_ns(ClockId::Monotonic);
        // From the start of one look to the end of the next: who ran in a gap that lies there is counted in it.
        if let Some(from_ns) = self.looked_ns.replace(began_ns) {
            if self.between.len() == MOST_LOOKS {
                self.between.pop_front();
            }
            self.between.push_back(SampleInterval { from_ns, to_ns: ended_ns, ran });
        }
        let took_ns = os::rusage_time_ns().saturating_sub(used_ns);
        self.due_ns = ended_ns.saturating_add(took_ns.saturating_mul(LOOKING_ONE_IN));
    }

    /// Those who ran since the last look.
    fn all_that_ran(&mut self) -> Vec<RunTime> {
        let mut more: Vec<(u32, u32, u64)> = Vec::new();
        let mut all = BTreeMap::new();
        for pid in self.reader.processes() {
            for tid in self.reader.threads_of(pid) {
                let Some(times) = self.reader.thread_times(pid, tid) else { continue };
                let before_ns = self.run_ns.get(&tid).copied().unwrap_or(0);
                let ns = times.run_ns.saturating_sub(before_ns);
                if ns >= LEAST_NS {
                    more.push((pid, tid, ns));
                }
                all.insert(tid, times.run_ns);
            }
        }
        let first = std::mem::replace(&mut self.run_ns, all).is_empty();
        if first {
            return Vec::new();
        }
        more.sort_by_key(|(_, tid, ns)| (Reverse(*ns), *tid));
        more.truncate(MOST_RAN);
        let mut ran = Vec::with_capacity(more.len());
        for (pid, tid, ns) in more {
            let Some(counts) = self.reader.thread(pid, tid) else { continue };
            ran.extend(counts.cpu.map(|cpu| RunTime {
                tid,
                cpu,
                real_time: is_real_time(tid),
                ns,
            }));
            self.names.insert(tid, counts.name);
        }
        ran
    }

    /// What is known of `spans`, those of which nothing is known left out. `tids`: threads of the run by the kernel's
    /// numbers, `real_time` those of the run with such policies: only the like of them take their CPU, so others are named
    /// only where none of these ran. The run began at `begun_ns` of `CLOCK_MONOTONIC`.
    pub(crate) fn reports(
        &self,
        spans: &[WorstInterval],
        tids: &BTreeMap<u32, u32>,
        real_time: &BTreeSet<u32>,
        begun_ns: u64,
    ) -> Vec<ConcurrentThreads> {
        let long = spans.iter().filter(|span| span.length_ns() >= LEAST_SPAN_NS);
        long.filter_map(|span| self.report(span, tids, real_time.contains(&span.thread), begun_ns))
            .collect()
    }

    fn report(
        &self,
        span: &WorstInterval,
        tids: &BTreeMap<u32, u32>,
        real_time: bool,
        begun_ns: u64,
    ) -> Option<ConcurrentThreads> {
        let cpu = span.cpu?;
        let at = |ns: i64| begun_ns.saturating_add_signed(ns);
        let (from, to) = (at(span.from_ns), at(span.to_ns));
        let mut looks: Option<(u64, u64)> = None;
        let mut sums: BTreeMap<(bool, u32), u64> = BTreeMap::new();
        for between in self.between.iter().filter(|b| b.from_ns < to && from < b.to_ns) {
            let (first, _) = looks.unwrap_or((between.from_ns, 0));
            looks = Some((first, between.to_ns));
            for ran in between.ran.iter().filter(|ran| ran.cpu == cpu) {
                let sum = sums.entry((ran.real_time, ran.tid)).or_default();
                *sum = sum.saturating_add(ran.ns);
            }
        }
        let (first, last) = looks?;
        let stopped = self.stopped.explains(from, to);
        if stopped {
            sums.clear();
        }
        sums.retain(|(_, tid), _| tids.get(tid) != Some(&span.thread));
        let only = real_time && sums.keys().any(|(of_real_time, _)| *of_real_time);
        let mut all: Vec<(u32, u64)> = sums
            .into_iter()
            .filter(|((of_real_time, _), _)| *of_real_time || !only)
            .map(|((_, tid), ns)| (tid, ns))
            .collect();
        all.sort_by_key(|(tid, ns)| (Reverse(*ns), *tid));
        let named = |(tid, ns): (u32, u64)| {
            let thread = tids.get(&tid).copied();
            OccupantReport {
                thread,
                tid: thread.is_none().then_some(tid),
                name: self.names.get(&tid).filter(|_| thread.is_none()).cloned(),
                total_ns: ns.min(span.length_ns()),
            }
        };
        let ran: Vec<OccupantReport> = all.into_iter().take(NAMED).map(named).collect();
        let since = |ns: u64| i64::try_from(i128::from(ns) - i128::from(begun_ns)).unwrap_or(0);
        (stopped || !ran.is_empty()).then(|| ConcurrentThreads {
            cause: stopped.then_some(Cause::Stopped),
            of: span.kind.to_owned(),
            thread: span.thread,
            at_ns: span.to_ns,
            length_ns: span.length_ns(),
            looked_ns: since(first),
            looked_again_ns: since(last),
            ran,
        })
    }
}

fn is_real_time(tid: u32) -> bool {
    let policy = sched::read(tid).ok().flatten();
    matches!(
        policy,
        Some(Attributes::Fifo(_) | Attributes::RoundRobin(_) | Attributes::Deadline { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Looks at 100, 200 and 300 ms; the run begins at 100 ms. 812 ran for 60 ms on CPU 1, 9 on CPU 0.
    #[test]
    fn those_on_the_cpu_around_the_gap_are_named() {
        let between = |from: u64, to: u64, ran: &[(u32, u32, u64)]| SampleInterval {
            from_ns: from * MS,
            to_ns: to * MS,
            ran: ran
                .iter()
                .map(|(tid, cpu, ms)| RunTime {
                    tid: *tid,
                    cpu: *cpu,
                    real_time: *tid == 71,
                    ns: ms * MS,
                })
                .collect(),
        };
        let counts = RunTimeSampler {
            between: VecDeque::from([
                between(100, 202, &[(812, 1, 60), (9, 0, 90), (70, 1, 30), (71, 1, 5)]),
                between(200, 301, &[(813, 1, 80)]),
            ]),
            names: BTreeMap::from([(812, "stress".to_owned())]),
            ..RunTimeSampler::default()
        };
        let tids = BTreeMap::from([(70, 0), (71, 1)]);
        let gap = |from: i64, to: i64, cpu| WorstInterval {
            kind: WorstInterval::GAP,
            thread: 0,
            from_ns: from * MS as i64,
            to_ns: to * MS as i64,
            cpu,
        };
        let none = BTreeSet::new();
        let list = counts.reports(&[gap(10, 50, Some(1))], &tids, &none, 100 * MS);
        assert_eq!(list.len(), 1);
        let ran: Vec<_> = list[0].ran.iter().map(|r| (r.thread, r.tid, r.total_ns / MS)).collect();
        // No more than the gap, and not the thread itself.
        assert_eq!(ran, [(None, Some(812), 40), (Some(1), None, 5)]);
        assert_eq!(list[0].ran[0].name.as_deref(), Some("stress"));
        assert_eq!((list[0].looked_ns, list[0].looked_again_ns), (0, 102 * MS as i64));
        // Over two looks, in none, and where the CPU is not known.
        let over = counts.reports(&[gap(90, 150, Some(1))], &tids, &none, 100 * MS);
        assert_eq!(over[0].ran.len(), 3);
        let unseen = [gap(300, 400, Some(1)), gap(10, 50, None), gap(10, 50, Some(7))];
        assert_eq!(counts.reports(&unseen, &tids, &none, 100 * MS), []);
        // Ordinary threads do not take the CPU of a real-time one.
        let list = counts.reports(&[gap(10, 50, Some(1))], &tids, &BTreeSet::from([0]), 100 * MS);
        let ran: Vec<_> = list[0].ran.iter().map(|r| (r.thread, r.total_ns / MS)).collect();
        assert_eq!(ran, [(Some(1), 5)]);
    }

    /// `latency` with SIGSTOP, 0.4 s later SIGCONT: the thread that had the CPU in between is not the reason.
    #[test]
    fn a_process_that_was_stopped_is_not_laid_to_others() {
        for (waited, gap, stopped) in [
            (1, (150, 550), true),
            (300, (150, 550), false), // kept waiting for a CPU
            (1, (150, 170), false),   // before the stop
            (1, (540, 550), false),
        ] {
            let ran = vec![RunTime { tid: 812, cpu: 1, real_time: false, ns: 300 * MS }];
            let between = SampleInterval { from_ns: 100 * MS, to_ns: 560 * MS, ran };
            let mut counts =
                RunTimeSampler { between: VecDeque::from([between]), ..RunTimeSampler::default() };
            counts.stopped.asleep(130 * MS, 550 * MS, waited * MS);
            let (from, to) = (gap.0 * MS as i64, gap.1 * MS as i64);
            let of = WorstInterval {
                kind: WorstInterval::GAP,
                thread: 0,
                from_ns: from,
                to_ns: to,
                cpu: Some(1),
            };
            let list = counts.reports(&[of], &BTreeMap::new(), &BTreeSet::new(), 0);
            let expected = stopped.then_some(Cause::Stopped);
            assert_eq!((list[0].cause, list[0].ran.is_empty()), (expected, stopped), "{gap:?}");
        }
        let mut usual = StopSpans::default();
        usual.asleep(0, 110 * MS, 0);
        assert!(!usual.explains(0, 100 * MS));
    }

    /// This very process is visible to itself.
    #[test]
    fn who_computes_is_seen() {
        let mut counts = RunTimeSampler::default();
        counts.sample();
        let until = now_ns(ClockId::Monotonic) + 60 * MS;
        while now_ns(ClockId::Monotonic) < until {}
        counts.sample();
        if counts.run_ns.is_empty() {
            return; // A kernel without schedstat.
        }
        let own = os::id();
        let ran = &counts.between[0].ran;
        assert!(ran.iter().any(|ran| ran.tid == own && ran.ns > 0), "{ran:?}");
    }
}
