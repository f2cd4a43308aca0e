//! Gates: limits that a run has to keep, and the command that is run when one ended it.
//!
//! Owns: what a limit is, whether a run can break it at all, whether it did. All of it is decided in
//! whole nanoseconds and counts; the floating-point numbers of the document are for reading.
//! Must not: measure, print, choose an exit code.

mod confidence;
mod evaluate;
mod hit_command;
mod percentile;

use std::fmt;

use hourglass_time::Span;
use hourglass_workload::RunSpec;
use thiserror::Error;

pub(crate) use evaluate::{evaluate, hit_report};
pub(crate) use hit_command::run_on_hit;
pub use percentile::{ParsePercentileError, Percentile};
pub(crate) use percentile::{with_lost, with_skipped};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// In the order in which they were given.
    pub limits: Vec<Limit>,
    /// What `sh -c` runs when `--stop-on-gap` or `--stop-on-latency` ended the run and all threads
    /// have stopped.
    pub on_hit: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    MaxLatency(Span),
    MaxGap(Span),
    MaxMisses(u64),
    /// So large a part of all wake-ups, those of lost periods included, is not later. Where no
    /// thread measures latency, of all gaps.
    Percentile(Percentile, Span),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GateError {
    /// Not `p99.9=80us`.
    #[error("bad limit '{text}': {reason}; write for example p99.9=80us")]
    Percentile { text: String, reason: String },
    #[error("--{0} must not be negative")]
    Negative(String),
    #[error("--{0}: no thread of this run measures wake-ups; use the workload LAT or GRID")]
    NoLatency(&'static str),
    #[error("--max-misses: no thread of this run has periods; use PERIODIC, CPU_PERIODIC or GRID")]
    NoPeriods,
    #[error("--on-hit: nothing ends this run; give --stop-on-gap TIME or --stop-on-latency TIME")]
    NoStop,
}

impl Gates {
    /// Adds a limit; one of the same name takes the place of the older.
    pub fn set(&mut self, limit: Limit) {
        let name = limit.to_string();
        self.limits.retain(|known| known.to_string() != name);
        self.limits.push(limit);
    }

    /// That each limit is one, and that a run of `spec` could break it.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self, spec: &RunSpec) -> Result<(), GateError> {
        let demands = || spec.threads.iter().map(|thread| thread.model.demand());
        let wakes = demands().any(|demand| demand.latency);
        let periods = demands().any(|d| d.period.is_some() && (d.on_grid || !d.latency));
        for limit in &self.limits {
            match limit {
                Limit::MaxLatency(_) if !wakes => return Err(GateError::NoLatency("max-latency")),
                Limit::MaxMisses(_) if !periods => return Err(GateError::NoPeriods),
                Limit::MaxLatency(span) | Limit::MaxGap(span) | Limit::Percentile(_, span)
                    if span.is_negative() =>
                {
                    return Err(GateError::Negative(limit.to_string()));
                }
                _ => {}
            }
        }
        let guard = &spec.guard;
        if guard.stop_on_latency.is_some() && !wakes {
            return Err(GateError::NoLatency("stop-on-latency"));
        }
        if self.on_hit.is_some() && guard.stop_on_gap.is_none() && guard.stop_on_latency.is_none() {
            return Err(GateError::NoStop);
        }
        Ok(())
    }

    /// The times beyond which the run must count one by one.
    pub(crate) fn counted(&self) -> Vec<Span> {
        let time = |limit: &Limit| match limit {
            Limit::Percentile(_, span) | Limit::MaxLatency(span) => Some(*span),
            _ => None,
        };
        let mut counted: Vec<Span> = self.limits.iter().filter_map(time).collect();
        counted.sort_unstable();
        counted.dedup();
        counted
    }
}

