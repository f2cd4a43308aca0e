//! Traces whose causes are known because they were planted.

use hourglass_dice::Dice;
use hourglass_documents::Cause;
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, KernelEvent, KernelEventKind as Kind, Vector,
};

/// Something that takes the CPU away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    pub(crate) start: i64,
    pub(crate) length: i64,
    pub(crate) cause: Cause,
}

impl Planted {
    pub(crate) fn end(&self) -> i64 {
        self.start + self.length
    }

    /// Whether the kernel switches the thread out meanwhile.
    pub(crate) fn switches(&self) -> bool {
        !matches!(
            self.cause,
            Cause::TimerTick | Cause::Irq | Cause::Softirq | Cause::BelowKernel | Cause::PageFault
        )
    }
}

pub(crate) const US: i64 = 1_000;
pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;

/// Every `period` from `phase` on, late by up to `jitter`, of a length between two.
pub(crate) fn periodic(
    dice: &mut Dice,
    cause: Cause,
    [phase, period, jitter]: [i64; 3],
    length: [i64; 2],
    until: i64,
) -> Vec<Planted> {
    let mut planted = Vec::new();
    let mut at = phase;
    while at < until {
        let start = at + dice.within(0, jitter);
        planted.push(Planted { start, length: dice.within(length[0], length[1]), cause });
        at += period;
    }
    planted
}

/// At random, `mean` apart on average.
pub(crate) fn random(
    dice: &mut Dice,
    cause: Cause,
    mean: i64,
    length: [i64; 2],
    until: i64,
) -> Vec<Planted> {
    let mut planted = Vec::new();
    let mut at = dice.within(0, 2 * mean);
    while at < until {
        planted.push(Planted { start: at, length: dice.within(length[0], length[1]), cause });
        at += dice.within(1, 2 * mean);
    }
    planted
}

/// In order of start; what begins less than 2 us after the end of another is left out, a long one
/// pushing out the short ones that it covers.
pub(crate) fn woven(mut all: Vec<Planted>) -> Vec<Planted> {
    all.sort_by_key(|planted| (planted.start, -planted.length));
    let mut free_from = 0;
    all.retain(|planted| {
        let free = planted.start > free_from + 2 * US;
        if free {
            free_from = planted.end();
        }
        free
    });
    all
}

/// The trace of a thread alone on a CPU with these interruptions, until `until`. With `evidence`,
/// it has what the recorder finds out: an interrupt clears the critical section now and then.
pub(crate) fn trace(
    dice: &mut Dice,
    thread: u32,
    cpu: u32,
    planted: &[Planted],
    until: i64,
    evidence: bool,
) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut from = 0;
    let mut onset = IntervalStart::Start;
    let mut seen = Evidence::NONE;
    for gap in planted {
        intervals.push(interval(thread, cpu, from, gap.start, onset, seen));
        (from, onset) = (gap.end(), IntervalStart::Gap);
        seen = if evidence { evidence_of(dice, gap) } else { Evidence::NONE };
    }
    intervals.push(interval(thread, cpu, from, until.max(from), onset, seen));
    intervals
}

fn evidence_of(dice: &mut Dice, gap: &Planted) -> Evidence {
    let none = CounterDeltas::default();
    let kept = Evidence { cleared: Some(false), counted: None };
    let counted = |counted| Evidence { cleared: Some(true), counted: Some(counted) };
    match gap.cause {
        Cause::ContextSwitchVoluntary | Cause::Stopped => {
            counted(CounterDeltas { voluntary: 1, ..none })
        }
        Cause::PageFault => counted(CounterDeltas { faults: 1, ..none }),
        _ if gap.switches() => counted(CounterDeltas { involuntary: 1, ..none }),
        // Measured: 80 of 1869 interrupts cleared the section, and nothing below the kernel.
        Cause::TimerTick | Cause::Irq if dice.one_in(23) => counted(none),
        _ => kept,
    }
}

pub(crate) fn interval(
    thread: u32,
    cpu: u32,
    start_ns: i64,
    end_ns: i64,
    onset: IntervalStart,
    evidence: Evidence,
) -> Interval {
    Interval {
        thread,
        cpu,
        start_ns,
        end_ns,
        start_ticks: start_ns.unsigned_abs().wrapping_mul(2),
        end_ticks: end_ns.unsigned_abs().wrapping_mul(2),
        onset,
        evidence,
    }
}

pub(crate) fn event(ns: i64, cpu: u32, kind: Kind, a: u32, b: u32, value: u64) -> KernelEvent {
    KernelEvent { ns, ticks: ns.unsigned_abs() * 2, value, cpu, a, b, kind }
}

/// The kernel's number of a planted thread, and of the one that takes its CPU.
pub(crate) const OURS: u32 = 4_000;
pub(crate) const OTHER: u32 = 777;
pub(crate) const TICK_TIMER: u64 = 0xffff_8880_0000_1234;

/// The events that the kernel records for these interruptions of a thread.
pub(crate) fn events(planted: &[Planted], thread: u32, cpu: u32) -> Vec<KernelEvent> {
    let mut events = Vec::new();
    for gap in planted {
        // An interrupt is delivered below the kernel for a quarter of the gap.
        let (begins, ends) = (gap.start + gap.length / 4, gap.end() - 200);
        let mut push = |ns, kind, a, b, value| events.push(event(ns, cpu, kind, a, b, value));
        let timer = Vector::LocalTimer.code();
        match gap.cause {
            Cause::TimerTick => {
                push(begins, Kind::VectorEntry, timer, 0, 0);
                push(begins + 100, Kind::HrtimerEntry, 0, 0, TICK_TIMER);
                push(ends - 100, Kind::HrtimerExit, 0, 0, TICK_TIMER);
                push(ends, Kind::VectorExit, timer, 0, 0);
            }
            Cause::Irq => {
                push(begins, Kind::IrqEntry, 24, 0, 0);
                push(ends, Kind::IrqExit, 24, 0, 0);
            }
            Cause::Softirq => {
                push(begins, Kind::IrqEntry, 24, 0, 0);
                push(begins + 300, Kind::IrqExit, 24, 0, 0);
                push(begins + 300, Kind::SoftirqEntry, 3, 0, 0);
                push(ends, Kind::SoftirqExit, 3, 0, 0);
            }
            Cause::PageFault => push(gap.start + 200, Kind::PageFault, 1, 0, 0x1000),
            Cause::BelowKernel => {}
            _ => {
                let state = match gap.cause {
                    Cause::ContextSwitchVoluntary => 1,
                    Cause::Stopped => 4,
                    _ => 0,
                };
                push(gap.start + 300, Kind::Switch, OURS + thread, OTHER, state);
                push(ends, Kind::Switch, OTHER, OURS + thread, 0);
            }
        }
    }
    events
}
