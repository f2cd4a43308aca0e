//! The counters that a run can measure with, chosen at run time, compiled apart.

use hourglass_clock::{CounterKind, CounterReading, OsMonotonic, Pair};

#[cfg(target_arch = "aarch64")]
use hourglass_clock::Cntvct;
use hourglass_clock::Counter;
#[cfg(target_arch = "x86_64")]
use hourglass_clock::Tsc;

use crate::gap_evidence::{EvidenceSource, ThreadEvidence};

/// A counter that a thread is measured with, and what that thread can ask about its gaps.
///
/// Implementations MUST keep what [`Counter`] demands.
pub trait MeasuringCounter: Counter {
    /// What a thread can ask where this counter is.
    type EvidenceSource: EvidenceSource;
}

#[cfg(target_arch = "x86_64")]
impl MeasuringCounter for Tsc {
    type EvidenceSource = ThreadEvidence;
}

#[cfg(target_arch = "aarch64")]
impl MeasuringCounter for Cntvct {
    type EvidenceSource = ThreadEvidence;
}

impl MeasuringCounter for OsMonotonic {
    type EvidenceSource = ThreadEvidence;
}

#[derive(Clone, Copy, Debug)]
pub enum AnyCounter {
    /// The x86 time-stamp counter.
    #[cfg(target_arch = "x86_64")]
    Tsc(Tsc),
    /// The aarch64 generic timer.
    #[cfg(target_arch = "aarch64")]
    Cntvct(Cntvct),
    Os(OsMonotonic),
}

/// Evaluates an expression with the concrete counter inside an [`AnyCounter`].
macro_rules! with_counter {
    ($any:expr, $name:ident => $body:expr) => {
        match $any {
            #[cfg(target_arch = "x86_64")]
            $crate::measuring_counter::AnyCounter::Tsc($name) => $body,
            #[cfg(target_arch = "aarch64")]
            $crate::measuring_counter::AnyCounter::Cntvct($name) => $body,
            $crate::measuring_counter::AnyCounter::Os($name) => $body,
        }
    };
}

/// Evaluates an expression with the concrete recorder inside an `AnyRecorder`.
macro_rules! with_recorder {
    ($any:expr, $name:ident => $body:expr) => {
        match $any {
            #[cfg(target_arch = "x86_64")]
            $crate::recorder::AnyRecorder::Tsc($name) => $body,
            #[cfg(target_arch = "aarch64")]
            $crate::recorder::AnyRecorder::Cntvct($name) => $body,
            $crate::recorder::AnyRecorder::Os($name) => $body,
        }
    };
}

pub(crate) use {with_counter, with_recorder};

impl From<CounterKind> for AnyCounter {
    fn from(kind: CounterKind) -> AnyCounter {
        match kind {
            #[cfg(target_arch = "x86_64")]
            CounterKind::Tsc => AnyCounter::Tsc(Tsc),
            #[cfg(target_arch = "aarch64")]
            CounterKind::Cntvct => AnyCounter::Cntvct(Cntvct),
            CounterKind::OsMonotonic => AnyCounter::Os(OsMonotonic),
        }
    }
}

impl AnyCounter {
    pub fn name(self) -> &'static str {
        fn name_of<C: Counter>(_: C) -> &'static str {
            C::NAME
        }
        with_counter!(self, c => name_of(c))
    }

    pub fn read(self) -> CounterReading {
        with_counter!(self, c => c.read())
    }

    /// A pair of counter and `CLOCK_MONOTONIC`.
    pub fn pair(self) -> Pair {
        with_counter!(self, c => Pair::read(&c))
    }
}
