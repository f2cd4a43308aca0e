//! Context switches as threads find them out by themselves, against the kernel's own record of them.
//!
//! Both are stamped by the TSC, so that each switch is in a gap or is not. Issue 19: right under both rules by
//! which kernels clear critical sections ([`Clearing`]); the bed `linux7` runs this on a kernel of the
//! second one, with the C library's area and with one of our own.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hourglass_clock::Choice;
use hourglass_clock::choice::{self, CounterKind};
use hourglass_documents::{CpuSet, Reservation};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::tracefs::{Instance, Tracefs};
use hourglass_sys::{rseq, thread};
use hourglass_time::Span;
use hourglass_trace::IntervalStart;
use hourglass_workload::reservation::{ReservationBackend, ReservationDenied, Reserver};
use hourglass_workload::run::ThreadOutcome;
use hourglass_workload::{Record, RunMeasurement, RunObserver, RunSpec, ThreadSpec, models, run};

/// Two that compute, one of which gives the CPU up now and then, and one that waits: preemptions, and
/// switches inside system calls.
const THREADS: [&str; 3] = ["CPU", "CPU_YIELD 300us", "PERIODIC 1ms 5ms"];

struct NoReservations;

impl Reserver for NoReservations {
    fn reserve(&self, _: &Reservation) -> Result<ReservationBackend, ReservationDenied> {
        Err(ReservationDenied {
            errno: 1,
            cause: "none is given".to_owned(),
            remedy: String::new(),
        })
    }
}

struct Quiet;

impl RunObserver for Quiet {
    fn started(&mut self, _: Span, _: bool) {}
    fn tick(&mut self, _: Span) {}
    fn ended(&mut self) {}
}

/// What was found of a thread's gaps.
#[derive(Debug, Default)]
struct SwitchCounts {
    gaps: usize,
    /// Gaps with a switch.
    there: usize,
    /// Gaps of which the thread says so.
    named: usize,
    /// Both.
    both: usize,
    /// Gaps in which the section was kept.
    kept: usize,
    /// Of those with a switch.
    kept_wrongly: usize,
    /// Switches in no gap.
    outside: usize,
    /// Gaps of which the thread cannot tell.
    untold: usize,
    /// Gaps that the thread and the record tell of differently.
    differing: Vec<String>,
}

impl SwitchCounts {
    fn of(outcome: &ThreadOutcome, switches: &[u64]) -> SwitchCounts {
        let records: Vec<Record> = outcome.recorded.trace.iter().copied().collect();
        let mut found = SwitchCounts::default();
        let within = |from: u64, to: u64| {
            let (from, to) = (
                switches.partition_point(|at| *at < from),
                switches.partition_point(|at| *at <= to),
            );
            to.saturating_sub(from)
        };
        for pair in records.windows(2) {
            let evidence = pair[1].evidence();
            let there = within(pair[0].end, pair[1].start) > 0;
            let named = evidence.counted.is_some_and(|c| c.involuntary > 0 || c.voluntary > 0);
            let kept = evidence.cleared == Some(false);
            assert_ne!(pair[1].onset(), IntervalStart::Start);
            found.gaps += 1;
            if evidence.counted.is_none() && !kept {
                found.untold += 1;
                continue;
            }
            if there != named {
                let [before, behind] = pair else { unreachable!() };
                let of = switches.iter().find(|at| **at >= before.end);
                let own = (before.start, before.end, behind.start, behind.end);
                let (number, onset) = (found.gaps, behind.onset());
                found.differing.push(format!("{number}: {onset:?} {own:?} {evidence:?} {of:?}"));
            }
            found.there += usize::from(there);
            found.named += usize::from(named);
            found.both += usize::from(there && named);
            found.kept += usize::from(kept);
            found.kept_wrongly += usize::from(there && kept);
        }
        found.outside = records.iter().map(|record| within(record.start + 1, record.end - 1)).sum();
        found
    }
}

