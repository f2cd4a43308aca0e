//! What becomes of the time between the expiry of a thread's timer and the thread's first
//! instruction, wake-up by wake-up, from the kernel's events.
//!
//! The stages are those of the Hourglass paper's dispatch latency (section 5.3), cut where the
//! kernel can be seen to go from one to the next: the timer expires; the interrupt comes; its
//! handler expires the timer; that makes the thread runnable; the scheduler switches to it; it
//! sees the time.

use std::collections::BTreeMap;

use crate::{KernelEvent, KernelEventKind as Kind, Vector};

use crate::cause::GapOccupants;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedWakeUp {
    pub tid: u32,
    /// When it first saw the time again, ns from the run's start.
    pub ns: i64,
}

/// One wake-up, moment by moment, ns from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    pub tid: u32,
    pub expiry_ns: i64,
    /// The CPU's timer interrupt began. May be before the expiry: an interrupt that was already
    /// being served finds the timer expired.
    pub interrupt_ns: i64,
    pub handler_ns: i64,
    pub waking_ns: i64,
    pub switch_ns: i64,
    pub cpu: u32,
    pub user_ns: i64,
}

impl WakeUp {
    /// Names of the stages, in order; the last is all of them together.
    pub const STAGES: [&'static str; 6] = [
        "expiry_to_interrupt",
        "interrupt_to_handler",
        "handler_to_waking",
        "waking_to_switch",
        "switch_to_user",
        "expiry_to_user",
    ];

