//! What the kernel counted for the calling thread up to a moment, and what two moments tell of the time between.

use std::fs::File;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::perf::{SwitchSums, SwitchTimes};
use hourglass_sys::thread::{Counters, SchedStatFile};

use crate::machine::HostFacts;
use crate::quotas::{Quotas, read};
use crate::stolen::{STOLEN_FROM_NS, Stolen};

/// By how much the kernel's accounts and its switches may be apart at each switch, ns: it takes the time when it
/// begins to choose the next thread, and switches when it has chosen.
const SWITCH_NS: u64 = 50_000;
/// By how much the kernel's records of a switch may be closer together than leaving and getting the CPU, ns. They may
/// be further apart by [`SWITCH_NS`]: the second is made when the thread is back, and a host may take time before it
/// (31 us were the most in 9,951 spans of `hourglass-bench witness --only truth`, KVM).
const RECORD_NS: u64 = 10_000;
/// Kernels that count interrupts or stolen time apart leave them out of a thread's time: no more than one part in
/// `HIDDEN_PARTS` of it.
const HIDDEN_PARTS: u64 = 16;

/// The time that a host steals from a thread is at most this multiple of the time that the thread receives.
const STOLEN_TIMES: u64 = 2;

/// Marks in the sums that former quotas of the thread were counted, ns: no quota stops a group for two years.
pub(crate) const OTHER_QUOTAS_NS: u64 = 1 << 56;

/// Unit of the stolen time, which the sums hold in the bits above the major faults, ns.
const STOLEN_UNIT_NS: u64 = 1_000;
const ABOVE_FAULTS: u32 = 32;

/// What the machine below the kernel may do to its accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HypervisorEffects {
    /// How long a CPU may take to hear that another thread is to have it, ns.
    pub(crate) preempt_delay_ns: u64,
    /// How long one that sleeps may take to wake up for it, ns.
    pub(crate) woken_ns: u64,
    /// How much of a thread's own time a host may take between two samples at most, ns: kernels leave it out.
    pub(crate) stolen_ns: u64,
}

/// The files that are asked, open for as long as the thread.
#[derive(Debug)]
pub(crate) struct Files {
    schedstat: Option<SchedStatFile>,
    /// `/proc/stat`, where a host may steal.
    stat: Option<File>,
    pub(crate) quotas: Quotas,
    /// Where it is wanted ([`crate::Witness::record_switches`]).
    pub(crate) times: Option<SwitchTimes>,
}

/// The counts at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterSample {
    pub(crate) counters: Counters,
    /// Runnable, waiting for a CPU, ns.
    waited_ns: Option<u64>,
    /// Stopped by quotas, ns.
    pub(crate) throttled_ns: Option<u64>,
    /// Of a reading that may be older.
    stolen: Option<Stolen>,
    recorded: Option<SwitchSums>,
    /// `CLOCK_MONOTONIC` before and behind the reading of the thread's clock.
    pub(crate) before_ns: u64,
    after_ns: u64,
    cpu_ns: u64,
}

/// Sums since a thread's witness began. Differences wrap: a span that came from another thread has what it
/// brought taken off in advance.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    /// Page faults; and switches whose times are known, see [`Totals::are_timed`].
    pub(crate) faults: u64,
    /// Those of them for which the thread may have waited; and what the host stole, see [`Totals::stolen_ns`].
    pub(crate) major_faults: u64,
    /// Off the CPU at least and at most, ns.
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) waited_ns: u64,
    /// And [`OTHER_QUOTAS_NS`] for each time that other quotas were found to be the thread's.
    pub(crate) throttled_ns: u64,
}

impl Files {
    pub(crate) fn open() -> Files {
        let may_steal = HostFacts::here().hypervisor.stolen_ns > 0;
        Files {
            schedstat: SchedStatFile::open().ok(),
            stat: if may_steal { File::open("/proc/stat").ok() } else { None },
            quotas: Quotas::open(),
            times: None,
        }
    }

    fn waited_ns(&self) -> Option<u64> {
        self.schedstat.as_ref()?.read().map(|stat| stat.wait_ns)
    }

