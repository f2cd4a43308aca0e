//! One timer, as all threads see it.
//!
//! Owns: the state word, the cells that armings are written into, and what may happen in which
//! order: of firing and cancelling exactly one wins, after terminating nothing begins.
//! Must not: wait.

use super::super::atomic::{AtomicU64, Ordering};
use super::state::{ArmRefused, CELLS, CancelScope, SleeperState, SlotState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArmRequest {
    pub(crate) expiry_ns: i64,
    /// How far apart expiries are, ns; 0 if there is one only.
    pub(crate) period_ns: u64,
    /// How much later it may fire, ns: [`SLACK_MAX_NS`] at most.
    pub(crate) slack_ns: u64,
    /// Whatever else there is, in the owner's terms.
    pub(crate) flags: u8,
    /// Whether the expiry was past when it was armed: then serving it late is no fault of the engine.
    pub(crate) past: bool,
}

/// Beside the period, which is at most 2^63 - 1 ns.
const PAST: u64 = 1 << 63;

/// 2 years and 3 months, what fits beside the flags; a longer slack is stored as this one.
pub(crate) const SLACK_MAX_NS: u64 = u64::MAX >> u8::BITS;

/// Three words, of which a reader believes nothing until the state word says that they stood still.
///
/// Not four: the state word and the two cells that one thread which arms again and again takes in
/// turn are 56 bytes, so that an arming costs one line of memory, which the engine's CPU took by
/// reading the one before.
struct Cell([AtomicU64; 3]);

impl Cell {
    fn new() -> Cell {
        Cell(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Releasing, so that a reader of one of these words sees that the cell was taken for it.
    fn write(&self, arming: &ArmRequest) {
        let ArmRequest { expiry_ns, period_ns, slack_ns, flags, past } = *arming;
        self.0[0].store(expiry_ns as u64, Ordering::Release);
        let past = if past { PAST } else { 0 };
        self.0[1].store(period_ns & !PAST | past, Ordering::Release);
        let slack_ns = slack_ns.min(SLACK_MAX_NS);
        self.0[2].store(slack_ns << u8::BITS | u64::from(flags), Ordering::Release);
    }

    fn read(&self) -> ArmRequest {
        let [expiry_ns, period_ns, others] =
            std::array::from_fn(|word| self.0[word].load(Ordering::Acquire));
        ArmRequest {
            expiry_ns: expiry_ns as i64,
            period_ns: period_ns & !PAST,
            slack_ns: others >> u8::BITS,
            flags: others as u8,
            past: period_ns & PAST != 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Immediate,
    Deferred,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpiryEvent {
    pub(crate) sequence: u64,
    pub(crate) context: Context,
    /// Further expiries of a periodic timer that are past too.
    pub(crate) further: u64,
    /// It ends here, and why: not because the time came, but because the clock was set.
    pub(crate) torn: Option<SleeperState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryAction {
    /// Nothing: it was cancelled, replaced or terminated before.
    Lost,
    /// Nothing: this one expiry was cancelled.
    Skipped,
    /// Wake the thread that sleeps on it.
    Woke,
    /// Run the action now, then [`Slot::end`].
    Run {
        /// The first of the expiries was cancelled.
        skipped: bool,
    },
    /// Give it to a worker.
    Queue {
        /// The first of the expiries was cancelled.
        skipped: bool,
    },
    /// A worker runs it, and will find this expiry when it is done.
    AfterRun {
        /// The first of the expiries was cancelled.
        skipped: bool,
    },
    /// The expiry before still waits for a worker, and this one goes with it.
    Behind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionEnd {
    /// It expired again meanwhile: queue it again.
    pub(crate) requeue: bool,
    /// A thread waits for this end: wake it.
    pub(crate) awaited: bool,
    /// No handle is left: give the slot back.
    pub(crate) orphan: bool,
}

/// A timer. In this order, and to be put at the beginning of a line of memory.
#[repr(C)]
pub(crate) struct TimerSlot {
    state: AtomicU64,
    cells: [Cell; CELLS],
}

impl TimerSlot {
    pub(crate) fn new() -> TimerSlot {
        TimerSlot {
            state: AtomicU64::new(SlotState::VACANT.0),
            cells: std::array::from_fn(|_| Cell::new()),
        }
    }

    pub(crate) fn state(&self) -> SlotState {
        SlotState(self.state.load(Ordering::Acquire))
    }

    /// Makes one change as if at once; which state it began from and which it led to. Nothing if
    /// `change` refuses.
    fn change<E>(
        &self,
        mut change: impl FnMut(SlotState) -> Result<SlotState, E>,
    ) -> Result<(SlotState, SlotState), E> {
        let mut before = self.state.load(Ordering::Acquire);
        loop {
            let after = change(SlotState(before))?;
            let exchanged =
                self.state.compare_exchange(before, after.0, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => return Ok((SlotState(before), after)),
                Err(other) => before = other,
            }
        }
    }

    /// A timer lives here from now on. The caller alone has the slot.
    pub(crate) fn open(&self) {
        let _ = self.change(|state| Ok::<_, ArmRefused>(state.open()));
    }

    /// Arms it, whatever it was; returns the state before. The caller wakes the thread that slept
    /// on it, and marks the timer as changed.
    ///
    /// With `sleeps` for the calling thread to sleep, which only one thread does at a time.
    pub(crate) fn arm(&self, arming: &ArmRequest, sleeps: bool) -> Result<SlotState, ArmRefused> {
        let free_for = |state: SlotState| match state.slept() {
            _ if state.dead() => Err(ArmRefused::Terminated),
            SleeperState::Absent => Ok(state),
            _ if sleeps => Err(ArmRefused::Slept),
            _ => Ok(state),
        };
        let mut cell = 0;
        self.change(|state| {
            let (claimed, free) = free_for(state)?.claim()?;
            cell = free;
            Ok(claimed)
        })?;
        self.cells[cell].write(arming);
        let armed = self.change(|state| {
            let armed = free_for(state)?.arm(cell, arming.period_ns > 0);
            Ok(if sleeps { armed.with_sleep(SleeperState::Sleeps) } else { armed })
        });
        match armed {
            Ok((before, _)) => Ok(before),
            Err(refused) => {
                let _ = self.change(|state| Ok::<_, ArmRefused>(state.unclaim(cell)));
                Err(refused)
            }
        }
    }

    /// Cancels; returns the state before if there was something to cancel. The caller wakes a sleeping thread.
    pub(crate) fn cancel(&self, which: CancelScope) -> Result<Option<SlotState>, ArmRefused> {
        let cancelled = self.change(|state| match state.cancel(which) {
            _ if state.dead() => Err(Some(ArmRefused::Terminated)),
            Some(cancelled) => Ok(cancelled),
            None => Err(None),
        });
        match cancelled {
            Ok((before, _)) => Ok(Some(before)),
            Err(Some(refused)) => Err(refused),
            Err(None) => Ok(None),
        }
    }

    /// Terminates it; returns the state before. From now on no action begins; one may still run.
    /// The caller wakes a sleeping thread.
    pub(crate) fn terminate(&self) -> SlotState {
        let terminated = self.change(|state| Ok::<_, SlotState>(state.terminate()));
        terminated.map_or_else(|state| state, |(before, _)| before)
    }

    /// The handle is gone; whether the caller gives the slot back. If not, the last one to end does.
    pub(crate) fn abandon(&self) -> bool {
        let after = self.change(|state| Ok::<_, SlotState>(state.with_orphan()));
        let after = after.map_or_else(|state| state, |(_, after)| after);
        !after.pending() && !after.running()
    }

    /// Marks that a thread waits for the end of the action; false if it does not run.
    pub(crate) fn await_end(&self) -> bool {
        let waits =
            self.change(|state| if state.running() { Ok(state.with_awaited()) } else { Err(()) });
        waits.is_ok()
    }

    /// What became of the sleep, which is over with this unless it still goes on. The second is
    /// whether the timer was terminated.
    pub(crate) fn slept(&self) -> (SleeperState, bool) {
        let over = self.change(|state| match state.slept() {
            SleeperState::Sleeps if !state.dead() => Err((SleeperState::Sleeps, false)),
            _ => Ok(state.with_sleep(SleeperState::Absent)),
        });
        over.map_or_else(|goes_on| goes_on, |(before, _)| (before.slept(), before.dead()))
    }

    /// For the engine: the arming that stands, and which it is. `None` within if nothing does. The
    /// outer `None`: it changed so often that nothing could be read; mark it and look later.
    pub(crate) fn standing(&self) -> Option<Option<(u64, ArmRequest)>> {
        // An arming takes many times what a reading does: a second one hardly ever falls into it.
        const TRIES: u32 = 16;
        for _ in 0..TRIES {
            let state = self.state();
            if !state.armed() {
                return Some(None);
            }
            let arming = self.cells[state.cell()].read();
            let after = self.state();
            if (after.sequence(), after.cell()) == (state.sequence(), state.cell()) {
                return Some(Some((state.sequence(), arming)));
            }
        }
        None
    }

    /// For the engine: a timer expired. Of this and of cancelling, arming anew and terminating, one
    /// wins. `prepare` runs once before any worker can see the expiry, and perhaps for nothing; it
    /// is given whether the first expiry was cancelled.
    pub(crate) fn fire(&self, fire: ExpiryEvent, mut prepare: impl FnMut(bool)) -> ExpiryAction {
        let mut fired = ExpiryAction::Lost;
        let mut prepared = false;
        let _ = self
            .change(|state| {
                let (after, outcome) = expire(state, fire).ok_or(())?;
                fired = outcome;
                if let ExpiryAction::Queue { skipped } | ExpiryAction::AfterRun { skipped } =
                    outcome
                    && !prepared
                {
                    prepared = true;
                    prepare(skipped);
                }
                Ok::<_, ()>(after)
            })
            .inspect_err(|()| fired = ExpiryAction::Lost);
        fired
    }

    /// For a worker: the expiry that waits is taken up. False if it was terminated: then the
    /// second tells whether the slot is to be given back.
    pub(crate) fn begin(&self) -> Result<(), ActionEnd> {
        let begun = self.change(|state| {
            let taken = state.without_pending();
            Ok::<_, SlotState>(if state.dead() { taken } else { taken.with_running() })
        });
        match begun {
            Ok((before, after)) if before.dead() => Err(ActionEnd {
                requeue: false,
                awaited: false,
                orphan: after.orphan() && !after.running(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn end(&self) -> ActionEnd {
        let ended = self.change(|state| Ok::<_, SlotState>(state.ended()));
        let (before, after) = ended.unwrap_or_else(|state| (state, state));
        ActionEnd {
            requeue: before.pending(),
            awaited: before.awaited(),
            orphan: after.orphan() && !after.pending(),
        }
    }

    /// Takes the arming away after an action that failed, unless it was made since the expiry of that
    /// one.
    pub(crate) fn disarm_stale(&self) {
        // No thread sleeps for it: the expiry woke the one that slept for this arming.
        let _ = self.change(|state| match state.armed() && !state.fresh() {
            true => Ok(state.disarm().next()),
            false => Err(()),
        });
    }

    /// Takes away the arming with that sequence, which cannot be kept; another one stands. Returns
    /// whether a thread slept for it, which the caller wakes.
    pub(crate) fn disarm(&self, sequence: u64) -> bool {
        let disarmed = self.change(|state| match state.armed() && state.sequence() == sequence {
            true => Ok(state.disarm().cancel_sleep().next()),
            false => Err(()),
        });
        disarmed.is_ok_and(|(before, _)| before.slept() == SleeperState::Sleeps)
    }
}

/// What an expiry makes of a state; nothing if another arming stands there, or none.
fn expire(state: SlotState, fire: ExpiryEvent) -> Option<(SlotState, ExpiryAction)> {
    if !state.armed() || state.sequence() != fire.sequence {
        return None;
    }
    let skipped = state.skips();
    let stays = state.periodic() && fire.torn.is_none();
    let after = if stays { state.unskip() } else { state.disarm() }.stale().next();
    if state.slept() == SleeperState::Sleeps {
        return Some((
            after.with_sleep(fire.torn.unwrap_or(SleeperState::Woken)),
            ExpiryAction::Woke,
        ));
    }
    if skipped && fire.further == 0 && fire.torn.is_none() {
        return Some((after, ExpiryAction::Skipped));
    }
    Some(match fire.context {
        Context::Immediate => (after.with_running(), ExpiryAction::Run { skipped }),
        Context::Deferred if state.pending() => (after, ExpiryAction::Behind),
        Context::Deferred if state.running() => {
            (after.with_pending(), ExpiryAction::AfterRun { skipped })
        }
        Context::Deferred => (after.with_pending(), ExpiryAction::Queue { skipped }),
    })
}
