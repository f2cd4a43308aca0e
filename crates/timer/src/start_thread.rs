//! Starting the threads of this crate, from a thread of any policy.

use std::io;
use std::thread::{Builder, JoinHandle};

use hourglass_sys::caller_state::never_cancelled;
use hourglass_sys::sched::MayFork;

/// Starts a thread called `name`.
///
/// The kernel lets a thread of `SCHED_DEADLINE` make no other, since a reservation is not handed on;
/// what it starts here begins with `SCHED_OTHER`. Threads of other policies hand theirs on. No thread is
/// ever cancelled (`pthread_cancel`), which a call-back in C could ask for its own: that would unwind the
/// frames of this library by force.
pub(crate) fn start_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A refusal of the kernel here is the error of the start.
    let _may_fork = MayFork::enter();
    Builder::new().name(name.to_owned()).spawn(move || {
        never_cancelled();
        body()
    })
}
