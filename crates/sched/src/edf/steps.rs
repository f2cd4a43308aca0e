//! The steps of a demand, one after the other.
//!
//! Owns: the walk over deadlines in ascending order, for tests that QPA does not cover. Must not:
//! judge.

use crate::curve::Curve;
use crate::effort::StepLimit;
use crate::verdict::Refusal;

/// Jobs of one task, as demand sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemandStream<'a> {
    pub(crate) curve: &'a Curve,
    pub(crate) cost: u64,
    pub(crate) deadline: u64,
    pub(crate) jitter: u64,
}

impl DemandStream<'_> {
    /// When the job with this number, from 1, is due at the earliest; `None` if after all 64 bits.
    fn instant(&self, number: u64) -> Option<u64> {
        let due = u128::from(self.curve.distance(number)?) + u128::from(self.deadline);
        u64::try_from(due.saturating_sub(self.jitter.into())).ok()
    }
}

/// Calls `visit` with every interval below `end` at which demand grows, and with the demand in it,
/// ascending, until it says no more. An interval is a look at all tasks, a job one more.
pub(crate) fn each_step(
    dues: &[DemandStream],
    end: u64,
    effort: &mut StepLimit,
    visit: &mut dyn FnMut(u64, u128) -> bool,
) -> Result<(), Refusal> {
    let mut number = vec![1u64; dues.len()];
    let mut next: Vec<Option<u64>> = dues.iter().map(|due| due.instant(1)).collect();
    let mut demand = 0u128;
    while let Some(interval) = next.iter().flatten().copied().min().filter(|next| *next < end) {
        effort.charge(dues.len())?;
        for ((due, number), next) in dues.iter().zip(&mut number).zip(&mut next) {
            while *next == Some(interval) {
                effort.charge(1)?;
                demand = demand.saturating_add(u128::from(due.cost));
                *number += 1;
                *next = due.instant(*number);
            }
        }
        if !visit(interval, demand) {
            return Ok(());
        }
    }
    Ok(())
}
