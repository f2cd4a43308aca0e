//! Limits on time at which the kernel ends a process: it sends SIGXCPU at the soft limit and again after each further
//! second, and SIGKILL at the hard one (setrlimit(2)). With each SIGXCPU it raises the soft limit by a second.
//!
//! Must not: decide what a limit should be.

use std::io;

use crate::checked;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// Microseconds that a real-time thread may run without a wait (`RLIMIT_RTTIME`).
    RealTime,
    /// Seconds of CPU time of the process (`RLIMIT_CPU`).
    Cpu,
}

/// `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitBounds {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

impl TimeLimit {
    fn read(self) -> io::Result<libc::rlimit> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let resource = match self {
            TimeLimit::RealTime => libc::RLIMIT_RTTIME,
            TimeLimit::Cpu => libc::RLIMIT_CPU,
        };
        // SAFETY: the kernel fills the live local.
        checked(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
        Ok(limit)
    }

    /// The limit of this process.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for these limits.
    pub fn bounds(self) -> io::Result<LimitBounds> {
        let limit = self.read()?;
        let bound = |value| (value != libc::RLIM_INFINITY).then_some(value);
        Ok(LimitBounds { soft: bound(limit.rlim_cur), hard: bound(limit.rlim_max) })
    }

    /// Sets the soft limit of this process; the hard one stays.
    ///
    /// # Errors
    /// EINVAL above the hard limit.
    pub fn set_soft(self, soft: Option<u64>) -> io::Result<()> {
        let limit = libc::rlimit { rlim_cur: soft.unwrap_or(libc::RLIM_INFINITY), ..self.read()? };
        let resource = match self {
            TimeLimit::RealTime => libc::RLIMIT_RTTIME,
            TimeLimit::Cpu => libc::RLIMIT_CPU,
        };
        // SAFETY: reads a live local.
        checked(unsafe { libc::setrlimit(resource, &raw const limit) }).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_moves_below_the_hard_one() {
        let said = crate::fork::child_says(10_000, || {
            [TimeLimit::RealTime, TimeLimit::Cpu].into_iter().all(|limit| {
                let hard = limit.bounds().unwrap().hard;
                let is_set = |soft| limit.bounds().unwrap() == LimitBounds { soft, hard };
                limit.set_soft(Some(3_000_000)).unwrap();
                let set = is_set(Some(3_000_000));
                limit.set_soft(hard).unwrap();
                set && is_set(hard)
            })
        });
        assert!(said.unwrap());
    }
}
