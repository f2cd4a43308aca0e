//! The scheduling policy of a periodic thread, and what grants it where the kernel refuses.

use std::fmt;
use std::io;

use hourglass_sys::sched::{self, Attributes};

use super::parameters::ValidParameters;

/// The policy that a periodic thread gives itself before its first release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheduling {
    /// That of the thread which starts it.
    #[default]
    Inherited,
    /// `SCHED_OTHER` with a nice value from -20 to 19.
    Other(i8),
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE` with the thread's own budget, deadline and period, whole nanoseconds. The
    /// kernel then **enforces** the budget: a job that used it waits for the next period.
    Deadline {
        /// Whether it may use bandwidth that is not reserved (`SCHED_FLAG_RECLAIM`).
        reclaim: bool,
    },
}

/// A policy that a thread with these parameters cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// The number is no real-time priority.
    #[error("{0} is not a real-time priority; give one from 1 (lowest) to 99")]
    Priority(u8),
    /// The number is no nice value.
    #[error("{0} is not a nice value; give one from -20 (highest) to 19")]
    Nice(i8),
    /// The deadline class needs a budget.
    #[error("the deadline class needs a budget: call `budget`")]
    NoBudget,
    /// The deadline class does not let deadlines reach into the next period.
    #[error(
        "the deadline class takes no deadline above the period; give one of at most {period_ns} ns"
    )]
    DeadlineAbovePeriod {
        /// Requested period, ns.
        period_ns: u64,
    },
}

/// A policy that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel refused {scheduling} (error {errno}): {remedy}")]
#[non_exhaustive]
pub struct Refusal {
    /// The refused policy.
    pub scheduling: Scheduling,
    /// Error number, as in `errno(3)`.
    pub errno: i32,
    /// What grants it: the exact line, where there is one.
    pub remedy: String,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scheduling::Inherited => f.write_str("the inherited policy"),
            Scheduling::Other(nice) => write!(f, "OTHER:{nice}"),
            Scheduling::Fifo(priority) => write!(f, "FIFO:{priority}"),
            Scheduling::RoundRobin(priority) => write!(f, "RR:{priority}"),
            Scheduling::Deadline { .. } => f.write_str("DEADLINE"),
        }
    }
}

impl Scheduling {
    /// Whether a thread with these parameters can have it.
    ///
    /// # Errors
    /// [`SchedulingError`].
    pub fn check(self, parameters: &ValidParameters) -> Result<(), SchedulingError> {
        let period_ns = parameters.period.nth_ns(1);
        match self {
            Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority)
                if !(1..=99).contains(&priority) =>
            {
                Err(SchedulingError::Priority(priority))
            }
            Scheduling::Other(nice) if !(-20..=19).contains(&nice) => {
                Err(SchedulingError::Nice(nice))
            }
            Scheduling::Deadline { .. } if parameters.budget_ns.is_none() => {
                Err(SchedulingError::NoBudget)
            }
            Scheduling::Deadline { .. } if parameters.deadline_ns > period_ns => {
                Err(SchedulingError::DeadlineAbovePeriod { period_ns })
            }
            _ => Ok(()),
        }
    }

    fn attributes(self, parameters: &ValidParameters) -> Option<Attributes> {
        Some(match self {
            Scheduling::Inherited => return None,
            Scheduling::Other(nice) => Attributes::Other(nice),
            Scheduling::Fifo(priority) => Attributes::Fifo(priority),
            Scheduling::RoundRobin(priority) => Attributes::RoundRobin(priority),
            Scheduling::Deadline { reclaim } => Attributes::Deadline {
                runtime_ns: parameters.budget_ns?,
                deadline_ns: parameters.deadline_ns,
                period_ns: parameters.period.nth_ns(1),
                reclaim,
                overrun_signal: false,
            },
        })
    }

    pub(super) fn take(self, parameters: &ValidParameters) -> Result<(), Refusal> {
        let Some(attributes) = self.attributes(parameters) else { return Ok(()) };
        sched::set(attributes).map_err(|error| self.refused(&error))
    }

    /// What the kernel knows by these attributes; `None` for a policy that needs no privilege.
    pub(crate) fn of(attributes: Attributes) -> Option<Scheduling> {
        Some(match attributes {
            Attributes::Other(nice) => Scheduling::Other(nice),
            Attributes::Fifo(priority) => Scheduling::Fifo(priority),
            Attributes::RoundRobin(priority) => Scheduling::RoundRobin(priority),
            Attributes::Deadline { reclaim, .. } => Scheduling::Deadline { reclaim },
            Attributes::Batch(_) | Attributes::Idle => return None,
        })
    }

    pub(crate) fn refused(self, error: &io::Error) -> Refusal {
        let errno = error.raw_os_error().unwrap_or(0);
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let program = std::env::current_exe();
        let program = program.map_or("PROGRAM".to_owned(), |path| path.display().to_string());
        Refusal { scheduling: self, errno, remedy: self.remedy(errno, &limits, &program) }
    }

    /// What grants it, on a process with these `/proc/self/limits`.
    fn remedy(self, errno: i32, limits: &str, program: &str) -> String {
        const EPERM: i32 = 1;
        const EACCES: i32 = 13;
        const EBUSY: i32 = 16;
        const EINVAL: i32 = 22;
        let setcap = |option: &str| {
            format!(
                "sudo setcap cap_sys_nice+ep {program} (in a container, start that with --cap-add SYS_NICE{option})"
            )
        };
        match (self, errno) {
            (Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority), EPERM | EACCES) => {
                match hard_limit(limits, "Max realtime priority") >= u64::from(priority) {
                    true => format!("ulimit -r {priority} # in the shell that starts it"),
                    false => setcap(" --ulimit rtprio=99"),
                }
            }
            (Scheduling::Other(nice), EPERM | EACCES) => {
                // The limit counts upwards: 1 is nice 19, 40 is nice -20.
                let wanted = u64::try_from(20 - i16::from(nice)).unwrap_or_default();
                match hard_limit(limits, "Max nice priority") >= wanted {
                    true => format!("ulimit -e {wanted} # in the shell that starts it"),
                    false => setcap(" --ulimit nice=40"),
                }
            }
            (Scheduling::Deadline { .. }, EPERM | EACCES) => format!(
                "{}; where that is granted, leave `cpu` out: the class wants a thread that may use every CPU of its domain",
                setcap("")
            ),
            (Scheduling::Deadline { .. }, EBUSY) => "the bandwidth is given away: ask for a smaller budget or a longer period, or try again in a second (what a thread gave back stays taken for about 0.2 s)".to_owned(),
            (Scheduling::Deadline { .. }, EINVAL) => "choose a budget of at least 1024 ns and a period from 100 us to 4.194304 s".to_owned(),
            _ => "sudo dmesg | tail may tell more; a security module or a kernel without this policy can be the cause".to_owned(),
        }
    }
}

/// A hard limit of `/proc/self/limits` that has no unit; 0 if it is not there.
fn hard_limit(limits: &str, name: &str) -> u64 {
    let line = limits.lines().find(|line| line.starts_with(name));
    match line.and_then(|line| line.split_ascii_whitespace().next_back()) {
        Some("unlimited") => u64::MAX,
        Some(number) => number.parse().unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
#[path = "tests/scheduling.rs"]
mod tests;
