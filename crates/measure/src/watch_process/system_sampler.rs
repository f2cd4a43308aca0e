//! Who may have had the CPU of a watched thread, by what every visible thread ran meanwhile.
//!
//! Counts do not say who ran when: each other thread that ran on the same CPU had at most its own time, and at most
//! what the watched thread waited. Where the kernel's events are recorded this is not needed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::document::{OccupantReport, Warning};
use hourglass_machine::facts::HostReader;

use super::thread_totals::ThreadTotals;

/// Samples of all threads take at most one part in `SHARE` of the time.
const SHARE: u64 = 50;
const NAMED: usize = 3;

#[derive(Debug, Default)]
pub(super) struct SystemSampler {
    due_ns: u64,
    run_ns: BTreeMap<u32, u64>,
    waits_ns: BTreeMap<u32, u64>,
    hidden: bool,
}

struct ThreadRunTime {
    tid: u32,
    pid: u32,
    run_ns: u64,
}

impl SystemSampler {
    /// Looks at all threads, if it is time or the end, and charges those who ran to the threads that waited on their CPUs.
    pub(super) fn sample(
        &mut self,
        reader: &HostReader,
        now_ns: u64,
        is_end: bool,
        threads: &mut BTreeMap<u32, ThreadTotals>,
    ) {
        if now_ns < self.due_ns && !is_end {
            return;
        }
        let begin_ns = super::used_ns();
        let first = self.run_ns.is_empty();
        let ran = self.ran(reader);
        let mut waited: Vec<(u32, u32, u64)> = Vec::new();
        for (tid, tally) in threads.iter().filter(|(_, tally)| !tally.has_ended()) {
            let wait_ns = tally.wait_ns().unwrap_or(0);
            let before_ns = self.waits_ns.insert(*tid, wait_ns).unwrap_or(0);
            let more_ns = wait_ns.saturating_sub(before_ns);
            waited.extend(tally.cpu().filter(|_| more_ns > 0).map(|cpu| (*tid, cpu, more_ns)));
        }
        if !first && !waited.is_empty() {
            for other in &ran {
                let Some(counts) = reader.thread(other.pid, other.tid) else { continue };
                let theirs = |(tid, cpu, _): &&(u32, u32, u64)| {
                    *tid != other.tid && Some(*cpu) == counts.cpu
                };
                for (tid, _, wait_ns) in waited.iter().filter(theirs) {
                    let Some(tally) = threads.get_mut(tid) else { continue };
                    let entry = tally.others.entry(other.tid).or_default();
                    entry.0.clone_from(&counts.name);
                    entry.1 = entry.1.saturating_add(other.run_ns.min(*wait_ns));
                }
            }
        }
        let took_ns = super::used_ns().saturating_sub(begin_ns);
        self.due_ns = now_ns.saturating_add(took_ns.saturating_mul(SHARE));
    }

    /// Those who ran since the last look.
    fn ran(&mut self, reader: &HostReader) -> Vec<ThreadRunTime> {
        let (mut ran, mut all) = (Vec::new(), BTreeMap::new());
        let processes = reader.processes();
        self.hidden = !processes.contains(&1);
        for pid in processes {
            for tid in reader.threads_of(pid) {
                let Some(times) = reader.thread_times(pid, tid) else { continue };
                let before = self.run_ns.get(&tid).copied().unwrap_or(0);
                let run_ns = times.run_ns.saturating_sub(before);
                if run_ns > 0 {
                    ran.push(ThreadRunTime { tid, pid, run_ns });
                }
                all.insert(tid, times.run_ns);
            }
        }
        self.run_ns = all;
        ran
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        self.hidden.then(|| Warning {
            id: "others-hidden".to_owned(),
            text: "/proc hides the processes of other users (hidepid), so that threads that ran instead may be missing"
                .to_owned(),
            remedy: "run it as root (sudo hourglass ...)".to_owned(),
        })
    }
}

pub(super) fn longest(others: &BTreeMap<u32, (String, u64)>) -> Vec<OccupantReport> {
    let mut all: Vec<_> = others.iter().collect();
    all.sort_by_key(|(tid, (_, ns))| (Reverse(*ns), **tid));
    let report = |(tid, (name, ns)): (&u32, &(String, u64))| OccupantReport {
        thread: None,
        tid: Some(*tid),
        name: Some(name.clone()),
        total_ns: *ns,
    };
    all.into_iter().take(NAMED).map(report).collect()
}
