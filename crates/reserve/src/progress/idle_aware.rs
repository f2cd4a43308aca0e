//! Distinguishes work that wants nothing from work that was kept from what it wants.
//!
//! A job is asked for only before others are stopped for it, and when its deadline has come and it is not done. A job
//! whose program reported nothing, and whose threads all sleep, has what it wants: it waits, or has done its work and
//! does not report it. A reservation in the sense of Inoue et al., section 4.1, ends with that for the period, as with
//! a yield.
//!
//! Owns: that question. Must not: count work as idle that stands because its budget is used up.

use super::{ProgressErrors, ProgressSource};

/// A source, with the processor time of the work and whether any of it wants a processor.
pub(crate) struct IdleAwareProgress<F, G> {
    inner: Box<dyn ProgressSource>,
    time: F,
    /// Whether a thread runs or waits for a processor; `None` if that is not known.
    wants: G,
    ended: Option<Box<dyn FnMut() -> bool + Send>>,
    reserved_ns: u64,
    /// Processor time when the job began.
    begun_ns: Option<u64>,
}

impl<F, G> IdleAwareProgress<F, G>
where
    F: FnMut() -> Option<u64> + Send,
    G: FnMut() -> Option<bool> + Send,
{
    pub(crate) fn new(
        inner: Box<dyn ProgressSource>,
        time: F,
        wants: G,
    ) -> IdleAwareProgress<F, G> {
        IdleAwareProgress { inner, time, wants, ended: None, reserved_ns: 0, begun_ns: None }
    }

    pub(crate) fn until(
        self,
        ended: impl FnMut() -> bool + Send + 'static,
    ) -> IdleAwareProgress<F, G> {
        IdleAwareProgress { ended: Some(Box::new(ended)), ..self }
    }
}

impl<F, G> ProgressSource for IdleAwareProgress<F, G>
where
    F: FnMut() -> Option<u64> + Send,
    G: FnMut() -> Option<bool> + Send,
{
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.reserved_ns = reserved_ns;
        self.begun_ns = (self.time)();
        self.inner.begin(reserved_ns);
    }

    fn done_ns(&mut self) -> u64 {
        self.inner.done_ns()
    }

    fn begun_ns(&mut self) -> Option<u64> {
        self.inner.begun_ns()
    }

    fn restart(&mut self) {
        self.begun_ns = (self.time)();
        self.inner.restart();
    }

    fn co_runners(&mut self, running: bool) {
        self.inner.co_runners(running);
    }

    fn is_silent(&mut self) -> bool {
        self.inner.is_silent()
    }

    fn is_idle(&mut self) -> bool {
        // The cheapest first: programs that tell their progress are asked at every look.
        if !self.inner.is_silent() {
            return false;
        }
        let (Some(begun), Some(now)) = (self.begun_ns, (self.time)()) else { return false };
        // Work that has used up its reservation may stand for that, and frozen threads look as if they slept.
        let left = now.saturating_sub(begun) < self.reserved_ns;
        left && (self.wants)() == Some(false)
    }

    fn has_ended(&mut self) -> bool {
        self.ended.as_mut().is_some_and(|ended| ended())
    }

    fn errors(&self) -> ProgressErrors {
        self.inner.errors()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::progress::{Progress, ProgressPage, WordProgress};

    #[test]
    fn work_that_sleeps_without_progress_is_idle() {
        let progress = Progress::on(ProgressPage::create().unwrap());
        let word = WordProgress::new(ProgressPage::open(&progress.page().path()).unwrap());
        let mut progress = progress;
        let (clock, wants) = (Arc::new(AtomicU64::new(50)), Arc::new(AtomicU64::new(0)));
        let (time, state) = (Arc::clone(&clock), Arc::clone(&wants));
        let mut source = IdleAwareProgress::new(
            Box::new(word),
            move || Some(time.load(Ordering::Relaxed)),
            move || {
                [Some(false), Some(true), None]
                    .get(state.load(Ordering::Relaxed) as usize)
                    .copied()?
            },
        );
        assert!(!source.is_idle(), "no job has begun");
        source.begin(100);
        assert!(source.is_idle());
        // Runs or waits for a processor; is not known.
        for known in [1, 2] {
            wants.store(known, Ordering::Relaxed);
            assert!(!source.is_idle());
        }
        wants.store(0, Ordering::Relaxed);
        clock.fetch_add(99, Ordering::Relaxed);
        assert!(source.is_idle());
        clock.fetch_add(1, Ordering::Relaxed);
        assert!(!source.is_idle(), "it may stand, since all that is reserved is used up");
        source.begin(100);
        assert!(source.is_idle());
        progress.report(1, 5);
        assert!(!source.is_idle(), "it says itself that it is not done");
    }
}
