//! The words between a thread that may be stopped and its responder, which lets it go on.
//!
//! Owns: the deadline, the message about the last fault, the answer to it; the side of the thread
//! that answers. Must not: read a clock, enter the kernel, know what an answer is given for.

use super::atomics::{AtomicFamily, AtomicWord, Native};
use super::machine::GatePlatform;

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// Time after a deadline at which the responder checks whether the thread acted upon it. One that runs does so at once.
pub const OVERDUE_NS: u64 = 50_000;

/// A fault is to be acted upon.
pub(super) const PENDING_FAULT: u32 = 1;
/// An answer is to be taken.
pub(super) const PENDING_ANSWER: u32 = 2;
/// Another thread called this one to account ([`StopGate::call`]).
pub(super) const PENDING_CALL: u32 = 4;

/// The action on a thread that passes its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopAction {
    /// Nothing; there is a message.
    #[default]
    Notify,
    /// It stands until the responder takes the message and lets it go, which is before it does anything that takes
    /// time; if the responder is occupied, the thread does not stand.
    Hold,
    /// It stands until it is answered.
    Suspend,
}

impl StopAction {
    pub(super) const fn code(self) -> u32 {
        match self {
            StopAction::Notify => 0,
            StopAction::Hold => 1,
            StopAction::Suspend => 2,
        }
    }

    pub(super) const fn of(code: u32) -> StopAction {
        match code {
            0 => StopAction::Notify,
            1 => StopAction::Hold,
            _ => StopAction::Suspend,
        }
    }
}

/// A message about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultMessage {
    /// The fault's number, from 1.
    pub number: u64,
    /// The deadline that was passed, ns.
    pub deadline_ns: u64,
    /// When the thread was stopped, or the message written, ns.
    pub stopped_ns: u64,
    /// The action on the thread.
    pub strength: StopAction,
    /// Whether a region put it off.
    pub deferred: bool,
    /// Whether the thread stands at the gate.
    pub is_stopped: bool,
}

/// The answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultResponse {
    /// The deadline that the thread has from now on, if it has not taken another meanwhile; ns.
    pub deadline_ns: Option<u64>,
    pub end: bool,
}

impl FaultResponse {
    pub const GO_ON: FaultResponse = FaultResponse { deadline_ns: None, end: false };
}

/// The words between a thread that may be stopped and its responder.
///
/// A thread waits on an epoch that every answer, every withdrawal changes, and looks again at what
/// it waits for after it has read the epoch: no answer is missed however soon the next fault comes.
/// (With a flag that is set and cleared, a thread that is let go and stopped again before it ran
/// finds the flag cleared and stands for ever.)
#[derive(Debug)]
pub struct StopGate<W: AtomicFamily = Native> {
    // Written by the thread itself, in its normal course and in its signal handler.
    pub(super) deadline_ns: W::U64,
    /// Counts deadlines taken and given up.
    pub(super) arming: W::U64,
    pub(super) pending: W::U32,
    pub(super) pending_deadline_ns: W::U64,
    /// Acting upon faults is under way.
    pub(super) settling: W::U32,
    pub(super) strength: W::U32,
    pub(super) longest_stop_ns: W::U64,
    pub(super) faults: W::U64,
    pub(super) fault_arming: W::U64,
    pub(super) untold: W::U64,
    pub(super) overstayed: W::U64,
    /// The thread is watched no more.
    pub(super) gone: W::U32,
    // The caller writes these, and the thread takes them.
    called: W::U32,
    called_deadline_ns: W::U64,
    // The message; written by the thread while `mail` is 0, read while it is not.
    pub(super) mail: W::U64,
    pub(super) mail_deadline_ns: W::U64,
    pub(super) mail_stopped_ns: W::U64,
    pub(super) mail_flags: W::U32,
    // The responder writes these.
    pub(super) open: W::U32,
    pub(super) busy: W::U32,
    pub(super) released: W::U64,
    pub(super) new_deadline_ns: W::U64,
    /// The fault that the new deadline answers; 0 without one.
    pub(super) new_for: W::U64,
    pub(super) ended: W::U32,
    /// The futex word of the thread.
    pub(super) epoch: W::U32,
    /// The futex word of the responder.
    pub(super) word: W::U32,
    /// The earliest deadline at which the responder looks by itself; 0 if it does not wait.
    pub(super) looks_for_ns: W::U64,
}

