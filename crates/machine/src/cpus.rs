//! The CPUs on which threads may run.
//!
//! Owns: which CPUs may be named, and which are taken where none is. The affinity with which this process was started
//! says where threads go of which nothing is said; others may be named, such as those that `isolcpus` keeps everybody
//! from. Must not: ask the kernel (`facts` has done so).

use hourglass_documents::CpuSet;
use hourglass_documents::host::Host;

/// The CPUs on which this process may place threads: those that are online and in the cpuset of its control
/// group. `None` if the machine does not tell; then the kernel answers when it is asked.
#[must_use]
pub fn permitted_cpus(host: &Host) -> Option<CpuSet> {
    match (&host.cpu.online, &host.cgroup.cpuset) {
        (Some(online), Some(cpuset)) => Some(online.intersection(cpuset)),
        (online, cpuset) => online.as_ref().or(cpuset.as_ref()).cloned(),
    }
}

/// The CPUs on which threads run of which nothing is said: what this process was started with, as far as it is
/// online.
#[must_use]
pub fn usual_cpus(host: &Host) -> CpuSet {
    let online = host.cpu.online.clone().unwrap_or_default();
    match &host.cpu.allowed {
        Some(allowed) if online.is_empty() => allowed.clone(),
        Some(allowed) => allowed.intersection(&online),
        None => online,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::test_host::{FakeMachine, USER_STATUS, v2_container};

    /// What bars a CPU is its absence and the cpuset, not the affinity with which this process was started.
    #[test]
    fn what_the_cpuset_has_may_be_named() {
        let narrow = USER_STATUS.replace("0-3", "0");
        let machine = v2_container()
            .with(&[("sys/devices/system/cpu/online", "0-3\n"), ("proc/self/status", &narrow)]);
        let mut host = machine.host();
        host.cgroup.cpuset = None;
        assert_eq!(host.cpu.allowed, "0".parse().ok());
        assert_eq!(permitted_cpus(&host), "0-3".parse().ok());
        assert_eq!(usual_cpus(&host), "0".parse().unwrap());
        host.cgroup.cpuset = "0-1".parse().ok();
        assert_eq!(permitted_cpus(&host), "0-1".parse().ok());
        assert_eq!(permitted_cpus(&FakeMachine::empty().host()), None);
    }
}
