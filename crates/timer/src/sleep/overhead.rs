//! How much later than asked the kernel wakes: a histogram that forgets.
//!
//! Owns: what is known of wake-up overheads on one CPU and in one scheduling class, and the two
//! questions asked of it: which margin covers a share of the wake-ups, and what a margin costs.
//! Must not: read a clock, know of sleeps.
//!
//! A quantile with decay, never a maximum: a maximum of the last 64 took 90 % of a CPU under load.
//! Integers only. Buckets are a sixteenth of an octave wide, so that a quantile is at most 6.3 % too
//! high.

/// Buckets in an octave: 2 to this.
const OCTAVE_BITS: u32 = 4;
/// The same.
const PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
/// Where the first octave begins: 2^11 ns, 2 us. Less is counted as that.
const FIRST_OCTAVE: u32 = 11;
/// Eight octaves, up to 0.5 ms. No margin is as long as what is beyond.
const BUCKETS: usize = 8 * PER_OCTAVE as usize;
/// Weight of a sample; so many steps until it is forgotten altogether.
const UNIT: u16 = 16;
/// Samples remembered. Above it everything loses an eighth, so that half of what is known is
/// renewed by 125 samples.
const WINDOW: u32 = 192;
/// Samples from which on the seed is not needed any more.
const TRUSTED: u32 = 16;
/// Weight of the seed, samples.
const SEED_SAMPLES: u16 = 4;

/// Measurements of the cost that count: the mean of the first ones, then decaying.
const COSTS: u64 = 8;

/// Parts in a whole, for shares.
pub(super) const MILLION: u32 = 1_000_000;

/// Overheads of the last hundred or two kernel waits.
#[derive(Clone, Debug)]
pub(super) struct Overheads {
    weights: [u16; BUCKETS],
    /// Sum of `weights`.
    within: u32,
    /// Weight of samples beyond the last bucket.
    beyond: u32,
    /// The bucket that the seed is in, while it is.
    seed: Option<usize>,
    /// Samples so far, held at [`TRUSTED`].
    samples: u32,
    /// CPU time that a kernel wait takes, ns.
    pub(super) cost_ns: u64,
    /// How often that was measured, held at [`COSTS`].
    costs: u64,
}

impl Overheads {
    /// Nothing known but a guess.
    pub(super) fn seeded(overhead_ns: u64, cost_ns: u64) -> Overheads {
        let mut new = Overheads {
            weights: [0; BUCKETS],
            within: 0,
            beyond: 0,
            seed: None,
            samples: 0,
            cost_ns,
            costs: 0,
        };
        if let Some(bucket) = bucket_of(overhead_ns) {
            new.weights[bucket] = SEED_SAMPLES * UNIT;
            new.within = u32::from(SEED_SAMPLES * UNIT);
            new.seed = Some(bucket);
        }
        new
    }

    /// What is known elsewhere as a guess for here: an eighth of its weight.
    pub(super) fn inherited(from: &Overheads) -> Overheads {
        let mut new = from.clone();
        new.weights.iter_mut().for_each(|weight| *weight = weight.div_ceil(8));
        new.within = new.weights.iter().map(|weight| u32::from(*weight)).sum();
        new.beyond /= 8;
        new
    }

    /// Counts a wake-up so much later than asked.
    pub(super) fn record(&mut self, overhead_ns: u64) {
        match bucket_of(overhead_ns) {
            Some(bucket) => {
                self.weights[bucket] = self.weights[bucket].saturating_add(UNIT);
                self.within += u32::from(UNIT);
            }
            None => self.beyond += u32::from(UNIT),
        }
        if self.samples < TRUSTED {
            self.samples += 1;
            if self.samples == TRUSTED {
                self.drop_seed();
            }
        }
        if self.within + self.beyond > WINDOW * u32::from(UNIT) {
            self.decay();
        }
    }