/// The deadline that the responder expects of a thread that has none at the moment: as far from its last one as that
/// was from the one before, so that a thread with periodic deadlines need not wake the responder for each.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedDeadline {
    last_ns: u64,
    distance_ns: u64,
    arming: u64,
}

impl ExpectedDeadline {
    /// None.
    pub const NOTHING: ExpectedDeadline =
        ExpectedDeadline { last_ns: 0, distance_ns: NEVER, arming: 0 };

    /// The deadline to look for next, where the thread's is `deadline_ns` after `arming` changes of it.
    fn next(&mut self, deadline_ns: u64, arming: u64) -> u64 {
        let has_changed = self.arming != arming;
        self.arming = arming;
        if deadline_ns == NEVER {
            if has_changed {
                self.last_ns = self.last_ns.saturating_add(self.distance_ns);
            }
            return if has_changed { self.last_ns } else { NEVER };
        }
        if self.last_ns != 0 && deadline_ns > self.last_ns {
            self.distance_ns = deadline_ns - self.last_ns;
        }
        self.last_ns = deadline_ns;
        deadline_ns
    }
}

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
/// The responder is closed, but has not left yet.
const CLOSING: u32 = 2;
/// A responder is about to open.
const OPENING: u32 = 3;

/// In the flags of a message, above its strength.
pub(super) const DEFERRED: u32 = 1 << 8;
pub(super) const STANDS: u32 = 1 << 9;

impl<W: AtomicFamily> StopGate<W> {
    /// Nothing is armed, and the gate has no responder.
    #[must_use]
    pub fn new() -> StopGate<W> {
        let (zero32, zero64) = (|| W::U32::new(0), || W::U64::new(0));
        StopGate {
            deadline_ns: W::U64::new(NEVER),
            arming: zero64(),
            pending: zero32(),
            pending_deadline_ns: zero64(),
            settling: zero32(),
            strength: zero32(),
            longest_stop_ns: W::U64::new(NEVER),
            faults: zero64(),
            fault_arming: zero64(),
            untold: zero64(),
            overstayed: zero64(),
            gone: zero32(),
            called: zero32(),
            called_deadline_ns: zero64(),
            mail: zero64(),
            mail_deadline_ns: zero64(),
            mail_stopped_ns: zero64(),
            mail_flags: zero32(),
            open: zero32(),
            busy: zero32(),
            released: zero64(),
            new_deadline_ns: zero64(),
            new_for: zero64(),
            ended: zero32(),
            epoch: zero32(),
            word: zero32(),
            looks_for_ns: zero64(),
        }
    }

