//! What the watched program tells, and what is held against it: by arithmetic, and by nothing that the program says of
//! itself.

use std::io::Read;
use std::os::unix::net::UnixStream;

use super::monotonic_ns;
use super::subject::PERIODS;

/// Times are `CLOCK_MONOTONIC`, ns, by the kernel where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    /// The page of a clock, by its number in the program.
    Page { descriptor: u64 },
    /// A reading with its bound, between two of the kernel's, and one without.
    Clock { before: u64, earliest: u64, latest: u64, after: u64, now: u64 },
    /// The clock's deadline and end of a sleep, and how wide the clock's bound was.
    Sleep { deadline: u64, woke: u64, after: u64, width: u64 },
    /// A message of a periodic timer.
    Expiry { tag: u64, expiry: u64, overruns: u64, received: u64 },
    /// All periodic timers: their first expiry, from when on they need not expire, messages that found no room.
    Timers { first: u64, stop: u64, unsent: u64 },
    /// A sleep on a timer.
    Wait { at: u64, after: u64 },
    /// A simulated kernel and its clock begin.
    Simulation,
    /// As `Clock`, by that kernel's time.
    Simulated { before: u64, earliest: u64, latest: u64, after: u64, now: u64 },
    /// How many spans there were, how many of them slept, and how long all took.
    Spans { ended: u64, slept: u64, inside_ns: u64 },
}

impl Fact {
    pub(super) fn words(self) -> [u64; 6] {
        match self {
            Fact::Page { descriptor } => [0, descriptor, 0, 0, 0, 0],
            Fact::Clock { before, earliest, latest, after, now } => {
                [1, before, earliest, latest, after, now]
            }
            Fact::Sleep { deadline, woke, after, width } => [2, deadline, woke, after, width, 0],
            Fact::Expiry { tag, expiry, overruns, received } => {
                [3, tag, expiry, overruns, received, 0]
            }
            Fact::Timers { first, stop, unsent } => [4, first, stop, unsent, 0, 0],
            Fact::Wait { at, after } => [5, at, after, 0, 0, 0],
            Fact::Simulation => [7, 0, 0, 0, 0, 0],
            Fact::Simulated { before, earliest, latest, after, now } => {
                [8, before, earliest, latest, after, now]
            }
            Fact::Spans { ended, slept, inside_ns } => [6, ended, slept, inside_ns, 0, 0],
        }
    }

    fn of(words: [u64; 6]) -> Fact {
        let [kind, a, b, c, d, e] = words;
        match kind {
            0 => Fact::Page { descriptor: a },
            1 => Fact::Clock { before: a, earliest: b, latest: c, after: d, now: e },
            2 => Fact::Sleep { deadline: a, woke: b, after: c, width: d },
            3 => Fact::Expiry { tag: a, expiry: b, overruns: c, received: d },
            4 => Fact::Timers { first: a, stop: b, unsent: c },
            5 => Fact::Wait { at: a, after: b },
            6 => Fact::Spans { ended: a, slept: b, inside_ns: c },
            7 => Fact::Simulation,
            8 => Fact::Simulated { before: a, earliest: b, latest: c, after: d, now: e },
            _ => panic!("{words:?} is no fact"),
        }
    }

    /// The next one; `None` where the program has closed the line.
    pub(super) fn read(line: &mut impl Read) -> Option<Fact> {
        let mut bytes = [0; 48];
        line.read_exact(&mut bytes).ok()?;
        let mut words = [0; 6];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        Some(Fact::of(words))
    }
}

/// What one thread's facts come to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) clock_readings: u64,
    pub(super) clock_width_max_ns: u64,
    pub(super) simulated_readings: u64,
    pub(super) sleeps: u64,
    pub(super) expiries: u64,
    pub(super) overruns: u64,
    pub(super) waits: u64,
    pub(super) spans: u64,
    pub(super) spans_slept: u64,
    pub(super) spans_ns: u64,
    /// The first few violations.
    pub(super) wrong: Vec<String>,
    pub(super) violations: u64,
    last_now: u64,
    last_time: u64,
    last_expiry: [u64; PERIODS.len()],
    counted: [u64; PERIODS.len()],
}

impl Tally {
    /// Judges all that comes.
    pub(super) fn follow(&mut self, mut line: UnixStream) {
        while let Some(fact) = Fact::read(&mut line) {
            self.judge(fact);
        }
    }

    fn hold(&mut self, holds: bool, what: &str, fact: Fact) {
        const SHOWN: usize = 5;
        if !holds {
            self.violations += 1;
            if self.wrong.len() < SHOWN {
                self.wrong.push(format!("{what}: {fact:?}"));
            }
        }
    }

    /// Whether the kernel's clock can have shown `ns` then: not before the last reading, and not after now.
    fn in_order(&mut self, ns: u64, fact: Fact) {
        self.hold(ns >= self.last_time && ns <= monotonic_ns(), "a time out of order", fact);
        self.last_time = ns;
    }

    /// A clock between two of the kernel's readings.
    fn reading(&mut self, [before, earliest, latest, after, now]: [u64; 5], fact: Fact) {
        self.hold(earliest <= after && latest >= before, "outside its bound", fact);
        self.hold(now >= self.last_now, "backwards", fact);
        self.last_now = now;
    }

