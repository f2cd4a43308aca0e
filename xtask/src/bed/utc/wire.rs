//! Whether frames of the guest waited for this machine's CPUs.
//!
//! Owns: [`Wire`], by what the kernel counts of all threads that carry frames, QEMU's and this program's, and by what a
//! hypervisor below took. Must not: know a reading, which would excuse itself.

use std::fs;
use std::time::{Duration, Instant};

/// Beyond it a frame is held up, ns. The mean path delay is of that order.
const HELD_UP_NS: u64 = 5_000_000;
/// The next Syncs are there then, and tell what a late one did.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Of the hypervisor, in an interval: one may be the sum of many short ones.
const STOLEN_TICKS: u64 = 1;

/// Since all of it began.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    waited_ns: u64,
    /// Of `/proc/stat`, 10 ms each.
    stolen_ticks: u64,
}

/// What carries frames between a guest and its master.
#[derive(Debug, Default)]
pub(super) struct Wire {
    before: Option<Waits>,
    held_up: Option<Instant>,
}

impl Wire {
    /// Looks again: whether no frame was held up for a while, as far as is known.
    pub(super) fn is_prompt(&mut self, now: Instant) -> bool {
        self.heard(waits(), now)
    }

    fn heard(&mut self, found: Waits, now: Instant) -> bool {
        let is_long = |before: Waits| {
            found.waited_ns.saturating_sub(before.waited_ns) > HELD_UP_NS
                || found.stolen_ticks.saturating_sub(before.stolen_ticks) > STOLEN_TICKS
        };
        if self.before.replace(found).is_none_or(is_long) {
            self.held_up = Some(now);
        }
        self.held_up.is_none_or(|at| now.saturating_duration_since(at) > AFTERWARDS)
    }
}

/// How long threads of this program and of those that it started waited for a CPU, and all CPUs for the hypervisor. Its
/// first thread only waits for the others.
fn waits() -> Waits {
    let own: Vec<String> = threads("self").collect();
    let children = own.iter().filter_map(|own| fs::read_to_string(format!("{own}/children")).ok());
    let children: Vec<String> = children
        .flat_map(|pids| pids.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let first = format!("/{}", std::process::id());
    let all = own
        .into_iter()
        .filter(|own| !own.ends_with(&first))
        .chain(children.iter().flat_map(|pid| threads(pid)));
    let waited = all.filter_map(|thread| {
        let counts = fs::read_to_string(format!("{thread}/schedstat")).ok()?;
        counts.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    let stolen = fs::read_to_string("/proc/stat").ok();
    let stolen = stolen.and_then(|text| text.split_whitespace().nth(8)?.parse::<u64>().ok());
    Waits { waited_ns: waited.sum(), stolen_ticks: stolen.unwrap_or(0) }
}

fn threads(process: &str) -> impl Iterator<Item = String> + use<> {
    let all = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    all.filter_map(|thread| Some(thread.ok()?.path().to_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_that_was_held_up_is_not_prompt_for_a_while() {
        let (mut wire, begun) = (Wire::default(), Instant::now());
        let mut heard = |waited_ms: u64, after_ms: u64| {
            let found = Waits { waited_ns: waited_ms * 1_000_000, stolen_ticks: waited_ms / 40 };
            wire.heard(found, begun + Duration::from_millis(after_ms))
        };
        // What was before the first look is not known.
        assert_eq!([heard(70, 0), heard(74, 2_900), heard(78, 3_100)], [false, false, true]);
        assert_eq!([heard(84, 3_200), heard(86, 6_100), heard(3, 6_300)], [false, false, true]);
        let stolen = Waits { waited_ns: 0, stolen_ticks: 2 };
        assert!(!wire.heard(stolen, begun + Duration::from_secs(9)));
    }

    /// Threads that all turn wait for each other.
    #[test]
    fn waiting_is_counted() {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let turn = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(50) {}
        };
        let waited = (0..50).any(|_| {
            let before = waits().waited_ns;
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..3 * cpus).map(|_| scope.spawn(turn)).collect();
                std::thread::sleep(Duration::from_millis(40));
                let during = waits().waited_ns;
                all.into_iter().for_each(|thread| drop(thread.join()));
                during > before
            })
        });
        assert!(waited);
    }
}
