//! The shortest window at whose end a job is done, whatever the others do in it.
//!
//! Owns: least fixed points of x = own + floor(S(x) / m), S being the work of the others, found by
//! jumps, so that the number of steps does not depend on the unit of time. Must not: know an
//! analysis; it gets the work of each rival at a length, and for how long that grows.
//!
//! With y = x - own + 1, x is not yet a fixed point exactly while S(x) >= m y. The iteration of the
//! papers goes from x to own + floor(S(x) / m), which may be one unit on: where m rivals fill the
//! window as it grows, every time. What is known of the works at x bounds S from below at all longer
//! windows, by a concave function: all windows up to where that falls below m y are left out at once.

use crate::effort::StepLimit;
use crate::task::Task;
use crate::verdict::Refusal;

use super::work_with_carry_in;

/// The work of a rival in a window: a base, and a unit more for each unit by which the window
/// grows, up to a limit. Beyond it the work is never less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowWork {
    pub(super) now: u128,
    pub(super) grows: u128,
}

impl WindowWork {
    /// [`work_with_carry_in`]: it grows until the last job is whole.
    pub(super) fn with_carry_in(task: &Task, length: u64, response: u64) -> WindowWork {
        let reach = u128::from(length) + u128::from(response.saturating_sub(task.cost));
        let phase = reach % u128::from(task.period);
        let now = work_with_carry_in(task, length, response);
        WindowWork { now, grows: u128::from(task.cost).saturating_sub(phase) }
    }

    /// The smaller of this and a limit that grows with the window without end.
    pub(super) fn at_most_growing(self, limit: u128) -> WindowWork {
        match self.now.checked_sub(limit) {
            None => self,
            Some(above) => WindowWork { now: limit, grows: self.grows.saturating_add(above) },
        }
    }

    /// The smaller of this and a limit.
    pub(super) fn at_most(self, limit: u128) -> WindowWork {
        let now = self.now.min(limit);
        WindowWork { now, grows: self.grows.min(limit - now) }
    }
}

/// A job of `own` units on `cpus` processors, which are not 0, and the longest window allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowJob {
    pub(super) own: u64,
    pub(super) limit: u64,
    pub(super) cpus: u64,
}

impl WindowJob {
    /// The least x from `own` to `limit` with x >= own + floor(S(x) / m); `None` without one.
    ///
    /// `works` puts the rivals' work in a window of a length into an empty list. A step is one
    /// length; there are at most about as many as lengths at which a work begins or ceases to grow.
    pub(super) fn shortest(
        self,
        effort: &mut StepLimit,
        mut works: impl FnMut(u64, &mut Vec<WindowWork>),
    ) -> Result<Option<u64>, Refusal> {
        let mut found = Vec::new();
        let mut window = self.own;
        while window <= self.limit {
            found.clear();
            works(window, &mut found);
            effort.charge(found.len())?;
            let Some(further) = self.next_step(window, &mut found) else {
                #[cfg(debug_assertions)]
                self.assert_shortest(Some(window), works);
                return Ok(Some(window));
            };
            let Some(next) = u64::try_from(further).ok().and_then(|f| window.checked_add(f)) else {
                break;
            };
            window = next;
        }
        #[cfg(debug_assertions)]
        self.assert_shortest(None, works);
        Ok(None)
    }

    /// By how much the fixed point is at least further than `window`; `None` if this is it.
    fn next_step(self, window: u64, works: &mut [WindowWork]) -> Option<u128> {
        let cpus = u128::from(self.cpus);
        let full = (u128::from(window - self.own) + 1).saturating_mul(cpus);
        let sum = works.iter().fold(0u128, |sum, work| sum.saturating_add(work.now));
        // The work beyond the amount that lets the job end here.
        let mut spare = sum.checked_sub(full)?;
        works.sort_unstable_by_key(|work| work.grows);
        let mut at = 0;
        for (ceased, work) in works.iter().enumerate() {
            let growing = (works.len() - ceased) as u128;
            let stretch = work.grows - at;
            if let Some(gain) = growing.checked_sub(cpus) {
                spare = spare.saturating_add(gain.saturating_mul(stretch));
            } else {
                let loss = cpus - growing;
                let lasts = spare / loss;
                if lasts < stretch {
                    return Some(at + lasts + 1);
                }
                spare -= loss * stretch;
            }
            at = work.grows;
        }
        Some(at.saturating_add(spare / cpus).saturating_add(1))
    }

