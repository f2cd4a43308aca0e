//! How soon a sleeper is back when it is interrupted.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use hourglass_clock::process;
use hourglass_sys::thread;
use hourglass_timer::sleep::{SleepPolicy, Sleeper, SleeperSettings};

use crate::document::Row;
use crate::paired::median;

const KERNEL_GOAL_NS: f64 = 50_000.0;
const SPIN_GOAL_NS: f64 = 1_000.0;

const TIMES: usize = 300;
/// After which the sleeper is surely asleep, ns.
const SETTLED_NS: u64 = 300_000;

/// From the interrupt on one CPU to the return on another: p50 in the kernel phase and in the spin.
pub(crate) fn interrupts(rounds: u32) -> Result<Vec<Row>> {
    let cpus = thread::affinity().context("cannot ask for the CPUs")?;
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else { return Ok(Vec::new()) };
    if first == last {
        eprintln!("one CPU only: interrupts are left out");
        return Ok(Vec::new());
    }
    let cases = [
        ("interrupt_kernel", SleepPolicy::KernelOnly, KERNEL_GOAL_NS),
        ("interrupt_spin", SleepPolicy::SpinOnly, SPIN_GOAL_NS),
    ];
    let mut rows = Vec::new();
    for (case, policy, goal_ns) in cases {
        let mut values = Vec::new();
        for _ in 0..rounds {
            values.push(round(policy, *first, *last)?);
        }
        rows.push(Row::alone(case, "hourglass", median(&mut values), "ns").at_most(goal_ns));
    }
    Ok(rows)
}

/// The median of a round, ns.
fn round(policy: SleepPolicy, interrupting: u32, sleeping: u32) -> Result<f64> {
    let clock = process::clock();
    let mut sleeper = Sleeper::with(SleeperSettings::with_policy(policy));
    let interrupter = sleeper.interrupter();
    // When the interrupt was sent; 0 while the next one is waited for.
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            thread::set_affinity([interrupting])?;
            let mut own = Sleeper::new();
            for _ in 0..TIMES {
                while sent.load(Ordering::Acquire) != 0 {
                    thread::yield_now();
                }
                let _ = own.sleep_ns(SETTLED_NS);
                sent.store(clock.now_ordered(), Ordering::Release);
                interrupter.interrupt();
            }
            std::io::Result::Ok(())
        });
        let mut taken: Vec<f64> = Vec::with_capacity(TIMES);
        let receive = scope.spawn(|| {
            thread::set_affinity([sleeping])?;
            for _ in 0..TIMES {
                let slept = sleeper.sleep_ns(1_000_000_000);
                let back = clock.now_ordered();
                if slept.interrupted {
                    taken.push(back.saturating_sub(sent.load(Ordering::Acquire)) as f64);
                }
                sleeper.clear();
                sent.store(0, Ordering::Release);
            }
            std::io::Result::Ok(taken)
        });
        let sent = sender.join().map_err(|_| anyhow::anyhow!("the interrupting thread died"))?;
        sent.context("cannot choose a CPU")?;
        let taken = receive.join().map_err(|_| anyhow::anyhow!("the sleeping thread died"))?;
        let mut taken = taken.context("cannot choose a CPU")?;
        Ok(median(&mut taken))
    })
}
