//! When the next release is, and what passed meanwhile. Pure arithmetic: time is passed in.

use hourglass_time::Span;

use crate::event::Period;

use super::parameters::{OverrunPolicy, ValidParameters};

/// The releases of one task: points of a grid, each computed from its beginning, so that no error
/// adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Releases {
    /// Point 0, ns. Before the clock's zero if the epoch was.
    base_ns: i128,
    period: Period,
    index: u64,
    policy: OverrunPolicy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MissedReleases {
    pub(super) overrun: bool,
    pub(super) lost: u64,
    /// By how much the grid moved, ns.
    pub(super) moved_ns: u64,
}

impl Releases {
    /// The first release is the first point of the grid that is not before `now_ns`.
    pub(super) fn starting(checked: &ValidParameters, now_ns: u64) -> Releases {
        let epoch_ns = checked.epoch.map_or(i128::from(now_ns), |at| i128::from(at.nanos()));
        let mut releases = Releases {
            base_ns: epoch_ns + i128::from(checked.phase_ns),
            period: checked.period,
            index: 0,
            policy: checked.on_overrun,
        };
        releases.index = releases.first_not_before(now_ns);
        releases
    }

    pub(super) fn next_ns(&self) -> u64 {
        let at_ns = self.base_ns + i128::from(self.period.nth_ns(self.index));
        u64::try_from(at_ns.max(0)).unwrap_or(u64::MAX)
    }

    /// The job of the next release ended at `completed_ns`.
    pub(super) fn completed(&mut self, completed_ns: u64) -> MissedReleases {
        self.index = self.index.saturating_add(1);
        let behind_ns = completed_ns.saturating_sub(self.next_ns());
        if behind_ns == 0 {
            return MissedReleases::default();
        }
        let (lost, moved_ns) = match self.policy {
            OverrunPolicy::CatchUp => (0, 0),
            OverrunPolicy::Skip => {
                let ahead = self.first_not_before(completed_ns);
                let lost = ahead - self.index;
                self.index = ahead;
                (lost, 0)
            }
            OverrunPolicy::Delay => {
                self.base_ns += i128::from(behind_ns);
                (self.period.passed(behind_ns), behind_ns)
            }
        };
        MissedReleases { overrun: true, lost, moved_ns }
    }

    /// Moves all releases from the next one on, by less than a period: what is more is held there, so that none comes
    /// before the one that was.
    pub(super) fn shift(&mut self, by: Span) {
        let most = i128::from(self.period.nth_ns(1)).saturating_sub(1);
        self.base_ns += i128::from(by.nanos()).clamp(-most, most);
    }

    /// The first point from the next release on that is not before `at_ns`.
    fn first_not_before(&self, at_ns: u64) -> u64 {
        // The greatest count that is before it, plus one.
        match i128::from(at_ns) - self.base_ns {
            ..=0 => self.index,
            since => {
                let since = u64::try_from(since).unwrap_or(u64::MAX);
                self.index.max(self.period.passed(since - 1).saturating_add(1))
            }
        }
    }
}

#[cfg(test)]
#[path = "tests/releases.rs"]
mod tests;
