//! Stopping by core scheduling: while the reserved work has a cookie of its own, the kernel idles the siblings of its
//! core for all threads with another cookie.
//!
//! No thread is stopped elsewhere, nor while the reserved work waits. The work must be more urgent than its co-runners,
//! as a reservation is: among equals the kernel lets cookies take turns.

use std::fs;
use std::io;

use hourglass_sys::core_sched::{self, Scope};

use super::members::CoRunnerMembers;
use super::{Stopper, StopperKind, StopperRequest, Unavailable};
use crate::backend::members::process_of;
use crate::backend::target_group::unless_gone;
use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::smt::topology::Topology;
use crate::target::Target;

#[derive(Debug)]
pub(super) struct Cookie {
    id: u32,
    scope: Scope,
    process: u32,
    given: bool,
    /// Takes the cookie away if this process dies.
    kept: Option<UndoGuard>,
}

/// Checks whether the kernel has cookies, and looks for obstacles; returns their target.
pub(super) fn check(wanted: &StopperRequest) -> Result<(u32, Scope), Unavailable> {
    let (id, scope) = match wanted.reserved {
        Some(Target::Thread(tid)) => (tid, Scope::Thread),
        Some(Target::Process(pid)) => (pid, Scope::Process),
        None => {
            let cause = "it needs to know whose work is reserved";
            return Err(unavailable(cause, "name the reserved thread or process"));
        }
    };
    no_other_scheduler(fs::read_to_string("/sys/kernel/sched_ext/state").ok().as_deref())?;
    possible()?;
    only_siblings(wanted, &Topology::default())?;
    free(id)?;
    Ok((id, scope))
}

pub(super) fn open(wanted: &StopperRequest, guardian: &Guardian) -> Result<Cookie, Unavailable> {
    let (id, scope) = check(wanted)?;
    let kept = TaskIdentity::of_task(id).and_then(|life| guardian.keep(&UndoAction::Cookie(life)));
    let kept = kept.map_err(|error| {
        unavailable(format!("thread {id} cannot be watched: {error}"), "is it still there?")
    })?;
    let process = process_of(id).unwrap_or(id);
    Ok(Cookie { id, scope, process, given: false, kept: Some(kept) })
}

fn unavailable(cause: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
    Unavailable::new(StopperKind::CoreCookie, cause, remedy)
}

/// Cookies and a scheduler of `sched_ext` can hang the machine (scx #3715).
fn no_other_scheduler(state: Option<&str>) -> Result<(), Unavailable> {
    match state.map(str::trim) {
        None | Some("disabled") => Ok(()),
        Some(state) => Err(unavailable(
            format!(
                "/sys/kernel/sched_ext/state is {state}, and cookies can hang such a scheduler"
            ),
            "end the sched_ext scheduler, or use another stopper",
        )),
    }
}

/// A thread of its own takes a cookie and ends with it.
fn possible() -> Result<(), Unavailable> {
    let tried = std::thread::Builder::new()
        .name("hg-cookie".to_owned())
        .spawn(|| core_sched::create(0, Scope::Thread))
        .and_then(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("it ended early")))
        });
    const ENODEV: i32 = 19;
    tried.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => unavailable(
            "this kernel has no core scheduling (EINVAL from PR_SCHED_CORE)",
            "use a kernel with CONFIG_SCHED_CORE=y",
        ),
        _ if error.raw_os_error() == Some(ENODEV) => unavailable(
            "no core of this machine has siblings that are online (ENODEV from PR_SCHED_CORE)",
            "use another stopper",
        ),
        _ => unavailable(format!("PR_SCHED_CORE is refused: {error}"), "use another stopper"),
    })
}

/// Cookies work within a core; they keep no thread from a shared cache.
fn only_siblings(wanted: &StopperRequest, topology: &Topology) -> Result<(), Unavailable> {
    let Some(first) = wanted.shares.iter().next() else { return Ok(()) };
    let core = topology.core(first);
    let outside = wanted.shares.difference(&core);
    if core.len() > 1 && outside.is_empty() {
        return Ok(());
    }
    let cause = format!("CPUs {} are not the siblings of one core", wanted.shares);
    Err(unavailable(cause, "use another stopper"))
}

/// Neither this thread nor the reserved one may have a cookie already.
fn free(id: u32) -> Result<(), Unavailable> {
    for (id, who) in [(0, "this program"), (id, "the reserved work")] {
        match core_sched::cookie(id) {
            Ok(0) => {}
            Ok(_) => {
                let cause = format!("{who} has a core-scheduling cookie of another program");
                return Err(unavailable(cause, "start it without one, or use another stopper"));
            }
            Err(error) => {
                let cause = format!("the cookie of {who} cannot be read: {error}");
                return Err(unavailable(cause, "run as root or as its user"));
            }
        }
    }
    Ok(())
}

impl Stopper for Cookie {
    fn name(&self) -> &'static str {
        StopperKind::CoreCookie.name()
    }

    fn stop(&mut self) -> io::Result<()> {
        if !self.given {
            unless_gone(core_sched::create(self.id, self.scope))?;
            self.given = true;
        }
        Ok(())
    }

    /// This thread has no cookie, and that is what it hands on; also to threads and children made
    /// meanwhile, which inherited one.
    fn resume(&mut self) -> io::Result<()> {
        let Cookie { id, process, given, .. } = self;
        super::resume_if(given, || {
            unless_gone(core_sched::share_to(*id, Scope::Process))?;
            let children = CoRunnerMembers::Tree(vec![*process]).processes(&[*process])?;
            children
                .into_iter()
                .try_for_each(|pid| unless_gone(core_sched::share_to(pid, Scope::Process)))
        })
    }
}

impl Drop for Cookie {
    fn drop(&mut self) {
        // The undo action of the guardian takes it away too.
        if self.resume().is_ok() {
            self.kept.take().into_iter().for_each(UndoGuard::forget);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sched_ext_stands_against_cookies() {
        assert!(no_other_scheduler(None).is_ok());
        assert!(no_other_scheduler(Some("disabled\n")).is_ok());
        let refused = no_other_scheduler(Some("enabled\n")).unwrap_err();
        assert!(refused.to_string().contains("sched_ext/state is enabled"), "{refused}");
    }

    #[test]
    fn it_needs_a_thread_to_give_the_cookie_to() {
        let guardian = Guardian::start().unwrap();
        let refused = open(&StopperRequest::processes([]), &guardian).unwrap_err();
        assert_eq!(refused.kind, StopperKind::CoreCookie);
    }
}
