//! The bound on every search: how much work an analysis does before it says "unknown".
//!
//! Owns: [`Effort`] and its default. Work is counted in looks: one look at one task, which is a division
//! or two. A step of a search that compares all tasks of a set costs as many looks as there are tasks, and
//! no fewer than [`LEAST_LOOKS`], since it may leave a point.
//! Must not: measure time; an answer must not depend on the machine.

use crate::verdict::Refusal;

/// Work that a search may still do, in looks at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    left: u64,
}

/// Looks for one task set: about half a second of a processor of 2026, however many tasks there are.
pub const DEFAULT_LOOKS: u64 = 100_000_000;

/// Looks that a step costs at least: with the default, no more than 4 million points are kept.
pub const LEAST_LOOKS: u64 = 25;

impl Default for Effort {
    fn default() -> Effort {
        Effort::of(DEFAULT_LOOKS)
    }
}

impl Effort {
    /// As many looks.
    #[must_use]
    pub const fn of(looks: u64) -> Effort {
        Effort { left: looks }
    }

    /// How many are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes a step that looks at so many tasks.
    pub(crate) fn look(&mut self, tasks: usize) -> Result<(), Refusal> {
        self.looks(1, tasks)
    }

    /// Takes so many steps, each of which looks at so many tasks.
    pub(crate) fn looks(&mut self, steps: u32, tasks: usize) -> Result<(), Refusal> {
        let looks = LEAST_LOOKS.max(tasks as u64).saturating_mul(steps.into());
        self.left = self.left.checked_sub(looks).ok_or(Refusal::TooLong)?;
        Ok(())
    }
}
