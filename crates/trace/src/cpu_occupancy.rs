//! Who had each CPU, from the kernel's events.
//!
//! A CPU belongs to the thread that was switched to last, but for the time of interrupts and softirqs,
//! which belong to no thread. Where events were lost, or the kernel did not write a switch, nothing is said.

use std::collections::BTreeMap;

use crate::{KernelEvent, KernelEventKind as Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupant {
    /// A thread, by the kernel's number.
    Thread(u32),
    /// Interrupts and softirqs, whichever thread they interrupted.
    Interrupts,
    Idle,
}

/// A time in which a CPU had one occupant, ns from the run's start. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub cpu: u32,
    pub from_ns: i64,
    pub to_ns: i64,
    pub who: Occupant,
}

impl Slice {
    pub fn length_ns(&self) -> u64 {
        self.to_ns.abs_diff(self.from_ns)
    }

    /// How much of it lies in [`from_ns`, `to_ns`), ns.
    pub fn within_ns(&self, from_ns: i64, to_ns: i64) -> u64 {
        let (from, to) = (self.from_ns.max(from_ns), self.to_ns.min(to_ns));
        if to > from { to.abs_diff(from) } else { 0 }
    }
}

/// Follows the kernel's events, which must come in order of time, and gives slices, of each CPU in order of
/// time.
///
/// The thread that leaves first is taken to have had its CPU since the record's beginning; what is held
/// back until then is one entry for each interrupt.
#[derive(Clone, Debug, Default)]
pub struct CpuOccupancy {
    cpus: BTreeMap<u32, Cpu>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The time from which on nothing was given yet, ns.
    since_ns: i64,
    last_ns: i64,
    current: Option<u32>,
    /// Interrupts in each other.
    depth: u32,
    /// Times whose occupant is not known yet: from, to, and whether interrupts had them.
    held: Vec<(i64, i64, bool)>,
}

impl CpuOccupancy {
    /// Takes the next event, and gives what ended with it to `each`.
    pub fn take(&mut self, event: &KernelEvent, each: &mut impl FnMut(Slice)) {
        let number = event.cpu;
        let begun = || Cpu { since_ns: event.ns.min(0), ..Cpu::default() };
        let cpu = self.cpus.entry(number).or_insert_with(begun);
        let mut give = |from_ns, to_ns, who| each(Slice { cpu: number, from_ns, to_ns, who });
        match event.kind {
            Kind::Switch => cpu.switch(event, &mut give),
            Kind::IrqEntry | Kind::SoftirqEntry | Kind::VectorEntry => {
                if cpu.depth == 0 {
                    cpu.handle_switch_out(event.ns, &mut give);
                }
                cpu.depth = cpu.depth.saturating_add(1);
            }
            Kind::IrqExit | Kind::SoftirqExit | Kind::VectorExit => {
                if cpu.depth == 1 {
                    cpu.handle_switch_out(event.ns, &mut give);
                }
                cpu.depth = cpu.depth.saturating_sub(1);
            }
            Kind::Lost => {
                cpu.handle_switch_out(cpu.last_ns.max(cpu.since_ns), &mut give);
                cpu.flush(&mut give);
                *cpu = Cpu { since_ns: event.ns, ..Cpu::default() };
            }
            _ => {}
        }
        cpu.last_ns = cpu.last_ns.max(event.ns);
    }

    pub fn finish(self, end_ns: i64, mut each: impl FnMut(Slice)) {
        for (number, mut cpu) in self.cpus {
            let mut give = |from_ns, to_ns, who| each(Slice { cpu: number, from_ns, to_ns, who });
            cpu.handle_switch_out(end_ns, &mut give);
            cpu.flush(&mut give);
        }
    }
}

/// All slices of these events, in the order in which they ended on their CPU.
pub fn slices(events: &[KernelEvent], end_ns: i64) -> Vec<Slice> {
    let mut all = Vec::new();
    let mut who_ran = CpuOccupancy::default();
    for event in events {
        who_ran.take(event, &mut |slice| all.push(slice));
    }
    who_ran.finish(end_ns, |slice| all.push(slice));
    all
}

/// The occupant with this thread number; `None` if the thread is not known.
fn occupant(number: u32) -> Option<Occupant> {
    match number {
        0 => Some(Occupant::Idle),
        KernelEvent::UNTOLD => None,
        thread => Some(Occupant::Thread(thread)),
    }
}

impl Cpu {
    fn handle_switch_out(&mut self, ns: i64, give: &mut impl FnMut(i64, i64, Occupant)) {
        let from_ns = self.since_ns;
        self.since_ns = from_ns.max(ns);
        if ns <= from_ns {
            return;
        }
        let interrupted = self.depth > 0;
        match self.current {
            None => self.held.push((from_ns, ns, interrupted)),
            Some(_) if interrupted => give(from_ns, ns, Occupant::Interrupts),
            Some(number) => {
                if let Some(who) = occupant(number) {
                    give(from_ns, ns, who);
                }
            }
        }
    }

    fn switch(&mut self, event: &KernelEvent, give: &mut impl FnMut(i64, i64, Occupant)) {
        match self.current {
            // The kernel did not write a switch between them: it is not known how long each had the CPU.
            Some(last) if last != event.a && (last == 0 || event.a == 0) => {
                self.since_ns = self.since_ns.max(event.ns);
            }
            // A thread's number may change while it runs (`execve`).
            Some(_) => {
                self.current = Some(event.a);
                self.handle_switch_out(event.ns, give);
            }
            None => {
                self.handle_switch_out(event.ns, give);
                for (from_ns, to_ns, interrupted) in std::mem::take(&mut self.held) {
                    let who =
                        if interrupted { Some(Occupant::Interrupts) } else { occupant(event.a) };
                    who.into_iter().for_each(|who| give(from_ns, to_ns, who));
                }
            }
        }
        // Any missed exit ends here: no switch is made within an interrupt.
        self.depth = 0;
        self.current = Some(event.b);
    }

