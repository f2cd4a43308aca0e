//! How much later than asked the kernel wakes: a recent mean, and a histogram that forgets.
//!
//! Owns: what is known of wake-up overheads on one CPU and in one scheduling class, and the two
//! questions asked of it: which margin covers a share of the wake-ups, and what a margin costs.
//! Must not: read a clock, know of sleeps.
//!
//! A quantile with decay, never a maximum: a maximum of the last 64 took 90 % of a CPU under load.
//! Overheads of consecutive wake-ups are alike (a correlation of 0.5 was measured on a virtual
//! machine, and 0.3 over a hundred wake-ups), so that the histogram is of their ratio to the mean of
//! the last few: for the same spinning that covers 70 % of the wake-ups where one of the overheads
//! themselves covers 57 %. Integers only.

/// Binary digits after the point in ratios.
const FRACTION: u32 = 16;
/// Buckets in an octave: 2 to this. A quantile is at most 6.3 % too high.
const OCTAVE_BITS: u32 = 4;
const PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
/// Where the first octave begins: ratios of 1/16. Less is counted as that.
const FIRST_OCTAVE: u32 = FRACTION - 4;
/// Eight octaves, up to a ratio of 16.
const BUCKETS: usize = 8 * PER_OCTAVE as usize;
/// No margin is as long as this, ns: later wake-ups are beyond help.
const BEYOND_NS: u64 = 1 << 19;
/// Weight of a sample: the number of steps until it is forgotten altogether.
const UNIT: u16 = 16;
/// Samples remembered. Above it everything loses an eighth, so that half of what is known is
/// renewed by 125 samples.
const WINDOW: u32 = 192;
/// Samples from which on the seed is not needed any more.
const TRUSTED: u32 = 16;
/// Weight of the seed, samples.
const SEED_SAMPLES: u16 = 4;
/// Samples in the recent mean, as also measurements of the cost: the plain mean of the first ones,
/// then decaying.
const RECENT: u64 = 8;
/// A sample changes the mean as if it were at most this multiple of the mean.
const OUTLIER: u64 = 2;
/// The least mean, ns.
const LEAST_MEAN_NS: u64 = 250;

pub(super) const MILLION: u32 = 1_000_000;

/// Overheads of the last hundred or two kernel waits.
#[derive(Clone, Debug)]
pub(super) struct Overheads {
    /// The recent mean, ns.
    mean_ns: u64,
    /// Samples in it, held at [`RECENT`].
    recent: u64,
    /// Of ratios to the mean before.
    weights: [u16; BUCKETS],
    within: u32,
    /// Weight of samples beyond the last bucket.
    beyond: u32,
    /// Weight of the seed, while it counts.
    seed: u16,
    /// Samples so far, held at [`TRUSTED`].
    samples: u32,
    /// CPU time that a kernel wait takes, ns.
    pub(super) cost_ns: u64,
    /// CPU time that the sleeper takes before a wait, ns.
    pub(super) thought_ns: u64,
    /// How often these were measured, held at [`RECENT`].
    costs: u64,
}

impl Overheads {
    pub(super) fn seeded(overhead_ns: u64, cost_ns: u64) -> Overheads {
        let seed = SEED_SAMPLES * UNIT;
        let mut weights = [0; BUCKETS];
        weights[SAME] = seed;
        Overheads {
            mean_ns: overhead_ns.clamp(LEAST_MEAN_NS, BEYOND_NS),
            recent: 0,
            weights,
            within: u32::from(seed),
            beyond: 0,
            seed,
            samples: 0,
            cost_ns,
            thought_ns: 0,
            costs: 0,
        }
    }

    /// What is known elsewhere as a guess for here: an eighth of its weight.
    pub(super) fn inherited(from: &Overheads) -> Overheads {
        let mut new = from.clone();
        new.recent = new.recent.min(1);
        new.costs = new.costs.min(1);
        new.weights.iter_mut().for_each(|weight| *weight = weight.div_ceil(8));
        new.within = new.weights.iter().map(|weight| u32::from(*weight)).sum();
        new.beyond /= 8;
        new.seed = new.seed.div_ceil(8);
        new
    }

