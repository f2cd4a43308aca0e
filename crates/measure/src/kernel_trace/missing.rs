//! Switches that the kernel did not write, though it lost no event by its own account.
//!
//! Owns: finding where the thread that left a CPU is not the one that it was given to. Idle is thread 0 on every CPU
//! for good. The number of another thread stays at an `execve`, but for one: a thread that is not its process's first
//! goes on with the number of that one, and its own is no more. So a break between two threads counts once the one that the
//! CPU was given to is seen again.

use std::collections::BTreeMap;

use hourglass_trace::KernelEventKind as Kind;

use super::event_store::{CpuEvents, Raw, merged};

#[derive(Clone, Debug, Default)]
pub(super) struct MissingSwitches {
    given_to: BTreeMap<u32, u32>,
    counted: BTreeMap<u32, u64>,
    /// By the thread that a CPU was given to and that did not leave it: those CPUs.
    breaks: BTreeMap<u32, Vec<u32>>,
}

pub(super) fn of(lanes: &[CpuEvents]) -> MissingSwitches {
    let mut missing = MissingSwitches::default();
    merged(lanes).for_each(|(cpu, raw)| missing.event(cpu, &raw));
    missing
}

impl MissingSwitches {
    /// Takes the next event of a CPU, all of them in order of time.
    pub(super) fn event(&mut self, cpu: u32, raw: &Raw) {
        match raw.kind {
            Kind::Switch => {
                match self.given_to.insert(cpu, raw.b) {
                    Some(last) if last == raw.a => {}
                    Some(last) if last == 0 || raw.a == 0 => self.count(cpu),
                    Some(last) => self.breaks.entry(last).or_default().push(cpu),
                    None => {}
                }
                self.see(raw.a);
                self.see(raw.b);
            }
            Kind::Waking | Kind::Migrate => self.see(raw.a),
            Kind::Lost => {
                self.given_to.remove(&cpu);
            }
            _ => {}
        }
    }

    pub(super) fn on(&self, cpu: u32) -> u64 {
        self.counted.get(&cpu).copied().unwrap_or(0)
    }

    fn see(&mut self, thread: u32) {
        for cpu in self.breaks.remove(&thread).into_iter().flatten() {
            self.count(cpu);
        }
    }

    fn count(&mut self, cpu: u32) {
        let counted = self.counted.entry(cpu).or_default();
        *counted = counted.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: Kind, a: u32, b: u32) -> Raw {
        Raw { time: 0, value: 0, a, b, kind }
    }

    fn counted(events: &[(u32, Raw)]) -> [u64; 2] {
        let mut missing = MissingSwitches::default();
        events.iter().for_each(|(cpu, raw)| missing.event(*cpu, raw));
        [missing.on(0), missing.on(1)]
    }

    /// A CPU that had been offline and came back: its kernel wrote no switch from idle, 5 of 481 wake-ups were joined,
    /// and nothing said why. `watch` warned of 8 between two threads, and its folder had 0.
    #[test]
    fn switches_that_the_kernel_does_not_write_are_counted() {
        let on = |cpu: u32, a, b| (cpu, raw(Kind::Switch, a, b));
        let waking = (0, raw(Kind::Waking, 70, 1));
        let lost = (1, raw(Kind::Lost, 0, 0));
        let whole = [on(1, 0, 70), on(1, 70, 8), on(1, 8, 0), on(1, 0, 70)];
        assert_eq!(counted(&whole), [0, 0]);
        let no_from_idle = [on(1, 70, 0), waking, on(1, 70, 0), on(1, 70, 0)];
        assert_eq!(counted(&no_from_idle), [0, 2]);
        assert_eq!(counted(&[on(1, 0, 70), on(1, 0, 70)]), [0, 1], "to idle");
        assert_eq!(counted(&[on(1, 70, 0), lost, on(1, 70, 0)]), [0, 0]);
        let gone = [on(1, 0, 70), on(1, 71, 0)];
        assert_eq!(counted(&gone), [0, 0], "execve of a thread that is not the first");
        let between = [gone[0], gone[1], on(0, 0, 70), on(0, 70, 0)];
        assert_eq!(counted(&between), [0, 1], "it is there still");
        assert_eq!(counted(&[gone[0], gone[1], waking]), [0, 1]);
        assert_eq!(counted(&[on(1, 0, 70), on(1, 71, 70)]), [0, 1]);
        assert_eq!(counted(&[on(1, 0, 70), lost, on(1, 71, 70)]), [0, 0]);
    }
}