    /// Counts what a kernel wait took of the CPU.
    pub(super) fn record_cost(&mut self, cost_ns: u64) {
        /// A wait that took more was one in which something else was charged to the thread.
        const CREDIBLE_NS: u64 = 500_000;
        let cost_ns = cost_ns.min(CREDIBLE_NS);
        self.costs = (self.costs + 1).min(COSTS);
        self.cost_ns = (self.cost_ns * (self.costs - 1) + cost_ns) / self.costs;
    }

    /// The margin that covers a share of those wake-ups that any margin covers.
    pub(super) fn quantile_ns(&self, share_ppm: u32) -> u64 {
        let wanted = u64::from(self.within) * u64::from(share_ppm.min(MILLION));
        let mut seen = 0u64;
        for (bucket, weight) in self.weights.iter().enumerate() {
            seen += u64::from(*weight);
            if seen * u64::from(MILLION) >= wanted && seen > 0 {
                return end_ns(bucket);
            }
        }
        // Nothing but wake-ups beyond all margins: none helps.
        0
    }

    /// The longest margin of which on average at most `spin_ns` are left to spin when the kernel
    /// has woken: the mean of (margin - overhead), where that is positive. Overheads count as the
    /// beginning of their bucket, so that less is spun rather than more.
    pub(super) fn margin_spinning_ns(&self, spin_ns: u64) -> u64 {
        let allowed = spin_ns.saturating_mul(u64::from(self.within + self.beyond));
        let (mut weight, mut sum) = (0u64, 0u64);
        for (bucket, own) in self.weights.iter().enumerate().filter(|(_, own)| **own > 0) {
            let begin = begin_ns(bucket);
            // Up to here only the buckets before this one are spun for.
            if weight > 0 && allowed.saturating_add(sum) <= begin * weight {
                return allowed.saturating_add(sum) / weight;
            }
            weight += u64::from(*own);
            sum += u64::from(*own) * begin;
        }
        // At most all of it, beyond which a margin is held anyway.
        allowed.saturating_add(sum).checked_div(weight).unwrap_or(0)
    }

    /// The longest margin with which wait and spin take at most `allowance_ns` on average, or so much
    /// more as `least_spin_ns` of spinning needs.
    pub(super) fn affordable_ns(&self, allowance_ns: u64, least_spin_ns: u64) -> u64 {
        self.margin_spinning_ns(allowance_ns.saturating_sub(self.cost_ns).max(least_spin_ns))
    }

    /// What is left to spin on average with this margin at most, ns.
    pub(super) fn mean_spin_ns(&self, margin_ns: u64) -> u64 {
        let left = |(bucket, weight): (usize, &u16)| {
            u64::from(*weight) * margin_ns.saturating_sub(begin_ns(bucket))
        };
        let sum: u64 = self.weights.iter().enumerate().map(left).sum();
        sum.checked_div(u64::from(self.within + self.beyond)).unwrap_or(0)
    }

    fn drop_seed(&mut self) {
        if let Some(bucket) = self.seed.take() {
            let seed = self.weights[bucket].min(SEED_SAMPLES * UNIT);
            self.weights[bucket] -= seed;
            self.within -= u32::from(seed);
        }
    }

    fn decay(&mut self) {
        for weight in &mut self.weights {
            *weight -= weight.div_ceil(8);
        }
        self.within = self.weights.iter().map(|weight| u32::from(*weight)).sum();
        self.beyond -= self.beyond.div_ceil(8);
    }
}

/// The bucket of an overhead, `None` beyond the last one.
fn bucket_of(ns: u64) -> Option<usize> {
    let ns = ns.max(1 << FIRST_OCTAVE);
    let octave = ns.ilog2();
    let part = (ns >> (octave - OCTAVE_BITS)) % PER_OCTAVE;
    let bucket = u64::from(octave - FIRST_OCTAVE) * PER_OCTAVE + part;
    usize::try_from(bucket).ok().filter(|bucket| *bucket < BUCKETS)
}

/// Where a bucket ends, ns.
fn end_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = u64::from(FIRST_OCTAVE - OCTAVE_BITS) + bucket / PER_OCTAVE;
    (PER_OCTAVE + bucket % PER_OCTAVE + 1) << shift
}

