//! Progress by several sources at once.

use super::{ProgressErrors, ProgressSource};

/// The maximum of several sources. No source reports more than was done, so their maximum does not either.
///
/// Errors are those of the first source: the word that a program may write, beside processor time, which counts also
/// for a program that writes none. Its name is that of the first source if that has ever reported, and else of the
/// next.
pub(crate) struct MaxProgress {
    first: Box<dyn ProgressSource>,
    others: Vec<Box<dyn ProgressSource>>,
    first_reported: bool,
}

impl MaxProgress {
    pub(crate) fn of(
        first: Box<dyn ProgressSource>,
        others: Vec<Box<dyn ProgressSource>>,
    ) -> MaxProgress {
        MaxProgress { first, others, first_reported: false }
    }
}

impl ProgressSource for MaxProgress {
    fn name(&self) -> &'static str {
        match self.others.first() {
            Some(next) if !self.first_reported => next.name(),
            _ => self.first.name(),
        }
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.first.begin(reserved_ns);
        self.others.iter_mut().for_each(|source| source.begin(reserved_ns));
    }

    fn done_ns(&mut self) -> u64 {
        let first = self.first.done_ns();
        self.first_reported |= first > 0;
        // All are asked: a source may have to account at each look.
        self.others.iter_mut().map(|source| source.done_ns()).fold(first, u64::max)
    }

    fn begun_ns(&mut self) -> Option<u64> {
        self.first.begun_ns()
    }

    fn restart(&mut self) {
        self.first.restart();
        self.others.iter_mut().for_each(|source| source.restart());
    }

    fn co_runners(&mut self, running: bool) {
        self.first.co_runners(running);
        self.others.iter_mut().for_each(|source| source.co_runners(running));
    }

    fn is_silent(&mut self) -> bool {
        self.first.is_silent()
    }

    fn errors(&self) -> ProgressErrors {
        self.first.errors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::cpu_time::CpuTime;
    use hourglass_sim::slack::ProgressRate;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct FixedProgress(Arc<AtomicU64>);

    impl ProgressSource for FixedProgress {
        fn name(&self) -> &'static str {
            "word"
        }

        fn begin(&mut self, _: u64) {}

        fn done_ns(&mut self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn errors(&self) -> ProgressErrors {
            ProgressErrors { backwards: 0, unmoved: 3 }
        }
    }

    /// A program that tells nothing gets what processor time proves: nothing beside co-runners,
    /// everything without.
    #[test]
    fn the_largest_of_lower_bounds_is_one() {
        let (word, clock) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1_000)));
        let read = Arc::clone(&clock);
        let time = CpuTime::new(move || Some(read.load(Ordering::Relaxed)), ProgressRate::ZERO, 0);
        let mut both =
            MaxProgress::of(Box::new(FixedProgress(Arc::clone(&word))), vec![Box::new(time)]);
        both.begin(500);
        clock.fetch_add(100, Ordering::Relaxed);
        assert_eq!(both.done_ns(), 0);
        both.co_runners(false);
        clock.fetch_add(70, Ordering::Relaxed);
        assert_eq!(both.done_ns(), 70);
        assert_eq!(both.name(), "cpu_time", "the word has told nothing");
        word.store(200, Ordering::Relaxed);
        assert_eq!(both.done_ns(), 200);
        clock.fetch_add(400, Ordering::Relaxed);
        assert_eq!(both.done_ns(), 470);
        assert_eq!((both.name(), both.errors().unmoved), ("word", 3));
    }
}
