//! What looks at a thread's counts add up to.

use std::collections::BTreeMap;

use hourglass_documents::watched::{WatchedInterval, WatchedSample, WatchedThread};
use hourglass_documents::{CpuSet, Policy};
use hourglass_machine::facts::{HostReader, ThreadCounts};
use hourglass_sys::sched::{self, Attributes};
use hourglass_time::Span;
use hourglass_trace::model::{Budget, CountReckoning, CountSample};

/// A thread since it was first seen.
#[derive(Debug)]
pub(super) struct ThreadTotals {
    pub(super) pid: u32,
    pub(super) tid: u32,
    since_ns: u64,
    first: ThreadCounts,
    last: ThreadCounts,
    last_ns: u64,
    ended: bool,
    /// The last look at which its times had moved since the look before.
    moved_ns: u64,
    worst: Option<WatchedInterval>,
    stopped_ns: u64,
    /// Of the deadline class, at the last look that found it.
    reservation: Option<ClassReservation>,
    settled_ns: Option<u64>,
    /// By who had its CPU: name, process, and the most that it can have had, ns.
    pub(super) others: BTreeMap<u32, (String, u64)>,
    /// What its counts say of its activations, where that is asked.
    pub(super) reckoning: Option<CountReckoning>,
}

impl ThreadTotals {
    /// A thread at first sight; one that was `born` meanwhile has counts from zero on.
    pub(super) fn new(
        pid: u32,
        tid: u32,
        at_ns: u64,
        counts: ThreadCounts,
        born: bool,
    ) -> ThreadTotals {
        let zero = ThreadCounts {
            times: Some(Default::default()),
            voluntary: Some(0),
            involuntary: Some(0),
            migrations: Some(0),
            minor_faults: Some(0),
            major_faults: Some(0),
            ..counts.clone()
        };
        ThreadTotals {
            pid,
            tid,
            since_ns: at_ns,
            first: if born { zero } else { counts.clone() },
            last: counts,
            last_ns: at_ns,
            ended: false,
            moved_ns: at_ns,
            worst: None,
            stopped_ns: 0,
            reservation: reservation_of(tid),
            settled_ns: None,
            others: BTreeMap::new(),
            reckoning: None,
        }
    }

    /// Looks at the thread, by a clock that counts from the first look of all.
    pub(super) fn sample(&mut self, reader: &HostReader, clock: impl Fn() -> u64) {
        if self.ended {
            return;
        }
        let at_ns = clock();
        match reader.thread(self.pid, self.tid) {
            Some(counts) if counts.begun == self.last.begun => {
                if let Some(reckoning) = &mut self.reckoning {
                    if counts.name != self.last.name {
                        reckoning.cut();
                    }
                    let again = reader.thread_times(self.pid, self.tid);
                    reckoning.take(CountSample {
                        from_ns: at_ns,
                        to_ns: clock(),
                        run_ns: counts.times.zip(again).map(|(one, two)| [one.run_ns, two.run_ns]),
                        voluntary: counts.voluntary,
                    });
                }
                self.ended = counts.has_ended();
                self.settle(&counts, at_ns);
                // The kernel has the last counts of one that has ended until its parent has asked.
                let state = if self.ended { self.last.state } else { counts.state };
                self.take(ThreadCounts { state, ..counts }, at_ns);
            }
            _ => self.ended = true,
        }
    }

    /// Notes a change of what its jobs rest on. One that has ended tells no budget any more.
    fn settle(&mut self, counts: &ThreadCounts, at_ns: u64) {
        let is_reserved = counts.policy == Some(Policy::Deadline);
        let reservation = reservation_of(self.tid).or(self.reservation).filter(|_| is_reserved);
        let policy = counts.policy.or(self.last.policy);
        // The CPUs of one that ends cannot be read any more.
        let cpus = if counts.cpus.is_empty() { &self.last.cpus } else { &counts.cpus };
        let is_other = policy != self.last.policy || *cpus != self.last.cpus;
        if !self.ended && (is_other || reservation != self.reservation) {
            self.settled_ns = Some(at_ns);
        }
        self.reservation = reservation;
    }

    fn take(&mut self, counts: ThreadCounts, at_ns: u64) {
        let same = counts.times == self.last.times;
        if same && counts.is_stopped() && self.last.is_stopped() {
            let passed_ns = at_ns.saturating_sub(self.last_ns);
            self.stopped_ns = self.stopped_ns.saturating_add(passed_ns);
        }
        // The kernel counts a wait when it is over, so that it may have begun before the last look.
        let wait_ns = grown(&self.last, &counts, |c| c.times.map(|times| times.wait_ns));
        if let Some(wait_ns) = wait_ns.filter(|wait_ns| *wait_ns > 0) {
            let from_ns = self.moved_ns.min(at_ns.saturating_sub(wait_ns));
            self.remember(WatchedInterval { from_ns, to_ns: at_ns, wait_ns });
        }
        let waits = same && counts.state == 'R' && self.last.state == 'R';
        if !waits {
            self.moved_ns = at_ns;
        }
        self.last = counts;
        self.last_ns = at_ns;
    }

