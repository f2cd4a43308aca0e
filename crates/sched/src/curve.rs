//! Arrivals in bursts: how soon after each other several jobs of a task can come.
//!
//! Owns: [`Curve`], the shortest distances of arrivals (the minimum-distance function of Richter's
//! standard event models, TU Braunschweig, 2005), and counts by them. Must not: know costs,
//! jitter or a policy.

/// The shortest time from the first to the n-th of n successive arrivals of a task, for each n.
///
/// Invariants: ascending; superadditive, that is, the distances of two parts of a sequence are
/// never longer together than that of the whole; so a sequence with just these distances, from the
/// first arrival on, is itself allowed and is the densest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Distances of 2, 3, ... arrivals.
    distances: Vec<u64>,
    period: u64,
    changed: bool,
}

/// Distances that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// The period is zero.
    #[error("the period is 0; give the shortest time between arrivals after the burst")]
    NoPeriod,
    /// More arrivals closer together than fewer.
    #[error("{arrivals} arrivals within {distance} cannot be closer together than fewer of them")]
    Descending {
        /// How many arrivals.
        arrivals: usize,
        /// The given distance.
        distance: u64,
    },
    /// Too many distances.
    #[error("{0} distances of a burst are too many; give at most {MOST_DISTANCES}")]
    TooMany(usize),
}

/// The most distances that a burst may state. Reading them takes time that grows with their square.
pub const MOST_DISTANCES: usize = 4096;

impl Curve {
    /// Arrivals at least `period` apart.
    ///
    /// # Errors
    /// A period of 0.
    pub fn periodic(period: u64) -> Result<Curve, CurveError> {
        Curve::bursts(&[], period)
    }

    /// The curve of a period that is not 0.
    pub(crate) fn every(period: u64) -> Curve {
        Curve { distances: Vec::new(), period: period.max(1), changed: false }
    }

    /// `later` has the shortest times from the first to the 2nd, 3rd, ... arrival; beyond these, each
    /// arrival is a period later. If a sequence as described had arrivals closer together in its
    /// middle, those distances count: [`Curve::is_as_given`] tells.
    ///
    /// # Errors
    /// A period of 0, distances that descend, more than [`MOST_DISTANCES`].
    pub fn bursts(later: &[u64], period: u64) -> Result<Curve, CurveError> {
        if period == 0 {
            return Err(CurveError::NoPeriod);
        }
        if later.len() > MOST_DISTANCES {
            return Err(CurveError::TooMany(later.len()));
        }
        if let Some(at) = (1..later.len()).find(|at| later[*at] < later[*at - 1]) {
            return Err(CurveError::Descending { arrivals: at + 2, distance: later[at] });
        }
        let given = Curve { distances: later.to_vec(), period, changed: false };
        let closest = |arrivals: usize| {
            let from = |first: usize| given.instant(first + arrivals - 1) - given.instant(first);
            let least = (0..=later.len()).map(from).min().unwrap_or(0);
            // No more than what was given, which has 64 bits.
            u64::try_from(least).unwrap_or(u64::MAX)
        };
        let closed: Vec<u64> = (2..later.len() + 2).map(closest).collect();
        Ok(Curve { changed: closed != later, distances: closed, period })
    }

    /// When the arrival with this number, from 0, comes in the densest sequence.
    fn instant(&self, number: usize) -> u128 {
        match number.checked_sub(1) {
            None => 0,
            Some(at) => match self.distances.get(at) {
                Some(distance) => u128::from(*distance),
                None => {
                    let beyond = (number - self.distances.len()) as u128;
                    u128::from(self.last()) + beyond * u128::from(self.period)
                }
            },
        }
    }

    fn last(&self) -> u64 {
        self.distances.last().copied().unwrap_or(0)
    }

    /// Whether the distances are those that were given. If not, an arrival pattern as dense as they
    /// say may not exist, and a bound may not be reached.
    #[must_use]
    pub fn is_as_given(&self) -> bool {
        !self.changed
    }

