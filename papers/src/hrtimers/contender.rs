//! The structures that section 4 is about, each behind the same few calls, on the simulated clock.

use hourglass_queue::reference::CascadingWheel;
use hourglass_queue::{
    ExpiredEntry, Handle, Heap, PriorityStructure, Queue, QueueError, RedBlackTree, TimeoutWheel,
};
use hourglass_time::{Instant, Sim, Span};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PollCounts {
    pub(super) fired: u64,
    /// Timers that were moved to another place without firing.
    pub(super) moved: u64,
    pub(super) again: bool,
}

pub(super) trait TimerStructure {
    fn arm(&mut self, now: Instant<Sim>, after: Span) -> Result<Handle, QueueError>;

    fn remove(&mut self, timer: Handle) -> Result<(), QueueError>;

    fn poll(&mut self, now: Instant<Sim>, fired: &mut dyn FnMut(ExpiredEntry<Sim>)) -> PollCounts;

    /// Finds the next expiry; how many entries and timers were looked at, where that is counted.
    fn next(&self) -> (Option<Instant<Sim>>, Option<u64>);
}

/// Timers that one look may fire, for the structures that have a budget.
pub(super) const BUDGET: usize = TimeoutWheel::<Sim, ()>::BUDGET;

impl TimerStructure for CascadingWheel<Sim, ()> {
    fn arm(&mut self, now: Instant<Sim>, after: Span) -> Result<Handle, QueueError> {
        let timer = self.create(())?;
        CascadingWheel::arm(self, timer, now.saturating_add(after))?;
        Ok(timer)
    }

    fn remove(&mut self, timer: Handle) -> Result<(), QueueError> {
        CascadingWheel::remove(self, timer)
    }

    fn poll(&mut self, now: Instant<Sim>, fired: &mut dyn FnMut(ExpiredEntry<Sim>)) -> PollCounts {
        let done = self.advance(now, |wheel, expired| {
            fired(expired);
            let _ = CascadingWheel::remove(wheel, expired.handle);
        });
        PollCounts { fired: done.fired, moved: done.cascaded, again: false }
    }

    fn next(&self) -> (Option<Instant<Sim>>, Option<u64>) {
        let search = self.search();
        (search.next, Some(search.looked_at))
    }
}

impl TimerStructure for TimeoutWheel<Sim, ()> {
    fn arm(&mut self, now: Instant<Sim>, after: Span) -> Result<Handle, QueueError> {
        let timer = self.create(())?;
        self.arm_after(timer, now, after)?;
        Ok(timer)
    }

    fn remove(&mut self, timer: Handle) -> Result<(), QueueError> {
        TimeoutWheel::remove(self, timer)
    }

    fn poll(&mut self, now: Instant<Sim>, fired: &mut dyn FnMut(ExpiredEntry<Sim>)) -> PollCounts {
        let count = self.expire(now, BUDGET, |wheel, expired| {
            fired(expired);
            let _ = TimeoutWheel::remove(wheel, expired.handle);
        });
        PollCounts { fired: count as u64, moved: 0, again: count == BUDGET }
    }

    fn next(&self) -> (Option<Instant<Sim>>, Option<u64>) {
        (self.next_expiry(), None)
    }
}

impl<B: PriorityStructure> TimerStructure for Queue<Sim, (), B> {
    fn arm(&mut self, now: Instant<Sim>, after: Span) -> Result<Handle, QueueError> {
        let timer = self.create(())?;
        Queue::arm(self, timer, now.saturating_add(after), Span::ZERO)?;
        Ok(timer)
    }

    fn remove(&mut self, timer: Handle) -> Result<(), QueueError> {
        Queue::remove(self, timer)
    }

    fn poll(&mut self, now: Instant<Sim>, fired: &mut dyn FnMut(ExpiredEntry<Sim>)) -> PollCounts {
        let count = self.expire(now, BUDGET, |queue, expired| {
            fired(expired);
            let _ = Queue::remove(queue, expired.handle);
        });
        PollCounts { fired: count as u64, moved: 0, again: count == BUDGET }
    }

    fn next(&self) -> (Option<Instant<Sim>>, Option<u64>) {
        (self.next_expiry(), None)
    }
}

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Kind {
        Cascading => "cascading wheel",
        Timeouts => "timeout wheel",
        Heap => "heap",
        RedBlack => "red-black tree",
    }
}

impl Kind {
    /// An empty one at time zero; the wheels with ticks, or granules, of this length.
    pub(super) fn empty(self, tick: Span) -> Result<Box<dyn TimerStructure>, QueueError> {
        Ok(match self {
            Kind::Cascading => Box::new(CascadingWheel::new(tick, Instant::ZERO)?),
            Kind::Timeouts => Box::new(TimeoutWheel::new(tick, Instant::ZERO)?),
            Kind::Heap => Box::new(Queue::<Sim, (), Heap>::new()),
            Kind::RedBlack => Box::new(Queue::<Sim, (), RedBlackTree>::new()),
        })
    }
}

/// Numbers that look random and are the same every time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn from_seed(seed: u64) -> Numbers {
        Numbers(super::super::downsample::scattered(seed))
    }

    pub(super) fn next_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let wide = u128::from(super::super::downsample::scattered(self.0)) * u128::from(end);
        (wide >> 64) as u64
    }

    /// The next, from `least` up to below `least << doublings`, each doubling as often as any other.
    pub(super) fn log_uniform(&mut self, least: u64, doublings: u64) -> u64 {
        let base = least << self.next_below(doublings);
        base + self.next_below(base)
    }
}
