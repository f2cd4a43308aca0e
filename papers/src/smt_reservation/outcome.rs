//! What came of periodic work beside others: measured, emulated or simulated alike.
//!
//! Owns: completion times, misses, throughput of the others. Must not: know how they were found.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FinishedJob {
    /// The period in which it was released, from 0.
    pub(super) period: u64,
    /// From release to completion, ns.
    pub(super) response_ns: u64,
    /// What it needed by itself, ns: what the kernel charged it for, interrupts included. 0 where that is not known.
    pub(super) own_ns: u64,
    /// What it reported beyond what it had done: the rest needed more than its share of what is reserved, ns.
    pub(super) ahead_ns: u64,
    /// Time in it that a host below this kernel took, as far as that is proven, ns.
    pub(super) taken_ns: u64,
    pub(super) preempted: bool,
    /// How long it waited for the CPU while other threads had it, ns.
    pub(super) waited_ns: u64,
    /// From release to its first instruction, ns.
    pub(super) begun_ns: u64,
    /// The longest that it was kept from a few microseconds' work, ns.
    pub(super) longest_ns: u64,
    /// From when others were last felt to completion, ns, where contention is emulated.
    pub(super) alone_ns: u64,
    /// What was left to do then, ns of a CPU that is not shared.
    pub(super) left_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LateReason {
    /// Others kept it from what was reserved.
    Missed,
    /// It needed more than was reserved, or than its progress said: interrupts are charged to it, and are not its work.
    Overran,
    Host,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProcessOutcome {
    /// The deadline, which is the period, ns.
    pub(super) deadline_ns: u64,
    /// What is reserved, ns, where it is known what jobs need by themselves: a job that needs more has
    /// been promised nothing.
    pub(super) reserve_ns: Option<u64>,
    pub(super) periods: u64,
    pub(super) done: Vec<FinishedJob>,
    /// What the others did, ns of a CPU that is not shared.
    pub(super) best_effort_ns: f64,
    pub(super) stops: u64,
    pub(super) checks: u64,
    /// The latest look after its time, ns.
    pub(super) latest_look_ns: u64,
    pub(super) monitor_ns: u64,
    pub(super) margin_ns: u64,
}

impl std::fmt::Display for LateReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LateReason::Missed => "missed",
            LateReason::Overran => "late by itself",
            LateReason::Host => "late by the host",
        })
    }
}

impl ProcessOutcome {
    fn excess_ns(&self, done: &FinishedJob) -> u64 {
        let need_ns = done.own_ns.saturating_add(done.ahead_ns);
        self.reserve_ns.map_or(0, |reserve| need_ns.saturating_sub(reserve))
    }

    fn in_time_without(&self, ns: u64, done: &FinishedJob) -> bool {
        done.response_ns.saturating_sub(ns) <= self.deadline_ns
    }

    fn lateness(&self, done: &FinishedJob) -> Option<LateReason> {
        if done.response_ns <= self.deadline_ns {
            None
        } else if self.in_time_without(done.taken_ns, done) {
            Some(LateReason::Host)
        } else if self.in_time_without(self.excess_ns(done).saturating_add(done.taken_ns), done) {
            Some(LateReason::Overran)
        } else {
            Some(LateReason::Missed)
        }
    }

    /// Periods whose job was late so, and periods that had none because the one before was.
    fn late(&self, so: LateReason) -> u64 {
        self.late_so(so)
            .map(|done| 1 + done.response_ns.checked_div(self.deadline_ns).unwrap_or(0))
            .sum()
    }

    /// Periods missed: their jobs needed no more than was reserved, and no host below the kernel made them late.
    pub(super) fn missed(&self) -> u64 {
        self.late(LateReason::Missed)
    }

    /// Periods late because the job was charged with more than was reserved, or needed more than it reported, with what
    /// a host took.
    pub(super) fn overran(&self) -> u64 {
        self.late(LateReason::Overran)
    }

    /// Periods late only by what was taken from below the kernel.
    pub(super) fn excused(&self) -> u64 {
        self.late(LateReason::Host)
    }

    /// Late jobs during which a thread of a higher priority took the CPU.
    pub(super) fn preempted(&self) -> u64 {
        let late =
            |done: &&FinishedJob| self.lateness(done) == Some(LateReason::Missed) && done.preempted;
        self.done.iter().filter(late).count() as u64
    }