/// When each thread lost the CPU, by the kernel's record: TSC ticks in ascending order by thread number.
fn switches(text: &str) -> BTreeMap<u32, Vec<u64>> {
    let mut switches: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for line in text.lines() {
        let Some((head, event)) = line.split_once(": sched_switch: ") else { continue };
        let ticks = head.rsplit(' ').next().and_then(|word| word.parse().ok());
        let tid = event.split_once("prev_pid=").and_then(|(_, rest)| rest.split(' ').next());
        let tid = tid.and_then(|word| word.parse().ok());
        let (Some(ticks), Some(tid)) = (ticks, tid) else { panic!("not understood: {line}") };
        switches.entry(tid).or_default().push(ticks);
    }
    switches
}

/// A run on one CPU, and the kernel's record of it; a skip where there can be none.
fn traced() -> Option<(RunMeasurement, BTreeMap<u32, Vec<u64>>)> {
    let tracefs = match Tracefs::find() {
        Ok(tracefs) => tracefs,
        Err(reason) => {
            skip(Requirement::TRACEFS, reason);
            return None;
        }
    };
    let cpu = *thread::affinity().unwrap().last().unwrap();
    let instance = Instance::create(&tracefs).unwrap();
    if let Err(reason) = instance.set_clock("x86-tsc") {
        skip(
            Requirement::runs(
                "trace clock x86-tsc",
                "grep -qw x86-tsc /sys/kernel/tracing/trace_clock",
            ),
            reason,
        );
        return None;
    }
    instance.set_cpus(&[cpu], 4096).unwrap();
    instance.enable("sched", "sched_switch").unwrap();
    let threads = THREADS.map(|words| {
        let words: Vec<&str> = words.split(' ').collect();
        let cpus = Some(CpuSet::from_iter([cpu]));
        ThreadSpec { model: models::parse(&words).unwrap(), cpus, ..ThreadSpec::default() }
    });
    let spec = RunSpec { duration: Span::from_secs(1), ..RunSpec::new(threads.to_vec()) };
    // Also where the TSC is not trusted: the kernel's record has the same.
    let choice = Choice { kind: CounterKind::Tsc, ..choice::choose(Path::new("/")) };
    instance.switch(true).unwrap();
    let measured = run(&spec, choice, &NoReservations, &mut Quiet).unwrap();
    instance.switch(false).unwrap();
    assert_eq!(instance.counts(cpu).lost(), 0);
    let text = fs::read_to_string(instance.path().join("trace")).unwrap();
    Some((measured, switches(&text)))
}

#[test]
fn switches_are_those_of_the_kernels_record() {
    let area = match rseq::library_bytes() {
        None => "one of our own".to_owned(),
        Some(bytes) => format!("{bytes} bytes, version {}", if bytes > 32 { 2 } else { 1 }),
    };
    let Some((measured, switches)) = traced() else { return };
    println!("area: {area}; critical section: {:?}", measured.rseq);
    let mut all = 0;
    for (outcome, words) in measured.threads.iter().zip(THREADS) {
        let none = Vec::new();
        let found = SwitchCounts::of(outcome, switches.get(&outcome.tid).unwrap_or(&none));
        println!("{words}: {found:?}");
        let SwitchCounts { there, named, both, kept_wrongly, outside, untold, .. } = found;
        all += there;
        assert_eq!(kept_wrongly, 0, "{words}: {found:?}");
        // One in a hundred may fall between a question and the clock.
        let few = |of: usize| 1 + of / 100;
        assert!(there - both <= few(there), "{words}: {found:?}");
        assert!(named - both <= few(named), "{words}: {found:?}");
        assert!(outside <= few(there), "{words}: {found:?}");
        // Where it begins late, and where a wait and a gap behind it are in one count.
        assert!(untold <= 2 + there / 5, "{words}: {found:?}");
    }
    assert!(all >= 20, "{all} switches");
}

#[test]
fn a_switch_is_read_from_the_kernels_text() {
    let text = "# tracer: nop\n  CPU_YIELD 3-812  [001] d..2. 36748231: sched_switch: prev_comm=a b \
                prev_pid=812 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=9 next_prio=120\n";
    assert_eq!(switches(text), BTreeMap::from([(812, vec![36_748_231])]));
}
