//! What short operations cost: timed in batches, since a single one takes less than reading a clock
//! may cost.

use std::time::Instant;

use hourglass_trace::statistics::quantile_of;

use super::rows::NumberResult;

#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// Operations in one.
    size: u64,
    /// Time of each batch, ns.
    took_ns: Vec<u64>,
}

impl Batches {
    pub(super) fn of(size: u64) -> Batches {
        Batches { size: size.max(1), took_ns: Vec::new() }
    }

    /// Times a batch; what `run` returns is handed on.
    pub(super) fn time<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let answer = run();
        let took = begin.elapsed().as_nanos();
        self.took_ns.push(u64::try_from(took).unwrap_or(u64::MAX));
        answer
    }

    pub(super) fn median_ns(&self) -> Option<f64> {
        let mut sorted = self.took_ns.clone();
        sorted.sort_unstable();
        Some(quantile_of(&sorted, 0.5)? as f64 / self.size as f64)
    }

    pub(super) fn found(&self) -> NumberResult {
        let median = self.median_ns().map(|ns| (ns, self.operations()));
        median.ok_or_else(|| "there was no batch".into())
    }

    pub(super) fn operations(&self) -> u64 {
        self.size * self.took_ns.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_batches_is_of_one_operation() {
        let batches = Batches { size: 4, took_ns: vec![400, 40, 44] };
        assert_eq!((batches.median_ns(), batches.operations()), (Some(11.0), 12));
        let mut batches = Batches::of(0);
        assert_eq!((batches.median_ns(), batches.operations()), (None, 0));
        assert_eq!(batches.time(|| 7), 7);
        assert_eq!(batches.operations(), 1);
    }
}