impl Limit {
    /// Reads `p99.9=80us`.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn percentile(text: &str) -> Result<Limit, GateError> {
        let refused = |reason: String| GateError::Percentile { text: text.to_owned(), reason };
        let Some((percentile, limit)) = text.split_once('=') else {
            return Err(refused("the time that is allowed is missing".to_owned()));
        };
        let percentile =
            percentile.parse().map_err(|e: ParsePercentileError| refused(e.to_string()))?;
        let limit: Span =
            limit.parse().map_err(|e: hourglass_time::ParseSpanError| refused(e.to_string()))?;
        if limit.is_negative() {
            return Err(refused("the time must not be negative".to_owned()));
        }
        Ok(Limit::Percentile(percentile, limit))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::MaxLatency(_) => f.write_str("max-latency"),
            Limit::MaxGap(_) => f.write_str("max-gap"),
            Limit::MaxMisses(_) => f.write_str("max-misses"),
            Limit::Percentile(percentile, _) => write!(f, "percentile {percentile}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use hourglass_workload::{Guard, ThreadSpec, models};

    use super::*;

    fn spec(workload: &str) -> RunSpec {
        let words: Vec<&str> = workload.split(' ').collect();
        let model = models::parse(&words).unwrap();
        RunSpec::new(vec![ThreadSpec { model, ..ThreadSpec::default() }])
    }

    fn gates(limits: &[Limit]) -> Gates {
        let mut gates = Gates::default();
        limits.iter().for_each(|limit| gates.set(*limit));
        gates
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let us = Span::from_micros;
        let p99 = |limit| Limit::percentile(limit).unwrap();
        let gates = gates(&[
            Limit::MaxLatency(us(100)),
            p99("p99=80us"),
            p99("p99.9=90us"),
            p99("p99.0=70us"),
            Limit::MaxLatency(us(50)),
        ]);
        let wanted = [p99("p99.9=90us"), p99("p99=70us"), Limit::MaxLatency(us(50))];
        assert_eq!(gates.limits, wanted);
        assert_eq!(gates.counted(), [us(50), us(70), us(90)]);
    }

    #[test]
    fn a_limit_that_cannot_be_broken_is_refused() {
        let latency = Limit::MaxLatency(Span::ZERO);
        for (limit, workload, refused) in [
            (latency, "CPU", Some(GateError::NoLatency("max-latency"))),
            (latency, "LAT 1ms", None),
            (latency, "GRID 1ms", None),
            (Limit::MaxMisses(0), "CPU", Some(GateError::NoPeriods)),
            // Its next wake-up counts from the one before, so that it cannot lose any.
            (Limit::MaxMisses(0), "LAT 1ms", Some(GateError::NoPeriods)),
            (Limit::MaxMisses(0), "GRID 1ms", None),
            (Limit::MaxMisses(0), "PERIODIC 1ms 8ms", None),
            (Limit::MaxGap(Span::ZERO), "CPU", None),
        ] {
            let found = gates(&[limit]).check(&spec(workload)).err();
            assert_eq!(found, refused, "{limit} {workload}");
        }
    }

    #[test]
    fn a_command_needs_something_that_can_be_hit() {
        let gates = Gates { on_hit: Some("true".to_owned()), ..Gates::default() };
        let mut spec = spec("CPU");
        assert_eq!(gates.check(&spec), Err(GateError::NoStop));
        spec.guard = Guard { stop_on_gap: Some(Span::ZERO), ..Guard::default() };
        assert_eq!(gates.check(&spec), Ok(()));
        spec.guard.stop_on_latency = Some(Span::ZERO);
        assert_eq!(gates.check(&spec), Err(GateError::NoLatency("stop-on-latency")));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, reason) in [
            ("p99", "the time that is allowed is missing"),
            ("99=80us", "a percentile begins with p"),
            ("p101=80us", "it lies above 0 and not above 100"),
            ("p99.9=80", "unit"),
            ("p99.9=-80us", "the time must not be negative"),
        ] {
            let error = Limit::percentile(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.starts_with(&format!("bad limit '{text}': ")), "{error}");
        }
    }
}
