//! A few of very many measurements, for a figure: their number is bounded, and the extremes stay.

use hourglass_documents::paper::Point;

/// Buckets that are kept at most; each gives up to three points.
const MOST_BUCKETS: usize = 512;

type Numbered = (u64, u64);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    least: Numbered,
    greatest: Numbered,
    sample: Numbered,
}

/// Takes measurements one by one and keeps at most 1536 of them, evenly over all.
///
/// All buckets hold the same number of measurements. When they are used up, neighbours become
/// one and that number doubles, so that the length need not be known before.
#[derive(Debug, Default)]
pub(super) struct Downsampler {
    buckets: Vec<Bucket>,
    /// A bucket holds two to the power of this many.
    shift: u32,
    seen: u64,
    sampled: u64,
}

impl Downsampler {
    #[inline]
    pub(super) fn push(&mut self, value: u64) {
        let this = (self.seen, value);
        if self.seen >> self.shift == self.buckets.len() as u64 {
            self.begin_bucket(this);
        } else if let Some(bucket) = self.buckets.last_mut() {
            if value < bucket.least.1 {
                bucket.least = this;
            } else if value > bucket.greatest.1 {
                bucket.greatest = this;
            }
            if self.seen == self.sampled {
                bucket.sample = this;
            }
        }
        self.seen += 1;
    }

    #[cold]
    fn begin_bucket(&mut self, this: Numbered) {
        if self.buckets.len() == MOST_BUCKETS {
            self.buckets = self.buckets.chunks(2).map(merged).collect();
            self.shift += 1;
        }
        let width = 1 << self.shift;
        self.sampled = self.seen + scattered(self.seen) % width;
        self.buckets.push(Bucket { least: this, greatest: this, sample: this });
    }

    /// Of how many measurements each the least, the greatest and one at random are kept.
    pub(super) fn stretch(&self) -> u64 {
        1 << self.shift
    }

    /// The kept measurements as points of a figure; `unit_ns` is the unit of a measurement in nanoseconds.
    pub(super) fn drawn(&self, unit_ns: f64) -> Vec<Point> {
        let point = |(number, value): Numbered| Point { number, ns: value as f64 * unit_ns };
        self.points().into_iter().map(point).collect()
    }

    fn points(&self) -> Vec<Numbered> {
        let of = |bucket: &Bucket| [bucket.least, bucket.sample, bucket.greatest];
        let mut kept: Vec<Numbered> = self.buckets.iter().flat_map(of).collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}

fn merged(pair: &[Bucket]) -> Bucket {
    let (first, last) = (pair[0], pair[pair.len() - 1]);
    let by_chance = scattered(first.sample.0 ^ last.sample.0) & 1 == 0;
    Bucket {
        least: if last.least.1 < first.least.1 { last.least } else { first.least },
        greatest: if last.greatest.1 > first.greatest.1 { last.greatest } else { first.greatest },
        sample: if by_chance { first.sample } else { last.sample },
    }
}

/// A number that looks random and is the same every time (the finaliser of SplitMix64): samples
/// must not keep step with anything that the measurements do periodically.
pub(super) fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinned(values: impl IntoIterator<Item = u64>) -> Vec<Numbered> {
        let mut thinned = Downsampler::default();
        values.into_iter().for_each(|value| thinned.push(value));
        thinned.points()
    }

    #[test]
    fn a_few_measurements_are_all_kept() {
        assert_eq!(thinned([]), []);
        assert_eq!(thinned([7, 3, 9]), [(0, 7), (1, 3), (2, 9)]);
        assert_eq!(thinned(0..512).len(), 512);
    }

    #[test]
    fn the_stretch_doubles_when_the_buckets_are_used_up() {
        let stretch = |length: u64| {
            let mut thinned = Downsampler::default();
            (0..length).for_each(|value| thinned.push(value));
            thinned.stretch()
        };
        assert_eq!([0, 512, 513, 1_024, 1_025].map(stretch), [1, 1, 2, 2, 4]);
    }

    #[test]
    fn the_extremes_stay_and_the_number_is_bounded() {
        for length in [513_u64, 1_024, 1_025, 99_999, 1 << 18] {
            for (cheap, dear) in [(0, length - 1), (length / 2, length / 3), (length - 1, 1)] {
                let value = |n| match n {
                    n if n == cheap => 1,
                    n if n == dear => 5_000,
                    n => 20 + n % 3,
                };
                let kept = thinned((0..length).map(value));
                assert!(kept.len() <= 3 * MOST_BUCKETS, "{length}: {}", kept.len());
                assert!(kept.len() >= MOST_BUCKETS / 2, "{length}: {}", kept.len());
                assert!(kept.contains(&(cheap, 1)) && kept.contains(&(dear, 5_000)), "{length}");
                for (number, kept) in kept {
                    assert_eq!(kept, value(number), "{length}: read {number}");
                }
            }
        }
    }

    /// A period of two to some power, such as that of the turns, must not decide what is seen:
    /// one read in 16 is dear, so about one sample in 16 is.
    #[test]
    fn samples_do_not_keep_step_with_a_period() {
        let mut thinned = Downsampler::default();
        (0..1_u64 << 20).for_each(|n| thinned.push(if n % 16 == 0 { 100 } else { 10 }));
        let dear = thinned.buckets.iter().filter(|bucket| bucket.sample.1 == 100).count();
        let samples = thinned.buckets.len();
        assert!((samples / 32..samples / 8).contains(&dear), "{dear} of {samples}");
    }
}
