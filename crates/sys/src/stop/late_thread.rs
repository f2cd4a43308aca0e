//! The side of the thread that may be stopped.
//!
//! Owns: taking and giving up deadlines, what happens at an expiry, regions that put it off, standing
//! at the gate. Everything here runs in a signal handler or may be interrupted by one at any
//! instruction. Must not: allocate, lock, panic, unwind.

use super::atomics::{AtomicFamily, AtomicWord, Native};
use super::gate::{
    DEFERRED, NEVER, PENDING_ANSWER, PENDING_CALL, PENDING_FAULT, STANDS, StopAction, StopGate,
};
use super::machine::GatePlatform;

/// The outcome of giving a deadline up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisarmOutcome {
    /// There was none; it may have been passed before.
    Nothing,
    Ahead,
    /// It was passed just now.
    Passed,
}

/// The thread itself, at its gate.
pub struct LateThread<'a, M, W: AtomicFamily = Native> {
    pub gate: &'a StopGate<W>,
    /// How many regions it is in that put stops off.
    pub depth: &'a W::U32,
    pub machine: &'a M,
}

impl<M: GatePlatform<W>, W: AtomicFamily> LateThread<'_, M, W> {
    /// Enters a region in which stops are put off.
    pub fn enter(&self) {
        enter(self.depth);
    }

    /// Takes a deadline. One that is past is a fault at once: that is acted upon before this returns,
    /// unless the thread is in a region. `false` if there is no timer for it (a child of `fork`);
    /// then there is no deadline.
    pub fn arm(&self, at_ns: u64) -> bool {
        enter(self.depth);
        self.gate.arming.add(1);
        self.gate.deadline_ns.store(at_ns);
        let past = at_ns <= self.machine.now_ns();
        let taken = if past { !self.machine.is_child() } else { self.machine.set_timer(at_ns) };
        if !taken {
            self.gate.deadline_ns.store(NEVER);
        } else if past {
            self.claim();
        } else {
            self.gate.is_looked_for(at_ns, self.machine);
        }
        self.look_for_call();
        self.leave();
        taken
    }

    /// Gives the deadline up. If it is past, and only its signal has not come yet, it is a fault as if it had: no late
    /// one goes unseen because its signal was slow. Returns the outcome, and the time, ns, by which it was decided.
    pub fn disarm(&self) -> (DisarmOutcome, u64) {
        enter(self.depth);
        let at_ns = self.gate.deadline_ns.load();
        let mut now_ns = self.machine.now_ns();
        let outcome = if at_ns == NEVER {
            DisarmOutcome::Nothing
        } else if at_ns <= now_ns {
            self.claim();
            DisarmOutcome::Passed
        } else if self.gate.deadline_ns.swap(NEVER) == NEVER {
            // A signal came in between.
            now_ns = self.machine.now_ns();
            DisarmOutcome::Passed
        } else {
            self.machine.stop_timer();
            DisarmOutcome::Ahead
        };
        // Whatever answers a fault until now has no new deadline for what comes next.
        self.gate.arming.add(1);
        self.look_for_call();
        self.leave();
        (outcome, now_ns)
    }

    /// The timer fired, or a call made it fire: the body of the signal handler.
    pub fn expired(&self) {
        self.look_for_call();
        let deadline_ns = self.gate.deadline_ns.load();
        if deadline_ns == NEVER {
            self.gate.pending.set_bits(PENDING_ANSWER);
        } else if self.machine.now_ns() < deadline_ns {
            // For a deadline before this one, or made to fire: this one is not to be lost.
            self.machine.set_timer(deadline_ns);
            self.look_for_call();
            if self.gate.pending.load() & PENDING_CALL == 0 {
                return;
            }
        } else {
            self.claim();
        }
        if self.depth.load() == 0 {
            self.settle();
        } else {
            self.tell_within();
        }
    }

    /// Leaves a region; if it is the outermost, acts upon what was put off.
    pub fn leave(&self) {
        let depth = self.depth.load();
        if depth > 1 {
            self.depth.store(depth - 1);
            // Of a deadline that was past when it was taken, or given up.
            self.tell_within();
            return;
        }
        loop {
            // Still within: a fault that comes now is put off, not acted upon in the middle of another.
            self.settle();
            self.depth.store(0);
            // One that came between the two.
            if self.gate.pending.load() == 0 {
                return;
            }
            self.depth.store(1);
        }
    }

    /// Acts upon everything that is pending.
    fn settle(&self) {
        self.gate.settling.store(1);
        loop {
            let pending = self.gate.pending.swap(0);
            if pending & PENDING_FAULT != 0 {
                self.gate.pending.set_bits(pending & PENDING_CALL);
                self.act(self.gate.pending_deadline_ns.load());
            } else if pending & PENDING_CALL != 0 {
                self.answer_call();
            } else if pending & PENDING_ANSWER != 0 {
                self.adopt();
            } else {
                break;
            }
        }
        self.gate.settling.store(0);
    }

    /// In a region: tells of what is pending, if that is all there is to do. Nothing is done to the
    /// thread then, so that there is nothing to put off.
    fn tell_within(&self) {
        // Again for a signal that came during a report, and left its report to this call.
        while self.gate.pending.load() & (PENDING_FAULT | PENDING_CALL) != 0
            && self.gate.strength() == StopAction::Notify
            && self.gate.settling.load() == 0
        {
            self.tell();
        }
    }

    /// Tells of a fault in a region.
    fn tell(&self) {
        self.gate.settling.store(1);
        let pending = self.gate.pending.swap(0);
        if pending & PENDING_FAULT != 0 {
            self.act(self.gate.pending_deadline_ns.load());
        }
        if pending & PENDING_CALL != 0 {
            self.answer_call();
        }
        self.gate.pending.set_bits(pending & PENDING_ANSWER);
        self.gate.settling.store(0);
    }

    /// The deadline is passed: it is in force no more, and the fault is pending.
    fn claim(&self) {
        let deadline_ns = self.gate.deadline_ns.swap(NEVER);
        if deadline_ns == NEVER {
            // A signal was quicker, or the responder.
            return;
        }
        self.gate.fault_arming.store(self.gate.arming.load());
        if self.gate.pending.load() & PENDING_FAULT == 0 {
            self.gate.pending_deadline_ns.store(deadline_ns);
            self.gate.pending.set_bits(PENDING_FAULT);
        } else {
            // Another one in the same region.
            self.gate.faults.add(1);
            self.gate.untold.add(1);
        }
    }

    /// Acts upon a call: a fault that takes no deadline of the thread's own away.
    fn answer_call(&self) {
        self.gate.fault_arming.store(self.gate.arming.load());
        self.act(self.gate.called_deadline_ns());
    }

    /// Acts upon a fault: tells of it, and stands.
    fn act(&self, deadline_ns: u64) {
        let gate = self.gate;
        let deferred = if self.depth.load() == 0 { 0 } else { DEFERRED };
        let stopped_ns = self.machine.now_ns();
        let strength = gate.strength();
        let number = gate.faults.add(1).wrapping_add(1);
        if !self.find_room(strength, stopped_ns) {
            gate.untold.add(1);
            return;
        }
        let stands = match strength {
            StopAction::Notify => false,
            StopAction::Hold => gate.busy.load() == 0,
            StopAction::Suspend => true,
        };
        gate.mail_deadline_ns.store(deadline_ns);
        gate.mail_stopped_ns.store(stopped_ns);
        let stands_flag = if stands { STANDS } else { 0 };
        gate.mail_flags.store(strength.code() | deferred | stands_flag);
        gate.mail.store(number);
        gate.ring(self.machine);
        if stands {
            self.wait_for_answer(number, stopped_ns);
        }
        if strength == StopAction::Suspend {
            self.adopt();
        }
    }

    /// Whether the gate has a responder, and room for the message. A thread that is to be suspended waits for room, no
    /// longer than it stands at most.
    fn find_room(&self, strength: StopAction, since_ns: u64) -> bool {
        let until_ns = since_ns.saturating_add(self.gate.longest_stop_ns.load());
        loop {
            let epoch = self.gate.epoch.load();
            if !self.gate.is_open() || self.machine.is_child() {
                return false;
            }
            if self.gate.mail.load() == 0 {
                return true;
            }
            if strength != StopAction::Suspend {
                return false;
            }
            if self.is_over(until_ns) {
                return false;
            }
            self.machine.wait(&self.gate.epoch, epoch, until_ns);
        }
    }

    /// Stands until the fault with that number is answered, the responder has left, or it has stood long enough.
    fn wait_for_answer(&self, number: u64, since_ns: u64) {
        let gate = self.gate;
        let until_ns = since_ns.saturating_add(gate.longest_stop_ns.load());
        loop {
            let epoch = gate.epoch.load();
            if gate.released.load() >= number || !gate.is_open() {
                return;
            }
            if self.is_over(until_ns) {
                return;
            }
            self.machine.wait(&gate.epoch, epoch, until_ns);
        }
    }

    /// Whether it stood long enough; then that is counted.
    fn is_over(&self, until_ns: u64) -> bool {
        let is_over = until_ns != NEVER && self.machine.now_ns() >= until_ns;
        if is_over {
            self.gate.overstayed.add(1);
        }
        is_over
    }

    /// Takes the deadline of an answer, if it answers the last fault and nothing came after that.
    fn adopt(&self) {
        let gate = self.gate;
        let number = gate.new_for.load();
        let is_last = number != 0 && number == gate.faults.load();
        let is_same = gate.fault_arming.load() == gate.arming.load();
        if !is_last || !is_same || gate.deadline_ns.load() != NEVER {
            return;
        }
        let at_ns = gate.new_deadline_ns.load();
        // Once: the responder may take it as overdue before its fault is counted.
        if !gate.new_for.replace(number, 0) {
            return;
        }
        gate.deadline_ns.store(at_ns);
        if at_ns <= self.machine.now_ns() {
            self.claim();
        } else {
            self.machine.set_timer(at_ns);
            gate.is_looked_for(at_ns, self.machine);
            self.look_for_call();
        }
    }

    /// Takes up a call. Also after every change of the timer: the caller made the timer fire, and the change may have
    /// come in between.
    fn look_for_call(&self) {
        if self.gate.take_call() {
            self.gate.pending.set_bits(PENDING_CALL);
        }
    }
}

/// Enters a region in which stops are put off.
pub(super) fn enter<U: AtomicWord<u32>>(depth: &U) {
    depth.store(depth.load().wrapping_add(1));
}