    /// Gives what is held back, of which only the interrupts are known.
    fn flush(&mut self, give: &mut impl FnMut(i64, i64, Occupant)) {
        let held = std::mem::take(&mut self.held);
        let known = held.into_iter().filter(|(_, _, interrupted)| *interrupted);
        known.for_each(|(from_ns, to_ns, _)| give(from_ns, to_ns, Occupant::Interrupts));
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::random::Stream;

    use super::*;

    fn event(ns: i64, kind: Kind, a: u32, b: u32) -> KernelEvent {
        KernelEvent { ns, ticks: 0, value: 0, cpu: 3, a, b, kind }
    }

    fn cpu_slices(events: &[KernelEvent], end_ns: i64) -> Vec<(i64, i64, Occupant)> {
        slices(events, end_ns).iter().map(|s| (s.from_ns, s.to_ns, s.who)).collect()
    }

    use Occupant::{Idle, Interrupts, Thread};

    /// A thread of the run, an interrupt in it, a competitor, idle: from the run's start to its end.
    #[test]
    fn everybody_has_their_time() {
        let events = [
            event(100, Kind::VectorEntry, 0, 0),
            event(110, Kind::SoftirqEntry, 1, 0),
            event(115, Kind::SoftirqExit, 1, 0),
            event(120, Kind::VectorExit, 0, 0),
            event(200, Kind::Switch, 70, 812),
            event(250, Kind::Waking, 70, 3),
            event(300, Kind::Switch, 812, 0),
        ];
        let wanted = [
            (0, 100, Thread(70)),
            (100, 120, Interrupts),
            (120, 200, Thread(70)),
            (200, 300, Thread(812)),
            (300, 1_000, Idle),
        ];
        assert_eq!(cpu_slices(&events, 1_000), wanted);
        // Before the first switch only interrupts are known.
        assert_eq!(cpu_slices(&events[..4], 1_000), [(100, 120, Interrupts)]);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let lost = [
            event(10, Kind::Switch, 70, 8),
            event(20, Kind::Waking, 9, 3),
            event(90, Kind::Lost, 0, 0),
            event(100, Kind::Switch, 5, 6),
        ];
        let wanted =
            [(0, 10, Thread(70)), (10, 20, Thread(8)), (90, 100, Thread(5)), (100, 120, Thread(6))];
        assert_eq!(cpu_slices(&lost, 120), wanted, "between the last event and the loss");
        let missing = [event(10, Kind::Switch, 70, 0), event(30, Kind::Switch, 70, 0)];
        assert_eq!(
            cpu_slices(&missing, 40),
            [(0, 10, Thread(70)), (30, 40, Idle)],
            "a switch from idle"
        );
        let renamed = [event(10, Kind::Switch, 0, 70), event(30, Kind::Switch, 71, 0)];
        assert_eq!(cpu_slices(&renamed, 40), [(0, 10, Idle), (10, 30, Thread(71)), (30, 40, Idle)]);
        let unknown =
            [event(10, Kind::Switch, 70, KernelEvent::UNTOLD), event(30, Kind::Switch, 0, 70)];
        assert_eq!(cpu_slices(&unknown, 40), [(0, 10, Thread(70)), (30, 40, Thread(70))]);
        // An exit without its entry, an entry without its exit.
        let torn = [
            event(10, Kind::VectorExit, 0, 0),
            event(20, Kind::VectorEntry, 0, 0),
            event(30, Kind::Switch, 70, 8),
        ];
        let wanted = [(0, 20, Thread(70)), (20, 30, Interrupts), (30, 40, Thread(8))];
        assert_eq!(cpu_slices(&torn, 40), wanted);
        assert_eq!(
            cpu_slices(&[event(i64::MAX, Kind::Switch, 1, 2)], i64::MIN),
            [(0, i64::MAX, Thread(1))]
        );
    }

    /// Random records against what each nanosecond must be, read off the events one by one. The
    /// sequence is fixed.
    #[test]
    fn slices_say_what_the_events_say() {
        let mut random = Stream::from_seeds(&[19]);
        let mut below = |limit: u64| random.below(limit);
        for round in 0..200 {
            let (mut now, mut running, mut depth) = (0_i64, 1 + below(3) as u32, 0);
            let (mut events, mut truth) = (Vec::new(), Vec::new());
            while now < 400 {
                let length = below(6) as i64;
                let who = if depth > 0 { Interrupts } else { occupant(running).unwrap() };
                truth.extend((0..length).map(|_| who));
                now += length;
                match below(3) {
                    0 if depth == 0 => {
                        let next = below(4) as u32;
                        events.push(event(now, Kind::Switch, running, next));
                        running = next;
                    }
                    1 if depth < 3 => {
                        events.push(event(now, Kind::IrqEntry, 1, 0));
                        depth += 1;
                    }
                    2 if depth > 0 => {
                        events.push(event(now, Kind::IrqExit, 1, 0));
                        depth -= 1;
                    }
                    _ => {}
                }
            }
            if !events.iter().any(|event| event.kind == Kind::Switch) {
                continue;
            }
            let mut found = Vec::new();
            for slice in slices(&events, now) {
                assert_eq!(slice.from_ns, found.len() as i64, "round {round}: no hole, no overlap");
                found.extend((slice.from_ns..slice.to_ns).map(|_| slice.who));
            }
            assert_eq!(found, truth, "round {round}");
        }
    }
}
