//! For how long others waited for the work in a row.
//!
//! Owns: [`Reach`]. Must not: read a clock, look at a thread.
//!
//! Others on the CPU of the work wait while it runs at its real-time priority, and while its keeper runs. Looks tell how much
//! of the time between them these ran, and not when; so all of it counts to what came before and to what follows. Only a
//! look that finds the work lowered, suspended or asleep, or both idle for most of the time before, ends a span. Threads above
//! both are not counted, so that others may have waited for longer.

/// An idle time of less may be interrupts, ns.
const IDLE_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    now_ns: u64,
    /// Processor time of the work and of its keeper.
    taken_ns: u64,
    span_ns: u64,
    pub(super) max_ns: u64,
}

impl Reach {
    /// The work was raised at `now_ns`; it and its keeper had had `taken_ns` of processor time.
    pub(super) fn begin(now_ns: u64, taken_ns: u64) -> Reach {
        Reach { now_ns, taken_ns, span_ns: 0, max_ns: 0 }
    }

    /// A look. `raised`: it was until now; `wants`: none is known to sleep.
    pub(super) fn look(&mut self, now_ns: u64, taken_ns: u64, raised: bool, wants: bool) {
        let passed = now_ns.saturating_sub(self.now_ns);
        let ran = taken_ns.saturating_sub(self.taken_ns).min(passed);
        (self.now_ns, self.taken_ns) = (now_ns, taken_ns);
        if !raised {
            self.span_ns = 0;
            return;
        }
        let whole = self.span_ns.saturating_add(ran);
        self.max_ns = self.max_ns.max(whole);
        let idle = passed.saturating_sub(ran);
        self.span_ns = match wants {
            false => 0,
            true if idle > IDLE_NS && idle > ran => ran,
            true => whole,
        };
    }

    /// It is lowered or suspended from here on.
    pub(super) fn end(&mut self) {
        self.span_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 3 ms at the end of one period and 3 ms at the begin of the next one are 6 in a row.
    #[test]
    fn two_budgets_can_follow_each_other() {
        let mut reach = Reach::begin(0, 0);
        reach.look(3 * MS, 0, true, true);
        reach.look(6 * MS, 0, true, true);
        reach.look(10 * MS, 3 * MS, true, true);
        reach.look(13 * MS, 6 * MS, true, true);
        reach.end();
        assert_eq!(reach.max_ns, 6 * MS);
        // Suspended until 20, then again.
        reach.look(20 * MS, 6 * MS, false, true);
        reach.look(23 * MS, 9 * MS, true, true);
        reach.end();
        assert_eq!(reach.max_ns, 6 * MS);
    }

    /// The bug: 57.9 ms in which no other thread had the CPU counted as 18, since the work had little of it; its keeper had
    /// the rest.
    #[test]
    fn the_keeper_makes_others_wait_too() {
        let (mut reach, mut taken) = (Reach::begin(0, 0), 0);
        for period in 1..=6 {
            // The work 2 ms, its keeper 7.65 ms, interrupts the rest.
            taken += 2 * MS + 7_650_000;
            reach.look(period * 9_700_000, taken, true, true);
        }
        assert_eq!(reach.max_ns, 57_900_000);
    }

    /// A thread that sleeps between its jobs lets others run, however long it is raised.
    #[test]
    fn sleep_ends_a_span() {
        let mut reach = Reach::begin(0, 0);
        for period in 1..=100 {
            reach.look(period * 10 * MS, period * MS, true, false);
        }
        assert_eq!(reach.max_ns, MS);
        let mut reach = Reach::begin(0, 0);
        for period in 1..=100 {
            reach.look(period * 10 * MS, period * MS, true, true);
        }
        assert_eq!(reach.max_ns, 2 * MS);
        // Interrupts are no sleep.
        let mut reach = Reach::begin(0, 0);
        reach.look(10 * MS, 10 * MS - 50_000, true, true);
        reach.look(20 * MS, 20 * MS - 90_000, true, true);
        assert_eq!(reach.max_ns, 20 * MS - 90_000);
    }
}
