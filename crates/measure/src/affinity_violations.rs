//! Threads that ran on CPUs which they were not given.
//!
//! Owns: saying so. Must not: count, which the recorder does.

use hourglass_documents::CpuSet;
use hourglass_documents::document::{StrayReport, ThreadReport, Warning};
use hourglass_time::Span;
use hourglass_workload::Timeline;
use hourglass_workload::recorder::AffinityViolation;

pub(crate) fn report(timeline: &Timeline, strayed: &AffinityViolation) -> StrayReport {
    StrayReport {
        at_ns: timeline.ns_at(strayed.since).max(0).unsigned_abs(),
        from_cpu: strayed.from,
        to_cpu: strayed.to,
        intervals: strayed.intervals,
        cpu_time_ns: timeline.ns_in(strayed.received),
    }
}

/// A warning for each thread that strayed; `online` are the CPUs that are online after the run.
pub(crate) fn warnings(threads: &[ThreadReport], online: Option<&CpuSet>) -> Vec<Warning> {
    let warning = |thread: &ThreadReport| Some(warning(thread, &thread.strayed?, online));
    threads.iter().filter_map(warning).collect()
}

fn warning(thread: &ThreadReport, strayed: &StrayReport, online: Option<&CpuSet>) -> Warning {
    let StrayReport { at_ns, from_cpu, to_cpu, intervals, .. } = *strayed;
    let given: CpuSet = thread.cpus.iter().copied().collect();
    let offline = online.map(|online| given.difference(online)).filter(|cpus| !cpus.is_empty());
    let (why, remedy) = match offline {
        Some(cpus) => (
            format!("CPU {cpus} is offline now, and the kernel moves threads whose last CPU goes"),
            format!(
                "measure again with it online throughout: echo 1 | sudo tee \
                 /sys/devices/system/cpu/cpu{}/online",
                cpus.iter().next().unwrap_or(from_cpu)
            ),
        ),
        None => (
            "its CPU was offline for a while, or its CPUs were changed from outside (taskset -p, a \
             cpuset)"
                .to_owned(),
            "measure again without such changes: dmesg lists CPUs that went offline".to_owned(),
        ),
    };
    let at = Span::saturating_from_nanos(at_ns);
    Warning {
        id: "left-its-cpus".to_owned(),
        text: format!(
            "thread {}: {intervals} of {} intervals lie outside of CPU {given}, which it was given: {at} \
             into the run it was moved from CPU {from_cpu} to CPU {to_cpu}; {why}",
            thread.id, thread.intervals
        ),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(strayed: Option<StrayReport>) -> ThreadReport {
        ThreadReport { cpus: vec![1], intervals: 20_267, strayed, ..ThreadReport::default() }
    }

    /// A CPU that went offline under a pinned run was not reported.
    #[test]
    fn a_thread_that_was_moved_is_reported() {
        let strayed = StrayReport {
            at_ns: 412_000_000,
            from_cpu: 1,
            to_cpu: 0,
            intervals: 4_519,
            cpu_time_ns: 1,
        };
        let threads = [thread(None), thread(Some(strayed))];
        let list = warnings(&threads, "0".parse().ok().as_ref());
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].id, "left-its-cpus");
        assert_eq!(
            list[0].text,
            "thread 0: 4519 of 20267 intervals lie outside of CPU 1, which it was given: 412ms into \
             the run it was moved from CPU 1 to CPU 0; CPU 1 is offline now, and the kernel moves \
             threads whose last CPU goes"
        );
        assert!(list[0].remedy.ends_with("/cpu1/online"), "{}", list[0].remedy);
        // It may be back, or the affinity was changed.
        let list = warnings(&threads, "0-1".parse().ok().as_ref());
        assert!(list[0].text.ends_with("from outside (taskset -p, a cpuset)"), "{}", list[0].text);
    }
}