    /// The iteration of the papers, for windows that are short enough.
    #[cfg(debug_assertions)]
    fn slowly(self, mut works: impl FnMut(u64, &mut Vec<WindowWork>)) -> Option<u64> {
        let mut found = Vec::new();
        let mut window = self.own;
        while window <= self.limit {
            found.clear();
            works(window, &mut found);
            let sum = found.iter().fold(0u128, |sum, work| sum.saturating_add(work.now));
            let next = u128::from(self.own) + sum / u128::from(self.cpus);
            if next <= u128::from(window) {
                return Some(window);
            }
            window = u64::try_from(next).ok()?;
        }
        None
    }

    #[cfg(debug_assertions)]
    fn assert_shortest(self, found: Option<u64>, works: impl FnMut(u64, &mut Vec<WindowWork>)) {
        const SHORT: u64 = 2_000;
        if self.limit.saturating_sub(self.own) <= SHORT {
            assert_eq!(found, self.slowly(works), "the window of {self:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two rivals of a second fill two processors: the iteration would go on by a unit each time.
    #[test]
    fn windows_that_rivals_fill_are_left_out_at_once() {
        let rival = Task::new(1_000_000_000, 10_000_000_000, 10_000_000_000).unwrap();
        let job = WindowJob { own: 7, limit: 9_000_000_000, cpus: 2 };
        let mut effort = StepLimit::with_steps(125);
        let found = job.shortest(&mut effort, |window, works| {
            let work = WindowWork::with_carry_in(&rival, window, rival.cost);
            let most = u128::from(window - 7) + 1;
            works.extend([work.at_most_growing(most); 2]);
        });
        assert_eq!(found, Ok(Some(1_000_000_007)));
    }

    /// The lower bound that the jumps rest on, at every length that follows.
    #[test]
    fn works_grow_as_they_say() {
        for (cost, period, response) in [(3, 10, 3), (3, 10, 7), (10, 10, 10), (1, 2, 2), (4, 7, 6)]
        {
            let task = Task::new(cost, period, period).unwrap();
            let of = |length: u64| {
                let cap = u128::from(length) + 1;
                let with = WindowWork::with_carry_in(&task, length, response);
                let without = WindowWork::with_carry_in(&task, length, cost);
                [with, without, with.at_most_growing(cap), without.at_most(5)]
            };
            for length in 0..60 {
                for more in 0..60u64 {
                    for (now, then) in of(length).iter().zip(of(length + more)) {
                        let least = now.now + now.grows.min(more.into());
                        assert!(then.now >= least, "{task:?} {length} {more}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// The jumps end where the iteration of the papers ends.
        #[test]
        fn jumps_find_what_the_iteration_finds(
            numbers in proptest::collection::vec((1..400u64, 2..12u64, 0..100u64), 0..8),
            own in 1..300u64, limit in 1..4_000u64, cpus in 1..5u64, clamp in any::<bool>()
        ) {
            let rivals: Vec<(Task, u64)> = numbers.iter().map(|(cost, factor, late)| {
                let period = cost * factor / 2;
                let response = cost + (period - cost) * late / 100;
                (Task::new(*cost, period, period).unwrap(), response)
            }).collect();
            let works = |window: u64, works: &mut Vec<WindowWork>| {
                let most = if clamp { u128::from(window - own) + 1 } else { u128::MAX };
                for (task, response) in &rivals {
                    works.push(WindowWork::with_carry_in(task, window, *response).at_most_growing(most));
                }
            };
            let job = WindowJob { own, limit, cpus };
            prop_assert_eq!(job.shortest(&mut StepLimit::default(), works), Ok(job.slowly(works)));
        }
    }
}
