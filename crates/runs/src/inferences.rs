//! What the trace of a run says, for its document.
//!
//! Owns: what a manifest tells about the threads that the inferences need to know. Must not: infer.

use hourglass_documents::document::RunDocument;
use hourglass_documents::manifest::{Manifest, ThreadFacts};
use hourglass_documents::{CpuSet, Inference, Policy};
use hourglass_trace::Interval;
use hourglass_trace::inferences::{Collector, ThreadFact, dispatch, missed};

/// Models whose threads never wait, by the beginning of their names, and those of them that yield.
const CPU_BOUND: &str = "CPU";
const YIELDING: [&str; 2] = ["CPU_YIELD", "CPU_SCAN_YIELD"];

/// Statistics that a trace with records missing cannot give: it knows less of the run than there was.
const OF_WHOLE_TRACES: [&str; 2] = ["rate", "share"];

/// All that a run's trace says. `latencies` are the single samples of the threads that test latency, in
/// picoseconds.
pub fn of_run<L: Iterator<Item = u64>>(
    document: &RunDocument,
    trace: impl Iterator<Item = Interval>,
    latencies: impl Iterator<Item = (u32, L)>,
) -> Vec<Inference> {
    let facts = facts(&document.manifest);
    let mut collector = Collector::of(&facts);
    collector.extend(trace);
    let mut all = collector.finish().document();
    let threads = &document.result.threads;
    if threads.iter().any(|thread| thread.records_dropped > 0) {
        all.retain(|found| !OF_WHOLE_TRACES.contains(&found.statistic.as_str()));
    }
    for (thread, samples) in latencies {
        all.extend(dispatch(samples).iter().flat_map(|found| found.document(thread)));
    }
    for thread in threads {
        let Some(deadlines) = thread.deadlines else { continue };
        let found = missed(deadlines.hit, deadlines.missed, deadlines.lost);
        all.extend(found.iter().flat_map(|found| found.document(thread.id)));
    }
    all
}

pub fn facts(manifest: &Manifest) -> Vec<ThreadFact> {
    let elapsed = manifest.elapsed_ns;
    let ns = |ns: u64| i64::try_from(ns.min(elapsed)).unwrap_or(i64::MAX);
    let fact = |thread: &ThreadFacts| ThreadFact {
        thread: thread.id,
        start_ns: ns(thread.start_ns),
        finish_ns: ns(thread.finish_ns),
        never_blocks: never_blocks(&thread.workload),
        highest: is_highest(thread, &manifest.threads),
    };
    manifest.threads.iter().map(fact).collect()
}

/// Whether the threads of this model never wait, nor yield.
pub fn never_blocks(workload: &str) -> bool {
    let model = workload.split_whitespace().next().unwrap_or_default();
    model.starts_with(CPU_BOUND) && !YIELDING.contains(&model)
}

/// Whether the thread has a real-time priority above that of all threads that share a CPU with it.
fn is_highest(thread: &ThreadFacts, all: &[ThreadFacts]) -> bool {
    let Some(own) = real_time_priority(thread) else { return false };
    let cpus = |thread: &ThreadFacts| thread.cpus.parse::<CpuSet>().unwrap_or_default();
    let mine = cpus(thread);
    all.iter().filter(|other| other.id != thread.id).all(|other| {
        let apart = mine.intersection(&cpus(other)).is_empty();
        // Threads of the deadline class run before all others.
        let below = !other.policy.starts_with("DEADLINE")
            && !other.policy.starts_with("USER:")
            && real_time_priority(other).is_none_or(|priority| priority < own);
        apart || below
    })
}

fn real_time_priority(thread: &ThreadFacts) -> Option<u8> {
    match thread.policy.parse() {
        Ok(Policy::Fifo(priority) | Policy::RoundRobin(priority)) => Some(priority),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u32, policy: &str, cpus: &str) -> ThreadFacts {
        ThreadFacts {
            id,
            workload: "CPU".to_owned(),
            policy_asked: policy.to_owned(),
            policy: policy.to_owned(),
            cpus: cpus.to_owned(),
            finish_ns: 1_000,
            gap_ns: 30,
            loop_ns: 15,
            records_capacity: 1,
            ..ThreadFacts::default()
        }
    }

    /// Section 4, third rule, speaks of the highest priority active thread.
    #[test]
    fn the_highest_is_above_all_that_share_its_cpus() {
        let all = |policies: [(&str, &str); 2]| {
            let threads: Vec<_> = (0u32..)
                .zip(policies)
                .map(|(id, (policy, cpus))| thread(id, policy, cpus))
                .collect();
            is_highest(&threads[0], &threads)
        };
        assert!(all([("FIFO:80", "0"), ("FIFO:40", "0")]));
        assert!(all([("FIFO:80", "0"), ("OTHER", "0-1")]));
        assert!(!all([("FIFO:80", "0"), ("RR:80", "0-1")]));
        assert!(all([("FIFO:80", "0"), ("RR:80", "1")]), "another CPU");
        assert!(!all([("FIFO:80", "0"), ("DEADLINE:3ms/8ms", "0-1")]));
        assert!(!all([("OTHER", "0"), ("IDLE", "0")]), "anything may preempt it");
    }

    #[test]
    fn models_that_never_block() {
        let found = ["CPU", "CPU_SCAN 128", "CPU_PERIODIC 1ms 2ms", "CPU_YIELD 1ms", "LAT 5ms"]
            .map(never_blocks);
        assert_eq!(found, [true, true, true, false, false]);
    }
}
