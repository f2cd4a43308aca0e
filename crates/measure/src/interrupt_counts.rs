//! How many interrupts came to the measured CPUs in a run, and when none did: everybody may read that.
//!
//! Owns: reading `/proc/interrupts` and `/proc/softirqs` at both ends of a run and, where a CPU is free to do it,
//! between; the stretches in which nothing came but ticks. Must not: run on a measured CPU meanwhile; say what a
//! gap was.
//!
//! Between two samples with equal counts no interrupt came. The counts do not distinguish ticks from other timers, but
//! the moments of ticks are known: as many timer interrupts as ticks are ticks. Samples are taken in the middle
//! between two ticks, where no tick falls into one.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use hourglass_documents::CpuSet;
use hourglass_documents::host::{CpuInterrupts, HostTick};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_workload::spec::RunSpec;

use crate::kernel_trace;

/// The kernel's counts.
const INTERRUPTS: &str = "/proc/interrupts";
const SOFTIRQS: &str = "/proc/softirqs";

/// Softirqs that the tick brings, by itself or through timers.
const SOFTIRQS_OF_TICKS: [&str; 4] = ["TIMER", "SCHED", "HRTIMER", "RCU"];
const EVERY_TICKS: u64 = 4;

/// Reading takes no more than this part of the free CPU.
const READING_ONE_IN: u64 = 50;
const MOST_STRETCHES: usize = 2_000;

/// Stack of the reading thread; small, since all of it may be locked.
const STACK_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuInterruptCounts {
    timer: u64,
    others: u64,
    softirqs: u64,
}

/// The counts of all CPUs, read between two moments of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reading {
    from_ns: u64,
    to_ns: u64,
    cpus: BTreeMap<u32, CpuInterruptCounts>,
}

impl Reading {
    /// Now; `None` where the kernel does not tell.
    fn now() -> Option<Reading> {
        let from_ns = now_ns(ClockId::Monotonic);
        let interrupts = std::fs::read_to_string(INTERRUPTS).ok()?;
        let softirqs = std::fs::read_to_string(SOFTIRQS).ok()?;
        let to_ns = now_ns(ClockId::Monotonic);
        Some(Reading { from_ns, to_ns, cpus: counts(&interrupts, &softirqs)? })
    }
}

/// What the two files say. A line without a number for each CPU is no count of CPUs.
fn counts(interrupts: &str, softirqs: &str) -> Option<BTreeMap<u32, CpuInterruptCounts>> {
    let mut all = BTreeMap::new();
    let timer = |name: &str, rest: &str| name == "LOC" || rest.contains("arch_timer");
    for_each_count(interrupts, |cpu, name, rest, count| {
        let counts: &mut CpuInterruptCounts = all.entry(cpu).or_default();
        let sum = if timer(name, rest) { &mut counts.timer } else { &mut counts.others };
        *sum = sum.saturating_add(count);
    })?;
    for_each_count(softirqs, |cpu, name, _, count| {
        if !SOFTIRQS_OF_TICKS.contains(&name) {
            let counts: &mut CpuInterruptCounts = all.entry(cpu).or_default();
            counts.softirqs = counts.softirqs.saturating_add(count);
        }
    })?;
    Some(all)
}

/// Goes through a table whose first line names the CPUs: `CPU0 CPU2`.
fn for_each_count(text: &str, mut count: impl FnMut(u32, &str, &str, u64)) -> Option<()> {
    let mut lines = text.lines();
    let cpu = |word: &str| word.strip_prefix("CPU")?.parse::<u32>().ok();
    let cpus: Vec<u32> = lines.next()?.split_whitespace().map(cpu).collect::<Option<_>>()?;
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let numbers = rest.split_whitespace().take(cpus.len()).map(str::parse);
        let Ok(numbers) = numbers.collect::<Result<Vec<u64>, _>>() else { continue };
        if numbers.len() == cpus.len() {
            let each = cpus.iter().zip(numbers);
            each.for_each(|(cpu, number)| count(*cpu, name.trim(), rest, number));
        }
    }
    Some(())
}

/// What came between two readings, or a count that went down (a CPU went away).
fn between(first: &Reading, last: &Reading, cpu: u32) -> Option<CpuInterruptCounts> {
    let (first, last) = (first.cpus.get(&cpu)?, last.cpus.get(&cpu)?);
    Some(CpuInterruptCounts {
        timer: last.timer.checked_sub(first.timer)?,
        others: last.others.checked_sub(first.others)?,
        softirqs: last.softirqs.checked_sub(first.softirqs)?,
    })
}

