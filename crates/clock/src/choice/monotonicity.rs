//! Whether time goes forward for all CPUs together.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread::set_affinity;
use hourglass_time::Span;

use crate::source::ClockSource;

/// The result of a test of monotonicity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Monotonicity {
    /// CPUs that took part.
    pub cpus: u32,
    /// Reads compared.
    pub reads: u64,
    /// Reads that were before one that had been handed over earlier.
    pub violations: u64,
    /// The worst of them, ticks.
    pub worst_ticks: u64,
}

/// The highest count handed over so far, alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct MaxCount(AtomicU64);

/// Reads on all `cpus` at once for `length`, in threads of its own. Each read is compared with the
/// highest count that any CPU had published before it began, so that a smaller one is a step back
/// that a program could see. CPUs that are not allowed are left out; those that real-time threads of
/// others keep busy are waited for.
#[must_use]
pub fn check(source: &dyn ClockSource, cpus: &[u32], length: Span) -> Monotonicity {
    let highest = MaxCount(AtomicU64::new(source.read_ordered()));
    let (placed, go) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let run = |cpu: u32| {
            let (highest, placed, go) = (&highest, &placed, &go);
            let thread = std::thread::Builder::new().name(format!("monotonicity-{cpu}"));
            let body = move || {
                let allowed = set_affinity([cpu]).is_ok();
                placed.fetch_add(1, Ordering::AcqRel);
                while allowed && !go.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                allowed.then(|| compare(source, &highest.0, length))
            };
            thread.spawn_scoped(scope, body).ok()
        };
        let threads: Vec<_> = cpus.iter().filter_map(|cpu| run(*cpu)).collect();
        while (placed.load(Ordering::Acquire) as usize) < threads.len() {
            std::thread::yield_now();
        }
        go.store(true, Ordering::Release);
        let seen = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
        seen.fold(Monotonicity::default(), Monotonicity::and)
    })
}

impl Monotonicity {
    fn and(self, other: Monotonicity) -> Monotonicity {
        Monotonicity {
            cpus: self.cpus + other.cpus,
            reads: self.reads + other.reads,
            violations: self.violations + other.violations,
            worst_ticks: self.worst_ticks.max(other.worst_ticks),
        }
    }
}

fn compare(source: &dyn ClockSource, highest: &AtomicU64, length: Span) -> Monotonicity {
    const READS_BETWEEN_LOOKS: u64 = 64;
    let facts = source.facts();
    let mut seen = Monotonicity { cpus: 1, ..Monotonicity::default() };
    let end = now_ns(ClockId::Monotonic).saturating_add(length.nanos_or_zero());
    loop {
        for _ in 0..READS_BETWEEN_LOOKS {
            let before = highest.load(Ordering::Acquire);
            let count = source.read_ordered();
            let passed = facts.ticks_between(before, count);
            if passed < 0 {
                seen.violations += 1;
                seen.worst_ticks = seen.worst_ticks.max(passed.unsigned_abs());
            } else {
                // Threads do not wait here: a value that another CPU has overtaken is not published.
                let _ =
                    highest.compare_exchange(before, count, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        seen.reads += READS_BETWEEN_LOOKS;
        if now_ns(ClockId::Monotonic) >= end {
            return seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sim::SimConfig;
    use crate::source::{SimSource, SourceName, probe};

    #[test]
    fn the_monotonic_clock_is_monotonic_on_all_cpus() {
        let source = probe(SourceName::MONOTONIC).unwrap();
        let cpus = hourglass_sys::thread::affinity().unwrap();
        let seen = check(source.as_ref(), &cpus, Span::from_millis(2));
        assert_eq!((seen.cpus as usize, seen.violations), (cpus.len(), 0), "{seen:?}");
        assert!(seen.reads >= 64);
    }

    /// The simulated clock jumps back by 1 us at a read somewhere inside.
    #[test]
    fn a_step_back_is_seen_with_its_size() {
        use crate::source::sim::{Fault, FaultKind};
        let config = SimConfig {
            read_cost: Span::from_nanos(1),
            faults: vec![Fault {
                at: Span::from_nanos(50),
                kind: FaultKind::Step(Span::from_micros(-1)),
            }],
            start_ticks: 1_000_000,
            ..SimConfig::default()
        };
        let seen = compare(&SimSource::new(config), &AtomicU64::new(0), Span::ZERO);
        // Reads 50 to 64 are behind read 49.
        assert_eq!((seen.violations, seen.worst_ticks), (15, 999));
    }

    #[test]
    fn without_cpus_nothing_is_seen() {
        let source = probe(SourceName::MONOTONIC).unwrap();
        assert_eq!(check(source.as_ref(), &[], Span::ZERO), Monotonicity::default());
        assert_eq!(check(source.as_ref(), &[1_023], Span::ZERO).cpus, 0);
    }
}
