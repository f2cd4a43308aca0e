//! The kernel's own clocks beside the process's.
//!
//! Owns: how far they are apart in a time namespace (`time_namespaces(7)`). The kernel's ticks, timers and records keep
//! the kernel's clocks; `CLOCK_MONOTONIC`, `CLOCK_MONOTONIC_RAW` and `CLOCK_BOOTTIME` are read with an offset there.

use std::path::Path;

/// From the kernel's monotonic clocks to those that this process reads, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset(i64);

impl Offset {
    /// That of this process; `None` where the kernel does not tell.
    pub(crate) fn of_this_process() -> Option<Offset> {
        Offset::read(Path::new("/proc/self"))
    }

    /// By the process's folder in `/proc`. What the file says holds for children: for the process too, if it is in
    /// the same namespace as they will be. A kernel without such namespaces has one clock.
    fn read(process: &Path) -> Option<Offset> {
        let name = |link: &str| std::fs::read_link(process.join("ns").join(link)).ok();
        match (name("time"), name("time_for_children")) {
            (None, None) => Some(Offset::default()),
            (own, children) if own == children => {
                Offset::parse(&std::fs::read_to_string(process.join("timens_offsets")).ok()?)
            }
            _ => None,
        }
    }

    /// `monotonic SECONDS NANOSECONDS`, of which the seconds may be negative.
    fn parse(text: &str) -> Option<Offset> {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("monotonic"))?;
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
        let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        seconds.checked_mul(1_000_000_000)?.checked_add(ns).map(Offset)
    }

    /// What this process reads when the kernel's clock is at `kernel_ns`.
    pub(crate) fn own_ns(self, kernel_ns: u64) -> u64 {
        kernel_ns.saturating_add_signed(self.0)
    }

    /// What the kernel's clock is when this process reads `own_ns`.
    pub(crate) fn kernel_ns(self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.0.saturating_neg())
    }

    /// Where the multiples of `period_ns` on the kernel's clock lie on the process's.
    pub(crate) fn phase_ns(self, period_ns: u64) -> u64 {
        let period = i128::from(period_ns.max(1));
        u64::try_from(i128::from(self.0).rem_euclid(period)).unwrap_or(0)
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fs/proc/base.c`, `proc_timens_show_offsets`: `"%-10s %10lld %9ld\n"`.
    #[test]
    fn offsets_are_read_and_both_ways_meet() {
        const PERIOD: u64 = 4_000_000;
        for (text, offset, phase) in [
            ("monotonic           0         0\nboottime            0         0\n", 0, 0),
            (
                "monotonic           0   1500000\nboottime            0   1500000\n",
                1_500_000,
                1_500_000,
            ),
            (
                "boottime            5         7\nmonotonic          -1 999000000\n",
                -1_000_000,
                3_000_000,
            ),
            ("monotonic       86400         1\n", 86_400_000_000_001, 1),
        ] {
            let read = Offset::parse(text).unwrap();
            assert_eq!((read, read.phase_ns(PERIOD)), (Offset(offset), phase), "{text}");
            let kernel = 4_000_000_000_000;
            assert_eq!(read.own_ns(kernel), kernel.saturating_add_signed(offset));
            assert_eq!(read.kernel_ns(read.own_ns(kernel)), kernel);
        }
        for text in
            ["", "boottime 0 0\n", "monotonic 1\n", "monotonic x 0\n", "monotonic 99999999999999 0"]
        {
            assert_eq!(Offset::parse(text), None, "{text}");
        }
        let least = Offset(i64::MIN);
        assert_eq!((least.own_ns(7), least.kernel_ns(u64::MAX)), (0, u64::MAX));
        assert!(least.phase_ns(u64::MAX) > 0);
    }

    /// A process whose children will be in another namespace is not in that of the file.
    #[test]
    fn what_holds_for_children_alone_is_not_taken() {
        let folder = std::env::temp_dir().join(format!("hourglass-timens-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("ns")).unwrap();
        let offset = || Offset::read(&folder);
        assert_eq!(offset(), Some(Offset(0)), "a kernel without time namespaces");
        std::fs::write(folder.join("timens_offsets"), "monotonic 0 5\n").unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, folder.join("ns").join(name)).unwrap();
        };
        link("time:[1]", "time");
        assert_eq!(offset(), None);
        link("time:[1]", "time_for_children");
        assert_eq!(offset(), Some(Offset(5)));
        std::fs::remove_file(folder.join("ns/time_for_children")).unwrap();
        link("time:[2]", "time_for_children");
        assert_eq!(offset(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
