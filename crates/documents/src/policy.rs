//! Scheduling policies, and the priority names of the Hourglass paper.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::spelling;

/// A Linux scheduling policy with its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Time-sharing (`SCHED_OTHER`) with a nice value from -20 to 19.
    Other(i8),
    /// Time-sharing without wake-up preemption (`SCHED_BATCH`), at the nice value that the
    /// program was started with.
    Batch,
    /// Only when nothing else wants the CPU (`SCHED_IDLE`).
    Idle,
    /// Real-time, first in first out, priority from 1 to 99.
    Fifo(u8),
    /// Real-time, round robin, priority from 1 to 99.
    RoundRobin(u8),
    /// Deadline class; its times come from the reservation or from the workload.
    Deadline,
}

/// The eight priority names of the paper (Appendix A) and what they mean on Linux.
///
/// Time-sharing names lie five nice levels apart, so that each gets about three times the share
/// of the next (the kernel's weights grow by 1.25 per level). The real-time names lie below and
/// above 50, where kernels with threaded interrupts run their handlers.
pub const PRIORITY_NAMES: [(&str, Policy); 8] = [
    ("IDLE", Policy::Idle),
    ("LOW", Policy::Other(5)),
    ("NORMAL", Policy::Other(0)),
    ("HIGH", Policy::Other(-5)),
    ("HIGHEST", Policy::Other(-10)),
    ("RTLOW", Policy::Fifo(20)),
    ("RTMED", Policy::Fifo(40)),
    ("RTHIGH", Policy::Fifo(80)),
];

/// The words that a policy is written in.
const KNOWN: [&str; 13] = [
    "IDLE",
    "LOW",
    "NORMAL",
    "HIGH",
    "HIGHEST",
    "RTLOW",
    "RTMED",
    "RTHIGH",
    "OTHER:NICE",
    "BATCH",
    "FIFO:PRIO",
    "RR:PRIO",
    "DEADLINE",
];

/// A text that is no policy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParsePolicyError {
    /// No such name.
    #[error("{}", spelling::unknown("priority", .0, KNOWN))]
    Unknown(String),
    /// A real-time priority outside 1 to 99, or missing.
    #[error("'{0}' needs a priority from 1 (lowest) to 99, for example FIFO:80")]
    RealTimePriority(String),
    /// A nice value outside -20 to 19.
    #[error("'{0}' needs a nice value from -20 (highest) to 19, for example OTHER:-5")]
    Nice(String),
    /// A parameter where there can be none.
    #[error("'{0}' takes no number after the colon")]
    NoParameter(String),
}

impl Policy {
    /// Whether the policy is FIFO or round robin.
    #[must_use]
    pub fn is_real_time(self) -> bool {
        matches!(self, Policy::Fifo(_) | Policy::RoundRobin(_))
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Policy, ParsePolicyError> {
        if let Some((_, policy)) = PRIORITY_NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*policy);
        }
        let (class, parameter) = match text.split_once(':') {
            Some((class, parameter)) => (class, Some(parameter)),
            None => (text, None),
        };
        let priority = || {
            parameter
                .and_then(|p| p.parse::<u8>().ok())
                .filter(|p| (1..=99).contains(p))
                .ok_or_else(|| ParsePolicyError::RealTimePriority(text.to_owned()))
        };
        let bare = |policy| match parameter {
            None => Ok(policy),
            Some(_) => Err(ParsePolicyError::NoParameter(text.to_owned())),
        };
        match class {
            "FIFO" => priority().map(Policy::Fifo),
            "RR" => priority().map(Policy::RoundRobin),
            "OTHER" => parameter
                .unwrap_or("0")
                .parse::<i8>()
                .ok()
                .filter(|nice| (-20..=19).contains(nice))
                .map(Policy::Other)
                .ok_or_else(|| ParsePolicyError::Nice(text.to_owned())),
            "BATCH" => bare(Policy::Batch),
            "IDLE" => bare(Policy::Idle),
            "DEADLINE" => bare(Policy::Deadline),
            _ => Err(ParsePolicyError::Unknown(text.to_owned())),
        }
    }
}

/// As it is written on the command line.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other(nice) => write!(f, "OTHER:{nice}"),
            Policy::Batch => f.write_str("BATCH"),
            Policy::Idle => f.write_str("IDLE"),
            Policy::Fifo(priority) => write!(f, "FIFO:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "RR:{priority}"),
            Policy::Deadline => f.write_str("DEADLINE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explicit_policies() {
        assert_eq!("FIFO:80".parse(), Ok(Policy::Fifo(80)));
        assert_eq!("RR:10".parse(), Ok(Policy::RoundRobin(10)));
        assert_eq!("OTHER:-5".parse(), Ok(Policy::Other(-5)));
        assert_eq!("BATCH".parse(), Ok(Policy::Batch));
        assert_eq!("DEADLINE".parse(), Ok(Policy::Deadline));
    }

    /// Hourglass paper, Appendix A: eight names, in ascending order of importance.
    #[test]
    fn the_papers_names_rise() {
        let rank = |policy: Policy| match policy {
            Policy::Idle => -100,
            Policy::Other(nice) => -i32::from(nice),
            Policy::Fifo(priority) => 100 + i32::from(priority),
            other => panic!("{other} is no meaning of a name"),
        };
        let ranks: Vec<i32> = PRIORITY_NAMES.iter().map(|(_, policy)| rank(*policy)).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["FIFO", "FIFO:0", "FIFO:100", "RR:x", "OTHER:20", "BATCH:1", "low", ""] {
            assert!(text.parse::<Policy>().is_err(), "{text}");
        }
    }
}
