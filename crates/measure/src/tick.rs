//! Where the kernel's tick lies on `CLOCK_MONOTONIC`.
//!
//! Owns: its period, its phase, and how these are known. Must not: say which gap is a tick.
//!
//! Linux 6.4 and later begin the tick at multiples of its length on the kernel's `CLOCK_MONOTONIC` (commit 13bb06f8dd42,
//! "tick/common: Align tick period during sched_timer setup"), from which a time namespace's differs. Elsewhere the phase is measured:
//! `CLOCK_MONOTONIC_COARSE` moves when a tick came. With `skew_tick=1` each CPU is later than the one
//! before it by half a tick's length, divided by the number of CPUs (`kernel/time/tick-sched.c`).

use hourglass_documents::host::{Host, HostTick};
use hourglass_sys::clock::{ClockId, now_ns, resolution_ns};

use crate::time_namespace::Offset;

/// A tick is noticed within this by the coarse clock, ns: measured, 27 to 150 us in a virtual machine.
const NOTICED_NS: u64 = 150_000;

/// Moves of the coarse clock that are waited for.
const MOVES: usize = 5;

/// Ticks that are waited through at most, since an idle kernel leaves some out.
const PATIENCE: u64 = 12;

/// The tick of this machine; `None` where the coarse clock does not tell its length.
pub(crate) fn from_host(host: &Host) -> Option<HostTick> {
    let period_ns = resolution_ns(ClockId::MonotonicCoarse).ok().filter(|ns| *ns >= 100_000)?;
    let skew_ns = skew_ns(host, period_ns)?;
    let offset = Offset::of_this_process();
    let aligned_ns = offset.map(|offset| offset.phase_ns(period_ns));
    if is_aligned(&host.kernel) {
        return Some(HostTick { period_ns, phase_ns: aligned_ns, skew_ns });
    }
    let moves = moves(period_ns).into_iter().filter_map(|at| Some(offset?.kernel_ns(at)));
    let phase_ns = phase_ns(&moves.collect::<Vec<_>>(), period_ns, skew_ns)
        .and_then(|phase| Some((phase + aligned_ns?) % period_ns));
    Some(HostTick { period_ns, phase_ns, skew_ns })
}

/// By how much the tick of each CPU is later than that of the one before it.
fn skew_ns(host: &Host, period_ns: u64) -> Option<u64> {
    let asked = |option: &String| option.strip_prefix("skew_tick=").is_some_and(|on| on != "0");
    if !host.boot_options.iter().any(asked) {
        return Some(0);
    }
    let cpus = host.cpu.possible.as_ref().map(|cpus| cpus.len() as u64)?;
    (period_ns / 2).checked_div(cpus)
}

/// Whether this release begins ticks at multiples of their length.
fn is_aligned(release: &str) -> bool {
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (major, minor) >= (6, 4)
}

/// Moments at which the coarse clock had just moved, ns of `CLOCK_MONOTONIC`.
fn moves(period_ns: u64) -> Vec<u64> {
    let coarse = || now_ns(ClockId::MonotonicCoarse);
    let until = now_ns(ClockId::Monotonic).saturating_add(period_ns.saturating_mul(PATIENCE));
    let (mut seen, mut last) = (Vec::new(), coarse());
    while seen.len() < MOVES {
        let now = now_ns(ClockId::Monotonic);
        if now > until {
            break;
        }
        let at = coarse();
        if at != last {
            seen.push(now);
            last = at;
        }
    }
    seen
}

/// The phase on which most moves lie, each of them up to [`NOTICED_NS`] behind it. Any CPU may have noticed
/// them, so where that is one of an aligned tick, the tick is aligned.
fn phase_ns(moves: &[u64], period_ns: u64, skew_ns: u64) -> Option<u64> {
    let behind = |of: u64, phase: u64| (of % period_ns + period_ns - phase) % period_ns;
    let on = |phase: u64| moves.iter().filter(|at| behind(**at, phase) <= NOTICED_NS).count();
    let steps = (period_ns / 2).checked_div(skew_ns).unwrap_or(1);
    let aligned = (0..steps).map(|cpu| cpu * skew_ns).any(|phase| on(phase) * 2 > moves.len());
    if aligned {
        return Some(0);
    }
    let first = moves.iter().map(|at| at % period_ns).max_by_key(|phase| on(*phase))?;
    // With a skew, whose tick it was is not known.
    (skew_ns == 0 && on(first) >= 2 && on(first) * 2 > moves.len()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn releases_that_align_are_known() {
        for (release, aligned) in
            [("6.18.44-fc", true), ("6.4.0", true), ("6.3.9", false), ("5.10", false), ("x", false)]
        {
            assert_eq!(is_aligned(release), aligned, "{release}");
        }
    }

    /// As measured: moves are seen 27 to 124 us behind the tick, and one CPU's long gap hides one.
    #[test]
    fn the_phase_is_where_most_moves_are() {
        let of = |phase: u64, late: [u64; 5]| -> Vec<u64> {
            (0..).zip(late).map(|(tick, late)| tick * 4 * MS + phase + late).collect()
        };
        let late = [51_802, 43_728, 123_428, 2_095_512, 27_236];
        assert_eq!(phase_ns(&of(0, late), 4 * MS, 0), Some(0));
        assert_eq!(phase_ns(&of(500_000, late), 4 * MS, 0), Some(527_236));
        assert_eq!(phase_ns(&of(500_000, late), 4 * MS, 500_000), Some(0), "CPU 1 of 4, skewed");
        assert_eq!(phase_ns(&of(700_000, late), 4 * MS, 500_000), None);
        let scattered = [1, 700_001, 1_500_000, 2_300_000, 3_100_000];
        assert_eq!(phase_ns(&of(900_000, scattered), 4 * MS, 0), None);
        assert_eq!(phase_ns(&[], 4 * MS, 0), None);
    }
}
