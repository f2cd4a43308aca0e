//! What threads say to an engine about its timers, without a lock.
//!
//! Owns: the words in which arming, cancelling, firing and terminating meet ([`Slot`]), the set of
//! timers that changed since the engine looked ([`DirtySet`]), whether the engine must be woken for
//! it ([`Wake`]), and a bounded queue ([`Ring`]).
//! Must not: allocate, block, read a clock, know what an action is, or reach beyond `atomic` and
//! itself: `tests/interleavings/service.rs` compiles these files once more with the atomics of a model checker.
//!
//! An arming goes like this: claim one of the timer's cells, write expiry and period into it, make
//! it the current one by one exchange of the state word, mark the timer as changed, and kick the
//! engine only if it would wake too late by itself. A thread that is preempted in between holds up
//! no other: another thread takes another cell, marks the timer itself and kicks for itself. The
//! engine never sees half an arming, because it believes what it read of a cell only if the state
//! word is still the same.

mod dirty_set;
mod ring;
mod slot;
mod state;
mod wake;

pub(crate) use dirty_set::DirtySet;
pub use ring::MOST_ROOM;
pub(crate) use ring::Ring;
pub(crate) use slot::{
    ActionEnd, ArmRequest, Context, ExpiryAction, ExpiryEvent, SLACK_MAX_NS, TimerSlot,
};
pub use state::CancelScope;
pub(crate) use state::{ArmRefused, SleeperState, SlotState};
pub(crate) use wake::{AWAKE, SleepTransition, Wake};