    fn stolen(&self, cpu: u32) -> Option<Stolen> {
        read(self.stat.as_ref()?, |text| Stolen::read(text, cpu))?
    }
}

impl CounterSample {
    /// Asks the kernel for what belongs to `counters`: two system calls, and one for each quota.
    pub(crate) fn take(counters: Counters, files: Option<&Files>) -> CounterSample {
        let before_ns = now_ns(ClockId::Monotonic);
        let cpu_ns = now_ns(ClockId::ThreadCpu);
        let after_ns = now_ns(ClockId::Monotonic);
        CounterSample {
            counters,
            waited_ns: files.and_then(Files::waited_ns),
            throttled_ns: files.and_then(|files| files.quotas.throttled_ns()),
            stolen: None,
            recorded: files.and_then(|files| files.times.as_ref()?.sums()),
            before_ns,
            after_ns,
            cpu_ns,
        }
    }

    /// A sample during which the thread was switched: all but its counters may be later values, and the time that the
    /// thread received is not known.
    pub(crate) fn torn(self) -> CounterSample {
        CounterSample { waited_ns: None, before_ns: 0, ..self }
    }

    /// With what the host stole up to now: asked where the thread was away for long, as it was at `last` otherwise.
    pub(crate) fn with_stolen(
        self,
        last: &CounterSample,
        cpu: u32,
        files: Option<&Files>,
    ) -> CounterSample {
        let passed = self.after_ns.saturating_sub(last.before_ns);
        let away = passed.saturating_sub(self.cpu_ns.saturating_sub(last.cpu_ns));
        let asked = files.filter(|_| away >= STOLEN_FROM_NS).and_then(|files| files.stolen(cpu));
        CounterSample { stolen: asked.or(last.stolen), ..self }
    }

    /// With what it stole up to `later`.
    pub(crate) fn with_stolen_of(self, later: &CounterSample) -> CounterSample {
        CounterSample { stolen: later.stolen, ..self }
    }

    /// What happened from `last` to this one.
    pub(crate) fn since(&self, last: &CounterSample, below: HypervisorEffects) -> Totals {
        let (now, then) = (self.counters, last.counters);
        let voluntary = now.voluntary.saturating_sub(then.voluntary);
        let involuntary = now.involuntary.saturating_sub(then.involuntary);
        let minor_faults = now.minor_faults.saturating_sub(then.minor_faults);
        let major_faults = now.major_faults.saturating_sub(then.major_faults);
        let up = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let waited = up(self.waited_ns, last.waited_ns);
        let stolen_ns = self.stolen.zip(last.stolen).map_or(0, |(now, then)| now.since(then));
        let switches = (voluntary, involuntary);
        let timed_ns = self.timed_since(last, voluntary.saturating_add(involuntary));
        let (least_ns, most_ns) = match timed_ns {
            Some(ends) => ends,
            None => self.off_cpu_since(last, waited, switches, stolen_ns, below),
        };
        let timed = if timed_ns.is_some() { voluntary.saturating_add(involuntary) } else { 0 };
        Totals {
            voluntary,
            involuntary,
            faults: minor_faults.saturating_add(major_faults).wrapping_add(timed << ABOVE_FAULTS),
            major_faults: major_faults.wrapping_add((stolen_ns / STOLEN_UNIT_NS) << ABOVE_FAULTS),
            min_ns: least_ns,
            max_ns: most_ns,
            waited_ns: waited.unwrap_or(0),
            throttled_ns: up(self.throttled_ns, last.throttled_ns).unwrap_or(0),
        }
    }

    /// Bounds by the times of the switches, if each counted switch was recorded.
    fn timed_since(&self, last: &CounterSample, counted: u64) -> Option<(u64, u64)> {
        let (now, then) = self.recorded.zip(last.recorded)?;
        let switches = now.switches.wrapping_sub(then.switches);
        let (more, less) = (SWITCH_NS.checked_mul(switches)?, RECORD_NS.checked_mul(switches)?);
        let off_ns = now.off_cpu_ns.wrapping_sub(then.off_cpu_ns);
        let whole = now.breaks == then.breaks && switches == counted;
        whole.then(|| (off_ns.saturating_sub(more), off_ns.saturating_add(less)))
    }

