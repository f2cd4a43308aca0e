//! The state word of a timer: one value, every change of which is one exchange.
//!
//! Owns: which bit means what, and which changes there are.
//! Must not: touch an atomic.

/// Cells for armings that a timer has: one that stands, the others for threads that write.
pub(crate) const CELLS: usize = 4;

const CELL: u64 = 0b11;
const CLAIMED_AT: u32 = 2;
const CLAIMED: u64 = 0b1111 << CLAIMED_AT;
const ARMED: u64 = 1 << 6;
const PERIODIC: u64 = 1 << 7;
/// Its next expiry was cancelled, and only that.
const SKIP: u64 = 1 << 8;
/// An expiry waits for a worker.
const PENDING: u64 = 1 << 9;
const RUNNING: u64 = 1 << 10;
/// A thread waits for the action's end.
const AWAITED: u64 = 1 << 11;
const DEAD: u64 = 1 << 12;
/// No handle is left: the last one to finish gives the slot back.
const ORPHAN: u64 = 1 << 13;
const SLEEP_AT: u32 = 14;
const SLEEP: u64 = 0b111 << SLEEP_AT;
/// Armed since its last expiry.
const FRESH: u64 = 1 << 17;
/// Counts armings, cancellings and expiries: 2^46 of them, 2 years at a billion in 1000 s.
const SEQUENCE_AT: u32 = 18;

/// Why a timer does not do what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArmRefused {
    Terminated,
    /// As many threads as there are cells to write into are arming it at this moment.
    Contended,
    Slept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleeperState {
    Absent,
    Sleeps,
    Woken,
    /// The expiry was cancelled, or replaced by another.
    Cancelled,
    ClockSet,
}

impl SleeperState {
    const ALL: [SleeperState; 5] = [
        SleeperState::Absent,
        SleeperState::Sleeps,
        SleeperState::Woken,
        SleeperState::Cancelled,
        SleeperState::ClockSet,
    ];
}

/// How much is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelScope {
    /// The next expiry: a periodic timer stays armed for the one after, in phase.
    Current,
    /// All expiries.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotState(pub(crate) u64);

impl SlotState {
    /// Of a slot that no timer lives in.
    pub(crate) const VACANT: SlotState = SlotState(DEAD);

    pub(crate) const fn armed(self) -> bool {
        self.0 & ARMED != 0
    }

    pub(crate) const fn periodic(self) -> bool {
        self.0 & PERIODIC != 0
    }

    pub(crate) const fn skips(self) -> bool {
        self.0 & SKIP != 0
    }

    pub(crate) const fn pending(self) -> bool {
        self.0 & PENDING != 0
    }

    pub(crate) const fn running(self) -> bool {
        self.0 & RUNNING != 0
    }

    pub(crate) const fn awaited(self) -> bool {
        self.0 & AWAITED != 0
    }

    pub(crate) const fn dead(self) -> bool {
        self.0 & DEAD != 0
    }

    pub(crate) const fn orphan(self) -> bool {
        self.0 & ORPHAN != 0
    }

    pub(crate) fn slept(self) -> SleeperState {
        let at = ((self.0 & SLEEP) >> SLEEP_AT) as usize;
        SleeperState::ALL.get(at).copied().unwrap_or(SleeperState::Absent)
    }

    pub(crate) const fn cell(self) -> usize {
        (self.0 & CELL) as usize
    }

    /// Which arming this is, or how many changes later.
    pub(crate) const fn sequence(self) -> u64 {
        self.0 >> SEQUENCE_AT
    }

    /// A cell to write an arming into.
    pub(crate) fn claim(self) -> Result<(SlotState, usize), ArmRefused> {
        if self.dead() {
            return Err(ArmRefused::Terminated);
        }
        let taken = ((self.0 & CLAIMED) >> CLAIMED_AT) | 1 << self.cell();
        let cell = taken.trailing_ones() as usize;
        if cell >= CELLS {
            return Err(ArmRefused::Contended);
        }
        Ok((SlotState(self.0 | 1 << (CLAIMED_AT + cell as u32)), cell))
    }

    /// The claim of a cell given up.
    pub(crate) const fn unclaim(self, cell: usize) -> SlotState {
        SlotState(self.0 & !(1 << (CLAIMED_AT + cell as u32)))
    }

    /// The claimed cell holds the arming from now on; a thread that slept for another one learns of it.
    pub(crate) fn arm(self, cell: usize, periodic: bool) -> SlotState {
        let before = self.unclaim(cell).0 & !(CELL | PERIODIC | SKIP);
        let periodic = if periodic { PERIODIC } else { 0 };
        SlotState(before | cell as u64 | ARMED | FRESH | periodic).cancel_sleep().next()
    }

    /// Armed, and not expired since.
    pub(crate) const fn fresh(self) -> bool {
        self.0 & (ARMED | FRESH) == ARMED | FRESH
    }

    /// Expired, or for the first time again.
    pub(crate) const fn stale(self) -> SlotState {
        SlotState(self.0 & !FRESH)
    }

    /// A thread sleeps for the arming.
    pub(crate) fn with_sleep(self, slept: SleeperState) -> SlotState {
        let at = SleeperState::ALL.iter().position(|other| *other == slept).unwrap_or(0);
        SlotState(self.0 & !SLEEP | (at as u64) << SLEEP_AT)
    }

    /// A sleeping thread learns that the expiry does not come.
    pub(crate) fn cancel_sleep(self) -> SlotState {
        match self.slept() {
            SleeperState::Sleeps => self.with_sleep(SleeperState::Cancelled),
            _ => self,
        }
    }

    /// What is left after cancelling, if anything was armed.
    pub(crate) fn cancel(self, which: CancelScope) -> Option<SlotState> {
        match which {
            _ if !self.armed() => None,
            // The arming stays the same one, so that the engine finds it again.
            CancelScope::Current if self.periodic() => {
                (!self.skips()).then_some(SlotState(self.0 | SKIP))
            }
            _ => Some(self.disarm().cancel_sleep().next()),
        }
    }

    pub(crate) const fn disarm(self) -> SlotState {
        SlotState(self.0 & !(ARMED | PERIODIC | SKIP))
    }

    /// The next expiry counts again.
    pub(crate) const fn unskip(self) -> SlotState {
        SlotState(self.0 & !SKIP)
    }

    pub(crate) const fn with_pending(self) -> SlotState {
        SlotState(self.0 | PENDING)
    }

    pub(crate) const fn without_pending(self) -> SlotState {
        SlotState(self.0 & !PENDING)
    }

    pub(crate) const fn with_running(self) -> SlotState {
        SlotState(self.0 | RUNNING)
    }

    /// The action is over, and threads that wait for that are woken next.
    pub(crate) const fn ended(self) -> SlotState {
        SlotState(self.0 & !(RUNNING | AWAITED))
    }

    pub(crate) const fn with_awaited(self) -> SlotState {
        SlotState(self.0 | AWAITED)
    }

    pub(crate) const fn with_orphan(self) -> SlotState {
        SlotState(self.0 | ORPHAN)
    }

    /// Terminated. A sleeping thread stays recorded: it sees that the timer is dead.
    pub(crate) const fn terminate(self) -> SlotState {
        SlotState(self.disarm().0 | DEAD).next()
    }

    /// A timer lives here again: nothing is left of the one before but the count.
    pub(crate) const fn open(self) -> SlotState {
        SlotState(self.sequence() << SEQUENCE_AT).next()
    }

    pub(crate) const fn next(self) -> SlotState {
        SlotState(self.0.wrapping_add(1 << SEQUENCE_AT))
    }
}