    pub(super) fn judge(&mut self, fact: Fact) {
        match fact {
            Fact::Page { .. } => {}
            Fact::Clock { before, earliest, latest, after, now } => {
                self.in_order(after, fact);
                self.reading([before, earliest, latest, after, now], fact);
                self.clock_readings += 1;
                self.clock_width_max_ns = self.clock_width_max_ns.max(latest - earliest);
            }
            Fact::Simulation => self.last_now = 0,
            Fact::Simulated { before, earliest, latest, after, now } => {
                self.reading([before, earliest, latest, after, now], fact);
                self.simulated_readings += 1;
            }
            Fact::Sleep { deadline, woke, after, width } => {
                self.in_order(after, fact);
                self.hold(woke >= deadline && after + width >= deadline, "early", fact);
                self.sleeps += 1;
            }
            Fact::Wait { at, after } => {
                self.in_order(after, fact);
                self.hold(after >= at, "early", fact);
                self.waits += 1;
            }
            Fact::Expiry { tag, expiry, overruns, received } => {
                self.in_order(received, fact);
                self.hold(received >= expiry, "early", fact);
                let place = tag as usize;
                self.hold(expiry > self.last_expiry[place], "twice", fact);
                self.last_expiry[place] = expiry;
                self.counted[place] += 1 + overruns;
                self.expiries += 1;
                self.overruns += overruns;
            }
            Fact::Timers { first, stop, unsent } => self.count(first, stop, unsent, fact),
            Fact::Spans { ended, slept, inside_ns } => {
                (self.spans, self.spans_slept, self.spans_ns) = (ended, slept, inside_ns);
            }
        }
    }

    /// Each expiry from the first to the last was reported or counted, and the last is not before the end.
    fn count(&mut self, first: u64, stop: u64, unsent: u64, fact: Fact) {
        self.hold(stop > 0 && unsent == 0, "no end, or no room", fact);
        for (place, period) in PERIODS.iter().enumerate() {
            let last = self.last_expiry[place];
            let since = last.saturating_sub(first);
            let whole = since.is_multiple_of(period.unsigned_abs());
            self.hold(last >= stop && whole, &format!("timer {place} ended at {last}"), fact);
            let (due, told) = (since / period.unsigned_abs() + 1, self.counted[place]);
            self.hold(due == told, &format!("timer {place}: {told} of {due} expiries"), fact);
        }
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.clock_readings += other.clock_readings;
        self.clock_width_max_ns = self.clock_width_max_ns.max(other.clock_width_max_ns);
        self.simulated_readings += other.simulated_readings;
        self.sleeps += other.sleeps;
        self.expiries += other.expiries;
        self.overruns += other.overruns;
        self.waits += other.waits;
        self.spans += other.spans;
        self.spans_slept += other.spans_slept;
        self.spans_ns += other.spans_ns;
        self.wrong.extend(other.wrong);
        self.violations += other.violations;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(facts: &[Fact]) -> u64 {
        let mut tally = Tally::default();
        facts.iter().for_each(|fact| tally.judge(Fact::of(fact.words())));
        tally.violations
    }

    #[test]
    fn each_violation_is_seen() {
        let clock = |before, earliest, latest, after| {
            judged(&[Fact::Clock { before, earliest, latest, after, now: 5 }])
        };
        assert_eq!(clock(10, 9, 12, 11), 0);
        assert_eq!((clock(10, 7, 9, 11), clock(10, 12, 13, 11)), (1, 1));
        let now = |now| Fact::Clock { before: 1, earliest: 1, latest: 2, after: 2, now };
        assert_eq!((judged(&[now(3), now(3)]), judged(&[now(3), now(2)])), (0, 1));
        let sleep = |woke, after| judged(&[Fact::Sleep { deadline: 9, woke, after, width: 2 }]);
        assert_eq!((sleep(9, 7), sleep(8, 9), sleep(9, 6)), (0, 1, 1));
        assert_eq!(judged(&[Fact::Wait { at: 9, after: 8 }]), 1);
        assert_eq!(judged(&[Fact::Wait { at: 1, after: u64::MAX }]), 1, "it is not so late yet");
    }

    #[test]
    fn an_expiry_that_is_lost_is_seen() {
        let expiry = |place: usize, nth: u64, overruns| Fact::Expiry {
            tag: place as u64,
            expiry: 1 + nth * PERIODS[place].unsigned_abs(),
            overruns,
            received: 1_000_000_000,
        };
        let facts = |nth: u64, overruns| -> Vec<Fact> {
            let mut facts: Vec<Fact> = (0..PERIODS.len()).map(|one| expiry(one, 0, 0)).collect();
            facts.push(expiry(0, nth, overruns));
            facts.push(Fact::Timers { first: 1, stop: 1, unsent: 0 });
            facts
        };
        assert_eq!((judged(&facts(1, 0)), judged(&facts(3, 2))), (0, 0));
        assert_eq!((judged(&facts(3, 1)), judged(&facts(3, 3))), (1, 1));
        let with =
            |unsent, stop| judged(&[expiry(0, 0, 0), Fact::Timers { first: 1, stop, unsent }]);
        assert!(with(1, 1) > with(0, 1) && with(0, 2) > with(0, 1));
    }
}
