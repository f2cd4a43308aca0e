//! The paper's time-sharing priorities for users who may not raise any.
//!
//! LOW, NORMAL, HIGH and HIGHEST mean something only relative to each other: the kernel's weights
//! depend on the difference of nice values. An ordinary user may not go below nice 0, but may
//! shift all of them up by the same amount, and keep every ratio.

use hourglass_documents::Policy;
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_machine::advice::{RefusedOperation, why_refused};
use hourglass_sys::sched::{self, Attributes};
use hourglass_workload::spec::{RunSpec, ThreadSpec};

/// EPERM, the kernel's answer to a nice value that is too low for the user.
const EPERM: i32 = 1;

/// Shifts the named priorities of `spec` as far as the user needs. Tells if it did.
///
/// A program that was started under `nice` may not even go back to nice 0.
pub(crate) fn fit(spec: &mut RunSpec, host: &Host) -> Option<Warning> {
    let lowest = spec.threads.iter().filter_map(named).min()?;
    let present = i8::try_from(sched::nice()).unwrap_or(0);
    if lowest >= present || may_have(lowest) {
        return None;
    }
    let shift = present.saturating_sub(lowest);
    for thread in &mut spec.threads {
        if let Some(nice) = named(thread) {
            thread.policy = Policy::Other(nice.saturating_add(shift).min(19));
        }
    }
    let (reason, remedy) =
        why_refused(RefusedOperation::NegativeNice { nice: lowest }, EPERM, host);
    Some(Warning {
        id: "nice-shifted".to_owned(),
        text: format!(
            "time-sharing threads run {shift} nice levels lower than asked, which keeps their ratios but \
             yields to the rest of the machine: {reason}"
        ),
        remedy,
    })
}

pub(crate) fn without_effect(spec: &RunSpec) -> impl Iterator<Item = Warning> + '_ {
    let named = spec.threads.iter().enumerate().filter(|(_, thread)| {
        let priority = !matches!(thread.policy, Policy::Other(0) | Policy::Deadline);
        priority && thread.reservation.is_some()
    });
    named.map(|(id, thread)| Warning {
        id: "priority-unused".to_owned(),
        text: format!(
            "thread {id}: its priority ({}) has no effect while it runs under its reservation",
            thread.policy
        ),
        remedy: "drop -p for this thread".to_owned(),
    })
}

/// The nice value of a thread whose priority was given by name or by default.
fn named(thread: &ThreadSpec) -> Option<i8> {
    match thread.policy {
        Policy::Other(nice) if thread.policy_is_named && thread.reservation.is_none() => Some(nice),
        _ => None,
    }
}

/// Tries it on a thread of its own, which takes the nice value with it when it ends.
fn may_have(nice: i8) -> bool {
    let tried =
        std::thread::Builder::new().spawn(move || sched::set(Attributes::Other(nice)).is_ok());
    tried.is_ok_and(|thread| thread.join().unwrap_or(false))
}
