//! Keeps co-runners of reserved work from taking what was reserved (Inoue et al., CPU Resource Reservation for SMT,
//! 2006).
//!
//! # How slack is watched
//!
//! `reserve::smt::monitor` is a machine over time values: given the time, it asks each reservation's job (`jobs.rs`)
//! how far its work is, has `sim::slack` say what is left over, and answers with an order: what co-runners may do,
//! whose reserved work may run, and when to look next. `enforcer.rs` carries orders out by a stopper and by gates, and
//! makes good what failed. `driver.rs` gives both a real-time thread that sleeps in the kernel and never spins, since
//! it would spin beside the work that it protects; `sim.rs` gives them a core on which every rate and delay is drawn,
//! and there no job is missed as long as each leaves the margin when it begins (`Monitor::is_covered`). One driver
//! watches what shares one physical core; for several cores there are several.
//!
//! Several reservations of one core take turns: the order names the job with the earliest deadline, and `enforcer.rs` holds the
//! work of the others by a stopper each (a gate). Work that sleeps by its own will is neither waited for nor held; of work that
//! is held nothing can be said. `session::additional` makes those reservations (`--also`).
//!
//! Progress (`reserve::progress`) is never reported higher than it is. The word that a program writes is a page of
//! shared memory: number of the job, done, whole, in an order that lets no reader see more than was reported. A period
//! takes the job that no period before it had, so that progress of the last job does not count in the next. Processor
//! time counts only while co-runners stand, or times a proven alpha; instructions at the rate of the fastest window in
//! which they stood. Counters are inherited: `tree.rs` opens one for each thread that is there, but not where a
//! parent's may count it already. The page is a sealed memfd that a command inherits under the number in
//! `HOURGLASS_PROGRESS`; a path (`HOURGLASS_PROGRESS_PATH`) is for programs that lost the descriptor and may open
//! `/proc/PID/fd`.

pub(crate) mod co_runners;
mod decision;
pub mod driver;
pub mod enforcer;
pub mod jobs;
pub mod monitor;

pub mod stopper;
pub mod topology;
pub(crate) mod watchdog_stopper;

#[cfg(test)]
#[path = "tests/resting_work.rs"]
mod resting_work;
#[cfg(test)]
mod sim;
#[cfg(test)]
#[path = "tests/slack.rs"]
mod slack_tests;