    /// For how long the thread was off the CPU between the two, at least and at most, ns.
    ///
    /// The time that it did not receive bounds it from above. From below it is what it waited for a CPU, as the
    /// kernel counts it; a wait of its own, which the kernel does not count, is the rest less what may be hidden, and
    /// less what the kernel counted as stolen by the host: of a thread that has the CPU it looks like a wait.
    ///
    /// The kernel's accounts begin when another thread becomes ready, not when that one gets the CPU: a thread goes
    /// on until its CPU hears of it. So they count too much as waited, and one that waited itself is charged for
    /// time before it ran.
    fn off_cpu_since(
        &self,
        last: &CounterSample,
        waited_ns: Option<u64>,
        (voluntary, involuntary): (u64, u64),
        stolen_ns: u64,
        below: HypervisorEffects,
    ) -> (u64, u64) {
        let switches = voluntary.saturating_add(involuntary);
        if switches == 0 {
            return (0, 0);
        }
        let received = self.cpu_ns.saturating_sub(last.cpu_ns);
        let apart = |from: u64, to: u64| to.saturating_sub(from).saturating_sub(received);
        let stolen = received.saturating_mul(STOLEN_TIMES).min(below.stolen_ns);
        let hidden = (received / HIDDEN_PARTS).saturating_add(stolen.max(stolen_ns));
        let least = apart(last.after_ns, self.before_ns).saturating_sub(hidden);
        let most = apart(last.before_ns, self.after_ns);
        let error = SWITCH_NS.saturating_add(below.preempt_delay_ns).saturating_mul(switches);
        let woken = below.woken_ns.saturating_mul(voluntary);
        let (least, most) = match waited_ns {
            Some(waited) if voluntary == 0 => (waited, most.min(waited)),
            Some(waited) => (least.max(waited), most),
            None => (least, most),
        };
        (least.saturating_sub(error), most.saturating_add(error).saturating_add(woken))
    }
}

impl Totals {
    /// With what happened since.
    #[inline(always)]
    pub(crate) fn plus(self, more: Totals) -> Totals {
        self.each(more, u64::wrapping_add)
    }

    /// From `before` to these.
    #[inline(always)]
    pub(crate) fn minus(self, before: Totals) -> Totals {
        self.each(before, u64::wrapping_sub)
    }

    #[inline(always)]
    fn each(self, other: Totals, of: impl Fn(u64, u64) -> u64) -> Totals {
        Totals {
            voluntary: of(self.voluntary, other.voluntary),
            involuntary: of(self.involuntary, other.involuntary),
            faults: of(self.faults, other.faults),
            major_faults: of(self.major_faults, other.major_faults),
            min_ns: of(self.min_ns, other.min_ns),
            max_ns: of(self.max_ns, other.max_ns),
            waited_ns: of(self.waited_ns, other.waited_ns),
            throttled_ns: of(self.throttled_ns, other.throttled_ns),
        }
    }

    pub(crate) fn faults(&self) -> u64 {
        self.faults % (1 << ABOVE_FAULTS)
    }

    /// Whether the time off the CPU is from the times of all switches.
    pub(crate) fn are_timed(&self) -> bool {
        self.faults >> ABOVE_FAULTS == self.switches() % (1 << ABOVE_FAULTS)
    }

    pub(crate) fn major_faults(&self) -> u64 {
        self.major_faults % (1 << ABOVE_FAULTS)
    }

    /// Time that the host may have stolen; 0 below [`STOLEN_UNIT_NS`].
    pub(crate) fn stolen_ns(&self) -> u64 {
        (self.major_faults >> ABOVE_FAULTS).saturating_mul(STOLEN_UNIT_NS)
    }

    pub(crate) fn switches(&self) -> u64 {
        self.voluntary.saturating_add(self.involuntary)
    }

