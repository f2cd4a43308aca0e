//! What the kernel counts for the threads of any process, in `/proc`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::host::MOST_REAL_TIME;
use hourglass_documents::host::RealTimeThread;
use hourglass_documents::{CpuSet, Policy, thread_name};
use hourglass_sys::thread::SchedStat;

use super::files::{Files, field};

/// What the kernel counted for a thread since it began. `None` stands where the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Its name, as [`thread_name`] writes it.
    pub name: String,
    /// Its state as `ps` shows it: R, S, D, T, t, Z, X...
    pub state: char,
    /// When it began, in hundredths of a second from the boot: a number that is used again has another.
    pub begun: u64,
    /// The CPU on which it ran last.
    pub cpu: Option<u32>,
    pub policy: Option<Policy>,
    /// The CPUs on which it may run; none where the kernel does not say.
    pub cpus: CpuSet,
    /// Time on a CPU, and time waiting for one, ns.
    pub times: Option<SchedStat>,
    /// Context switches by its own wait.
    pub voluntary: Option<u64>,
    /// Context switches forced on it.
    pub involuntary: Option<u64>,
    /// How often it was moved to another CPU.
    pub migrations: Option<u64>,
    /// Page faults that needed no input.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for input.
    pub major_faults: Option<u64>,
}