    /// What it counted at the last look; `None` of a thread that has ended.
    pub(super) fn at_last_look(&self) -> Option<WatchedSample> {
        let counts = &self.last;
        (!self.ended).then(|| WatchedSample {
            ns: self.last_ns,
            tid: self.tid,
            state: counts.state,
            cpu: counts.cpu,
            run_ns: counts.times.map(|times| times.run_ns),
            wait_ns: counts.times.map(|times| times.wait_ns),
            voluntary_switches: counts.voluntary,
            involuntary_switches: counts.involuntary,
        })
    }

    fn remember(&mut self, interval: WatchedInterval) {
        if self.worst.is_none_or(|worst| worst.wait_ns < interval.wait_ns) {
            self.worst = Some(interval);
        }
    }

    pub(super) fn name(&self) -> &String {
        &self.last.name
    }

    pub(super) fn cpu(&self) -> Option<u32> {
        self.last.cpu
    }

    pub(super) fn reservation(&self) -> Option<Budget> {
        self.reservation.map(|own| own.budget)
    }

    /// The CPUs on which it could run at the last look.
    pub(super) fn cpus(&self) -> &CpuSet {
        &self.last.cpus
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn lacks_times(&self) -> bool {
        self.last.times.is_none() && self.last.voluntary.is_some_and(|count| count > 0)
    }

    /// A wait that goes on and is not counted yet: it could run at all looks since, and did not.
    fn pending(&self) -> Option<WatchedInterval> {
        let (from_ns, to_ns) = (self.moved_ns, self.last_ns);
        (to_ns > from_ns && !self.ended).then(|| WatchedInterval {
            from_ns,
            to_ns,
            wait_ns: to_ns - from_ns,
        })
    }

    pub(super) fn wait_ns(&self) -> Option<u64> {
        let counted = grown(&self.first, &self.last, |c| c.times.map(|times| times.wait_ns))?;
        Some(counted.saturating_add(self.pending().map_or(0, |interval| interval.wait_ns)))
    }

    /// Whether it has a nice value other than 0.
    pub(super) fn is_nice(&self) -> bool {
        matches!(self.last.policy, Some(Policy::Other(1.. | ..=-1)))
    }

    /// How long it has run so far; `None` of one that never did, too.
    pub(super) fn run_ns(&self) -> Option<u64> {
        grown(&self.first, &self.last, |c| c.times.map(|times| times.run_ns))
    }

    pub(super) fn report(&self) -> WatchedThread {
        let count = |of: fn(&ThreadCounts) -> Option<u64>| grown(&self.first, &self.last, of);
        let known = self.first.times.is_some();
        let intervals = self.worst.into_iter().chain(self.pending().filter(|_| known));
        WatchedThread {
            tid: self.tid,
            pid: self.pid,
            name: self.last.name.clone(),
            policy: self.last.policy.map(|policy| policy.to_string()),
            reservation: self.reservation.and_then(written),
            settled_ns: self.settled_ns,
            state: self.last.state.to_string(),
            ended: self.ended,
            since_ns: self.since_ns,
            cpu: self.last.cpu,
            run_ns: self.run_ns(),
            wait_ns: self.wait_ns(),
            worst_interval: intervals.max_by_key(|interval| interval.wait_ns),
            stopped_ns: Some(self.stopped_ns),
            voluntary_switches: count(|c| c.voluntary),
            involuntary_switches: count(|c| c.involuntary),
            migrations: count(|c| c.migrations),
            minor_faults: count(|c| c.minor_faults),
            major_faults: count(|c| c.major_faults),
            delays: None,
            ran: super::system_sampler::longest(&self.others),
        }
    }
}

/// What the deadline class gives a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassReservation {
    budget: Budget,
    deadline_ns: u64,
    /// `SCHED_FLAG_RECLAIM`: it may take what others leave.
    reclaims: bool,
}

/// That of a thread of the deadline class that is still there.
fn reservation_of(tid: u32) -> Option<ClassReservation> {
    let Ok(Some(Attributes::Deadline { runtime_ns, deadline_ns, period_ns, reclaim, .. })) =
        sched::read(tid)
    else {
        return None;
    };
    let period_ns = if period_ns == 0 { deadline_ns } else { period_ns };
    let budget = Budget { budget_ns: runtime_ns, period_ns };
    Some(ClassReservation { budget, deadline_ns, reclaims: reclaim })
}

/// As `5ms/20ms`, with a deadline before the period `5ms/20ms/10ms`, and with a `+` where it reclaims.
fn written(own: ClassReservation) -> Option<String> {
    let ClassReservation { budget: Budget { budget_ns, period_ns }, deadline_ns, reclaims } = own;
    let span = |ns: u64| i64::try_from(ns).ok().map(Span::from_nanos);
    let deadline = match deadline_ns < period_ns {
        true => format!("/{}", span(deadline_ns)?),
        false => String::new(),
    };
    let more = if reclaims { "+" } else { "" };
    Some(format!("{}/{}{deadline}{more}", span(budget_ns)?, span(period_ns)?))
}

