//! How much processor time the members of a reservation have had in all.
//!
//! Owns: the three ways to know it. A group of the unified hierarchy counts itself, also members that
//! have ended. Otherwise the clocks of the processes are summed; what one used between the last
//! look and its end is then not seen. One thread has a count of its own.
//! Must not: decide when to look.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use hourglass_sys::cgroup::{Group, Version};
use hourglass_sys::clock::cpu_time::{ProcessTime, ThreadTime};

#[derive(Debug)]
pub(super) enum Usage {
    /// `cpu.stat` of a group, in microseconds.
    Group(File),
    Processes(Tally),
    Thread(ThreadTime),
}

impl Usage {
    pub(super) fn of_group(group: &Group) -> Usage {
        let counted = group.version() == Version::V2;
        let file = File::open(group.path().join("cpu.stat")).ok().filter(|_| counted);
        match file.filter(|file| usage_usec(file).is_some()) {
            Some(file) => Usage::Group(file),
            None => Usage::Processes(Tally::default()),
        }
    }

    /// The current sum, ns; `None` if it is not known any more.
    pub(super) fn read_ns(&mut self) -> Option<u64> {
        match self {
            Usage::Group(file) => usage_usec(file).map(|us| us.saturating_mul(1_000)),
            Usage::Processes(tally) => Some(tally.read_ns()),
            Usage::Thread(time) => time.read().ok().map(|counts| counts.run_ns),
        }
    }

    /// Whether the sum has also what members used after the last look, and have ended since.
    pub(super) fn counts_the_dead(&self) -> bool {
        matches!(self, Usage::Group(_))
    }

    /// Tells which processes there are now, where that is needed.
    pub(super) fn tell(&mut self, processes: impl FnOnce() -> Vec<u32>) {
        if let Usage::Processes(tally) = self {
            tally.tell(&processes());
        }
    }
}

fn usage_usec(file: &File) -> Option<u64> {
    // It is the first line; one read is enough for it.
    let mut text = [0u8; 128];
    let count = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..count)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse().ok())
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    clocks: HashMap<u32, (ProcessTime, u64)>,
    total_ns: u64,
    begun: bool,
}

impl Tally {
    /// Takes the present processes. Those of the first time have used nothing yet; later ones were made by those, and
    /// all that they used counts.
    fn tell(&mut self, processes: &[u32]) {
        self.read_ns();
        self.clocks.retain(|pid, _| processes.contains(pid));
        for pid in processes {
            let clock = ProcessTime::for_task(*pid);
            let first = if self.begun { 0 } else { clock.read_ns().unwrap_or(0) };
            self.clocks.entry(*pid).or_insert((clock, first));
        }
        self.begun = true;
        self.read_ns();
    }

    fn read_ns(&mut self) -> u64 {
        for (clock, last) in self.clocks.values_mut() {
            let Ok(now) = clock.read_ns() else { continue };
            self.total_ns = self.total_ns.saturating_add(now.saturating_sub(*last));
            *last = now.max(*last);
        }
        self.total_ns
    }
}