/// The ticks that a CPU has between two moments; where their phase is not known, those that it has at least.
fn ticks_between(tick: HostTick, cpu: u32, from_ns: u64, to_ns: u64) -> u64 {
    let whole = |ns: u64| ns.checked_div(tick.period_ns).unwrap_or(0);
    let Some(phase_ns) = tick.phase_ns else { return whole(to_ns.saturating_sub(from_ns)) };
    // Before the phase lies no point of this grid, but that is a tick after the machine's start.
    let behind = phase_ns.saturating_add(tick.skew_ns.saturating_mul(u64::from(cpu)));
    whole(to_ns.saturating_sub(behind)).saturating_sub(whole(from_ns.saturating_sub(behind)))
}

/// The quiet stretches of each CPU so far, on `CLOCK_MONOTONIC`.
#[derive(Debug, Default)]
struct QuietIntervals {
    stretches: BTreeMap<u32, Vec<(u64, u64)>>,
}

impl QuietIntervals {
    /// Looks at what lies between two readings in a row.
    fn push(&mut self, tick: HostTick, first: &Reading, last: &Reading) {
        let (from, to) = (first.to_ns, last.from_ns);
        for cpu in first.cpus.keys() {
            let Some(counts) = between(first, last, *cpu) else { continue };
            let ticks = ticks_between(tick, *cpu, from, to);
            if counts.others > 0 || counts.softirqs > 0 || counts.timer > ticks {
                continue;
            }
            let stretches = self.stretches.entry(*cpu).or_default();
            let room = stretches.len() < MOST_STRETCHES;
            match stretches.last_mut() {
                // What is counted while it is read is found in one reading or in the next.
                Some(before) if before.1 == first.from_ns => before.1 = to,
                _ if room => stretches.push((from, to)),
                _ => {}
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct InterruptSession {
    measured: CpuSet,
    free: CpuSet,
    tick: Option<HostTick>,
    first: Option<Reading>,
    last: Option<Reading>,
    reader: Option<(Sender<()>, JoinHandle<QuietIntervals>)>,
    quiet: QuietIntervals,
}

impl InterruptSession {
    pub(crate) fn for_run(spec: &RunSpec, tick: Option<HostTick>) -> InterruptSession {
        let (measured, allowed) = kernel_trace::cpus(spec);
        InterruptSession::new(measured, &allowed, tick)
    }

    fn new(measured: CpuSet, allowed: &CpuSet, tick: Option<HostTick>) -> InterruptSession {
        let free = allowed.difference(&measured);
        let quiet = QuietIntervals::default();
        InterruptSession { measured, free, tick, first: None, last: None, reader: None, quiet }
    }

    pub(crate) fn begin(&mut self) {
        self.first = Reading::now();
        let (Some(first), Some(tick)) = (self.first.clone(), self.tick) else { return };
        if self.free.is_empty() {
            return;
        }
        let (stop, stopped) = channel();
        let free: Vec<u32> = self.free.iter().collect();
        let live = move || {
            // A reading on a measured CPU would be what it looks for.
            match hourglass_sys::thread::set_affinity(free) {
                Ok(()) => read_until(first, tick, &stopped),
                Err(_) => QuietIntervals::default(),
            }
        };
        let named = Builder::new().name("hourglass-count".to_owned()).stack_size(STACK_BYTES);
        self.reader = named.spawn(live).ok().map(|thread| (stop, thread));
    }

    pub(crate) fn end(&mut self) {
        if let Some((stop, thread)) = self.reader.take() {
            drop(stop);
            self.quiet = thread.join().unwrap_or_default();
        }
        self.last = Reading::now();
    }

    /// What was counted; moments count from `begun_ns` of `CLOCK_MONOTONIC`.
    pub(crate) fn finish(self, begun_ns: u64) -> Vec<CpuInterrupts> {
        let (Some(first), Some(last)) = (&self.first, &self.last) else { return Vec::new() };
        let run_ns = |at: u64| i64::try_from(i128::from(at) - i128::from(begun_ns)).unwrap_or(0);
        let of_cpu = |cpu: u32| {
            let CpuInterruptCounts { timer, others, softirqs } = between(first, last, cpu)?;
            let quiet = self.quiet.stretches.get(&cpu).into_iter().flatten();
            let quiet = quiet.map(|(from, to)| (run_ns(*from), run_ns(*to))).collect();
            Some(CpuInterrupts { cpu, timer, others, softirqs, quiet })
        };
        self.measured.iter().filter_map(of_cpu).collect()
    }
}

impl Drop for InterruptSession {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.reader.take() {
            drop(stop);
            // What it found does not matter any more.
            let _ = thread.join();
        }
    }
}

fn read_until(mut before: Reading, tick: HostTick, stopped: &Receiver<()>) -> QuietIntervals {
    let mut quiet = QuietIntervals::default();
    loop {
        let reading_ns = before.to_ns.saturating_sub(before.from_ns);
        let rest = rest_ns(before.to_ns, tick, reading_ns.saturating_mul(READING_ONE_IN));
        if stopped.recv_timeout(Duration::from_nanos(rest)) != Err(RecvTimeoutError::Timeout) {
            return quiet;
        }
        let Some(reading) = Reading::now() else { return quiet };
        quiet.push(tick, &before, &reading);
        before = reading;
    }
}

/// How long to wait at `now_ns` until the middle between two ticks, some ticks on and at least `least_ns`.
fn rest_ns(now_ns: u64, tick: HostTick, least_ns: u64) -> u64 {
    let period = tick.period_ns.max(1);
    let least_ns = least_ns.max(period.saturating_mul(EVERY_TICKS));
    let middle = tick.phase_ns.unwrap_or(0).saturating_add(period / 2) % period;
    let into = now_ns.saturating_add(least_ns) % period;
    least_ns.saturating_add((middle + period - into) % period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "            CPU0       CPU2\n  31:   1   4903  PCI-MSIX 3-edge  virtio0\n \
                         NMI:   0   0   Non-maskable interrupts\n LOC:  90  70  Local timer interrupts\n \
                         RES:  7  16  Rescheduling interrupts\n ERR:   5\n MIS:  0\n";
    const SOFT: &str = "  CPU0  CPU2\n  HI: 0 1\n TIMER: 5 6\n NET_RX: 10 20\n RCU: 9 9\n";

    #[test]
    fn counts_are_read_by_cpu() {
        let all = counts(TABLE, SOFT).unwrap();
        assert_eq!(all[&0], CpuInterruptCounts { timer: 90, others: 8, softirqs: 10 });
        assert_eq!(all[&2], CpuInterruptCounts { timer: 70, others: 4_919, softirqs: 21 });
        for nonsense in ["", "x y\n", "CPU0 CPUx\n 1: 2 3\n"] {
            assert_eq!(counts(nonsense, SOFT), None, "{nonsense}");
        }
    }

    fn reading(at: u64, timer: u64, others: u64) -> Reading {
        let counts = CpuInterruptCounts { timer, others, softirqs: 0 };
        Reading { from_ns: at, to_ns: at + 50_000, cpus: [(1, counts)].into() }
    }

    /// Four timer interrupts in 16 ms are ticks; a fifth, or any other interrupt, is not.
    #[test]
    fn stretches_with_ticks_alone_are_quiet() {
        let ms = |ms: u64| ms * 1_000_000;
        let readings = [
            reading(ms(2), 10, 5),
            reading(ms(18), 14, 5),
            reading(ms(34), 17, 5),
            reading(ms(50), 21, 6),
            reading(ms(70), 26, 6),
            reading(ms(86), 31, 6),
        ];
        let mut quiet = QuietIntervals::default();
        let tick = HostTick { period_ns: 4_000_000, phase_ns: Some(0), skew_ns: 0 };
        readings.windows(2).for_each(|pair| quiet.push(tick, &pair[0], &pair[1]));
        let expected = [(ms(2) + 50_000, ms(34)), (ms(50) + 50_000, ms(70))];
        assert_eq!(quiet.stretches[&1], expected);
    }

    #[test]
    fn readings_lie_between_ticks() {
        let tick = HostTick { period_ns: 4_000_000, phase_ns: Some(1_000_000), skew_ns: 0 };
        for now in [0, 999_999, 1_000_000, 3_000_000, 12_345_678] {
            let rest = rest_ns(now, tick, 0);
            assert_eq!((now + rest) % 4_000_000, 3_000_000);
            assert!((16_000_000..20_000_000).contains(&rest), "{rest}");
        }
        assert!(rest_ns(0, tick, 100_000_000) >= 100_000_000);
    }

    /// On this machine, if it tells.
    #[test]
    fn a_session_counts() {
        if Reading::now().is_none() {
            return;
        }
        let cpus: CpuSet = [0].into_iter().collect();
        let mut session = InterruptSession::new(cpus.clone(), &cpus, None);
        session.begin();
        std::thread::sleep(Duration::from_millis(30));
        session.end();
        let found = session.finish(0);
        assert!(found.len() <= 1 && found.iter().all(|of| of.cpu == 0 && of.quiet.is_empty()));
    }
}
