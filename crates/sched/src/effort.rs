//! The bound on every search: how much work an analysis does before it says "unknown".
//!
//! Owns: [`StepLimit`] and its default. Work is counted in looks: one look at one task, which is a division
//! or two. A step of a search that compares all tasks of a set costs as many looks as there are tasks, and
//! no fewer than [`LEAST_LOOKS`], since it may leave a point.
//! Must not: measure time; an answer must not depend on the machine.

use crate::verdict::Refusal;

/// Work that a search may still do, in looks at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimit {
    remaining: u64,
}

/// Looks for one task set: about half a second of a processor of 2026, however many tasks there are.
pub const DEFAULT_LOOKS: u64 = 100_000_000;

/// Looks that a step costs at least: with the default, no more than 4 million points are kept.
pub const LEAST_LOOKS: u64 = 25;

impl Default for StepLimit {
    fn default() -> StepLimit {
        StepLimit::with_steps(DEFAULT_LOOKS)
    }
}

impl StepLimit {
    /// A limit of `looks` looks at tasks.
    #[must_use]
    pub const fn with_steps(looks: u64) -> StepLimit {
        StepLimit { remaining: looks }
    }

    /// How many are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.remaining
    }

    /// What `search` finds with no more than `looks` of these, which are charged.
    pub fn at_most<T>(&mut self, looks: u64, search: impl FnOnce(&mut StepLimit) -> T) -> T {
        let given = self.remaining.min(looks);
        let mut part = StepLimit::with_steps(given);
        let found = search(&mut part);
        self.remaining -= given - part.remaining;
        found
    }

    /// Charges a step that visits `tasks` tasks.
    pub(crate) fn charge(&mut self, tasks: usize) -> Result<(), Refusal> {
        self.charge_steps(1, tasks)
    }

    /// Charges `steps` steps, each of which visits `tasks` tasks.
    pub(crate) fn charge_steps(&mut self, steps: u32, tasks: usize) -> Result<(), Refusal> {
        let looks = LEAST_LOOKS.max(tasks as u64).saturating_mul(steps.into());
        self.remaining = self.remaining.checked_sub(looks).ok_or(Refusal::TooLong)?;
        Ok(())
    }
}
