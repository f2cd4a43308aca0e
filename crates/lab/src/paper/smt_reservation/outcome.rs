//! What came of periodic work beside others: measured, emulated or simulated alike.
//!
//! Owns: completion times, misses, throughput of the others. Must not: know how they were found.

/// A job that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// The period in which it was released, from 0.
    pub(super) period: u64,
    /// From release to completion, ns.
    pub(super) response_ns: u64,
    /// Time in it that somebody below this kernel took, as far as that is proven, ns.
    pub(super) taken_ns: u64,
}

/// Some periods of a real-time process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// The deadline, which is the period, ns.
    pub(super) deadline_ns: u64,
    /// Periods.
    pub(super) periods: u64,
    /// Jobs, by period.
    pub(super) done: Vec<Done>,
    /// What the others did, ns of a CPU that is not shared.
    pub(super) best_effort_ns: f64,
    /// How often they were stopped.
    pub(super) stops: u64,
    /// How often slack was looked at by a timer.
    pub(super) checks: u64,
    /// Processor time of the monitor, ns.
    pub(super) monitor_ns: u64,
}

impl Outcome {
    /// Jobs done late, but those that were in time without what was taken from below the kernel.
    pub(super) fn missed(&self) -> u64 {
        let late = |done: &&Done| done.response_ns - done.taken_ns > self.deadline_ns;
        self.done.iter().filter(late).count() as u64
    }

    /// Jobs that were late only by what was taken from below the kernel.
    pub(super) fn excused(&self) -> u64 {
        let late = self.done.iter().filter(|done| done.response_ns > self.deadline_ns);
        late.count() as u64 - self.missed()
    }

    /// Periods without a job of their own, because the one before was not done.
    pub(super) fn lost(&self) -> u64 {
        self.periods.saturating_sub(self.done.len() as u64)
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

    /// Goes on with further periods.
    pub(super) fn append(&mut self, more: Outcome) {
        let before = self.periods;
        self.deadline_ns = more.deadline_ns;
        self.periods += more.periods;
        self.done.extend(more.done.into_iter().map(|d| Done { period: d.period + before, ..d }));
        self.best_effort_ns += more.best_effort_ns;
        self.stops += more.stops;
        self.checks += more.checks;
        self.monitor_ns += more.monitor_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first period has a job in time, the second one that is late and takes the third, the fourth
    /// one that is late because of the host.
    #[test]
    fn late_lost_and_excused() {
        let done = |period, response_ns, taken_ns| Done { period, response_ns, taken_ns };
        let first = Outcome {
            deadline_ns: 70,
            periods: 3,
            done: vec![done(0, 70, 0), done(1, 90, 19)],
            best_effort_ns: 105.0,
            ..Outcome::default()
        };
        let mut all = first.clone();
        all.append(Outcome {
            periods: 1,
            done: vec![done(0, 75, 5)],
            best_effort_ns: 0.0,
            ..first
        });
        assert_eq!((all.missed(), all.excused(), all.lost()), (1, 1, 1));
        assert_eq!((all.latest_ns(), all.median_ns()), (Some(90), Some(75)));
        assert_eq!(all.done[2].period, 3);
        assert!((all.best_effort() - 0.375).abs() < 1e-9);
    }
}
