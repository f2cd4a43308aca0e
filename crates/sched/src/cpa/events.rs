//! Event models: how close n events can be.
//!
//! Owns: sources by period, jitter and least distance, and what comes out of a task. Must not: know
//! schedulers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::verdict::Refusal;

/// Events from outside: one in each period, off by up to the jitter, never closer than the distance
/// (Richter 2005, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventModel {
    /// Mean time between two events; not 0.
    pub period: u64,
    /// The jitter of an event.
    pub jitter: u64,
    /// The least time between two events; 0 if it is not known.
    pub distance: u64,
}

/// How the events that come out of a task are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Propagates the jitter of responses alone.
    Jitter,
    /// Propagates jitter, with completions no closer than the shortest execution time.
    JitterAndDistance,
    /// By the busy times of one, two, ... jobs, and the shortest execution time (Schliecker et al.
    /// 2008, theorems 1 to 3); pyCPA's default.
    BusyWindow,
}

/// A stream of events.
#[derive(Debug)]
pub struct EventStream {
    of: EventOrigin,
    /// Distances computed so far.
    known: RefCell<HashMap<u64, u64>>,
}

#[derive(Debug)]
enum EventOrigin {
    Source(EventModel),
    Output {
        input: Rc<EventStream>,
        propagation: Propagation,
        response: u64,
        least: u64,
        busy: Vec<u64>,
    },
}

impl EventStream {
    pub(crate) fn source(arrivals: EventModel) -> Rc<EventStream> {
        Rc::new(EventStream { of: EventOrigin::Source(arrivals), known: RefCell::default() })
    }

    /// What comes out of a task that responds within `response` and takes `least` at least; with
    /// no busy times, it is not analysed yet, and what comes in goes out.
    pub(crate) fn output(
        input: Rc<EventStream>,
        propagation: Propagation,
        response: u64,
        least: u64,
        busy: Vec<u64>,
    ) -> Rc<EventStream> {
        let of = EventOrigin::Output { input, propagation, response, least, busy };
        Rc::new(EventStream { of, known: RefCell::default() })
    }

    /// The least time from the first to the last of `n` events; 0 for one or none.
    pub(crate) fn distance(&self, n: u64) -> Result<u64, Refusal> {
        if n < 2 {
            return Ok(0);
        }
        if let Some(known) = self.known.borrow().get(&n) {
            return Ok(*known);
        }
        let found = self.compute(n)?;
        self.known.borrow_mut().insert(n, found);
        Ok(found)
    }

    fn compute(&self, n: u64) -> Result<u64, Refusal> {
        let apart = |each: u64| (n - 1).checked_mul(each).ok_or(Refusal::Overflow);
        match &self.of {
            EventOrigin::Source(of) => {
                Ok(apart(of.period)?.saturating_sub(of.jitter).max(apart(of.distance)?))
            }
            EventOrigin::Output { input, propagation, response, least, busy } => {
                let spread = |response: u64| response.saturating_sub(*least);
                let after = match propagation {
                    _ if busy.is_empty() => input.distance(n)?,
                    Propagation::Jitter | Propagation::JitterAndDistance => {
                        input.distance(n)?.saturating_sub(spread(*response))
                    }
                    Propagation::BusyWindow => {
                        let mut closest = u64::MAX;
                        for (earlier, busy) in (0..).zip(busy) {
                            let window =
                                input.distance(n.checked_add(earlier).ok_or(Refusal::Overflow)?)?;
                            closest = closest.min(window.saturating_sub(spread(*busy)));
                        }
                        closest
                    }
                };
                match propagation {
                    Propagation::Jitter => Ok(after),
                    Propagation::JitterAndDistance | Propagation::BusyWindow => {
                        Ok(after.max(apart(*least)?))
                    }
                }
            }
        }
    }

    /// How many events a window of `length` can hold at most, its end left out.
    pub(crate) fn in_window(&self, length: u64) -> Result<u64, Refusal> {
        if length == 0 {
            return Ok(0);
        }
        let fits = |n: u64| -> Result<bool, Refusal> { Ok(self.distance(n)? < length) };
        let (mut low, mut high) = (1, 2);
        while fits(high)? {
            low = high;
            high = high.checked_mul(2).ok_or(Refusal::Overflow)?;
        }
        // `low` events fit, `high` do not.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Richter 2005: with period 10, jitter 25 and distance 2, four events come 2 apart, then one
    /// in each period.
    #[test]
    fn jitter_makes_bursts() {
        let events = EventStream::source(EventModel { period: 10, jitter: 25, distance: 2 });
        let distances: Vec<u64> = (0..7).map(|n| events.distance(n).unwrap()).collect();
        assert_eq!(distances, [0, 0, 2, 4, 6, 15, 25]);
        let counts: Vec<u64> =
            [0, 1, 2, 3, 7, 15, 16].map(|w| events.in_window(w).unwrap()).to_vec();
        assert_eq!(counts, [0, 1, 1, 2, 4, 4, 5]);
    }

    /// pyCPA, test/test_spp.py: T12 with period 15, jitter 6, busy times 13 and 16, and 1 at least.
    #[test]
    fn completions_keep_the_least_distance() {
        let source = EventStream::source(EventModel { period: 15, jitter: 6, distance: 0 });
        let output =
            |propagation| EventStream::output(Rc::clone(&source), propagation, 13, 1, vec![13, 16]);
        let distances = |propagation| -> Vec<u64> {
            (2..5).map(|n| output(propagation).distance(n).unwrap()).collect()
        };
        assert_eq!(distances(Propagation::Jitter), [0, 12, 27]);
        assert_eq!(distances(Propagation::JitterAndDistance), [1, 12, 27]);
        assert_eq!(distances(Propagation::BusyWindow), [1, 12, 27]);
    }

    #[test]
    fn distances_that_do_not_fit_are_refused() {
        let events = EventStream::source(EventModel { period: u64::MAX, jitter: 0, distance: 0 });
        assert_eq!(events.distance(3), Err(Refusal::Overflow));
    }
}