    /// Whether the curve has no burst, and equals a period.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.distances.iter().enumerate().all(|(at, distance)| {
            u128::from(*distance) == (at as u128 + 1) * u128::from(self.period)
        })
    }

    /// The distances of 2, 3, ... arrivals as far as a burst goes; none without one.
    #[must_use]
    pub fn distances(&self) -> &[u64] {
        &self.distances
    }

    /// The time between arrivals after the burst.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The shortest time from the first to the last of `arrivals` successive arrivals; 0 of one or
    /// none. `None` if it has more than 64 bits.
    #[must_use]
    pub fn distance(&self, arrivals: u64) -> Option<u64> {
        let Some(at) = arrivals.checked_sub(2) else { return Some(0) };
        match usize::try_from(at).ok().and_then(|at| self.distances.get(at)) {
            Some(distance) => Some(*distance),
            None => {
                let beyond = arrivals - 1 - self.distances.len() as u64;
                self.last().checked_add(beyond.checked_mul(self.period)?)
            }
        }
    }

    /// The jitter with which a period covers the burst: of a sequence that is released with it, the
    /// n-th arrival may come as soon after the first as here. `None` if it has more than 64 bits.
    #[must_use]
    pub fn as_jitter(&self) -> Option<u64> {
        let mut most = 0;
        for (distance, periods) in self.distances.iter().zip(1u64..) {
            let nominal = periods.checked_mul(self.period)?;
            most = most.max(nominal.saturating_sub(*distance));
        }
        Some(most)
    }

    /// The most arrivals in a window of length `window`, its end not included.
    #[must_use]
    pub fn before(&self, window: u64) -> u64 {
        window.checked_sub(1).map_or(0, |last| self.by(last))
    }

    /// The most arrivals within `time` of the first of them, inclusive: one at least. Saturates.
    #[must_use]
    pub fn by(&self, time: u64) -> u64 {
        let within = self.distances.partition_point(|distance| *distance <= time);
        if within < self.distances.len() {
            return within as u64 + 1;
        }
        let after = (time - self.last().min(time)) / self.period;
        after.saturating_add(within as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_curve() -> impl Strategy<Value = (Vec<u64>, u64)> {
        (proptest::collection::vec(0..9u64, 0..6), 1..12u64).prop_map(|(gaps, period)| {
            let distances = gaps.iter().scan(0, |sum, gap| {
                *sum += gap;
                Some(*sum)
            });
            (distances.collect(), period)
        })
    }

    proptest! {
        /// Counted in a list of arrivals, in every window of it.
        #[test]
        fn counts_are_those_of_the_densest_window((later, period) in any_curve(), window in 0..60u64) {
            let curve = Curve::bursts(&later, period).unwrap();
            let mut arrivals = vec![0];
            arrivals.extend(&later);
            while arrivals.len() < 90 {
                arrivals.push(arrivals[arrivals.len() - 1] + period);
            }
            let densest = (0..12).map(|first| {
                let from: u64 = arrivals[first];
                arrivals[first..].iter().filter(|a| **a - from < window).count() as u64
            });
            prop_assert_eq!(curve.before(window), densest.max().unwrap());
        }

        /// The distance of n is the first time by which n have come.
        #[test]
        fn distances_and_counts_are_inverse((later, period) in any_curve(), n in 2..30u64) {
            let curve = Curve::bursts(&later, period).unwrap();
            let distance = curve.distance(n).unwrap();
            prop_assert!(curve.by(distance) >= n && curve.before(distance) < n);
        }

        #[test]
        fn distances_are_superadditive((later, period) in any_curve(), a in 1..12u64, b in 1..12u64) {
            let curve = Curve::bursts(&later, period).unwrap();
            let distance = |n| curve.distance(n).unwrap();
            prop_assert!(distance(a + b - 1) >= distance(a) + distance(b));
        }

        /// A period with the jitter never has fewer arrivals in a window, and with less jitter it has.
        #[test]
        fn a_jitter_covers_a_burst((later, period) in any_curve(), window in 1..60u64) {
            let curve = Curve::bursts(&later, period).unwrap();
            let jitter = curve.as_jitter().unwrap();
            prop_assert!(curve.before(window) <= (window + jitter).div_ceil(period));
            let fewer = |less: u64| (1..400).any(|w: u64| curve.before(w) > (w + less).div_ceil(period));
            prop_assert!(jitter == 0 || fewer(jitter - 1));
        }

        /// Without a burst the count is the usual ceiling.
        #[test]
        fn a_period_is_a_ceiling(period in 1..u64::MAX, window in any::<u64>()) {
            prop_assert_eq!(Curve::periodic(period).unwrap().before(window), window.div_ceil(period));
        }
    }

    /// 10 to the second and 5 to each further one: there are two within 5.
    #[test]
    fn distances_in_the_middle_count() {
        let curve = Curve::bursts(&[10], 5).unwrap();
        assert_eq!((curve.distance(2), curve.distance(3)), (Some(5), Some(10)));
        assert!(!curve.is_as_given() && curve.is_periodic());
        assert!(Curve::bursts(&[1, 2, 3], 20).unwrap().is_as_given());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(Curve::bursts(&[1], 0), Err(CurveError::NoPeriod));
        let descending = CurveError::Descending { arrivals: 3, distance: 4 };
        assert_eq!(Curve::bursts(&[5, 4], 9), Err(descending));
        let many = vec![0; MOST_DISTANCES + 1];
        assert!(matches!(Curve::bursts(&many, 9), Err(CurveError::TooMany(_))));
    }
}