    pub(super) fn late_so(&self, so: LateReason) -> impl Iterator<Item = &FinishedJob> {
        self.done.iter().filter(move |done| self.lateness(done) == Some(so))
    }

    pub(super) fn late_words(&self) -> Vec<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let words = |done: &FinishedJob| {
            let late = self.lateness(done)?;
            let FinishedJob { period, response_ns, own_ns, taken_ns, waited_ns, .. } = *done;
            Some(format!(
                "period {period}, {late}: done after {:.3} ms of {:.3}; begun after {:.3}; {:.3} charged to it, {:.3} taken by a \
                 host, {:.3} by other threads, {:.3} the longest of these; the last {:.3} beside nobody, for {:.3} of work",
                ms(response_ns),
                ms(self.deadline_ns),
                ms(done.begun_ns),
                ms(own_ns),
                ms(taken_ns),
                ms(waited_ns),
                ms(done.longest_ns),
                ms(done.alone_ns),
                ms(done.left_ns)
            ))
        };
        self.done.iter().filter_map(words).collect()
    }

    pub(super) fn missed_percent(&self) -> f64 {
        self.missed().min(self.periods) as f64 * 100.0 / self.periods.max(1) as f64
    }

    /// The latest completion, ns after the release.
    pub(super) fn latest_ns(&self) -> Option<u64> {
        self.done.iter().map(|done| done.response_ns).max()
    }

    /// The middle of the completions, ns after the release.
    pub(super) fn median_ns(&self) -> Option<u64> {
        let mut all: Vec<u64> = self.done.iter().map(|done| done.response_ns).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// What the others did of a CPU's time.
    pub(super) fn best_effort(&self) -> f64 {
        let time = self.periods as f64 * self.deadline_ns as f64;
        if time > 0.0 { self.best_effort_ns / time } else { 0.0 }
    }

    pub(super) fn append(&mut self, more: ProcessOutcome) {
        let before = self.periods;
        self.deadline_ns = more.deadline_ns;
        self.reserve_ns = more.reserve_ns;
        self.periods += more.periods;
        self.done
            .extend(more.done.into_iter().map(|d| FinishedJob { period: d.period + before, ..d }));
        self.best_effort_ns += more.best_effort_ns;
        self.stops += more.stops;
        self.checks += more.checks;
        self.latest_look_ns = self.latest_look_ns.max(more.latest_look_ns);
        self.monitor_ns += more.monitor_ns;
        self.margin_ns = self.margin_ns.max(more.margin_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first period has a job in time, the second one that is late and takes the third, the fourth
    /// one that is late because of the host and takes the fifth.
    #[test]
    fn late_lost_and_excused() {
        let done = |period, response_ns, taken_ns| FinishedJob {
            period,
            response_ns,
            own_ns: 40 + response_ns / 10,
            taken_ns,
            preempted: response_ns > 70,
            ..FinishedJob::default()
        };
        let first = ProcessOutcome {
            deadline_ns: 70,
            periods: 3,
            done: vec![done(0, 70, 0), done(1, 90, 19)],
            best_effort_ns: 105.0,
            ..ProcessOutcome::default()
        };
        let mut all = first.clone();
        all.append(ProcessOutcome {
            periods: 2,
            done: vec![done(0, 75, 5)],
            best_effort_ns: 0.0,
            ..first
        });
        assert_eq!((all.missed(), all.excused(), all.preempted()), (2, 2, 1));
        assert!((all.missed_percent() - 40.0).abs() < 1e-9);
        assert_eq!((all.latest_ns(), all.median_ns()), (Some(90), Some(75)));
        assert_eq!(all.done[2].period, 3);
        assert!((all.best_effort() - 0.3).abs() < 1e-9);
        // The late jobs needed 49 and 47 by themselves, and were late by 20 and 5, of which a host took 19 and 5.
        all.reserve_ns = Some(49);
        assert_eq!((all.missed(), all.overran(), all.excused()), (2, 0, 2));
        all.reserve_ns = Some(48);
        assert_eq!((all.missed(), all.overran(), all.excused()), (0, 2, 2));
        // What was reported beyond what was done counts as needed; the rest was the host's.
        all.reserve_ns = Some(53);
        all.done[1].ahead_ns = 5;
        assert_eq!((all.missed(), all.overran()), (0, 2));
        all.done[1].taken_ns = 0;
        assert_eq!((all.missed(), all.overran()), (2, 0));
    }
}
