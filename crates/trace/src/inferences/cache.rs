//! The indirect cost of context switches: what threads lose because their data left the cache
//! (section 5.2, Figure 5).

use crate::statistics::{Estimate, USUAL, mean};

/// A trial: the same work by one thread and by several in turns, each for the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheTrial {
    /// W1: work that one thread did, in any unit.
    pub work_of_one: f64,
    /// W10: work that all threads together did, in the same unit.
    pub work_of_many: f64,
    /// T: how long each run took, ns.
    pub duration_ns: f64,
    /// N10: context switches in the run of many.
    pub switches: u64,
}

impl CacheTrial {
    /// C = ((W1 - W10) / W1) (T / N10): the penalty of a switch, ns. Below 0 where many did more
    /// than one, which only noise can do. `None` without work or switches.
    pub fn penalty_ns(&self) -> Option<f64> {
        if self.work_of_one.is_nan() || self.work_of_one <= 0.0 || self.switches == 0 {
            return None;
        }
        let lost = (self.work_of_one - self.work_of_many) / self.work_of_one;
        Some(lost * (self.duration_ns / self.switches as f64))
    }
}

/// The penalty of a switch over repeated trials, ns, with the 95 % interval of Student's t. Trials
/// without work or switches are left out. `None` if none is left.
pub fn cache_cost(trials: &[CacheTrial]) -> Option<Estimate> {
    let penalties: Vec<f64> = trials.iter().filter_map(CacheTrial::penalty_ns).collect();
    mean(&penalties, USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.2's estimate: 100 KB at 300 MB/s are 333 µs. With 18 switches a second for 45 s,
    /// ten threads then lose 0.6 per cent of the work.
    #[test]
    fn the_papers_estimate_comes_back() {
        let (switches, duration_ns) = (810, 45e9);
        let lost = 333e3 * 810.0 / duration_ns;
        let trial = |work: f64| CacheTrial {
            work_of_one: work,
            work_of_many: work * (1.0 - lost),
            duration_ns,
            switches,
        };
        let found = cache_cost(&[trial(135e3), trial(140e3), trial(130e3)]).unwrap();
        assert!((found.value - 333e3).abs() < 1.0 && found.half_width() < 1.0, "{found:?}");
    }

    #[test]
    fn noise_may_be_negative_and_nothing_is_nothing() {
        let trial =
            CacheTrial { work_of_one: 100.0, work_of_many: 101.0, duration_ns: 1e9, switches: 10 };
        assert!((trial.penalty_ns().unwrap() + 1e6).abs() < 1e-3);
        assert_eq!(CacheTrial { switches: 0, ..trial }.penalty_ns(), None);
        assert_eq!(CacheTrial { work_of_one: 0.0, ..trial }.penalty_ns(), None);
        assert_eq!(cache_cost(&[CacheTrial { switches: 0, ..trial }]), None);
    }
}
