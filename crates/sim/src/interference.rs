//! How fast threads progress beside others on the same core.
//!
//! Owns: [`ProgressRates`], and its exact form for the engine. Must not: round a rate.

use hourglass_tasks::Fraction;

use super::error::SimError;
use hourglass_tasks::exact_fraction::greatest_common_divisor;

/// Rates of progress, from 0 to 1, of one thread while another runs on a sibling CPU; 1 unless it is
/// said otherwise. Beside several others the rates are multiplied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgressRates {
    /// Thread, the one beside it, rate; later entries replace earlier ones.
    entries: Vec<(usize, usize, Fraction)>,
}

impl ProgressRates {
    /// Sets the rate of `thread` while `beside` runs on a sibling CPU.
    pub fn set(&mut self, thread: usize, beside: usize, rate: Fraction) {
        self.entries.push((thread, beside, rate));
    }

    #[must_use]
    pub fn rate(&self, thread: usize, beside: usize) -> Fraction {
        let entry = self.entries.iter().rev().find(|(t, b, _)| (*t, *b) == (thread, beside));
        entry.map_or(Fraction::ONE, |(_, _, rate)| *rate)
    }

    /// The rates that were set, in order.
    #[must_use]
    pub fn entries(&self) -> &[(usize, usize, Fraction)] {
        &self.entries
    }
}

/// Rates in whole units of work per ns.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// The least common multiple of all denominators.
    base: u64,
    /// Units of work that are 1 ns of a CPU that is not shared.
    pub(super) scale: u64,
    /// Row by row, in `base`ths; empty if all rates are 1.
    table: Vec<u64>,
    threads: usize,
}

impl Rates {
    /// Rates for cores of up to `most` CPUs.
    pub(super) fn new(
        from: &ProgressRates,
        threads: usize,
        most: usize,
    ) -> Result<Rates, SimError> {
        let none = Rates { base: 1, scale: 1, table: Vec::new(), threads };
        if most < 2 || from.entries.iter().all(|(_, _, rate)| *rate == Fraction::ONE) {
            return Ok(none);
        }
        let base = from.entries.iter().try_fold(1u64, |base, (_, _, rate)| {
            let by = rate.denominator() / greatest_common_divisor(base, rate.denominator());
            base.checked_mul(by).ok_or(SimError::RatesTooFine)
        })?;
        let power = u32::try_from(most - 1).map_err(|_| SimError::RatesTooFine)?;
        let scale = base.checked_pow(power).ok_or(SimError::RatesTooFine)?;
        let mut table = vec![base; threads * threads];
        for (thread, beside, rate) in &from.entries {
            // The entry is at most `base`, since the rate is at most 1.
            table[thread * threads + beside] = base / rate.denominator() * rate.numerator();
        }
        Ok(Rates { base, scale, table, threads })
    }

    /// Whether every thread always runs at full speed.
    pub(super) fn all_full(&self) -> bool {
        self.table.is_empty()
    }

    /// Units of work per ns of `thread` beside `others`.
    pub(super) fn rate_of(&self, thread: usize, others: impl Iterator<Item = usize>) -> u64 {
        if self.table.is_empty() {
            return self.scale;
        }
        // Each factor takes the place of one `base` in the scale, so that it divides.
        let row = &self.table[thread * self.threads..][..self.threads];
        others.fold(self.scale, |rate, beside| rate / self.base * row[beside])
    }
}
