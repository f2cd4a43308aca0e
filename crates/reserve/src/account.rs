//! How the kernel accounts for a thread's time.
//!
//! Owns: the calling thread's accounts, and what they prove of a host. Must not: decide what is excused by it.
//!
//! While a thread neither sleeps nor ends, its time is processor time, waiting for a processor that other threads have,
//! or time in which a host had the processor: a kernel that knows the latter (steal time) charges no thread for it. So
//! time that is neither of the first two is the third. That does not hold where the kernel charges no thread for
//! interrupts either. A host that waits itself, as for memory, reports nothing, and the thread is charged; that shows
//! as a gap in which no other thread had the processor.

use std::fs;

use hourglass_sys::clock::cpu_time::ThreadTime;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;

/// Two clocks of a kernel go apart by less than this part of the time.
const APART: u64 = 1_000;

/// A gap of more than this counts as a host's, as far as no other thread had it, ns: interrupts of devices are shorter
/// by a factor of ten. A softirq of this kernel that took as long as the gap would be counted as the host's.
pub const GAP_NS: u64 = 300_000;

/// The accounts of the calling thread.
#[derive(Debug)]
pub struct ThreadAccounting {
    /// Time that it waited, if the kernel counts that.
    waited: Option<ThreadTime>,
    /// Whether nothing else is missing in the accounts.
    complete: bool,
}

/// The accounts of a thread at one moment, ns.
#[derive(Clone, Copy, Debug)]
pub struct AccountingSample {
    now_ns: u64,
    cpu_ns: u64,
    waited_ns: Option<u64>,
    slept: u64,
    complete: bool,
}

/// Differences between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountingDelta {
    /// Waiting for other threads of this kernel, ns; `None` if that is not known.
    pub waited_ns: Option<u64>,
    /// Taken by a host, ns; 0 where that is not proven.
    pub stolen_ns: u64,
}

/// Whether this kernel charges threads for interrupts, so that uncharged time is a host's. A kernel that accounts for
/// interrupts separately has counted some since its start.
fn charges_for_interrupts() -> bool {
    /// Numbers behind the name before that of interrupts (`proc_stat(5)`).
    const INTERRUPTS: usize = 5;
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all =
        text.lines().next().and_then(|line| line.split_ascii_whitespace().nth(1 + INTERRUPTS));
    all == Some("0")
}

impl ThreadAccounting {
    /// Of the calling thread. Reads files.
    #[must_use]
    pub fn open() -> ThreadAccounting {
        ThreadAccounting {
            waited: ThreadTime::for_task(thread::id()).ok(),
            complete: charges_for_interrupts(),
        }
    }

    /// Reads it: three system calls, about a microsecond; no allocation.
    #[must_use]
    pub fn read(&self) -> AccountingSample {
        let waited = self.waited.as_ref().and_then(|waited| waited.read().ok());
        AccountingSample {
            now_ns: now_ns(ClockId::Monotonic),
            cpu_ns: now_ns(ClockId::ThreadCpu),
            waited_ns: waited.map(|waited| waited.wait_ns),
            slept: thread::counters().voluntary,
            complete: self.complete,
        }
    }
}

impl AccountingSample {
    /// The difference to an earlier sample; nothing is known if the thread slept.
    #[must_use]
    pub fn since(&self, before: AccountingSample) -> AccountingDelta {
        let (Some(now), Some(then), true) =
            (self.waited_ns, before.waited_ns, self.slept == before.slept)
        else {
            return AccountingDelta::default();
        };
        let waited_ns = now.saturating_sub(then);
        let passed = self.now_ns.saturating_sub(before.now_ns);
        let known = self.cpu_ns.saturating_sub(before.cpu_ns).saturating_add(waited_ns);
        let missing = passed.saturating_sub(passed / APART).saturating_sub(known);
        AccountingDelta {
            waited_ns: Some(waited_ns),
            stolen_ns: if self.complete { missing } else { 0 },
        }
    }
}

impl AccountingDelta {
    /// Time that a host took, ns, if the longest gap in it was `gap_ns`.
    #[must_use]
    pub fn taken_ns(self, gap_ns: u64) -> u64 {
        let unknown = gap_ns.saturating_sub(self.waited_ns.unwrap_or(u64::MAX));
        self.stolen_ns.max(if unknown > GAP_NS { unknown } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uncharged time is the host's, except for the difference between the clocks.
    #[test]
    fn uncharged_time_is_the_hosts() {
        let at = |now_ns, cpu_ns, waited_ns| AccountingSample {
            now_ns,
            cpu_ns,
            waited_ns,
            slept: 0,
            complete: true,
        };
        let before = at(1_000_000, 7_000, Some(300));
        let spent = |after: AccountingSample| after.since(before);
        let after = at(2_000_000, 607_000, Some(200_300));
        assert_eq!(spent(after), AccountingDelta { waited_ns: Some(200_000), stolen_ns: 199_000 });
        let charged = spent(at(2_000_000, 1_006_500, Some(300)));
        assert_eq!(charged, AccountingDelta { waited_ns: Some(0), stolen_ns: 0 });
        assert_eq!(
            spent(at(2_000_000, 607_000, None)),
            AccountingDelta::default(),
            "a wait would be taken for it"
        );
        assert_eq!(spent(AccountingSample { slept: 1, ..after }), AccountingDelta::default());
        let silent = AccountingSample { complete: false, ..after };
        assert_eq!(spent(silent), AccountingDelta { waited_ns: Some(200_000), stolen_ns: 0 });
    }

    /// A sleeping thread is neither charged nor waiting: the caller must know that the thread did not sleep. A thread
    /// that works is charged for what it does.
    #[test]
    fn a_thread_that_works_is_charged() {
        let account = ThreadAccounting::open();
        let best = (0..20).map(|_| {
            let before = account.read();
            while now_ns(ClockId::Monotonic) < before.now_ns + 1_000_000 {}
            account.read().since(before).stolen_ns
        });
        // One of some is not disturbed.
        assert!(best.min() < Some(100_000));
    }

    /// Long gaps are a host's but for what other threads had of them; short ones only where the kernel says so.
    #[test]
    fn what_a_host_took() {
        let taken = |waited_ns, stolen_ns, gap_ns| {
            AccountingDelta { waited_ns, stolen_ns }.taken_ns(gap_ns)
        };
        let ms = 1_000_000;
        assert_eq!(taken(Some(0), 0, 17 * ms), 17 * ms);
        assert_eq!(taken(Some(10_000), 0, 17 * ms), 17 * ms - 10_000);
        assert_eq!(taken(Some(17 * ms), 0, 17 * ms), 0, "another thread had the CPU");
        assert_eq!(taken(Some(17 * ms - GAP_NS), 0, 17 * ms), 0, "an interrupt can take the rest");
        assert_eq!(taken(None, 0, 17 * ms), 0, "perhaps another thread had it");
        assert_eq!([taken(Some(0), 80_000, 0), taken(Some(0), ms, 2 * ms)], [80_000, 2 * ms]);
    }
}