impl ThreadCounts {
    /// Whether it is stopped, by a signal or a debugger.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether it has ended, and only its parent has not asked yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// The unit of times in `/proc/PID/stat`, which is the same on every machine that Linux offers 64 bits on.
const TICK_NS: u64 = 10_000_000;

/// The numbers in `/proc`: every process that is visible.
pub(super) fn processes(files: &Files) -> Vec<u32> {
    numbers(files, "proc")
}

/// The threads of a process; none if it has ended.
pub(super) fn of_process(files: &Files, pid: u32) -> Vec<u32> {
    numbers(files, &format!("proc/{pid}/task"))
}

fn numbers(files: &Files, folder: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        files.names(folder).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The process of a thread, which may be the thread itself; `None` if the thread does not exist.
pub(super) fn process_of(files: &Files, tid: u32) -> Option<u32> {
    field(&files.text(&format!("proc/{tid}/status"))?, "Tgid", ':')?.parse().ok()
}

/// User and system time of a process, with its ended threads (`proc_pid_stat(5)`), ns; `None` if it does not exist.
pub(super) fn cpu_ns(files: &Files, pid: u32) -> Option<u64> {
    ticks_ns(files, pid, [14, 15])
}

/// The same of children that it has waited for.
pub(super) fn children_cpu_ns(files: &Files, pid: u32) -> Option<u64> {
    ticks_ns(files, pid, [16, 17])
}

pub(super) fn children(files: &Files, pid: u32) -> Vec<u32> {
    let of_thread = |tid: u32| files.text(&format!("proc/{pid}/task/{tid}/children"));
    let texts: Vec<String> = of_process(files, pid).into_iter().filter_map(of_thread).collect();
    let words = texts.iter().flat_map(|text| text.split_ascii_whitespace());
    let mut children: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
    children.sort_unstable();
    children
}

/// The sum of two fields of `/proc/PID/stat` that count ticks.
fn ticks_ns(files: &Files, pid: u32, [one, other]: [usize; 2]) -> Option<u64> {
    let text = files.text(&format!("proc/{pid}/stat"))?;
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    ticks(one)?.checked_add(ticks(other)?)?.checked_mul(TICK_NS)
}

pub(super) fn name(files: &Files, pid: u32, tid: u32) -> Option<String> {
    let text = files.text(&format!("proc/{pid}/task/{tid}/comm"))?;
    Some(thread_name(text.strip_suffix('\n').unwrap_or(&text)))
}

/// The times of a thread. A kernel that counts none writes zeros.
pub(super) fn times(files: &Files, pid: u32, tid: u32) -> Option<SchedStat> {
    let times = SchedStat::read(&files.text(&format!("proc/{pid}/task/{tid}/schedstat"))?)?;
    (times != SchedStat::default()).then_some(times)
}

/// Times are read before switches: those that are counted in `voluntary` came after the time that is counted in `times`,
/// or are in it.
pub(super) fn counts(files: &Files, pid: u32, tid: u32) -> Option<ThreadCounts> {
    let folder = format!("proc/{pid}/task/{tid}");
    let mut counts = statistics(&files.text(&format!("{folder}/stat"))?)?;
    counts.times = times(files, pid, tid);
    let status = files.text(&format!("{folder}/status")).unwrap_or_default();
    let number = |text: &str, key: &str| field(text, key, ':')?.parse().ok();
    counts.voluntary = number(&status, "voluntary_ctxt_switches");
    counts.involuntary = number(&status, "nonvoluntary_ctxt_switches");
    let allowed = field(&status, "Cpus_allowed_list", ':').and_then(|list| list.parse().ok());
    counts.cpus = allowed.unwrap_or_default();
    let sched = files.text(&format!("{folder}/sched")).unwrap_or_default();
    counts.migrations = number(&sched, "se.nr_migrations");
    Some(counts)
}

/// Real-time threads by number and begin, with the time that each ran.
pub(super) type RealTime = BTreeMap<(u32, u64), RealTimeThread>;

/// Those of all processes but one.
pub(super) fn real_time(files: &Files, but: u32) -> RealTime {
    let mut found = RealTime::new();
    for pid in processes(files).into_iter().filter(|pid| *pid != but) {
        for tid in of_process(files, pid) {
            let stat = files.text(&format!("proc/{pid}/task/{tid}/stat"));
            let Some(counts) = stat.and_then(|text| statistics(&text)) else { continue };
            let Some(policy) =
                counts.policy.filter(|policy| policy.is_real_time() || *policy == Policy::Deadline)
            else {
                continue;
            };
            let ran_ns = times(files, pid, tid).map_or(0, |times| times.run_ns);
            let policy = policy.to_string();
            let thread = RealTimeThread { tid, name: counts.name, policy, ran_ns, ended: false };
            found.insert((tid, counts.begun), thread);
        }
    }
    found
}

/// Those that ran since, longest first, and those that are no more.
pub(super) fn real_time_since(before: &RealTime, now: RealTime) -> Vec<RealTimeThread> {
    let gone = before.iter().filter(|(key, _)| !now.contains_key(key));
    let ended = gone.map(|(_, thread)| RealTimeThread { ran_ns: 0, ended: true, ..thread.clone() });
    let ended: Vec<RealTimeThread> = ended.collect();
    let mut ran: Vec<RealTimeThread> = now
        .into_iter()
        .filter_map(|(key, thread)| {
            let earlier_ns = before.get(&key).map_or(0, |thread| thread.ran_ns);
            let ran_ns = thread.ran_ns.checked_sub(earlier_ns).filter(|ns| *ns >= SEEN_NS)?;
            Some(RealTimeThread { ran_ns, ..thread })
        })
        .collect();
    ran.sort_by_key(|thread| (Reverse(thread.ran_ns), thread.tid));
    ran.extend(ended);
    ran.truncate(MOST_REAL_TIME);
    ran
}

/// What ran shorter is left out, as the kernel's own threads mostly are.
const SEEN_NS: u64 = 1_000_000;

/// The text of `/proc/PID/task/TID/stat` (`proc_pid_stat(5)`).
fn statistics(text: &str) -> Option<ThreadCounts> {
    // The name may have blanks and brackets.
    let (before, fields) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // The manual counts from 1, and the third field is the first behind the name.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    Some(ThreadCounts {
        name: thread_name(name),
        state: field(3)?.chars().next()?,
        begun: number(22)?,
        cpu: field(39).and_then(|cpu| cpu.parse().ok()),
        policy: policy(number(41), number(40), field(19)),
        minor_faults: number(10),
        major_faults: number(12),
        ..ThreadCounts::default()
    })
}

