//! A thread whose process joins a group with a quota after its witness began.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::allocation::{CountingAllocator, thread_counts};
use hourglass_sys::cgroup::{Group, Hierarchy, Version};
use hourglass_witness::{Cause, Loss, Span, Witness};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A group of its own, which its process leaves before it is removed.
struct Own {
    group: Group,
    before: Group,
}

impl Own {
    /// With 5 ms in 50 ms.
    fn new() -> std::io::Result<Own> {
        let before = Hierarchy::with("cpu")?.group_of(0)?;
        let group = before.make(&format!("hourglass-moved-{}", process::id()))?;
        let own = Own { group, before };
        let put = |name: &str, text: &str| fs::write(own.group.path().join(name), text);
        match own.group.version() {
            Version::V1 => {
                put("cpu.cfs_period_us", "50000")?;
                put("cpu.cfs_quota_us", "5000")?;
            }
            Version::V2 => put("cpu.max", "5000 50000")?,
        }
        Ok(own)
    }

    fn members(&self) -> PathBuf {
        self.group.path().join("cgroup.procs")
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.before.take_process(process::id());
        let _ = self.group.remove();
    }
}

/// The next involuntary loss of at least `least` in a span that computes.
fn forced(witness: &Witness, least: Span) -> Loss {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        assert!(Instant::now() < end, "no such loss in 10 s");
        let span = witness.begin_busy();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(6) {
            std::hint::spin_loop();
        }
        if let Some(loss) = witness.end(span)
            && loss.switches.voluntary == 0
            && loss.off_cpu.latest() >= least
        {
            return loss;
        }
    }
}

/// The kernel's counts are the truth: in its group the process is stopped for 45 ms of each 50. The first loss may be
/// laid to others, but not as if that were certain; of the stops behind it most are the quota's.
#[test]
fn a_quota_that_is_joined_later_is_named() {
    const STOPS: usize = 8;
    let own = match Own::new() {
        Ok(own) => own,
        Err(error) => return skip(Requirement::CONTROL_GROUP, format_args!("no group: {error}")),
    };
    let witness = Witness::new().unwrap();
    fs::write(own.members(), process::id().to_string()).unwrap();
    let before = thread_counts().calls;
    let first = forced(&witness, Span::from_micros(100));
    let next: [Loss; STOPS] = std::array::from_fn(|_| forced(&witness, Span::from_millis(20)));
    assert_eq!(thread_counts().calls, before, "allocated");
    assert!(first.confidence < 1.0, "{first:?}");
    let named = next.iter().filter(|loss| loss.cause == Cause::CgroupQuota);
    assert!(named.count() * 2 > STOPS, "{next:?}");
}