    /// The deadline in force, ns.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns.load()).filter(|at| *at != NEVER)
    }

    /// Deadlines passed so far.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load()
    }

    /// Of those, the undelivered ones: the gate had no responder, or it was still occupied with two others.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.untold.load()
    }

    /// How often the thread went on without an answer, after its longest stop.
    #[must_use]
    pub fn overstayed(&self) -> u64 {
        self.overstayed.load()
    }

    /// Whether an answer was to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load() != 0
    }

    /// Whether the thread gave up being watched.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load() != 0
    }

    /// The action at the next fault.
    #[must_use]
    pub fn strength(&self) -> StopAction {
        StopAction::of(self.strength.load())
    }

    /// Changes what is done at the next fault.
    pub fn set_strength(&self, strength: StopAction) {
        self.strength.store(strength.code());
    }

    /// How long the thread stands at most; [`NEVER`] without a limit.
    pub fn set_longest_stop_ns(&self, longest_ns: u64) {
        self.longest_stop_ns.store(longest_ns);
    }

    /// Another thread says that a deadline is past which it keeps for this one: a fault like those of
    /// the thread's own, once it is made to look ([`super::StopHandle::nudge`]). Calls that it has not seen
    /// yet are one.
    pub fn call(&self, deadline_ns: u64) {
        self.called_deadline_ns.store(deadline_ns);
        self.called.store(1);
    }

    /// Whether a call came since the last check.
    pub(super) fn take_call(&self) -> bool {
        self.called.swap(0) != 0
    }

    /// The deadline of the last call.
    pub(super) fn called_deadline_ns(&self) -> u64 {
        self.called_deadline_ns.load()
    }

    /// Adds a responder; `false` if the gate has one already, or its last one has not [left](StopGate::vacate).
    pub fn open(&self) -> bool {
        if !self.open.replace(CLOSED, OPENING) {
            return false;
        }
        // Left by the one before. What comes from the next line on is for this one.
        self.mail.store(0);
        self.busy.store(0);
        self.looks_for_ns.store(0);
        self.open.store(OPEN);
        true
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load() == OPEN
    }

    /// Whether the gate has a responder, or its last one has not left yet.
    #[must_use]
    pub fn is_occupied(&self) -> bool {
        self.open.load() != CLOSED
    }

    /// Ends the answers: the thread stands no more. Wakes both sides. The place is free for another responder when this
    /// one has called [`StopGate::vacate`].
    pub fn close(&self, machine: &impl GatePlatform<W>) {
        self.open.replace(OPEN, CLOSING);
        self.step(machine);
        self.ring(machine);
    }

    /// Leaves, after [`StopGate::close`]: from here on another responder may answer. A thread that stands, and does not
    /// run before that, would find the gate open but its message lost: all messages until now are let go for good.
    pub fn vacate(&self, machine: &impl GatePlatform<W>) {
        self.released.store(self.faults.load());
        self.open.store(CLOSED);
        self.step(machine);
    }

    /// Takes the message, if there is one. Until [`StopGate::finish`] no thread stands for less than an answer
    /// ([`StopAction::Hold`]).
    pub fn take(&self, machine: &impl GatePlatform<W>) -> Option<FaultMessage> {
        let number = self.mail.load();
        if number == 0 {
            return None;
        }
        self.busy.store(1);
        let flags = self.mail_flags.load();
        let mail = FaultMessage {
            number,
            deadline_ns: self.mail_deadline_ns.load(),
            stopped_ns: self.mail_stopped_ns.load(),
            strength: StopAction::of(flags & !(DEFERRED | STANDS)),
            deferred: flags & DEFERRED != 0,
            is_stopped: flags & STANDS != 0,
        };
        self.mail.store(0);
        // The thread may be waiting for room.
        self.step(machine);
        Some(mail)
    }

    /// Takes a deadline that was passed [`OVERDUE_NS`] ago and is still in force: the thread does not get to run, or its
    /// signal is slow. Not where that is to stand by itself ([`StopAction::Suspend`]), and not where it is to stand for a
    /// moment ([`StopAction::Hold`]) and `is_within` a region. Until [`StopGate::finish`], as [`StopGate::take`].
    pub fn take_overdue(
        &self,
        is_within: impl FnOnce() -> bool,
        machine: &impl GatePlatform<W>,
    ) -> Option<FaultMessage> {
        let (strength, arming) = (self.strength(), self.arming.load());
        let deadline_ns = self.deadline_ns.load();
        let now_ns = machine.now_ns();
        let is_due = self.is_open()
            && deadline_ns != NEVER
            && now_ns >= deadline_ns.saturating_add(OVERDUE_NS);
        if !is_due || strength == StopAction::Suspend {
            return None;
        }
        let deferred = is_within();
        if strength == StopAction::Hold && deferred {
            return None;
        }
        self.busy.store(1);
        if !self.deadline_ns.replace(deadline_ns, NEVER) {
            self.busy.store(0);
            return None;
        }
        let fault_arming = self.fault_arming.load();
        if fault_arming < arming {
            // Refused if the thread passed another one meanwhile.
            self.fault_arming.replace(fault_arming, arming);
        }
        let number = self.faults.add(1).wrapping_add(1);
        Some(FaultMessage {
            number,
            deadline_ns,
            stopped_ns: now_ns,
            strength,
            deferred,
            is_stopped: false,
        })
    }

    /// Lets the thread go on from the fault with that number.
    pub fn release(&self, number: u64, machine: &impl GatePlatform<W>) {
        self.released.store(number);
        self.step(machine);
    }

    /// Answers the fault with that number, and lets the thread go on. Whether the thread has to be
    /// made to look: there is a new deadline for it, and it does not stand, or may have stood long
    /// enough meanwhile.
    pub fn answer(
        &self,
        mail: &FaultMessage,
        answer: FaultResponse,
        machine: &impl GatePlatform<W>,
    ) -> bool {
        if let Some(at_ns) = answer.deadline_ns {
            self.new_for.store(0);
            self.new_deadline_ns.store(at_ns);
            self.new_for.store(mail.number);
        }
        if answer.end {
            self.ended.store(1);
        }
        self.release(mail.number, machine);
        let stood = mail.is_stopped && mail.strength == StopAction::Suspend;
        answer.deadline_ns.is_some() && !(stood && self.longest_stop_ns.load() == NEVER)
    }

    /// Ready for the next message.
    pub fn finish(&self) {
        self.busy.store(0);
    }

    /// Waits until there may be something to take, or the thread is gone: a message, or the thread's deadline, where
    /// that may be [overdue](StopGate::take_overdue).
    pub fn wait_for_mail(&self, expected: &mut ExpectedDeadline, machine: &impl GatePlatform<W>) {
        /// How soon to look again for a region that the thread is in.
        const AGAIN_NS: u64 = 1_000_000;
        let word = self.word.load();
        let strength = self.strength();
        let next_ns = match strength {
            StopAction::Suspend => NEVER,
            StopAction::Notify | StopAction::Hold => {
                let arming = self.arming.load();
                expected.next(self.deadline_ns.load(), arming)
            }
        };
        let mut until_ns = next_ns.saturating_add(OVERDUE_NS);
        let now_ns = machine.now_ns();
        if until_ns <= now_ns && strength == StopAction::Hold {
            until_ns = now_ns.saturating_add(AGAIN_NS);
        }
        self.looks_for_ns.store(next_ns);
        // A thread that took an earlier one before it saw that rings for none.
        let is_seen = strength == StopAction::Suspend || self.deadline_ns.load() >= next_ns;
        if is_seen && self.mail.load() == 0 && self.is_open() && !self.is_gone() {
            machine.wait(&self.word, word, until_ns);
        }
    }

    /// The thread took a deadline: wakes a responder that looks for later ones only.
    pub(super) fn is_looked_for(&self, at_ns: u64, machine: &impl GatePlatform<W>) {
        if at_ns < self.looks_for_ns.load() && self.strength() != StopAction::Suspend {
            self.ring(machine);
        }
    }

    /// The thread is watched no more. Wakes the responder.
    pub fn leave_for_good(&self, machine: &impl GatePlatform<W>) {
        self.gone.store(1);
        self.deadline_ns.store(NEVER);
        self.ring(machine);
    }

    pub(super) fn ring(&self, machine: &impl GatePlatform<W>) {
        self.word.add(1);
        machine.wake(&self.word);
    }

    fn step(&self, machine: &impl GatePlatform<W>) {
        self.epoch.add(1);
        machine.wake(&self.epoch);
    }
}

impl<W: AtomicFamily> Default for StopGate<W> {
    fn default() -> Self {
        StopGate::new()
    }
}
