//! A rate over a run, whose uncertainty comes from parts of the run.

use super::{Estimate, mean};

/// Parts of a run: enough for an interval, each long enough to be like another (batch means, Jain
/// 1991, section 25.5.2).
const PARTS: usize = 20;

/// Amounts that are spread over a run, summed in equal parts of it.
#[derive(Clone, Debug)]
pub struct Windows {
    from_ns: i64,
    to_ns: i64,
    sums: [f64; PARTS],
}

impl Windows {
    /// Of the time between two moments; `None` if the second does not lie behind the first by at
    /// least a nanosecond for each part.
    pub fn between(from_ns: i64, to_ns: i64) -> Option<Windows> {
        let length = to_ns.saturating_sub(from_ns);
        (length >= PARTS as i64).then_some(Windows { from_ns, to_ns, sums: [0.0; PARTS] })
    }

    fn start(&self, number: usize) -> i64 {
        let length = i128::from(self.to_ns) - i128::from(self.from_ns);
        let at = i128::from(self.from_ns) + length * number as i128 / PARTS as i128;
        i64::try_from(at).unwrap_or(self.to_ns)
    }

    fn part_of(&self, ns: i64) -> Option<usize> {
        if ns < self.from_ns || ns >= self.to_ns {
            return None;
        }
        let length = i128::from(self.to_ns) - i128::from(self.from_ns);
        let into = i128::from(ns) - i128::from(self.from_ns);
        let mut part = usize::try_from(into * PARTS as i128 / length).ok()?.min(PARTS - 1);
        // Starts are rounded down, so that the division may be one short.
        if part + 1 < PARTS && ns >= self.start(part + 1) {
            part += 1;
        }
        Some(part)
    }

    /// Something that happened at a moment; outside the run it does not count.
    pub fn event(&mut self, ns: i64) {
        if let Some(sum) = self.part_of(ns).and_then(|part| self.sums.get_mut(part)) {
            *sum += 1.0;
        }
    }

    /// Something that went on from one moment to another, a nanosecond counting as 1.
    pub fn stretch(&mut self, from_ns: i64, to_ns: i64) {
        let (mut from, to) = (from_ns.max(self.from_ns), to_ns.min(self.to_ns));
        while from < to {
            let Some(part) = self.part_of(from) else { return };
            let end = to.min(self.start(part + 1));
            if let Some(sum) = self.sums.get_mut(part) {
                *sum += (end - from) as f64;
            }
            from = end.max(from + 1);
        }
    }

    /// How much a nanosecond, over the run, with the interval of Student's t over its parts.
    pub fn rate(&self, confidence: f64) -> Option<Estimate> {
        let rates: Vec<f64> = (0..PARTS)
            .zip(&self.sums)
            .map(|(part, sum)| sum / (self.start(part + 1) - self.start(part)).max(1) as f64)
            .collect();
        let found = mean(&rates, confidence)?;
        Some(Estimate { lo: found.lo.max(0.0), ..found })
    }
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    #[test]
    fn what_is_even_is_certain() {
        let mut windows = Windows::between(-1_000, 1_000_000_000).unwrap();
        (0..1_000).for_each(|n| windows.event(n * 1_000_000));
        let rate = windows.rate(USUAL).unwrap();
        assert!((rate.value * 1e9 - 1_000.0).abs() < 0.1 && rate.half_width() * 1e9 < 1.0);
        let mut half = Windows::between(0, 1_000_003).unwrap();
        (0..500_002).for_each(|n| half.stretch(2 * n, 2 * n + 1));
        assert!((half.rate(USUAL).unwrap().value - 0.5).abs() < 1e-4);
    }

    #[test]
    fn a_burst_is_not() {
        let mut windows = Windows::between(0, 20_000).unwrap();
        windows.stretch(-50, 1_000);
        windows.stretch(i64::MIN, i64::MIN);
        windows.event(20_000);
        let rate = windows.rate(USUAL).unwrap();
        assert!((rate.value - 0.05).abs() < 1e-9 && rate.lo == 0.0 && rate.hi > 0.15, "{rate:?}");
        assert!(Windows::between(0, 19).is_none() && Windows::between(5, 5).is_none());
        let mut all = Windows::between(i64::MIN, i64::MAX);
        all.iter_mut().for_each(|w| w.stretch(i64::MIN, i64::MAX));
        assert!(all.is_none_or(|w| w.rate(USUAL).is_some()));
    }
}