    /// Counts a wake-up that came this much later than asked.
    pub(super) fn record(&mut self, overhead_ns: u64) {
        // The first one is the mean.
        if self.recent == 0 {
            self.update_mean(overhead_ns);
        }
        match self.bucket_of(overhead_ns) {
            Some(bucket) => {
                self.weights[bucket] = self.weights[bucket].saturating_add(UNIT);
                self.within += u32::from(UNIT);
            }
            None => self.beyond += u32::from(UNIT),
        }
        if self.recent > 0 {
            self.update_mean(overhead_ns);
        }
        if self.samples < TRUSTED {
            self.samples += 1;
            if self.samples == TRUSTED {
                let seed = std::mem::take(&mut self.seed).min(self.weights[SAME]);
                self.weights[SAME] -= seed;
                self.within -= u32::from(seed);
            }
        }
        if self.within + self.beyond > WINDOW * u32::from(UNIT) {
            self.decay();
        }
    }

    /// Counts what a kernel wait took of the CPU, and what was thought before it.
    pub(super) fn record_cost(&mut self, cost_ns: u64, thought_ns: u64) {
        /// A wait that took more was one in which something else was charged to the thread.
        const CREDIBLE_NS: u64 = 500_000;
        self.costs = (self.costs + 1).min(RECENT);
        self.cost_ns = moved(self.cost_ns, cost_ns.min(CREDIBLE_NS), self.costs);
        self.thought_ns = moved(self.thought_ns, thought_ns.min(self.cost_ns), self.costs);
    }

    /// The margin that covers a share of those wake-ups that any margin covers, ns.
    pub(super) fn quantile_ns(&self, share_ppm: u32) -> u64 {
        let wanted = u64::from(self.within) * u64::from(share_ppm.min(MILLION));
        let mut seen = 0u64;
        for (bucket, weight) in self.weights.iter().enumerate() {
            seen += u64::from(*weight);
            if seen * u64::from(MILLION) >= wanted && seen > 0 {
                return self.of_mean(end(bucket));
            }
        }
        // Nothing but wake-ups beyond all margins: none helps.
        0
    }

    /// The longest margin of which on average at most `spin_ns` are left to spin when the kernel
    /// has woken: the mean of (margin - overhead), where that is positive. Overheads count as the
    /// beginning of their bucket, so that less is spun rather than more.
    pub(super) fn margin_spinning_ns(&self, spin_ns: u64) -> u64 {
        let spin = (spin_ns.min(BEYOND_NS) << FRACTION) / self.mean_ns;
        let allowed = spin * u64::from(self.within + self.beyond);
        let (mut weight, mut sum) = (0u64, 0u64);
        for (bucket, own) in self.weights.iter().enumerate().filter(|(_, own)| **own > 0) {
            let begin = begin(bucket);
            // Up to here only the buckets before this one are spun for.
            if weight > 0 && allowed + sum <= begin * weight {
                break;
            }
            weight += u64::from(*own);
            sum += u64::from(*own) * begin;
        }
        self.of_mean((allowed + sum).checked_div(weight).unwrap_or(0))
    }

    /// What is left to spin on average with this margin at most, ns.
    pub(super) fn mean_spin_ns(&self, margin_ns: u64) -> u64 {
        let margin = (margin_ns.min(BEYOND_NS) << FRACTION) / self.mean_ns;
        let left = |(bucket, weight): (usize, &u16)| {
            u64::from(*weight) * margin.saturating_sub(begin(bucket))
        };
        let sum: u64 = self.weights.iter().enumerate().map(left).sum();
        self.of_mean(sum.checked_div(u64::from(self.within + self.beyond)).unwrap_or(0))
    }

