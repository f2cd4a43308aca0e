//! Which bucket a granule belongs to, and which bucket comes first.
//!
//! Owns: the numbers of the wheel; which buckets are in use.
//! Must not: know what is in them.
//!
//! Time is counted in granules. Level `l` has 64 buckets of `4^l` granules each; the bucket that
//! ends at granule `n * 4^l` is number `n mod 64` of its level. Seen from granule `now`, the numbers
//! `now / 4^l` to `now / 4^l + 63` of a level are distinct, so that a bucket is found again without
//! its time being written down. A timeout goes into the first level on which its time is near
//! enough, and is rounded up to the end of the bucket: on level `l > 0` its delay is more than
//! `62 * 4^(l-1)` granules, and it is late by less than `4^l`, that is 2/31 of the delay.

/// Levels: with granules of 2 ns they reach over 64 bits.
pub(super) const LEVELS: usize = 30;

/// Buckets of a level, as many as a word has bits.
pub(super) const BUCKETS: usize = 64;

/// The furthest bucket that is not the present one.
const FURTHEST: u64 = BUCKETS as u64 - 1;

/// log2 of how much coarser each level is than the one below.
const COARSER: u32 = 2;

/// A bucket and the granule at which it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketPosition {
    pub(super) bucket: u32,
    pub(super) granule: u64,
}

impl BucketPosition {
    #[inline]
    fn new(level: u32, number: u64) -> BucketPosition {
        let bucket = level * BUCKETS as u32 + (number % BUCKETS as u64) as u32;
        BucketPosition { bucket, granule: number << (COARSER * level) }
    }
}

/// Where something waits at `now` for `expiry`, which is at least 1; what is due already, in the
/// present bucket of the lowest level.
#[inline]
pub(super) fn place(now: u64, expiry: u64) -> BucketPosition {
    let expiry = expiry.max(now);
    let delay = expiry - now;
    if delay <= FURTHEST {
        return BucketPosition::new(0, expiry);
    }
    // A delay of at least 2^6: here it may be one bucket too far, on the level above never.
    let level = (delay.ilog2() - 4) / COARSER;
    let number = number_ceil(level, expiry);
    if number - (now >> (COARSER * level)) <= FURTHEST {
        BucketPosition::new(level, number)
    } else {
        BucketPosition::new(level + 1, number_ceil(level + 1, expiry))
    }
}

/// The number of the first bucket of a level that is not due before a granule, which is at least 1.
#[inline]
fn number_ceil(level: u32, granule: u64) -> u64 {
    ((granule - 1) >> (COARSER * level)) + 1
}

/// Which buckets are in use.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    buckets: [u64; LEVELS],
    /// A bit for each level with a bucket in use.
    levels: u32,
}

impl Levels {
    pub(super) fn new() -> Levels {
        Levels { buckets: [0; LEVELS], levels: 0 }
    }

    #[inline]
    pub(super) fn occupy(&mut self, bucket: u32) {
        let level = bucket as usize / BUCKETS;
        if let Some(buckets) = self.buckets.get_mut(level) {
            *buckets |= 1 << (bucket as usize % BUCKETS);
            self.levels |= 1 << level;
        }
    }

    #[inline]
    pub(super) fn vacate(&mut self, bucket: u32) {
        let level = bucket as usize / BUCKETS;
        if let Some(buckets) = self.buckets.get_mut(level) {
            *buckets &= !(1 << (bucket as usize % BUCKETS));
            if *buckets == 0 {
                self.levels &= !(1 << level);
            }
        }
    }

    /// The bucket in use that is due first, seen from `now`, and on the lowest level if two are.
    /// Buckets due before `now` must not be in use.
    #[inline]
    pub(super) fn first(&self, now: u64) -> Option<BucketPosition> {
        let mut first: Option<BucketPosition> = None;
        let mut left = self.levels;
        while left != 0 {
            let level = left.trailing_zeros();
            left &= left - 1;
            let present = now >> (COARSER * level);
            let buckets = self.buckets[level as usize];
            // As seen from the present one; at least one is in use.
            let ahead = buckets.rotate_right((present % BUCKETS as u64) as u32).trailing_zeros();
            let place = BucketPosition::new(level, present + u64::from(ahead));
            if first.is_none_or(|first| place.granule < first.granule) {
                first = Some(place);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of many patterns, for granules of all sizes.
    fn words() -> impl Iterator<Item = u64> {
        let mut dice = hourglass_dice::Dice::new(99);
        (0..200_000).map(move |i| dice.roll() >> (1 + i % 63))
    }

    /// The promise of the module's header: on time or later, by less than 2/31 of the delay, and in
    /// a bucket that differs from all others in use.
    #[test]
    fn a_place_is_never_early_and_hardly_late() {
        let last = 1u64 << 63;
        let mut words = words();
        while let (Some(now), Some(delay)) = (words.next(), words.next()) {
            let now = now.min(last - 1);
            let expiry = now.saturating_add(delay).clamp(1, last);
            let place = place(now, expiry);
            assert!(place.granule >= expiry.max(now), "{expiry} from {now}");
            let (late, delay) = (place.granule - expiry, expiry.saturating_sub(now));
            assert!(late == 0 || late * 31 < 2 * delay, "{late} after {delay} from {now}");
            assert!((place.bucket as usize) < LEVELS * BUCKETS);
            let level = place.bucket / BUCKETS as u32;
            let ahead = (place.granule >> (COARSER * level)) - (now >> (COARSER * level));
            assert!(ahead <= FURTHEST && (ahead > 0 || level == 0));
        }
    }

    /// The kernel (kernel/time/timer.c, `LVL_CLK_SHIFT` 3) keeps delays from 63 granules of the
    /// level below: late by up to 8/63. Here every delay is rounded by less than 1/15.
    #[test]
    fn the_first_delays_of_each_level() {
        let level = |delay| place(0, delay).bucket / BUCKETS as u32;
        assert_eq!((level(63), level(64)), (0, 1));
        assert_eq!((level(4 * 63), level(4 * 63 + 1)), (1, 2));
        assert_eq!((level(16 * 63), level(16 * 63 + 1)), (2, 3));
        assert_eq!(level(1 << 63), LEVELS as u32 - 1);
    }

    #[test]
    fn the_first_is_the_first() {
        let mut words = words();
        for _ in 0..500 {
            let now = words.next().unwrap_or(0);
            let mut levels = Levels::new();
            assert_eq!(levels.first(now), None);
            let mut places = Vec::new();
            for delay in words.by_ref().take(20) {
                let place = place(now, now.saturating_add(delay).clamp(1, 1 << 63));
                levels.occupy(place.bucket);
                places.push(place);
            }
            while let Some(least) = places.iter().map(|place| place.granule).min() {
                let first = levels.first(now);
                assert_eq!(first.map(|first| first.granule), Some(least), "from {now}");
                let bucket = first.map_or(0, |first| first.bucket);
                assert!(places.contains(&BucketPosition { bucket, granule: least }));
                levels.vacate(bucket);
                places.retain(|place| place.bucket != bucket);
            }
            assert_eq!((levels.first(now), levels.levels), (None, 0));
        }
    }

    #[test]
    fn the_present_bucket_is_due_at_once() {
        let mut levels = Levels::new();
        let due = place(100, 7);
        assert_eq!(due, BucketPosition::new(0, 100));
        levels.occupy(due.bucket);
        assert_eq!(levels.first(100), Some(due));
    }
}
