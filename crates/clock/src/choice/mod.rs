//! Which counter measures on this machine, and why.
//!
//! [`choose`] decides in microseconds, by what the kernel says; [`select`] gathers all the evidence
//! there is, item by item, and decides by a [`SelectionPolicy`].

pub mod cross_cpu;
pub mod machine;
pub mod measured;
pub mod monotonicity;
pub mod policy;
pub mod selection;
pub mod thesis_rule;
pub mod verdicts;

use std::path::Path;

pub use cross_cpu::{CrossCpu, Pairs};
pub use machine::ClockHost;
pub use measured::{MeasurementLimits, SourceMeasurement};
pub use monotonicity::Monotonicity;
pub use policy::{SelectionPolicy, UnknownPolicy};
pub use selection::{SelectError, Selection, SourceReport, select};

pub use crate::trust::{Evidence, EvidenceVerdict};

/// The counters there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// The x86 time-stamp counter.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// The aarch64 generic timer.
    #[cfg(target_arch = "aarch64")]
    Cntvct,
    /// `CLOCK_MONOTONIC`.
    OsMonotonic,
}

/// A counter and the reason for taking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The counter.
    pub kind: CounterKind,
    /// Whether it is the processor's own counter, found fit.
    pub trusted: bool,
    /// One clause for people.
    pub reason: String,
}

/// The file that names the kernel's clock source, below the root of the file system.
const CURRENT_CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The clock source that the kernel uses now, as it names it.
#[must_use]
pub fn kernel_clocksource(root: &Path) -> Option<String> {
    let name = std::fs::read_to_string(root.join(CURRENT_CLOCKSOURCE)).ok()?;
    Some(name.trim().to_owned())
}

/// Takes the processor's counter if the kernel itself keeps time with it, else the OS clock.
///
/// The kernel watches its clock source and leaves it when it misbehaves; if the kernel does not use
/// the TSC, it or the administrator distrusts it. `root` is `/` except in tests.
#[must_use]
pub fn choose(root: &Path) -> Choice {
    decide(kernel_clocksource(root).as_deref(), processor_counter())
}

/// What the processor offers: the counter and the kernel's name for it, or why not.
type Offer = Result<(CounterKind, &'static [&'static str]), &'static str>;

#[cfg(target_arch = "x86_64")]
fn processor_counter() -> Offer {
    if !hourglass_sys::counter::has_tsc_with_cpu() {
        Err("the processor has no rdtscp, or reading the TSC is disabled")
    } else if !hourglass_sys::counter::tsc_is_invariant() {
        Err("the TSC is not invariant: its rate may change with power states")
    } else {
        Ok((CounterKind::Tsc, &["tsc"]))
    }
}

#[cfg(target_arch = "aarch64")]
fn processor_counter() -> Offer {
    Ok((CounterKind::Cntvct, &["arch_sys_counter"]))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn processor_counter() -> Offer {
    Err("no counter of this processor is known")
}

fn decide(kernel: Option<&str>, offer: Offer) -> Choice {
    let distrusted =
        |reason: String| Choice { kind: CounterKind::OsMonotonic, trusted: false, reason };
    match (offer, kernel) {
        (Err(reason), _) => distrusted(reason.to_owned()),
        (Ok((kind, names)), Some(kernel)) if names.contains(&kernel) => Choice {
            kind,
            trusted: true,
            reason: format!("the kernel keeps time with it ({kernel})"),
        },
        (Ok((_, names)), Some(kernel)) => distrusted(format!(
            "the kernel keeps time with {kernel}, so nothing confirms {}",
            names.join(" or ")
        )),
        (Ok(_), None) => {
            distrusted("the kernel does not say which clock source it uses".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_tsc_that_the_kernel_left_is_not_taken() {
        // A kvm-clock guest that merely has a TSC: valkey #4691, in which it jumped.
        let choice = decide(Some("kvm-clock"), Ok((CounterKind::Tsc, &["tsc"])));
        assert_eq!(choice.kind, CounterKind::OsMonotonic);
        assert!(choice.reason.contains("kvm-clock"));
        assert!(decide(Some("tsc"), Ok((CounterKind::Tsc, &["tsc"]))).trusted);
        assert!(!decide(None, Ok((CounterKind::Tsc, &["tsc"]))).trusted);
    }

    #[test]
    fn without_a_fit_counter_the_os_clock_serves() {
        let choice = decide(Some("tsc"), Err("not invariant"));
        assert_eq!((choice.kind, choice.trusted), (CounterKind::OsMonotonic, false));
        assert_eq!(choice.reason, "not invariant");
    }
}
