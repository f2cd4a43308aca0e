//! For how long others waited for the work in a row.
//!
//! Owns: [`Reach`]. Must not: read a clock, look at a thread.
//!
//! Others on the CPU of the work wait while it runs at its real-time priority. Looks tell how much of the time between
//! them it ran, and not when; so all of it counts to what came before and to what follows, which is never too little. Only a
//! look that finds it lowered, suspended or asleep, or idle for most of the time before, ends a span.

/// An idle time of less may be interrupts, ns.
const IDLE_NS: u64 = 1_000_000;

/// The longest span so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    now_ns: u64,
    used_ns: u64,
    span_ns: u64,
    max_ns: u64,
}

impl Reach {
    /// The work was raised at this time, and had had so much processor time.
    pub(super) fn begin(now_ns: u64, used_ns: u64) -> Reach {
        Reach { now_ns, used_ns, span_ns: 0, max_ns: 0 }
    }

    /// A look. `raised`: it was until now; `wants`: none is known to sleep.
    pub(super) fn look(&mut self, now_ns: u64, used_ns: u64, raised: bool, wants: bool) {
        let passed = now_ns.saturating_sub(self.now_ns);
        let ran = used_ns.saturating_sub(self.used_ns).min(passed);
        (self.now_ns, self.used_ns) = (now_ns, used_ns);
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

    /// The longest one, ns.
    pub(super) fn max_ns(&self) -> u64 {
        self.max_ns
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
        assert_eq!(reach.max_ns(), 6 * MS);
        // Suspended until 20, then again.
        reach.look(20 * MS, 6 * MS, false, true);
        reach.look(23 * MS, 9 * MS, true, true);
        reach.end();
        assert_eq!(reach.max_ns(), 6 * MS);
    }

    /// A thread that sleeps between its jobs lets others run, however long it is raised.
    #[test]
    fn sleep_ends_a_span() {
        let mut reach = Reach::begin(0, 0);
        for period in 1..=100 {
            reach.look(period * 10 * MS, period * MS, true, false);
        }
        assert_eq!(reach.max_ns(), MS);
        let mut reach = Reach::begin(0, 0);
        for period in 1..=100 {
            reach.look(period * 10 * MS, period * MS, true, true);
        }
        assert_eq!(reach.max_ns(), 2 * MS);
        // Interrupts are no sleep.
        let mut reach = Reach::begin(0, 0);
        reach.look(10 * MS, 10 * MS - 50_000, true, true);
        reach.look(20 * MS, 20 * MS - 90_000, true, true);
        assert_eq!(reach.max_ns(), 20 * MS - 90_000);
    }
}