/// By how much a count grew; `None` if one of them is unknown.
fn grown(
    first: &ThreadCounts,
    last: &ThreadCounts,
    of: impl Fn(&ThreadCounts) -> Option<u64>,
) -> Option<u64> {
    of(last)?.checked_sub(of(first)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_sys::thread::SchedStat;

    fn counts(state: char, run_ns: u64, wait_ns: u64) -> ThreadCounts {
        ThreadCounts {
            name: "audio".into(),
            state,
            times: Some(SchedStat { run_ns, wait_ns }),
            voluntary: Some(run_ns / 100),
            ..ThreadCounts::default()
        }
    }

    fn after(first: ThreadCounts, looks: &[(u64, ThreadCounts)]) -> ThreadTotals {
        let mut tally = ThreadTotals::new(7, 8, 0, first, false);
        looks.iter().for_each(|(at_ns, counts)| tally.take(counts.clone(), *at_ns));
        tally
    }

    #[test]
    fn counts_are_those_since_the_first_look() {
        let tally = after(
            counts('S', 5_000, 400),
            &[
                (100, counts('S', 6_000, 420)),
                (200, counts('R', 6_500, 490)),
                (300, counts('S', 6_600, 500)),
            ],
        );
        let report = tally.report();
        assert_eq!(
            (report.run_ns, report.wait_ns, report.voluntary_switches),
            (Some(1_600), Some(100), Some(16))
        );
        let worst = WatchedInterval { from_ns: 100, to_ns: 200, wait_ns: 70 };
        assert_eq!((report.worst_interval, report.migrations), (Some(worst), None));
    }

    /// Source: what a record says of its threads held to its end, and not before.
    #[test]
    fn another_policy_or_other_cpus_begin_anew() {
        let like = |policy, cpus: &str| ThreadCounts {
            policy: Some(policy),
            cpus: cpus.parse().unwrap(),
            ..counts('S', 5_000, 400)
        };
        let (other, fifo) = (Policy::Other(0), Policy::Fifo(40));
        let mut tally = after(like(other, "0-1"), &[]);
        let looks = [
            (100, like(other, "0-1"), None),
            (200, like(fifo, "0-1"), Some(200)),
            (300, like(fifo, "0-1"), Some(200)),
            (400, like(fifo, "1"), Some(400)),
        ];
        for (at_ns, counts, settled_ns) in looks {
            tally.settle(&counts, at_ns);
            tally.take(counts, at_ns);
            assert_eq!(tally.report().settled_ns, settled_ns, "{at_ns}");
        }
    }

    /// The kernel counts a wait at its end: a thread that never got a CPU had waited for nothing.
    #[test]
    fn a_wait_that_goes_on_counts() {
        let waiting = || counts('R', 50, 10);
        let mut tally = after(waiting(), &[(100, waiting()), (200, waiting())]);
        let so_far = WatchedInterval { from_ns: 0, to_ns: 200, wait_ns: 200 };
        assert_eq!((tally.wait_ns(), tally.report().worst_interval), (Some(200), Some(so_far)));
        // At its end the kernel counts it, and it counts once.
        tally.take(counts('S', 60, 260), 300);
        let whole = WatchedInterval { from_ns: 0, to_ns: 300, wait_ns: 250 };
        assert_eq!((tally.wait_ns(), tally.report().worst_interval), (Some(250), Some(whole)));
    }

    #[test]
    fn a_stop_is_time_between_looks_that_both_found_it() {
        let tally = after(
            counts('S', 50, 10),
            &[
                (100, counts('T', 51, 10)),
                (200, counts('T', 51, 10)),
                (300, counts('t', 51, 10)),
                (400, counts('T', 52, 10)),
            ],
        );
        assert_eq!((tally.report().stopped_ns, tally.wait_ns()), (Some(200), Some(0)));
    }

    #[test]
    fn a_thread_that_is_born_meanwhile_has_counts_from_zero() {
        let tally = ThreadTotals::new(7, 8, 500, counts('S', 900, 30), true);
        let report = tally.report();
        assert_eq!((report.since_ns, report.run_ns, report.wait_ns), (500, Some(900), Some(30)));
    }

    #[test]
    fn what_is_not_counted_stays_unknown() {
        let unknown = || ThreadCounts { times: None, ..counts('R', 300, 0) };
        let tally = after(unknown(), &[(100, unknown())]);
        let report = tally.report();
        assert_eq!((report.run_ns, report.wait_ns, report.worst_interval), (None, None, None));
        assert!(tally.lacks_times());
    }

    /// As `tasks` reads it.
    #[test]
    fn a_reservation_is_written_with_its_flag_and_deadline() {
        let budget = Budget { budget_ns: 2_000_000, period_ns: 20_000_000 };
        for (deadline_ns, reclaims, text) in [
            (20_000_000, false, "2ms/20ms"),
            (20_000_000, true, "2ms/20ms+"),
            (10_000_000, false, "2ms/20ms/10ms"),
            (10_000_000, true, "2ms/20ms/10ms+"),
        ] {
            let own = ClassReservation { budget, deadline_ns, reclaims };
            assert_eq!(written(own).as_deref(), Some(text));
        }
    }
}
