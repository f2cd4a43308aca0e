//! Timing faults: what happens when a thread passes its deadline.
//!
//! Owns: a thread's own watch over its deadlines ([`DeadlineWatch`]), handlers for those that it passes
//! ([`deadline_handler`]), regions that put a stop off ([`defer`]), safepoints ([`safepoint`]), the same
//! on virtual time ([`sim`]). Must not: end a thread anywhere but at a safepoint, ask for privileges,
//! print.
//!
//! After Savage and Tokuda, *Real-Time Mach Timers* (1993), section 4: a deadline is checked when it
//! passes, not when the job ends; the offender is suspended; a message goes to its deadline handler,
//! which may resume it, change its scheduling, or end it.
//!
//! ```
//! use hourglass_time::Span;
//! use hourglass_timer::fault::{
//!     Attributes, Deadline, DeadlineWatch, FaultAction, FaultVerdict, ThreadTerminated, WatchSettings,
//!     deadline_handler, safepoint,
//! };
//!
//! fn job(watch: &mut DeadlineWatch) -> Result<u64, ThreadTerminated> {
//!     let mut steps = 0;
//!     loop {
//!         steps += 1;
//!         safepoint()?;
//!         # let _ = &watch;
//!     }
//! }
//!
//! let worker = std::thread::spawn(|| {
//!     let mut watch = DeadlineWatch::new(WatchSettings::with_strength(FaultAction::Suspend))?;
//!     // The second deadline that is passed ends the thread; the first gives it a little more.
//!     let last = 2;
//!     let handler = deadline_handler(
//!         &watch.thread(),
//!         Attributes::DEFAULT,
//!         |fault, last| match fault.count {
//!             count if count == *last => FaultVerdict::End,
//!             _ => FaultVerdict::ResumeBy(Deadline::In(Span::from_millis(1))),
//!         },
//!         last,
//!     )?;
//!     watch.begin_job(Deadline::In(Span::from_millis(2)))?;
//!     assert_eq!(job(&mut watch), Err(ThreadTerminated));
//!     Ok::<u64, hourglass_timer::fault::FaultError>(handler.handled().faults)
//! });
//! assert_eq!(worker.join().unwrap(), Ok(2));
//! ```
//!
//! # How a thread is stopped
//!
//! It has a POSIX timer of its own that signals it, and arms it itself, so that the interrupt comes on
//! its own CPU and nothing of it runs after that: measured by `hourglass-bench timer`, its last useful
//! instruction lay 1 us before the deadline, where a watchdog thread on another CPU took 45 us; the
//! handler ran 27 us after the deadline (a shared virtual machine, both at real-time priorities on one
//! CPU). The signal handler notes the time, wakes the handler and stands at a gate. What it waits
//! for there is an epoch, not a flag: a thread that is resumed and late again before it ran is not lost.
//!
//! A signal needs its thread to run. So the handler's thread checks by itself 0.05 ms after a deadline, and takes
//! the fault of a starved thread, which did not act upon its notification or demotion. That is one wake-up of the
//! handler for each deadline; a thread with periodic ones wakes it for none. A suspension is the thread's own act,
//! and so is a demotion within a region, and taking a new deadline that a verdict gives: those wait until it runs.
//!
//! # The three strengths
//!
//! - [`FaultAction::Notify`]: a message. Nothing is done to the thread. A handler that is occupied with one
//!   fault keeps one more; others are counted ([`Fault::undelivered`]).
//! - [`FaultAction::Demote`]: the thread gets another scheduling class before the entry is called, and its
//!   own back by the verdict. It keeps running, so that its locks keep moving, if slowly. It stands for
//!   the moment that this takes, unless the handler is occupied.
//! - [`FaultAction::Suspend`]: the thread stands where it is until the verdict.
//!
//! Without a handler, deadlines that are passed are only counted: no thread could resume a stopped one.
//!
//! # What suspension can break
//!
//! A thread is stopped at any instruction, whatever it holds. Threads that need what it holds wait until it is
//! resumed; if that is the deadline handler itself, **no thread ever resumes it**. How often a second thread at the
//! same work was stuck in 300 suspensions (`tests/alone/stuck_locks.rs`): a user's mutex 90 %, the lock of a
//! standard stream 70 %, the allocator with one arena (`MALLOC_ARENA_MAX=1`) 41 %, computing never; all
//! of it in regions never. Therefore:
//!
//! - Wrap what holds a lock that others want in [`defer`]: a mutex, `println!`, allocation and freeing,
//!   loading a library, calls into foreign code that does any of it. A deadline that passes within is
//!   acted upon at the end of the outermost region; a thread that never leaves it is never stopped.
//! - The entry of a suspended thread's handler must not wait for what that thread may hold. It should
//!   not allocate, print, or panic (which does both). [`WatchSettings::longest_stop`] is a way out.
//! - This module's own calls are regions: arming, jobs, installing and dropping handlers. So is whatever
//!   holds a lock of this crate's, or of the clock's. **Not in regions** is where other parts allocate:
//!   making sleepers, queues and devices, adding to a queue that has to grow, polling a future for the
//!   first time.
//! - Waits that the kernel does not restart end with EINTR when the thread is stopped in them
//!   (`poll`, `epoll_wait`, `nanosleep`, futexes with a deadline); reads and writes go on.
//! - Time that a thread stands is not given back: relative time-outs of its own pass meanwhile.
//!
//! # Ending a thread
//!
//! [`FaultVerdict::End`] resumes the thread, which gets [`ThreadTerminated`] from its next safepoint or bound of a job,
//! and from each later one. It propagates that like any error, and everything that it holds is dropped
//! on the way. A thread that never comes to a safepoint never ends, and is not stopped again for that:
//! it has no deadline any more. Let the verdict keep it demoted, or give it another deadline and suspend
//! it again. Threads are not cancelled or unwound from outside: what they hold would stay held.
//!
//! # Ends of all kinds
//!
//! - A handler's entry that panics: the thread is resumed with the scheduling it had, that is counted
//!   ([`HandlerCounts::panics`]), and later faults are handled.
//! - A handler that is dropped: the thread is resumed if it stands.
//! - A watch that is dropped, or a thread that ends: the timer is gone; its late signal finds nothing.
//! - A child made by `fork` inherits neither timers nor the handler's thread: [`DeadlineWatch::is_inherited`]
//!   says so, arming is refused with [`FaultError::Forked`], and nothing stands.
//! - `RLIMIT_SIGPENDING` exhausted: [`FaultError::SignalsExhausted`] when the watch is made. What is
//!   watched already has its signal set aside.
//! - A deadline that is past, or zero: a fault at once, before the call returns.
//! - A handler of the program's own for the signal: [`FaultError::SignalTaken`]. Once taken, the signal
//!   stays this module's; those that others send are ignored.
//!
//! # How a timing fault goes
//!
//! A watched thread arms its own POSIX timer. The signal's handler (`sys::stop`) claims the deadline, writes
//! one message, wakes the deadline handler's thread and stands at the gate until the epoch
//! changes and the fault is released. In a region (`timer::fault::defer`) it only marks the fault as pending;
//! leaving the outermost one acts upon it, by the same steps. `sys::stop` has every step on both sides of the
//! gate, over a trait for the words (loom puts its own there) and one for the world (`timer::fault::sim` puts
//! virtual time there); it knows no verdicts. `timer::fault::handler` carries those out: scheduling is changed
//! only by the handler's thread, deadlines are armed only by the watched one.

mod error;
mod handler;
mod jobs;
mod region;
pub mod sim;
mod verdict;
mod watch;

pub use error::{FaultError, ThreadTerminated};
pub use handler::{Attributes, DeadlineHandler, deadline_handler};
pub use hourglass_sys::sched::Attributes as Scheduling;
pub use jobs::{Deadline, EndedJob, Periodic};
pub use region::{Region, defer, safepoint};
pub use verdict::{Fault, FaultAction, FaultVerdict, HandlerCounts, SchedulingUpdate};
pub use watch::{DeadlineWatch, WatchSettings, WatchedHandle};
