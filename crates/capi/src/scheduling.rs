//! Scheduling policies as C writes them.

use hourglass_timer::fault::Scheduling as Attributes;
use hourglass_timer::periodic::Scheduling;

use crate::error::CapiError;
use crate::pointers::unused;

/// A scheduling policy; all zero is the one that is inherited.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_scheduling {
    /// `HG_POLICY_*`.
    pub policy: u32,
    /// A nice value, or a real-time priority.
    pub priority: i32,
    /// Budget of `HG_POLICY_DEADLINE`, ns.
    pub runtime_ns: u64,
    /// Its relative deadline, ns.
    pub deadline_ns: u64,
    /// Its period, ns.
    pub period_ns: u64,
    /// Whether it may use unreserved bandwidth (`SCHED_FLAG_RECLAIM`).
    pub reclaim: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

impl hg_scheduling {
    fn nice(&self) -> Result<i8, CapiError> {
        i8::try_from(self.priority).ok().filter(|nice| (-20..=19).contains(nice)).ok_or_else(|| {
            let text =
                format!("priority {} is not a nice value: give one from -20 to 19", self.priority);
            CapiError::invalid(text)
        })
    }

    fn level(&self) -> Result<u8, CapiError> {
        let level = u8::try_from(self.priority).ok().filter(|level| (1..=99).contains(level));
        level.ok_or_else(|| {
            let text =
                format!("priority {} is not a real-time one: give one from 1 to 99", self.priority);
            CapiError::invalid(text)
        })
    }

    fn unknown(&self) -> CapiError {
        CapiError::invalid(format!("no policy is {}: give an HG_POLICY_*", self.policy))
    }

    /// For a thread of any kind; `None` is the inherited one.
    pub(crate) fn attributes(&self) -> Result<Option<Attributes>, CapiError> {
        unused(self.reserved, "hg_scheduling")?;
        Ok(Some(match self.policy {
            0 => return Ok(None),
            1 => Attributes::Other(self.nice()?),
            2 => Attributes::Batch(self.nice()?),
            3 => Attributes::Idle,
            4 => Attributes::Fifo(self.level()?),
            5 => Attributes::RoundRobin(self.level()?),
            6 => Attributes::Deadline {
                runtime_ns: self.runtime_ns,
                deadline_ns: self.deadline_ns,
                period_ns: self.period_ns,
                reclaim: self.reclaim,
                overrun_signal: false,
            },
            _ => return Err(self.unknown()),
        }))
    }

    /// For a periodic thread, which has budget, deadline and period of its own.
    pub(crate) fn periodic(&self) -> Result<Scheduling, CapiError> {
        unused(self.reserved, "hg_scheduling")?;
        Ok(match self.policy {
            0 => Scheduling::Inherited,
            1 => Scheduling::Other(self.nice()?),
            4 => Scheduling::Fifo(self.level()?),
            5 => Scheduling::RoundRobin(self.level()?),
            6 => Scheduling::Deadline { reclaim: self.reclaim },
            2 | 3 => {
                let text = "a periodic thread cannot have HG_POLICY_BATCH or HG_POLICY_IDLE: take HG_POLICY_OTHER with a nice value";
                return Err(CapiError::invalid(text));
            }
            _ => return Err(self.unknown()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_the_range() {
        let of = |policy, priority| hg_scheduling { policy, priority, ..Default::default() };
        assert_eq!(of(0, 7).attributes().unwrap(), None);
        assert_eq!(of(4, 99).attributes().unwrap(), Some(Attributes::Fifo(99)));
        for (policy, priority) in [(4, 0), (5, 100), (4, 300), (1, 20), (2, -21), (7, 0)] {
            assert!(of(policy, priority).attributes().is_err(), "{policy} {priority}");
            assert!(of(policy, priority).periodic().is_err(), "{policy} {priority}");
        }
        assert!(of(3, 0).periodic().is_err());
    }
}