/// A policy by its number (`sched(7)`), its real-time priority and its nice value.
fn policy(number: Option<u64>, priority: Option<u64>, nice: Option<&str>) -> Option<Policy> {
    let priority = priority.and_then(|priority| u8::try_from(priority).ok());
    match number? {
        0 => Some(Policy::Other(nice?.parse().ok()?)),
        1 => Some(Policy::Fifo(priority?)),
        2 => Some(Policy::RoundRobin(priority?)),
        3 => Some(Policy::Batch),
        5 => Some(Policy::Idle),
        6 => Some(Policy::Deadline),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_host::{FakeMachine, v2_container};
    use super::*;

    /// Linux 6.18, a thread of a process called `a (b) c`, shortened behind the last field that is read.
    const STAT: &str = "24751 (a (b) c) S 24750 24751 24751 0 -1 4194560 7361 60784 3 2 3 4 65 21 20 -5 1 0 \
                        3629940 5246976 981 18446744073709551615 1 2 3 0 0 0 65536 4 1132560123 1 0 0 17 3 0 0 0 0 0\n";
    const STATUS: &str = "Name:\ta (b) c\nTgid:\t24700\nCpus_allowed_list:\t0,2-3\nvoluntary_ctxt_switches:\t173\n\
                          nonvoluntary_ctxt_switches:\t28\n";
    const SCHED: &str = "a (b) c (24751, #threads: 1)\n\
                         se.exec_start                                :      36481292.174638\n\
                         se.nr_migrations                             :                   21\n";

    fn machine() -> FakeMachine {
        let folder = "proc/24700/task/24751";
        FakeMachine::empty().with(&[
            (&format!("{folder}/stat"), STAT),
            (&format!("{folder}/status"), STATUS),
            (&format!("{folder}/sched"), SCHED),
            (&format!("{folder}/schedstat"), "85715631 73860313 201\n"),
            (&format!("{folder}/comm"), "a (b) c\n"),
            ("proc/24751/status", STATUS),
            ("proc/cpuinfo", ""),
        ])
    }

    /// `proc_pid_stat(5)`: fields 14 to 17.
    #[test]
    fn children_and_what_they_used_are_read() {
        let machine = machine()
            .with(&[("proc/24700/stat", STAT), ("proc/24700/task/24751/children", "24810 24760 ")]);
        let reader = machine.reader();
        assert_eq!(reader.children_of(24700), [24760, 24810]);
        assert_eq!(reader.process_cpu_ns(24700), Some(70_000_000));
        assert_eq!(reader.children_cpu_ns(24700), Some(860_000_000));
        assert_eq!((reader.children_of(7), reader.children_cpu_ns(7)), (vec![], None));
    }

    #[test]
    fn every_count_of_a_thread_is_read() {
        let machine = machine();
        let reader = machine.reader();
        let found = reader.thread(24700, 24751).unwrap();
        let expected = ThreadCounts {
            name: "a (b) c".into(),
            state: 'S',
            begun: 3_629_940,
            cpu: Some(3),
            policy: Some(Policy::Other(-5)),
            cpus: "0,2-3".parse().unwrap(),
            times: Some(SchedStat { run_ns: 85_715_631, wait_ns: 73_860_313 }),
            voluntary: Some(173),
            involuntary: Some(28),
            migrations: Some(21),
            minor_faults: Some(7361),
            major_faults: Some(3),
        };
        assert_eq!(found, expected);
        assert_eq!(reader.processes(), [24700, 24751]);
        assert_eq!(reader.threads_of(24700), [24751]);
        assert_eq!(reader.process_of(24751), Some(24700));
        assert_eq!(reader.thread_name(24700, 24751).as_deref(), Some("a (b) c"));
        assert_eq!(reader.thread(24700, 1), None);
    }

    /// A kernel without schedstats writes zeros, one without CONFIG_SCHED_DEBUG has no file `sched`.
    #[test]
    fn what_the_kernel_does_not_count_is_unknown() {
        let machine = machine().with(&[
            ("proc/24700/task/24751/schedstat", "0 0 0\n"),
            ("proc/24700/task/24751/sched", ""),
            ("proc/24700/task/24751/status", "Name:\tx\n"),
        ]);
        let found = machine.reader().thread(24700, 24751).unwrap();
        assert_eq!((found.times, found.migrations, found.voluntary), (None, None, None));
        assert_eq!(found.minor_faults, Some(7361));
    }

    /// Whatever stands there: no count is made up, and what can be read is.
    #[test]
    fn strange_texts_are_unknown_counts() {
        let machine = machine();
        for (file, texts) in [
            ("schedstat", ["", "12", "12 x 3", "-1 5 6", "18446744073709551616 1 1", "\0"]),
            (
                "status",
                [
                    "",
                    "voluntary_ctxt_switches",
                    "voluntary_ctxt_switches:\t-3",
                    "voluntary_ctxt_switches:\tmany\n",
                    "xvoluntary_ctxt_switches:\t4\n",
                    "nonvoluntary_ctxt_switches:\t4\n",
                ],
            ),
        ] {
            let machine = self::machine();
            for text in texts {
                machine.put(&format!("proc/24700/task/24751/{file}"), text.as_bytes());
                let found = machine.reader().thread(24700, 24751).unwrap();
                let times = machine.reader().thread_times(24700, 24751);
                assert_eq!(found.times, times, "{text:?}");
                assert_eq!(found.times.is_none(), file == "schedstat", "{text:?}");
                assert_eq!(found.voluntary.is_none(), file == "status", "{text:?}");
            }
        }
        machine.put("proc/24700/task/24751/schedstat", b"7 0");
        let times = machine.reader().thread_times(24700, 24751);
        assert_eq!(times, Some(SchedStat { run_ns: 7, wait_ns: 0 }));
    }

    /// A competitor that ended before the second look was as if it had not been.
    #[test]
    fn real_time_threads_that_ended_are_named() {
        let thread = |tid: u32, ran_ns| {
            let (name, policy) = ("x".to_owned(), "FIFO:50".to_owned());
            ((tid, 1), RealTimeThread { tid, name, policy, ran_ns, ended: false })
        };
        let before = RealTime::from([thread(1, 5), thread(2, 7_000_000), thread(3, 0)]);
        let now = RealTime::from([thread(1, 5), thread(3, 2 * SEEN_NS), thread(4, 3 * SEEN_NS)]);
        let found = real_time_since(&before, now);
        let found: Vec<_> = found.iter().map(|t| (t.tid, t.ran_ns, t.ended)).collect();
        assert_eq!(found, [(4, 3 * SEEN_NS, false), (3, 2 * SEEN_NS, false), (2, 0, true)]);
    }

    #[test]
    fn nonsense_is_no_thread() {
        let machine = machine();
        for nonsense in ["", "1 (x", "1 (x) ", "1 (x) S 1 2", ") (", "\0\0"] {
            machine.put("proc/24700/task/24751/stat", nonsense.as_bytes());
            assert_eq!(machine.reader().thread(24700, 24751), None, "{nonsense:?}");
        }
    }

    #[test]
    fn policies_are_those_of_the_manual() {
        let of = |number, priority| policy(Some(number), Some(priority), Some("7"));
        assert_eq!(of(0, 0), Some(Policy::Other(7)));
        assert_eq!(of(1, 80), Some(Policy::Fifo(80)));
        assert_eq!(of(2, 3), Some(Policy::RoundRobin(3)));
        assert_eq!(of(5, 0), Some(Policy::Idle));
        assert_eq!(of(6, 0), Some(Policy::Deadline));
        assert_eq!(of(7, 0), None, "SCHED_EXT");
    }

    /// The quota is that of the group in which the process is, not of our own.
    #[test]
    fn the_quota_of_another_process() {
        let machine = v2_container().with(&[
            ("proc/77/cgroup", "0::/libpod-1/app\n"),
            ("proc/78/cgroup", "0::/elsewhere\n"),
        ]);
        let stopped = machine.reader().quota_stopped(77).unwrap();
        assert_eq!((stopped.periods, stopped.ns), (4, Some(1_250_000)));
        assert_eq!(machine.reader().quota_stopped(78), None);
        assert_eq!(machine.reader().quota_stopped(79), None);
    }
}