    fn update_mean(&mut self, overhead_ns: u64) {
        if overhead_ns >= BEYOND_NS {
            return;
        }
        self.recent = (self.recent + 1).min(RECENT);
        let most = if self.recent == 1 { u64::MAX } else { self.mean_ns * OUTLIER };
        let mean_ns = moved(self.mean_ns, overhead_ns.min(most), self.recent);
        self.mean_ns = mean_ns.max(LEAST_MEAN_NS);
    }

    /// The bucket of an overhead; `None` if no margin covers it.
    fn bucket_of(&self, overhead_ns: u64) -> Option<usize> {
        (overhead_ns < BEYOND_NS)
            .then(|| bucket_of((overhead_ns << FRACTION) / self.mean_ns))
            .flatten()
    }

    /// A ratio of the mean, ns.
    fn of_mean(&self, ratio: u64) -> u64 {
        let product = u128::from(ratio) * u128::from(self.mean_ns);
        u64::try_from(product >> FRACTION).unwrap_or(u64::MAX)
    }

    fn decay(&mut self) {
        for weight in &mut self.weights {
            *weight -= weight.div_ceil(8);
        }
        self.within = self.weights.iter().map(|weight| u32::from(*weight)).sum();
        self.beyond -= self.beyond.div_ceil(8);
    }
}

/// The bucket of ratios from 1 on.
const SAME: usize = 4 * PER_OCTAVE as usize;

/// A mean of `of` values after the last of them.
const fn moved(mean: u64, last: u64, of: u64) -> u64 {
    (mean * (of - 1) + last) / of
}

/// The bucket of a ratio, `None` beyond the last one.
fn bucket_of(ratio: u64) -> Option<usize> {
    let ratio = ratio.max(1 << FIRST_OCTAVE);
    let octave = ratio.ilog2();
    let part = (ratio >> (octave - OCTAVE_BITS)) % PER_OCTAVE;
    let bucket = u64::from(octave - FIRST_OCTAVE) * PER_OCTAVE + part;
    usize::try_from(bucket).ok().filter(|bucket| *bucket < BUCKETS)
}

fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = u64::from(FIRST_OCTAVE - OCTAVE_BITS) + bucket / PER_OCTAVE;
    (PER_OCTAVE + bucket % PER_OCTAVE + 1) << shift
}

