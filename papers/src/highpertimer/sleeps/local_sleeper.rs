//! Sleeping on this machine: a thread for each way, all on one CPU, of which one is busy at a time.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hourglass_clock::process;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched;
use hourglass_sys::thread::{affinity, counters, rusage_split_ns, set_affinity, timer_slack};
use hourglass_timer::sleep::{SchedClass, SleepOutcome, SleepPolicy, Sleeper, SleeperSettings};

use super::super::super::bench::MeasurementHost;
use super::super::super::costs::measuring_cpu;
use super::SleepMethod;
use super::block::{Block, BlockSleeper, OutOfLineSleep, Sleeps, Usage, block};

/// The kernel stops a real-time thread that spins for 0.95 s: blocks of one are kept below that, ns.
const LONGEST_RT_SPIN_NS: u64 = 300_000_000;

/// This machine.
///
/// Each way has a thread of its own, so that what is counted for a thread is one way's, and so that
/// each keeps what it learns. The threads have the policy and the timer slack of the one that makes
/// them. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct LocalSleeper {
    workers: Vec<Worker>,
    class: SchedClass,
}

#[derive(Debug)]
struct Worker {
    way: SleepMethod,
    jobs: Option<Sender<Job>>,
    blocks: Receiver<Block>,
    thread: Option<JoinHandle<()>>,
}

/// Length, ns, and how often.
type Job = (u64, usize);

impl LocalSleeper {
    pub(crate) fn new(ways: &[SleepMethod], thesis: SleepPolicy) -> LocalSleeper {
        let workers = ways.iter().filter_map(|way| Worker::start(*way, thesis)).collect();
        LocalSleeper { workers, class: class() }
    }
}

fn class() -> SchedClass {
    SchedClass(sched::policy_number().unwrap_or(0))
}

pub(crate) fn conditions(bench: &MeasurementHost) -> String {
    let policy = match class().0 {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        _ => "an unknown policy",
    };
    let cpu = measuring_cpu().map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let slack = match timer_slack() {
        Some(ns) => format!(", timer slack {:.1} us", ns as f64 / 1e3),
        None => String::new(),
    };
    let below = match bench.machine.virtual_machine.as_deref() {
        Some(kind) => format!(", virtual machine ({kind})"),
        None => ", no hypervisor".into(),
    };
    let load = bench.load.map_or(String::new(), |load| format!(", load average {load:.1}"));
    format!("{policy}{cpu}{slack}{below}{load}")
}

impl BlockSleeper for LocalSleeper {
    fn block(&mut self, way: SleepMethod, length_ns: u64, times: usize) -> Result<Block, String> {
        let spun = length_ns.saturating_mul(times as u64);
        if way == SleepMethod::Busy && self.class.is_real_time() && spun > LONGEST_RT_SPIN_NS {
            return Err("the kernel stops a real-time thread that spins so long; run it under \
                        SCHED_OTHER"
                .into());
        }
        let worker = self.workers.iter().find(|worker| worker.way == way);
        let jobs = worker.and_then(|worker| Some((worker.jobs.as_ref()?, &worker.blocks)));
        let block = jobs.and_then(|(jobs, blocks)| {
            jobs.send((length_ns, times)).ok()?;
            blocks.recv().ok()
        });
        block.ok_or_else(|| "no thread could be started; raise the limit on processes".into())
    }
}

impl Worker {
    fn start(way: SleepMethod, thesis: SleepPolicy) -> Option<Worker> {
        let (jobs, todo) = channel();
        let (done, blocks) = channel();
        let work = move || {
            if let Some(cpu) = affinity().ok().and_then(|cpus| cpus.last().copied()) {
                // Without it the thread runs where it may.
                let _ = set_affinity([cpu]);
            }
            let ours = |policy| Sleeper::with(SleeperSettings::with_policy(policy));
            match way {
                SleepMethod::System => work(&mut System, &todo, &done),
                SleepMethod::KernelOnly => work(&mut ours(SleepPolicy::KernelOnly), &todo, &done),
                SleepMethod::Busy => work(&mut ours(SleepPolicy::SpinOnly), &todo, &done),
                SleepMethod::Thesis => work(&mut ours(thesis), &todo, &done),
                SleepMethod::ThesisCalled => work(&mut OutOfLineSleep(ours(thesis)), &todo, &done),
                SleepMethod::Learned => work(&mut ours(SleepPolicy::Learned), &todo, &done),
                SleepMethod::Frugal => {
                    work(&mut Sleeper::with(SleeperSettings::FRUGAL), &todo, &done)
                }
                SleepMethod::Precise => {
                    work(&mut Sleeper::with(SleeperSettings::PRECISE), &todo, &done)
                }
            }
        };
        let thread = thread::Builder::new().name(way.name().into()).spawn(work).ok()?;
        Some(Worker { way, jobs: Some(jobs), blocks, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has sent nothing, which was reported.
            let _ = thread.join();
        }
    }
}

fn work(sleeper: &mut impl Sleeps, todo: &Receiver<Job>, done: &Sender<Block>) {
    let clock = process::clock();
    for (length_ns, times) in todo {
        let before = rusage_split_ns();
        let mut block = block(clock, sleeper, length_ns, times);
        let after = rusage_split_ns();
        let split = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        block.usage.split = Some(split);
        if done.send(block).is_err() {
            return;
        }
    }
}

#[derive(Debug)]
struct System;

impl Sleeps for System {
    #[inline(always)]
    fn sleep(&mut self, length_ns: u64) -> Option<SleepOutcome> {
        thread::sleep(Duration::from_nanos(length_ns));
        None
    }

    fn usage(&mut self) -> Usage {
        Usage {
            cpu_ns: now_ns(ClockId::ThreadCpu),
            wall_ns: process::clock().now_ordered(),
            preemptions: counters().involuntary,
            split: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_sleeps_here() {
        let ways = [SleepMethod::MEASURED.as_slice(), &[SleepMethod::ThesisCalled]].concat();
        let mut here = LocalSleeper::new(&ways, SleepPolicy::Thesis { hz: 1_000 });
        for way in ways {
            for (length_ns, times) in [(1_000, 20), (1_500_000, 3)] {
                let block = here.block(way, length_ns, times).unwrap();
                assert_eq!(block.samples.len(), times);
                assert!(block.samples.iter().all(|sample| sample.miss >= 0), "{way:?} {block:?}");
                assert_eq!(block.samples[0].parts.is_none(), way == SleepMethod::System);
                assert!(block.usage.wall_ns >= length_ns * times as u64);
                assert!(block.usage.split.is_some());
            }
        }
        assert!(
            LocalSleeper::new(&[], SleepPolicy::Learned).block(SleepMethod::Busy, 1, 1).is_err()
        );
    }
}