    /// The lengths of the stages, ns. Only the first can be negative.
    pub fn stages_ns(&self) -> [i64; 6] {
        [
            self.interrupt_ns.saturating_sub(self.expiry_ns),
            self.handler_ns.saturating_sub(self.interrupt_ns),
            self.waking_ns.saturating_sub(self.handler_ns),
            self.switch_ns.saturating_sub(self.waking_ns),
            self.user_ns.saturating_sub(self.switch_ns),
            self.user_ns.saturating_sub(self.expiry_ns),
        ]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedWakeUp {
    /// When the thread saw the time, ns from the run's start.
    pub woke_ns: i64,
    pub latency_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateWakeUp {
    pub thread: u32,
    /// When the thread saw the time, ns from the run's start.
    pub woke_ns: i64,
    pub latency_ns: u64,
    /// Moment by moment; `None` where events are missing.
    pub stages: Option<WakeUp>,
    /// The other occupants of the CPU from the expiry on, without interrupts.
    pub occupants: GapOccupants,
}

/// A wake-up that a timer did not bring about, or of which an event is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmatchedWakeUp {
    pub tid: u32,
}

/// The state of a thread on its way back to the CPU.
#[derive(Clone, Copy, Debug, Default)]
struct PendingWakeUp {
    expiry_ns: Option<i64>,
    interrupt_ns: Option<i64>,
    handler_ns: Option<i64>,
    waking_ns: Option<i64>,
    /// When it was given a CPU, and which.
    switch: Option<(i64, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuActivity {
    /// Since when it serves its timer interrupt.
    interrupt_ns: Option<i64>,
    /// The timer that it expires, and since when.
    timer: Option<(u64, i64)>,
}

/// Joins wake-ups with the kernel's events.
///
/// `events` come in order of time, `woke` in order of `ns`; `epoch_ns` is `CLOCK_MONOTONIC` at
/// the run's start, which timers are set on. Whatever came between a thread's switch and its own
/// reading of the time (a preemption, another interrupt) is in the last stage. After events were
/// lost on a CPU, nothing that began there before is joined. Gives one answer for each of `woke`.
pub fn decompose(
    events: impl IntoIterator<Item = KernelEvent>,
    woke: impl IntoIterator<Item = ObservedWakeUp>,
    epoch_ns: u64,
) -> impl Iterator<Item = Result<WakeUp, UnmatchedWakeUp>> {
    let mut events = events.into_iter().peekable();
    let mut state = State { epoch_ns, ..State::default() };
    woke.into_iter().map(move |woke| {
        while let Some(event) = events.next_if(|event| event.ns <= woke.ns) {
            state.take(&event);
        }
        state.join(woke)
    })
}

#[derive(Debug, Default)]
struct State {
    epoch_ns: u64,
    cpus: BTreeMap<u32, CpuActivity>,
    threads: BTreeMap<u32, PendingWakeUp>,
    armed: BTreeMap<u64, i64>,
}

impl State {
    fn take(&mut self, event: &KernelEvent) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        match event.kind {
            Kind::VectorEntry if event.a == Vector::LocalTimer.code() => {
                cpu.interrupt_ns = Some(event.ns);
            }
            Kind::VectorExit if event.a == Vector::LocalTimer.code() => {
                *cpu = CpuActivity::default()
            }
            Kind::HrtimerEntry => cpu.timer = Some((event.value, event.ns)),
            Kind::HrtimerExit => cpu.timer = None,
            Kind::HrtimerStart => {
                if let Some(expiry) = event.expiry_ns() {
                    let since = i128::from(expiry) - i128::from(self.epoch_ns);
                    let clamped = since.clamp(i64::MIN.into(), i64::MAX.into());
                    self.armed.insert(event.value, clamped as i64);
                }
            }
            Kind::Waking => {
                let timer = cpu.timer;
                let coming = PendingWakeUp {
                    expiry_ns: timer.and_then(|(name, _)| self.armed.get(&name).copied()),
                    interrupt_ns: timer.and(cpu.interrupt_ns),
                    handler_ns: timer.map(|(_, began)| began),
                    waking_ns: Some(event.ns),
                    switch: None,
                };
                self.threads.insert(event.a, coming);
            }
            Kind::Switch => self.switch(event),
            Kind::Lost => {
                *cpu = CpuActivity::default();
                self.threads.clear();
                self.armed.clear();
            }
            _ => {}
        }
    }

    fn switch(&mut self, event: &KernelEvent) {
        // One that left to wait will be woken anew; one that was put aside comes back as it was.
        if event.value != 0 {
            self.threads.remove(&event.a);
        }
        if let Some(coming) = self.threads.get_mut(&event.b) {
            coming.switch = coming.switch.or(Some((event.ns, event.cpu)));
        }
    }

    /// The way back of a thread that now sees the time; it is used up.
    fn join(&mut self, woke: ObservedWakeUp) -> Result<WakeUp, UnmatchedWakeUp> {
        let coming = self.threads.remove(&woke.tid).unwrap_or_default();
        let whole = || {
            let (switch_ns, cpu) = coming.switch?;
            Some(WakeUp {
                tid: woke.tid,
                expiry_ns: coming.expiry_ns?,
                interrupt_ns: coming.interrupt_ns?,
                handler_ns: coming.handler_ns?,
                waking_ns: coming.waking_ns?,
                switch_ns,
                cpu,
                user_ns: woke.ns,
            })
        };
        whole().ok_or(UnmatchedWakeUp { tid: woke.tid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CLOCK_MONOTONIC` at the start of the runs below.
    const EPOCH: u64 = 5_000_000_000;

    fn event(ns: i64, kind: Kind, a: u32, b: u32, value: u64) -> KernelEvent {
        KernelEvent { ns, ticks: 0, value, cpu: 1, a, b, kind }
    }

    /// Thread 70 sets timer 9 for `at`.
    fn armed(ns: i64, at: i64) -> KernelEvent {
        let expiry = EPOCH + at.unsigned_abs();
        event(ns, Kind::HrtimerStart, expiry as u32, (expiry >> 32) as u32, 9)
    }

    /// A wake-up of thread 70 by timer 9 set for `at`: what rt-tools measured, in round numbers.
    fn wake_up(at: i64) -> Vec<KernelEvent> {
        let timer = Vector::LocalTimer.code();
        vec![
            armed(at - 900, at),
            event(at - 890, Kind::Switch, 70, 0, 1),
            event(at + 19, Kind::VectorEntry, timer, 236, 0),
            event(at + 20, Kind::HrtimerEntry, 0, 0, 9),
            event(at + 21, Kind::Waking, 70, 1, 0),
            event(at + 22, Kind::HrtimerExit, 0, 0, 9),
            event(at + 25, Kind::VectorExit, timer, 236, 0),
            event(at + 34, Kind::Switch, 0, 70, 0),
        ]
    }

    #[test]
    fn the_cpu_is_that_of_the_first_switch() {
        let mut events = wake_up(1_000);
        events.push(event(1_035, Kind::Switch, 70, 8, 0));
        events.push(KernelEvent { cpu: 2, ..event(1_036, Kind::Switch, 8, 70, 0) });
        let woke = [ObservedWakeUp { tid: 70, ns: 1_040 }];
        assert_eq!(decompose(events, woke, EPOCH).next().map(|up| up.unwrap().cpu), Some(1));
    }

    fn joined(events: Vec<KernelEvent>, woke: &[i64]) -> Vec<Option<[i64; 6]>> {
        let woke = woke.iter().map(|ns| ObservedWakeUp { tid: 70, ns: *ns });
        decompose(events, woke, EPOCH).map(|one| one.ok().map(|up| up.stages_ns())).collect()
    }

    #[test]
    fn every_stage_of_two_wake_ups() {
        let mut events = wake_up(1_000);
        events.extend(wake_up(2_000));
        let stages = [19, 1, 1, 13, 3, 37];
        assert_eq!(joined(events, &[1_037, 2_037]), [Some(stages), Some(stages)]);
    }

    /// The interrupt of another timer was being served when this one expired.
    #[test]
    fn an_interrupt_may_begin_before_the_expiry() {
        let mut events = wake_up(1_000);
        events[2].ns = 996;
        assert_eq!(joined(events, &[1_037]), [Some([-4, 24, 1, 13, 3, 37])]);
    }

    /// Put aside before it saw the time, it is not woken again: the last stage has it all.
    #[test]
    fn a_preemption_on_the_way_out_belongs_to_the_last_stage() {
        let mut events = wake_up(1_000);
        events.push(event(1_035, Kind::Switch, 70, 8, 0));
        events.push(event(1_090, Kind::Switch, 8, 70, 0));
        assert_eq!(joined(events, &[1_100]), [Some([19, 1, 1, 13, 66, 100])]);
    }

    #[test]
    fn what_no_timer_woke_or_events_are_missing_of_is_not_joined() {
        // Woken by another thread.
        let other = vec![event(10, Kind::Waking, 70, 1, 0), event(20, Kind::Switch, 0, 70, 0)];
        assert_eq!(joined(other, &[30]), [None]);
        // Never switched to; nothing at all; each without one event.
        assert_eq!(joined(Vec::new(), &[30]), [None]);
        for missing in [0, 2, 3, 4, 7] {
            let mut events = wake_up(1_000);
            events.remove(missing);
            assert_eq!(joined(events, &[1_037]), [None], "without event {missing}");
        }
        // Events were lost while it slept.
        let mut events = wake_up(1_000);
        events.insert(2, event(500, Kind::Lost, 0, 0, 3));
        assert_eq!(joined(events, &[1_037]), [None]);
        // A wake-up is used up by the first that sees the time after it.
        assert_eq!(joined(wake_up(1_000), &[1_037, 1_040])[1], None);
    }
}
