//! Time that a host stole from the processors, as the kernel counts it (`/proc/stat`).

/// It is shown in whole hundredths of a second (`USER_HZ`).
const STEP_NS: u64 = 10_000_000;
/// The kernel is asked about no shorter loss, ns: what was stolen would not show.
pub(crate) const STOLEN_FROM_NS: u64 = STEP_NS / 2;

/// Time stolen since boot, in whole steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stolen {
    cpu: u32,
    /// From this CPU.
    own_ns: u64,
    all_ns: u64,
}

impl Stolen {
    /// From the first lines of `/proc/stat`, the last of which may be cut.
    pub(crate) fn read(text: &str, cpu: u32) -> Option<Stolen> {
        let (whole, _) = text.rsplit_once('\n')?;
        let mut lines = whole.lines().map_while(|line| line.strip_prefix("cpu")?.split_once(' '));
        let (_, all) = lines.next().filter(|(name, _)| name.is_empty())?;
        let all_ns = stolen_ns(all)?;
        let own = lines.find(|(name, _)| name.parse() == Ok(cpu));
        // Beyond the lines that are read: what all lost.
        let own_ns = own.map_or(Some(all_ns), |(_, times)| stolen_ns(times))?;
        Some(Stolen { cpu, own_ns, all_ns })
    }

    /// What was stolen from the thread since `last` at most, as far as it shows: 0 for less than a step.
    pub(crate) fn since(self, last: Stolen) -> u64 {
        let (now, then) = match self.cpu == last.cpu {
            true => (self.own_ns, last.own_ns),
            false => (self.all_ns, last.all_ns),
        };
        match now.saturating_sub(then) {
            0 => 0,
            steps => steps.saturating_add(STEP_NS),
        }
    }
}

fn stolen_ns(times: &str) -> Option<u64> {
    /// Its place behind the name.
    const FIELD: usize = 7;
    let steps: u64 = times.split_ascii_whitespace().nth(FIELD)?.parse().ok()?;
    steps.checked_mul(STEP_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = STEP_NS;

    fn read(all: u64, own: u64, cpu: u32) -> Stolen {
        let line = |name: &str, steps: u64| format!("{name} 1 2 3 4 5 6 7 {steps} 0 0\n");
        let text = [line("cpu ", all), line("cpu0", 9), line("cpu1", own), "intr 5".to_owned()];
        Stolen::read(&text.concat(), cpu).unwrap()
    }

    #[test]
    fn stolen_time_is_that_of_the_threads_cpu_or_of_all() {
        let first = read(40, 30, 1);
        assert_eq!(read(40, 30, 1).since(first), 0);
        assert_eq!(read(43, 32, 1).since(first), 3 * STEP);
        assert_eq!(read(99, 30, 1).since(first), 0, "from another CPU");
        assert_eq!(read(41, 30, 0).since(first), 2 * STEP, "it moved: from any of them");
        assert_eq!(read(3, 3, 1).since(first), 0, "a count that falls");
    }

    #[test]
    fn lines_that_are_cut_or_missing_are_not_read() {
        let of = |text, cpu| Stolen::read(text, cpu).map(|stolen| (stolen.own_ns, stolen.all_ns));
        assert_eq!(of("cpu  1 2 3 4 5 6 7 8", 0), None);
        let cut = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 1";
        assert_eq!(of(cut, 1), Some((8 * STEP, 8 * STEP)));
        assert_eq!(of("", 0), None);
        assert_eq!(of("cpu  1 2 3\n", 0), None);
        assert_eq!(of("cpu0 1 2 3 4 5 6 7 8\n", 0), None);
    }
}
