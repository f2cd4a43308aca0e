//! The bound on every search: how many steps an analysis takes before it says "unknown".
//!
//! Owns: [`Effort`] and its default. Must not: measure time; an answer must not depend on the
//! machine.

use crate::verdict::Refusal;

/// Steps that a search may still take. A step looks once at every task of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    left: u64,
}

/// Steps for one task set. With 50 tasks it is about a second of a processor of 2026.
pub const DEFAULT_STEPS: u64 = 4_000_000;

impl Default for Effort {
    fn default() -> Effort {
        Effort::of(DEFAULT_STEPS)
    }
}

impl Effort {
    /// As many steps.
    #[must_use]
    pub const fn of(steps: u64) -> Effort {
        Effort { left: steps }
    }

    /// Takes a step.
    pub(crate) fn step(&mut self) -> Result<(), Refusal> {
        self.left = self.left.checked_sub(1).ok_or(Refusal::TooLong)?;
        Ok(())
    }
}
