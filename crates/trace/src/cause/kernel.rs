//! What the kernel's events say about the gap that each thread is in.
//!
//! Each thread has an account from the end of its last interval on. Events of the CPU on which it
//! runs are charged to it; once it is switched out only a switch back to it counts, and the time of the CPU
//! for which it waits is charged to the occupant of that CPU. The kernel's number of a thread is
//! learnt: a thread that a switch takes off a CPU, on which a thread of the run was seen just
//! before, is that thread.

use std::collections::BTreeMap;

use crate::{Interval, KernelEvent, KernelEventKind, Vector};

use super::facts::{KernelCoverage, RunFacts};
use super::gap::{GapBreakdown, GapOccupants, OccupantShare, Successor, length_ns};

/// Nested contexts that are distinguished; deeper ones count for the innermost of these.
const DEEPEST: usize = 8;
/// `TASK_STOPPED` and `TASK_TRACED` of `sched_switch` (trace/events/sched.h).
const STOPPED_STATES: u64 = 0x4 | 0x8;
/// Bits of the state that mean that the thread waits; a higher one says that it was preempted.
const WAITING_STATES: u64 = 0xff;
/// Timers of a CPU that are followed, to find the tick's.
const TIMERS: usize = 8;
/// A timer that expired so often in a row at the tick's distance is the tick's.
const TICKS_IN_A_ROW: u8 = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KernelActivity {
    #[default]
    Nothing,
    Tick,
    Irq,
    Softirq,
    Fault,
    Signal,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelEvidence {
    pub(super) composition: GapBreakdown,
    pub(super) next_thread: Option<u32>,
    pub(super) occupants: GapOccupants,
    pub(super) waiting: bool,
    pub(super) stopped: bool,
    pub(super) moved_away: bool,
    /// Whether there was an interrupt, a softirq, a fault or a signal.
    pub(super) worked: bool,
    /// Whether a timer interrupt was there for other timers than the tick's only.
    pub(super) other_timer: bool,
    pub(super) hole: bool,
    /// Whether the CPU's events were recorded, and none of them was lost in the whole run.
    pub(super) complete: bool,
}

#[derive(Clone, Debug, Default)]
struct CpuState {
    evidence: KernelEvidence,
    cpu: u32,
    since_ns: i64,
    mark_ns: i64,
    stack: [KernelActivity; DEEPEST],
    depth: usize,
    between: KernelActivity,
    switched_out: bool,
    /// While it is out: the CPU for which it waits, up to when that one's time is charged, and to whom.
    waiting_for_cpu: u32,
    charged_ns: i64,
    run_ns_by_thread: BTreeMap<u32, u64>,
    tick_expired: bool,
    other_expired: bool,
    number: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    value: u64,
    last_ns: i64,
    in_a_row: u8,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<u32>,
    current: Option<u32>,
    timers: [Timer; TIMERS],
    next_timer: usize,
    tick: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Soundness {
    /// Events of threads of the run that lay in a gap, as they must.
    pub(super) in_gaps: u64,
    pub(super) inside: u64,
    pub(super) lost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct KernelSide<'a> {
    coverage: &'a KernelCoverage,
    tick_ns: Option<u64>,
    accounts: BTreeMap<u32, CpuState>,
    cpus: BTreeMap<u32, Cpu>,
    numbers: BTreeMap<u32, u32>,
    pub(super) soundness: Soundness,
    last: BTreeMap<u32, u64>,
}

impl<'a> KernelSide<'a> {
    /// `None` where the kernel was not traced.
    pub(super) fn new(facts: &'a RunFacts, tick_ns: Option<u64>) -> Option<KernelSide<'a>> {
        let numbers = facts.threads.iter().filter_map(|(id, thread)| Some((thread.number?, *id)));
        Some(KernelSide {
            coverage: facts.kernel.as_ref()?,
            tick_ns,
            accounts: BTreeMap::new(),
            cpus: BTreeMap::new(),
            numbers: numbers.collect(),
            soundness: Soundness::default(),
            last: BTreeMap::new(),
        })
    }

    /// How far events may be off, ns.
    pub(super) fn error_ns(&self) -> i64 {
        i64::try_from(self.coverage.error_ns).unwrap_or(i64::MAX)
    }

    /// Takes the next event, in order of time.
    pub(super) fn event(&mut self, event: &KernelEvent) {
        use KernelEventKind as Kind;
        match event.kind {
            Kind::Lost => self.lost(event),
            Kind::Switch => self.switch(event),
            Kind::Migrate => self.migrate(event),
            Kind::Waking | Kind::HrtimerStart | Kind::HrtimerExit | Kind::Mark | Kind::Call => {}
            Kind::HrtimerEntry => self.timer(event),
            Kind::IrqEntry => self.enter(event, KernelActivity::Irq),
            Kind::SoftirqEntry => self.enter(event, KernelActivity::Softirq),
            Kind::VectorEntry if event.a == Vector::LocalTimer.code() => {
                self.enter(event, KernelActivity::Tick);
            }
            Kind::VectorEntry => self.enter(event, KernelActivity::Irq),
            Kind::IrqExit | Kind::SoftirqExit | Kind::VectorExit => self.leave(event),
            Kind::PageFault => self.handle_event(event, KernelActivity::Fault),
            Kind::Signal => self.handle_event(event, KernelActivity::Signal),
        }
    }

    /// The thread of `interval` runs again, and the interval is all of it: gives what happened
    /// since it was last seen, and begins a new account at the interval's end. `None` where it was
    /// not seen before, or the events do not cover the CPUs.
    pub(super) fn run(&mut self, interval: &Interval) -> Option<KernelEvidence> {
        let before = self.accounts.remove(&interval.thread);
        if let Some(cpu) = before.as_ref().and_then(|account| self.cpus.get_mut(&account.cpu))
            && cpu.running == Some(interval.thread)
        {
            cpu.running = None;
        }
        self.cpus.entry(interval.cpu).or_default().running = Some(interval.thread);
        let fresh = CpuState {
            evidence: KernelEvidence {
                complete: self.complete(interval.cpu),
                ..KernelEvidence::default()
            },
            cpu: interval.cpu,
            since_ns: interval.end_ns,
            mark_ns: interval.end_ns,
            waiting_for_cpu: interval.cpu,
            charged_ns: interval.end_ns,
            number: match &before {
                Some(known) => known.number,
                None => self.number_of(interval.thread),
            },
            ..CpuState::default()
        };
        self.accounts.insert(interval.thread, fresh);
        let mut account = before?;
        account.pass(interval.start_ns);
        let covers = |cpu| self.coverage.cpus.contains_key(&cpu);
        account.evidence.other_timer = account.other_expired && !account.tick_expired;
        account.evidence.complete &= self.complete(interval.cpu);
        self.last = std::mem::take(&mut account.run_ns_by_thread);
        account.evidence.occupants = GapOccupants::from_shares(self.all_that_ran());
        (covers(account.cpu) && covers(interval.cpu)).then_some(account.evidence)
    }

    /// The occupants of the CPU in the gap that [`KernelSide::run`] reported last.
    pub(super) fn all_that_ran(&self) -> impl Iterator<Item = OccupantShare> + '_ {
        let who = move |number: &u32| match self.numbers.get(number) {
            Some(thread) => Successor::OfRun(*thread),
            None => Successor::Kernel(*number),
        };
        self.last.iter().map(move |(number, ns)| OccupantShare { who: who(number), ns: *ns })
    }

    fn number_of(&self, thread: u32) -> Option<u32> {
        self.numbers.iter().find(|(_, id)| **id == thread).map(|(number, _)| *number)
    }

    fn complete(&self, cpu: u32) -> bool {
        self.coverage.cpus.get(&cpu).is_some_and(|lost| *lost == 0)
    }

    fn lost(&mut self, event: &KernelEvent) {
        self.soundness.lost = self.soundness.lost.saturating_add(event.value.max(1));
        for account in self.accounts.values_mut() {
            if account.cpu == event.cpu || account.switched_out {
                account.evidence.hole = true;
            }
        }
        if let Some(cpu) = self.cpus.get_mut(&event.cpu) {
            cpu.running = None;
            cpu.current = None;
        }
    }

    fn running(&mut self, event: &KernelEvent) -> Option<&mut CpuState> {
        let thread = self.cpus.get(&event.cpu)?.running?;
        let error_ns = self.error_ns();
        let account = self.accounts.get_mut(&thread)?;
        if account.switched_out || account.cpu != event.cpu {
            return None;
        }
        if event.ns < account.since_ns.saturating_sub(error_ns) {
            self.soundness.inside = self.soundness.inside.saturating_add(1);
            return None;
        }
        self.soundness.in_gaps = self.soundness.in_gaps.saturating_add(1);
        Some(account)
    }

    fn enter(&mut self, event: &KernelEvent, doing: KernelActivity) {
        if let Some(account) = self.running(event) {
            account.pass(event.ns);
            account.evidence.worked = true;
            if let Some(place) = account.stack.get_mut(account.depth) {
                *place = doing;
            }
            account.depth = account.depth.saturating_add(1);
        }
    }

    fn leave(&mut self, event: &KernelEvent) {
        if let Some(account) = self.running(event) {
            account.pass(event.ns);
            account.depth = account.depth.saturating_sub(1);
        }
    }

    fn handle_event(&mut self, event: &KernelEvent, doing: KernelActivity) {
        if let Some(account) = self.running(event) {
            account.pass(event.ns);
            account.evidence.worked = true;
            account.between = doing;
        }
    }

    fn timer(&mut self, event: &KernelEvent) {
        let tick_ns = self.tick_ns;
        let cpu = self.cpus.entry(event.cpu).or_default();
        if let Some(tick_ns) = tick_ns {
            cpu.follow(event, tick_ns);
        }
        let tick = cpu.tick;
        if let (Some(tick), Some(account)) = (tick, self.running(event)) {
            account.tick_expired |= event.value == tick;
            account.other_expired |= event.value != tick;
        }
    }

    fn switch(&mut self, event: &KernelEvent) {
        let waiting = self.accounts.iter_mut().filter(|(_, account)| account.waits_for(event.cpu));
        for (thread, account) in waiting {
            // A thread that leaves a CPU had taken it before: that switch is missing.
            account.evidence.hole |= self.numbers.get(&event.a) == Some(thread);
            account.charge(event.a, event.ns);
        }
        self.switch_out(event);
        let next = self.numbers.get(&event.b).copied();
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.running = next;
        cpu.current = Some(event.b);
        if let Some(account) = next.and_then(|thread| self.accounts.get_mut(&thread)) {
            account.pass(event.ns);
            if account.switched_out && account.waiting_for_cpu != event.cpu {
                let other = self.cpus.get(&account.waiting_for_cpu).and_then(|cpu| cpu.current);
                account.charge(other.unwrap_or(KernelEvent::UNTOLD), event.ns);
            }
            account.switched_out = false;
            account.cpu = event.cpu;
        }
    }

    fn switch_out(&mut self, event: &KernelEvent) {
        let here = self.cpus.get(&event.cpu).and_then(|cpu| cpu.running);
        let known = self.numbers.get(&event.a).copied();
        let fits = |thread: &u32| match self.accounts.get(thread) {
            Some(account) => account.number.is_none_or(|number| number == event.a),
            None => false,
        };
        let Some(thread) = known.or(here.filter(fits)).filter(|_| !is_no_thread(event.a)) else {
            return;
        };
        let error_ns = self.error_ns();
        let Some(account) = self.accounts.get_mut(&thread) else { return };
        if event.ns < account.since_ns.saturating_sub(error_ns) {
            self.soundness.inside = self.soundness.inside.saturating_add(1);
            return;
        }
        self.soundness.in_gaps = self.soundness.in_gaps.saturating_add(1);
        account.number = Some(event.a);
        account.pass(event.ns);
        account.switched_out = true;
        account.waiting_for_cpu = event.cpu;
        account.charged_ns = event.ns;
        account.depth = 0;
        account.between = KernelActivity::Nothing;
        account.evidence.stopped |= event.value & STOPPED_STATES != 0;
        if account.evidence.next_thread.is_none() {
            account.evidence.next_thread = Some(event.b);
            account.evidence.waiting = event.value & WAITING_STATES != 0;
        }
        self.numbers.insert(event.a, thread);
    }

    fn migrate(&mut self, event: &KernelEvent) {
        let current = self.cpus.get(&event.cpu).and_then(|cpu| cpu.current);
        let Some(thread) = self.numbers.get(&event.a) else { return };
        let Some(account) = self.accounts.get_mut(thread).filter(|account| account.switched_out)
        else {
            return;
        };
        if account.cpu == event.cpu && account.evidence.next_thread == current {
            account.evidence.moved_away = true;
        }
        let left = self.cpus.get(&account.waiting_for_cpu).and_then(|cpu| cpu.current);
        account.charge(left.unwrap_or(KernelEvent::UNTOLD), event.ns);
        account.waiting_for_cpu = event.b;
    }
}

/// Whether this is no thread's number: the idle CPU's, or that of one that was not named.
fn is_no_thread(number: u32) -> bool {
    number == 0 || number == KernelEvent::UNTOLD
}

impl CpuState {
    fn waits_for(&self, cpu: u32) -> bool {
        self.switched_out && self.waiting_for_cpu == cpu
    }

    /// Charges the time up to `ns` to the thread that had the CPU meanwhile.
    fn charge(&mut self, number: u32, ns: i64) {
        let passed = length_ns(self.charged_ns, ns);
        self.charged_ns = self.charged_ns.max(ns);
        if number != KernelEvent::UNTOLD && passed > 0 {
            let sum = self.run_ns_by_thread.entry(number).or_default();
            *sum = sum.saturating_add(passed);
        }
    }

    /// Charges the time up to `ns` to what was going on.
    fn pass(&mut self, ns: i64) {
        let passed = length_ns(self.mark_ns, ns);
        self.mark_ns = self.mark_ns.max(ns);
        let innermost = self.depth.min(DEEPEST).checked_sub(1);
        let doing = innermost.map_or(self.between, |place| self.stack[place]);
        let sums = &mut self.evidence.composition;
        let sum = match doing {
            _ if self.switched_out => &mut sums.switched_ns,
            KernelActivity::Nothing => &mut sums.silent_ns,
            KernelActivity::Tick => &mut sums.tick_ns,
            KernelActivity::Irq => &mut sums.irq_ns,
            KernelActivity::Softirq => &mut sums.softirq_ns,
            KernelActivity::Fault => &mut sums.fault_ns,
            KernelActivity::Signal => &mut sums.signal_ns,
        };
        *sum = sum.saturating_add(passed);
        if innermost.is_none() {
            self.between = KernelActivity::Nothing;
        }
    }
}

impl Cpu {
    /// Finds out which timer is the tick's: the one that expires at the tick's distance.
    fn follow(&mut self, event: &KernelEvent, tick_ns: u64) {
        let known = self.timers.iter().position(|t| t.last_ns != 0 && t.value == event.value);
        let place = known.unwrap_or_else(|| {
            // The oldest makes room, but never one that is the tick's.
            let place = self.next_timer % TIMERS;
            self.next_timer = self.next_timer.wrapping_add(1);
            let tick = self.tick == Some(self.timers[place].value);
            if tick { (place + 1) % TIMERS } else { place }
        });
        let timer = &mut self.timers[place];
        let distance = length_ns(timer.last_ns, event.ns);
        let at_tick = timer.value == event.value && super::grid::is_within(distance, tick_ns, 8);
        timer.in_a_row = if at_tick { timer.in_a_row.saturating_add(1) } else { 0 };
        timer.value = event.value;
        timer.last_ns = event.ns;
        if timer.in_a_row >= TICKS_IN_A_ROW {
            self.tick = Some(event.value);
        }
    }
}