    /// For how long quotas stopped the thread's groups, and whether these were the same all the time, as far as was
    /// noticed.
    pub(crate) fn throttled(&self) -> (u64, bool) {
        (self.throttled_ns % OTHER_QUOTAS_NS, self.throttled_ns < OTHER_QUOTAS_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(
        wall_ns: u64,
        cpu_ns: u64,
        waited_ns: Option<u64>,
        switches: (u64, u64),
    ) -> CounterSample {
        let (voluntary, involuntary) = switches;
        let counters = Counters { voluntary, involuntary, ..Counters::default() };
        let (before_ns, after_ns) = (wall_ns, wall_ns + 100);
        CounterSample {
            counters,
            waited_ns,
            cpu_ns,
            before_ns,
            after_ns,
            ..CounterSample::default()
        }
    }

    /// By hand: 10 ms passed, 6 were received.
    #[test]
    fn off_cpu_is_between_its_bounds() {
        let last = sample(1_000_000, 500_000, Some(0), (0, 0));
        let off = |cpu_ns: u64, waited: Option<u64>, switches| {
            let totals = sample(11_000_000, 500_000 + cpu_ns, waited, switches)
                .since(&last, HypervisorEffects::default());
            (totals.min_ns, totals.max_ns)
        };
        assert_eq!(off(6_000_000, Some(0), (0, 0)), (0, 0), "no switch was counted");
        assert_eq!(off(6_000_000, Some(3_990_000), (0, 1)), (3_940_000, 4_040_000));
        assert_eq!(
            off(6_000_000, Some(1_000), (1, 0)),
            (3_999_900 - 375_000 - SWITCH_NS, 4_000_100 + SWITCH_NS)
        );
        assert_eq!(
            off(6_000_000, None, (0, 2)),
            (3_999_900 - 375_000 - 2 * SWITCH_NS, 4_000_100 + 2 * SWITCH_NS)
        );
        assert_eq!(off(11_000_000, Some(0), (1, 0)), (0, SWITCH_NS), "never negative");
        let late = |waited, switches| {
            let below = HypervisorEffects {
                preempt_delay_ns: 300_000,
                woken_ns: 400_000,
                stolen_ns: 1_000_000,
            };
            let totals = sample(11_000_000, 6_500_000, waited, switches).since(&last, below);
            (totals.min_ns, totals.max_ns)
        };
        assert_eq!(late(Some(3_990_000), (0, 1)), (3_640_000, 4_340_000));
        assert_eq!(late(Some(3_990_000), (1, 0)), (3_640_000, 4_750_100));
        assert_eq!(late(Some(0), (1, 0)), (3_999_900 - 375_000 - 1_350_000, 4_750_100));
    }

    /// The worst span that was found: 23.3 ms, of which the host stole all but 67 us. What it stole is no wait of the
    /// thread.
    #[test]
    fn what_the_host_stole_is_not_off_the_cpu_for_sure() {
        const MS: u64 = 1_000_000;
        let at = |wall_ns, steps: u64, voluntary| {
            let text = format!("cpu 1 2 3 4 5 6 7 {steps}\ncpu1 1 2 3 4 5 6 7 {steps}\nintr");
            let stolen = Stolen::read(&text, 1);
            CounterSample { stolen, ..sample(wall_ns, 0, Some(0), (voluntary, 0)) }
        };
        let of = |steps| {
            let totals =
                at(MS + 23_320_000, steps, 1).since(&at(MS, 40, 0), HypervisorEffects::default());
            assert_eq!(totals.major_faults(), 0);
            (totals.min_ns / MS, totals.max_ns / MS, totals.stolen_ns() / MS)
        };
        assert_eq!(of(40), (23, 23, 0));
        assert_eq!(of(42), (0, 23, 30));
    }

    #[test]
    fn the_ends_do_not_overflow() {
        let last = sample(u64::MAX - 200, u64::MAX, Some(u64::MAX), (u64::MAX, u64::MAX));
        let totals = sample(0, 0, Some(0), (0, 0)).since(&last, HypervisorEffects::default());
        assert_eq!((totals.min_ns, totals.switches()), (0, 0));
        let totals = sample(u64::MAX - 100, 0, None, (u64::MAX, u64::MAX))
            .since(&CounterSample::default(), HypervisorEffects::default());
        assert_eq!((totals.min_ns, totals.max_ns), (0, u64::MAX));
        assert_eq!(totals.plus(totals).minus(totals), totals);
    }
}
