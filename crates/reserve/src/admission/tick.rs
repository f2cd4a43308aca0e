//! How exactly the kernel ends the budgets of its deadline class.
//!
//! Without `HRTICK_DL` it looks at its tick whether a budget is used up: one that ends just behind a tick lasts until
//! the next one, and what it took too much is missing in the periods that follow (`update_curr_dl` in
//! `kernel/sched/deadline.c`). With it, a timer of high resolution ends the budget.

use std::path::Path;

use hourglass_sys::clock::{ClockId, resolution_ns};
use hourglass_time::Span;

use super::facts::Files;
use crate::request::BackendRequest;

/// A budget is of the order of the tick if a tick is more than this part of it.
const PART: u64 = 10;

/// The scheduler's features, by name; those that are off begin with `NO_`.
const FEATURES: &str = "sys/kernel/debug/sched/features";

/// The tick, and whether budgets end at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Time between two, ns (1 / `CONFIG_HZ`).
    pub ns: u64,
    /// Whether budgets of the deadline class end between ticks; `None` where the kernel does not tell (debugfs is not
    /// mounted, or not to be read): most kernels do not.
    pub between: Option<bool>,
}

impl Tick {
    /// The tick of this machine; `None` where the kernel does not report it.
    #[must_use]
    pub fn of_this_machine() -> Option<Tick> {
        Tick::from_files(&Files::under_root(Path::new("/")))
    }

    /// The tick by the given files: the step of the kernel's coarse clock, which it moves at each tick.
    pub(super) fn from_files(files: &Files) -> Option<Tick> {
        let ns = resolution_ns(ClockId::MonotonicCoarse).ok()?;
        let features = files.text(FEATURES);
        let on = |text: String| {
            let has = |name: &str| text.split_ascii_whitespace().any(|feature| feature == name);
            // The second is the switch for all classes, where there is one.
            has("HRTICK_DL") && !has("NO_HRTICK")
        };
        Some(Tick { ns, between: features.map(on) })
    }

    /// Whether budgets may end a tick late, and a tick is more than a tenth of this one.
    #[must_use]
    pub fn is_coarse_for(&self, budget_ns: u64) -> bool {
        self.between != Some(true) && budget_ns < self.ns.saturating_mul(PART)
    }

    /// The effect on a request; `None` where the tick is fine enough.
    #[must_use]
    pub fn against(&self, request: &BackendRequest) -> Option<String> {
        let budget = request.reservation.budget();
        self.is_coarse_for(budget.nanos_or_zero()).then(|| {
            let tick = Span::saturating_from_nanos(self.ns);
            let why = match self.between {
                Some(_) => "HRTICK_DL is off",
                None => "HRTICK_DL cannot be read, and is off by default",
            };
            format!(
                "the kernel ends budgets of the deadline class at its tick, every {tick} ({why}): of {budget}, a period \
                 may have up to {tick} more, and the next ones that much less"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tick(features: Option<&str>) -> Tick {
        let root = tempfile::TempDir::new().unwrap();
        if let Some(features) = features {
            let path = root.path().join(FEATURES);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, features).unwrap();
        }
        Tick::from_files(&Files::under_root(root.path())).unwrap()
    }

    #[test]
    fn features_tell_whether_budgets_end_between_ticks() {
        assert_eq!(tick(None).between, None);
        assert_eq!(tick(Some("GENTLE NO_HRTICK NO_HRTICK_DL TTWU_QUEUE\n")).between, Some(false));
        assert_eq!(tick(Some("HRTICK NO_HRTICK_DL\n")).between, Some(false));
        assert_eq!(tick(Some("NO_HRTICK HRTICK_DL\n")).between, Some(false));
        assert_eq!(tick(Some("HRTICK HRTICK_DL\n")).between, Some(true));
        // Every rate that kernels are built with.
        let hz = 1_000_000_000 / tick(None).ns;
        assert!((50..=2_000).contains(&hz), "{hz} Hz");
    }

    /// A rule of the tick: at 250 Hz 3 ms are coarse, and at 10 kHz, or with the timer, they would not be.
    #[test]
    fn what_is_coarse_follows_from_the_tick() {
        let tick = |ns, between| Tick { ns, between };
        const MS: u64 = 1_000_000;
        assert!(tick(4 * MS, Some(false)).is_coarse_for(3 * MS));
        assert!(tick(4 * MS, None).is_coarse_for(39 * MS));
        assert!(!tick(4 * MS, None).is_coarse_for(40 * MS));
        assert!(!tick(MS, Some(false)).is_coarse_for(10 * MS));
        assert!(!tick(4 * MS, Some(true)).is_coarse_for(3 * MS));
        assert!(!tick(u64::MAX, Some(true)).is_coarse_for(u64::MAX));
    }
}