/// Where a bucket begins, ns; the first one at 0.
fn begin_ns(bucket: usize) -> u64 {
    bucket.checked_sub(1).map_or(0, end_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: impl IntoIterator<Item = u64>) -> Overheads {
        let mut overheads = Overheads::seeded(60_000, 10_000);
        samples.into_iter().for_each(|ns| overheads.record(ns));
        overheads
    }

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        for bucket in 0..BUCKETS {
            let end = end_ns(bucket);
            assert_eq!(bucket_of(end - 1), Some(bucket));
            assert_ne!(bucket_of(end), Some(bucket));
            assert_eq!(bucket_of(begin_ns(bucket)), Some(bucket));
        }
        assert_eq!((bucket_of(0), bucket_of(1 << 19)), (Some(0), None));
    }

    /// Ninety-nine in a hundred at 30 us: the hundredth does not set the margin.
    #[test]
    fn a_quantile_is_not_a_maximum() {
        let known = of((0..2_000).map(|i| if i % 150 == 0 { 400_000 } else { 30_000 }));
        let margin = known.quantile_ns(990_000);
        assert!((30_000..=34_000).contains(&margin), "{margin}");
        assert!(known.quantile_ns(1_000_000) >= 400_000);
    }

    #[test]
    fn what_no_margin_covers_moves_none() {
        let known = of((0..2_000).map(|i| if i % 4 == 0 { 4_000_000 } else { 30_000 }));
        assert!(known.quantile_ns(990_000) <= 34_000);
        assert_eq!(of((0..500).map(|_| 4_000_000)).quantile_ns(990_000), 0);
    }

    /// The seed is gone after a few samples: one above all that is ever asked for would otherwise
    /// stay for ever.
    #[test]
    fn the_seed_is_forgotten() {
        assert!(of([]).quantile_ns(990_000) >= 60_000);
        assert!(of([20_000; 15]).quantile_ns(990_000) >= 60_000);
        assert!(of([20_000; 16]).quantile_ns(990_000) < 23_000);
        let on_the_seed = of([60_000; 16]);
        assert_eq!(on_the_seed.within, 16 * u32::from(UNIT));
    }

    #[test]
    fn half_is_renewed_by_some_hundred_samples() {
        let mut known = of([200_000; 1_000]);
        for _ in 0..150 {
            known.record(20_000);
        }
        assert!(known.quantile_ns(500_000) <= 23_000);
        for _ in 0..900 {
            known.record(20_000);
        }
        assert!(known.quantile_ns(990_000) <= 23_000);
        assert_eq!(known.within, known.weights.iter().map(|w| u32::from(*w)).sum::<u32>());
    }

    /// The two questions agree, against a sum over all samples.
    #[test]
    fn a_margin_costs_what_it_is_said_to() {
        // In no order: what came last weighs most.
        let known = of((0..960).map(|i| 20_000 + i * 97 % 192 * 200));
        for spin in [0, 1_000, 5_000, 25_000, 90_000] {
            let margin = known.margin_spinning_ns(spin);
            let mean = known.mean_spin_ns(margin);
            assert!(mean <= spin && spin - mean <= 20, "{spin}: margin {margin} spins {mean}");
        }
        let margin = 50_000u64;
        let exact: u64 = (0..192u64).map(|i| margin.saturating_sub(20_000 + i * 200)).sum();
        let told = known.mean_spin_ns(margin);
        // Half a bucket, and what came last weighs more.
        assert!(told.abs_diff(exact / 192) < 1_000, "{told} for {}", exact / 192);
    }

    #[test]
    fn wake_ups_beyond_all_margins_cost_no_spinning() {
        let known = of((0..960).map(|i| if i % 2 == 0 { 1_000_000 } else { 20_000 }));
        let mean = known.mean_spin_ns(40_000);
        assert!((10_000..=12_000).contains(&mean), "{mean}");
        assert_eq!(of([1_000_000; 64]).margin_spinning_ns(10_000), 0);
    }
}
