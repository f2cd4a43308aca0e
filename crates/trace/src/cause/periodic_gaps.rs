//! Gaps of about the same size that come back at a fixed distance: the host's own tick.
//!
//! No period is assumed. For each size the distances to the gaps before are counted; the distance
//! that is much more frequent than the others is the period.

use super::gap::length_ns;

/// Sizes are distinguished by powers of two, ns.
const SIZES: usize = 64;
/// Number of gaps before each that are compared with it.
const LOOK_BACK: usize = 16;
/// Distances are counted in steps of this, ns.
const STEP_NS: u64 = 250_000;
/// Steps that are counted; the longest period is their product with the step, 128 ms.
const STEPS: usize = 512;
/// The shortest period, in steps: a shorter one cannot be distinguished from a burst.
const SHORTEST: usize = 4;
/// Sizes with fewer gaps give no period.
const FEWEST: u64 = 20;
/// One in this number of gaps must have another one at the period's distance.
const ONE_IN: u64 = 3;
/// The period's distance must be this many times as frequent as the average one.
const OVER_AVERAGE: u64 = 6;
/// It must be this many times as frequent as distances a little shorter and longer: gaps that come
/// in bursts have many short distances, but none that stands out.
const OVER_NEIGHBOURS: u64 = 3;
/// Distance in steps that counts as a little shorter or longer.
const NEIGHBOUR: usize = 3;
/// A distance is a period within one part in this number.
const PARTS: u64 = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct RepeatFinder {
    sizes: Vec<Option<Box<Size>>>,
}

#[derive(Clone, Debug)]
struct Size {
    recent: Recent,
    gaps: u64,
    counts: Vec<u32>,
    sums_ns: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    periods: Vec<Option<u64>>,
}

impl Repeats {
    /// The lengths, from and to, and the period of each size, ns.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let sizes = self.periods.iter().enumerate();
        sizes.filter_map(|(size, period)| {
            let to = 1_u64.checked_shl(u32::try_from(size).ok()?)?;
            Some((to / 2, to, (*period)?))
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    starts: [i64; LOOK_BACK],
    filled: usize,
    next: usize,
}

impl Recent {
    fn push(&mut self, start: i64) {
        self.starts[self.next] = start;
        self.next = (self.next + 1) % LOOK_BACK;
        self.filled = LOOK_BACK.min(self.filled + 1);
    }

    fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.starts.iter().take(self.filled).copied()
    }
}

fn size_of(length_ns: u64) -> usize {
    (u64::BITS - length_ns.leading_zeros()) as usize % SIZES
}

impl RepeatFinder {
    pub(super) fn push(&mut self, start: i64, length: u64) {
        let at = size_of(length);
        if self.sizes.is_empty() {
            self.sizes = vec![None; SIZES];
        }
        let size = self.sizes[at].get_or_insert_with(|| {
            Box::new(Size {
                recent: Recent::default(),
                gaps: 0,
                counts: vec![0; STEPS],
                sums_ns: vec![0; STEPS],
            })
        });
        size.push(start);
    }

    pub(super) fn finish(self) -> Repeats {
        let period = |size: Option<Box<Size>>| size.and_then(|size| size.period_ns());
        Repeats { periods: self.sizes.into_iter().map(period).collect() }
    }
}

impl Size {
    fn push(&mut self, start: i64) {
        for before in self.recent.iter() {
            let distance = length_ns(before, start);
            let step = usize::try_from(distance / STEP_NS).unwrap_or(STEPS);
            if step < STEPS {
                self.counts[step] = self.counts[step].saturating_add(1);
                self.sums_ns[step] = self.sums_ns[step].saturating_add(distance);
            }
        }
        self.recent.push(start);
        self.gaps = self.gaps.saturating_add(1);
    }

    fn period_ns(&self) -> Option<u64> {
        if self.gaps < FEWEST {
            return None;
        }
        // A period at the edge of two steps is counted in both.
        let pair = |step: usize| {
            u64::from(self.counts[step]) + self.counts.get(step + 1).map_or(0, |c| u64::from(*c))
        };
        let stands_out = |step: usize| {
            let around = [step - NEIGHBOUR, step + NEIGHBOUR].map(|near| match near < STEPS {
                true => pair(near),
                false => 0,
            });
            pair(step) >= around[0].max(around[1]).saturating_mul(OVER_NEIGHBOURS)
        };
        let best = (SHORTEST..STEPS).filter(|step| stands_out(*step)).map(pair).max()?;
        let average = self.counts.iter().map(|c| u64::from(*c)).sum::<u64>() * 2 / STEPS as u64;
        if best < self.gaps / ONE_IN || best < average.saturating_mul(OVER_AVERAGE) {
            return None;
        }
        // Its multiples are about as frequent: the shortest is the period.
        let period = |step: &usize| stands_out(*step) && pair(*step) * 5 >= best * 4;
        let first = (SHORTEST..STEPS).find(period)?;
        let first =
            if first + 1 < STEPS && pair(first + 1) > pair(first) { first + 1 } else { first };
        let sum =
            self.sums_ns[first].saturating_add(self.sums_ns.get(first + 1).copied().unwrap_or(0));
        sum.checked_div(pair(first))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct RepeatFollower {
    recent: Vec<Recent>,
}

impl RepeatFollower {
    /// The period of this gap, if gaps of its size have one and another was a period, or two or
    /// three, before.
    pub(super) fn push(&mut self, repeats: &Repeats, start: i64, length: u64) -> Option<u64> {
        let at = size_of(length);
        let period = (*repeats.periods.get(at)?)?;
        if self.recent.is_empty() {
            self.recent = vec![Recent::default(); SIZES];
        }
        let recent = &mut self.recent[at];
        let before = recent.iter().any(|b| super::grid::periods_apart(b, start, period, PARTS));
        recent.push(start);
        before.then_some(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found on a real machine: of 798 gaps of 20 to 50 us below the kernel 647 were 10 ms apart.
    #[test]
    fn the_hosts_tick_is_found_without_knowing_its_period() {
        let mut finder = RepeatFinder::default();
        let mut gaps: Vec<i64> = (0..800_i64).map(|k| k * 10_000_300 + k % 5 * 4_000).collect();
        gaps.extend((0..400_i64).map(|k| k * k * 50_021));
        gaps.sort_unstable();
        for start in &gaps {
            finder.push(*start, 20_000 + start.unsigned_abs() % 10_000);
        }
        let repeats = finder.finish();
        let period = repeats.periods[size_of(25_000)].unwrap();
        assert!(period.abs_diff(10_000_300) < 100_000, "{period}");
        let mut follower = RepeatFollower::default();
        let periodic = gaps.iter().filter(|g| follower.push(&repeats, **g, 25_000).is_some());
        assert!(periodic.count() > 780);
        assert_eq!(follower.push(&repeats, 0, 2_000), None, "another size");
    }

    #[test]
    fn no_period_where_there_is_none() {
        let mut finder = RepeatFinder::default();
        let mut dice = hourglass_dice::Dice::new(7);
        let mut at = 0_i64;
        for _ in 0..5_000 {
            at += dice.within(0, 16_000_000);
            finder.push(at, 25_000);
        }
        assert_eq!(finder.finish().periods[size_of(25_000)], None);
        assert_eq!(RepeatFinder::default().finish(), Repeats::default());
    }
}
