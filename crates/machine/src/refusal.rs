//! What the machine refused, why, and the line that grants it.

use std::io;

use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_documents::{CpuSet, Policy};
use hourglass_workload::reservation::ReservationDenied;
use hourglass_workload::run::{Shortfall, ThreadRefusal as Asked};

use crate::advice::refusal_advice::lacks;
use crate::advice::{RefusedOperation, why_refused};
use crate::idle_latency::DEVICE;
use crate::permitted_cpus;

const EPERM: i32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub what: String,
    pub reason: String,
    pub remedy: String,
}

impl Refusal {
    /// The warning of a run that went on without.
    pub fn into_warning(self, id: &str) -> Warning {
        Warning {
            id: id.to_owned(),
            text: format!(
                "{} was refused, and the run went on without: {}",
                self.what, self.reason
            ),
            remedy: self.remedy,
        }
    }
}

/// The warning of a run that went on without something.
pub fn warning(shortfall: &Shortfall, host: &Host) -> Warning {
    let id = match shortfall.refused {
        Asked::Policy(..) => "policy-refused",
        Asked::Reservation(..) => "reservation-refused",
        Asked::Affinity(..) => "affinity-refused",
        Asked::Timer(_) => "timer-missing",
    };
    of(shortfall, host).into_warning(id)
}

/// What threads were refused, and why; those refused the same for the same reason together.
pub fn of_all(shortfalls: &[Shortfall], host: &Host) -> Vec<Refusal> {
    let mut together: Vec<(CpuSet, Refusal)> = Vec::new();
    for shortfall in shortfalls.iter().filter(|shortfall| shortfall.fatal) {
        let refusal = of(shortfall, host);
        let known = together.iter_mut().find(|(_, known)| {
            suffix(&known.what) == suffix(&refusal.what) && known.reason == refusal.reason
        });
        match known {
            // Thread numbers print as CPU numbers do: 0-3,5.
            Some((threads, _)) => threads.insert(shortfall.thread),
            None => together.push(([shortfall.thread].into_iter().collect(), refusal)),
        }
    }
    let named = |(threads, refusal): (CpuSet, Refusal)| match threads.len() {
        1 => refusal,
        _ => Refusal { what: format!("threads {threads}: {}", suffix(&refusal.what)), ..refusal },
    };
    together.into_iter().map(named).collect()
}

/// What stands behind the number of the thread.
fn suffix(what: &str) -> &str {
    what.split_once(": ").map_or(what, |(_, suffix)| suffix)
}

/// What a thread was refused, and why.
pub fn of(shortfall: &Shortfall, host: &Host) -> Refusal {
    let thread = shortfall.thread;
    let (what, (reason, remedy)) = match &shortfall.refused {
        Asked::Policy(policy, errno) => {
            (format!("thread {thread}: policy {policy}"), of_policy(*policy, *errno, host))
        }
        Asked::Reservation(reservation, denied) => (
            format!(
                "thread {thread}: reservation of {} every {}",
                reservation.budget(),
                reservation.period()
            ),
            of_reservation(denied, host),
        ),
        Asked::Affinity(cpus, errno) => {
            (format!("thread {thread}: --cpu {cpus}"), of_affinity(cpus, *errno, host))
        }
        Asked::Timer(missing) => (
            format!("thread {thread}: timer {}", missing.method),
            (missing.reason.clone(), missing.remedy.clone()),
        ),
    };
    Refusal { what, reason, remedy }
}

/// A missing capability is granted as the container wants it; all else is known to who refused it.
fn of_reservation(denied: &ReservationDenied, host: &Host) -> (String, String) {
    match lacks(host, host.process.cap_sys_nice, "CAP_SYS_NICE") {
        Some(_) if denied.errno == EPERM => why_refused(RefusedOperation::Deadline, EPERM, host),
        _ => (denied.cause.clone(), denied.remedy.clone()),
    }
}

fn of_policy(policy: Policy, errno: i32, host: &Host) -> (String, String) {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            why_refused(RefusedOperation::RealTime { priority }, errno, host)
        }
        Policy::Other(nice) => why_refused(RefusedOperation::NegativeNice { nice }, errno, host),
        Policy::Deadline => why_refused(RefusedOperation::Deadline, errno, host),
        Policy::Batch | Policy::Idle => (
            io::Error::from_raw_os_error(errno).to_string(),
            "drop -p, or allow sched_setattr in the container's seccomp profile".to_owned(),
        ),
    }
}

fn of_affinity(cpus: &CpuSet, errno: i32, host: &Host) -> (String, String) {
    if errno == EPERM {
        return (
            "the kernel refuses to let this process choose CPUs, as a filter of system calls does"
                .to_owned(),
            "leave --cpu out, or let sched_setaffinity pass the filter".to_owned(),
        );
    }
    let permitted = permitted_cpus(host).map(|permitted| permitted.difference(cpus));
    let permitted = permitted.filter(|permitted| !permitted.is_empty());
    let permitted = permitted.map_or(String::new(), |cpus| format!("; it may use {cpus}"));
    (
        format!(
            "the kernel does not let this process run on CPU {cpus} ({}){permitted}",
            io::Error::from_raw_os_error(errno)
        ),
        "choose CPUs of its cpuset, or give the cpuset more (docker: --cpuset-cpus)".to_owned(),
    )
}

pub fn of_dma_latency(error: &io::Error) -> Refusal {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("run as root, or: sudo chmod a+w {DEVICE}"),
        _ => "in a container: --device /dev/cpu_dma_latency; else drop --dma-latency".to_owned(),
    };
    Refusal { what: "--dma-latency".to_owned(), reason: format!("{DEVICE}: {error}"), remedy }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::{Reservation, ReservationKind};
    use hourglass_time::Span;

    use super::*;
    use crate::facts::test_host::{ROOT_STATUS, kvm_guest, v2_container};

    fn shortfall(errno: i32) -> Shortfall {
        let (budget, period) = (Span::from_millis(3), Span::from_millis(8));
        let reservation = Reservation::new(budget, period, ReservationKind::Hard).unwrap();
        let (cause, remedy) = ("the bandwidth is gone".to_owned(), "reserve less".to_owned());
        let refused = Asked::Reservation(reservation, ReservationDenied { errno, cause, remedy });
        Shortfall { thread: 4, refused, fatal: true }
    }

    /// Who refused it knows why; but how a capability is granted depends on the container.
    #[test]
    fn a_reservation_is_refused_with_its_own_reason() {
        let root = kvm_guest().with(&[("proc/self/status", ROOT_STATUS)]).host();
        let refusal = of(&shortfall(16), &root);
        assert_eq!(refusal.what, "thread 4: reservation of 3ms every 8ms");
        assert_eq!(
            (refusal.reason.as_str(), refusal.remedy.as_str()),
            ("the bandwidth is gone", "reserve less")
        );
        assert_eq!(of(&shortfall(EPERM), &root), refusal);
        let user = v2_container().host();
        assert_eq!(of(&shortfall(16), &user), refusal);
        assert!(of(&shortfall(EPERM), &user).remedy.contains("--cap-add SYS_NICE"));
    }
}