/// The ratio at which a bucket begins; the first one at 0.
fn begin(bucket: usize) -> u64 {
    bucket.checked_sub(1).map_or(0, end)
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
            let end = end(bucket);
            assert_eq!(bucket_of(end - 1), Some(bucket));
            assert_ne!(bucket_of(end), Some(bucket));
            assert_eq!(bucket_of(begin(bucket)), Some(bucket));
        }
        assert_eq!((bucket_of(0), bucket_of(16 << FRACTION)), (Some(0), None));
        assert_eq!(bucket_of(1 << FRACTION), Some(SAME));
    }

    /// Ninety-nine in a hundred at 30 us: the hundredth does not set the margin.
    #[test]
    fn a_quantile_is_not_a_maximum() {
        let known = of((0..2_000).map(|i| if i % 150 == 70 { 400_000 } else { 30_000 }));
        let margin = known.quantile_ns(990_000);
        assert!((30_000..=36_000).contains(&margin), "{margin}");
        assert!(known.quantile_ns(1_000_000) >= 390_000);
    }

    #[test]
    fn what_no_margin_covers_moves_none() {
        let known = of((0..2_000).map(|i| if i % 4 == 0 { 4_000_000 } else { 30_000 }));
        assert!((30_000..=34_000).contains(&known.quantile_ns(990_000)));
        let beyond = of((0..500).map(|_| 4_000_000));
        assert_eq!((beyond.quantile_ns(990_000), beyond.mean_ns), (0, 60_000));
    }

    /// The seed is gone after a few samples: one above all that is ever asked for would otherwise
    /// stay for ever.
    #[test]
    fn the_seed_is_forgotten() {
        assert!((60_000..66_000).contains(&of([]).quantile_ns(990_000)));
        assert!((20_000..23_000).contains(&of([20_000]).quantile_ns(990_000)));
        let trusted = of([20_000; 16]);
        assert_eq!((trusted.within, trusted.seed), (16 * u32::from(UNIT), 0));
    }

    /// What was hardly known elsewhere is hardly known here.
    #[test]
    fn a_guess_of_a_guess_is_forgotten_too() {
        for samples in [0, 1, 8, 15, 16, 500] {
            let mut here = Overheads::inherited(&of(vec![40_000; samples]));
            (0..1_000).for_each(|_| here.record(20_000));
            assert!((20_000..23_000).contains(&here.quantile_ns(990_000)), "{samples}");
            assert_eq!(here.within, here.weights.iter().map(|w| u32::from(*w)).sum::<u32>());
        }
    }

    /// From 200 to 20 us: after a dozen samples there is no sleep any more that spins for 200.
    #[test]
    fn a_change_is_followed_at_once() {
        let mut known = of([200_000; 1_000]);
        (0..24).for_each(|_| known.record(20_000));
        assert!(known.margin_spinning_ns(20_000) < 55_000);
        (0..1_000).for_each(|_| known.record(20_000));
        assert!((20_000..23_000).contains(&known.quantile_ns(990_000)));
        assert_eq!(known.within, known.weights.iter().map(|w| u32::from(*w)).sum::<u32>());
        (0..24).for_each(|_| known.record(200_000));
        assert!(known.quantile_ns(990_000) >= 200_000);
    }

    /// The two questions agree, and with a sum over all samples.
    #[test]
    fn a_margin_costs_what_it_is_said_to() {
        // In no order: what came last weighs most.
        let samples: Vec<u64> = (0..960u64).map(|i| 20_000 + i * 97 % 192 * 200).collect();
        let known = of(samples.iter().copied());
        for spin in [0, 1_000, 5_000, 25_000, 90_000] {
            let margin = known.margin_spinning_ns(spin);
            let mean = known.mean_spin_ns(margin);
            assert!(mean <= spin && spin - mean <= 20, "{spin}: margin {margin} spins {mean}");
        }
        // The margin goes with the mean; here as it would have been before each sample.
        let (mut spun, mut spin_ns) = (0, 0);
        let mut replayed = of([]);
        for (number, sample) in samples.iter().enumerate() {
            if number >= 192 {
                let margin = replayed.margin_spinning_ns(15_000);
                spun += margin.saturating_sub(*sample);
                spin_ns += 15_000;
            }
            replayed.record(*sample);
        }
        assert!((spin_ns * 9 / 10..spin_ns * 21 / 20).contains(&spun), "{spun} for {spin_ns}");
    }

    #[test]
    fn wake_ups_beyond_all_margins_cost_no_spinning() {
        let known = of((0..960).map(|i| if i % 2 == 0 { 1_000_000 } else { 20_000 }));
        let mean = known.mean_spin_ns(40_000);
        assert!((9_500..=11_000).contains(&mean), "{mean}");
        assert_eq!(of([1_000_000; 64]).margin_spinning_ns(10_000), 0);
    }

    #[test]
    fn nothing_overflows() {
        for ns in [0, 1, u64::MAX] {
            let mut known = Overheads::seeded(ns, ns.min(1 << 40));
            for sample in [0, u64::MAX, ns, BEYOND_NS, BEYOND_NS - 1] {
                (0..400).for_each(|_| known.record(sample));
                known.record_cost(sample, sample);
                let _ = (known.quantile_ns(u32::MAX), known.mean_spin_ns(u64::MAX));
                let _ = known.margin_spinning_ns(u64::MAX);
            }
        }
    }
}
