//! Undo actions as plain data, and their form in words.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::acts;
use crate::sched::Attributes;

/// Words of one written [`UndoAction`]: kind, numbers, CPUs, texts.
pub(super) const WORDS: usize = 80;
pub(super) type UndoWords = [u64; WORDS];

/// Where the numbers of a thread or process stand.
pub(super) const ID: usize = 1;
pub(super) const STARTED: usize = 2;
/// Where attributes begin: which, and what belongs to it.
pub(super) const ATTRIBUTES: usize = 3;
/// Of strays: behind their priority, the CPU that their group is kept to, from 1 on; 0 for none.
pub(super) const PIN: usize = ATTRIBUTES + 1;
/// Whether there are CPUs, and where their bits begin: one for each of 1024.
pub(super) const HAS_CPUS: usize = 9;
pub(super) const CPUS: usize = 10;
pub(super) const CPU_WORDS: usize = 16;
/// Where texts begin, each with a zero behind it.
pub(super) const TEXT: usize = CPUS + CPU_WORDS;

/// Kinds, in the order in which they are carried out.
pub(super) const WRITE: u64 = 1;
pub(super) const CONTINUE: u64 = 2;
pub(super) const COOKIE: u64 = 3;
pub(super) const MEMBERS: u64 = 4;
pub(super) const THREAD: u64 = 5;
pub(super) const MOVE: u64 = 6;
pub(super) const REMOVE: u64 = 7;
pub(super) const GROUP: u64 = 8;
pub(super) const STRAYS: u64 = 9;
pub(super) const UNHELD: u64 = 10;
pub(super) const LAST: u64 = UNHELD;

/// A thread or process that cannot be mistaken for a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskIdentity {
    pub id: u32,
    /// When it began, in clock ticks since boot (field 22 of `/proc/ID/stat`).
    pub started: u64,
}

impl TaskIdentity {
    /// The thread or process `id`, as it lives now. Takes no memory.
    ///
    /// # Errors
    /// It does not exist; a zombie counts as ended.
    pub fn of_task(id: u32) -> io::Result<TaskIdentity> {
        acts::started(id)
            .map(|started| TaskIdentity { id, started })
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// Whether it still lives. Takes no memory.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        acts::started(self.id) == Some(self.started)
    }
}

/// Something that can be put back by system calls alone. Whatever is gone counts as put back.
///
/// A guardian carries them out in the order of the variants, whatever the order in which they were
/// kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoAction {
    /// A text is written into an existing file, such as `0` into `cgroup.freeze`.
    Write {
        /// The file; its path is absolute.
        path: PathBuf,
        text: String,
    },
    Continue(TaskIdentity),
    /// All threads of a process, which any of them names, lose their core-scheduling cookies.
    Cookie(TaskIdentity),
    /// Every thread whose number stands in a file (`cgroup.threads`, `tasks`, `cgroup.procs`) leaves the
    /// real-time and deadline classes for `SCHED_OTHER`, and gets CPUs if some are given. Looked
    /// at again until none is found, for children of those found.
    Members {
        list: PathBuf,
        /// Their CPUs.
        cpus: Option<Vec<u32>>,
    },
    /// A thread gets its policy and its CPUs back.
    Thread {
        thread: TaskIdentity,
        attributes: Option<Attributes>,
        cpus: Option<Vec<u32>>,
    },
    /// Every process of one cgroup and of those below it goes to another: each number in the file `from`, and in those
    /// of its name in folders below, is written into the file `to` (both `cgroup.procs`, or `tasks` for single
    /// threads of version 1). Groups of other programs like this, whose names begin with `hourglass-`, are left alone.
    Move {
        /// Read from.
        from: PathBuf,
        /// Written to.
        to: PathBuf,
    },
    /// An empty folder, such as an instance of the trace, is removed; tried for up to 5 s while the kernel says
    /// that it is in use.
    Remove(PathBuf),
    /// A cgroup is removed, with those below it, deepest first; who is in them goes to the one above it. Tried for up to
    /// 5 s.
    RemoveGroup(PathBuf),
    /// Threads that left a group before they were found get `SCHED_OTHER` and their CPUs: those of its raised members'
    /// priorities, and those of timesharing priority that are kept to the CPU `pin` alone (they were born while their
    /// parent was lowered), in processes that descend from `root` or carry `mark` in their environment, and that are in
    /// no group whose name begins with `hourglass-`. Once the group is removed: who went back into it is found as well.
    Strays {
        /// The process for which the group was made.
        root: TaskIdentity,
        /// The priority of raised members; the one above counts as well.
        priority: u8,
        /// `NAME=VALUE`.
        mark: String,
        /// The CPU that the group is kept to.
        pin: Option<u32>,
        /// Their CPUs.
        cpus: Option<Vec<u32>>,
    },
    /// A file is removed that its holder has locked as a whole (`fcntl(2)`), unless a process holds it.
    RemoveUnheld(PathBuf),
}

impl UndoAction {
    /// The most bytes of its texts together, with a byte behind each.
    pub const LONGEST: usize = (WORDS - TEXT) * size_of::<u64>();

    pub(super) fn written(&self) -> io::Result<UndoWords> {
        let mut words = [0; WORDS];
        match self {
            UndoAction::Write { path, text } => {
                words[0] = WRITE;
                texts(&mut words, &[path.as_os_str().as_bytes(), text.as_bytes()])?;
            }
            UndoAction::Continue(process) => {
                words[0] = CONTINUE;
                life(&mut words, *process);
            }
            UndoAction::Cookie(process) => {
                words[0] = COOKIE;
                life(&mut words, *process);
            }
            UndoAction::Members { list, cpus } => {
                words[0] = MEMBERS;
                set(&mut words, cpus.as_deref());
                texts(&mut words, &[list.as_os_str().as_bytes()])?;
            }
            UndoAction::Thread { thread, attributes, cpus } => {
                words[0] = THREAD;
                life(&mut words, *thread);
                set(&mut words, cpus.as_deref());
                if let Some(attributes) = attributes {
                    words[ATTRIBUTES..HAS_CPUS].copy_from_slice(&numbers(*attributes));
                }
            }
            UndoAction::Move { from, to } => {
                words[0] = MOVE;
                texts(&mut words, &[from.as_os_str().as_bytes(), to.as_os_str().as_bytes()])?;
            }
            UndoAction::Strays { root, priority, mark, pin, cpus } => {
                words[0] = STRAYS;
                life(&mut words, *root);
                words[ATTRIBUTES] = u64::from(*priority);
                words[PIN] = pin.map_or(0, |cpu| u64::from(cpu) + 1);
                set(&mut words, cpus.as_deref());
                texts(&mut words, &[mark.as_bytes()])?;
            }
            UndoAction::Remove(path)
            | UndoAction::RemoveGroup(path)
            | UndoAction::RemoveUnheld(path) => {
                words[0] = match self {
                    UndoAction::Remove(_) => REMOVE,
                    UndoAction::RemoveGroup(_) => GROUP,
                    _ => UNHELD,
                };
                texts(&mut words, &[path.as_os_str().as_bytes()])?;
            }
        }
        Ok(words)
    }
}

impl UndoAction {
    /// Reads the action in a slot; `None` for words that this program does not write.
    pub(super) fn read(words: &UndoWords) -> Option<UndoAction> {
        let mut bytes = Vec::with_capacity((WORDS - TEXT) * 8);
        bytes.extend(words[TEXT..].iter().flat_map(|word| word.to_le_bytes()));
        let mut texts = bytes.split(|byte| *byte == 0).map(OsStr::from_bytes);
        let mut path = || texts.next().map(PathBuf::from).filter(|path| path.is_absolute());
        let life =
            || Some(TaskIdentity { id: u32::try_from(words[ID]).ok()?, started: words[STARTED] });
        let cpus = (words[HAS_CPUS] != 0).then(|| cpus(words).collect());
        Some(match words[0] {
            WRITE => {
                let path = path()?;
                UndoAction::Write { path, text: texts.next()?.to_str()?.to_owned() }
            }
            CONTINUE => UndoAction::Continue(life()?),
            COOKIE => UndoAction::Cookie(life()?),
            MEMBERS => UndoAction::Members { list: path()?, cpus },
            THREAD => UndoAction::Thread { thread: life()?, attributes: attributes(words), cpus },
            MOVE => UndoAction::Move { from: path()?, to: path()? },
            STRAYS => {
                let priority = u8::try_from(words[ATTRIBUTES]).ok()?;
                let mark = texts.next()?.to_str()?.to_owned();
                let pin = words[PIN].checked_sub(1).map(u32::try_from).transpose().ok()?;
                UndoAction::Strays { root: life()?, priority, mark, pin, cpus }
            }
            REMOVE => UndoAction::Remove(path()?),
            GROUP => UndoAction::RemoveGroup(path()?),
            UNHELD => UndoAction::RemoveUnheld(path()?),
            _ => return None,
        })
    }
}

fn life(words: &mut UndoWords, life: TaskIdentity) {
    words[ID] = u64::from(life.id);
    words[STARTED] = life.started;
}

fn set(words: &mut UndoWords, cpus: Option<&[u32]>) {
    let Some(cpus) = cpus else { return };
    words[HAS_CPUS] = 1;
    for cpu in cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CPU_WORDS * 64) {
        words[CPUS + cpu / 64] |= 1 << (cpu % 64);
    }
}

pub(super) fn cpus(words: &UndoWords) -> impl Iterator<Item = u32> {
    (0..CPU_WORDS as u32 * 64)
        .filter(|cpu| words[CPUS + *cpu as usize / 64] >> (*cpu % 64) & 1 == 1)
}

fn texts(words: &mut UndoWords, texts: &[&[u8]]) -> io::Result<()> {
    let length: usize = texts.iter().map(|text| text.len() + 1).sum();
    if length > UndoAction::LONGEST || texts.iter().any(|text| text.contains(&0)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = texts.iter().flat_map(|text| text.iter().copied().chain([0]));
    for (at, byte) in bytes.enumerate() {
        words[TEXT + at / 8] |= u64::from(byte) << (at % 8 * 8);
    }
    Ok(())
}

const OTHER: u64 = 1;
const BATCH: u64 = 2;
const IDLE: u64 = 3;
const FIFO: u64 = 4;
const ROUND_ROBIN: u64 = 5;
const DEADLINE: u64 = 6;

/// Which attributes, and what belongs to them; all zero for none.
fn numbers(attributes: Attributes) -> [u64; HAS_CPUS - ATTRIBUTES] {
    let nice = |nice: i8| u64::from(nice as u8);
    match attributes {
        Attributes::Other(value) => [OTHER, nice(value), 0, 0, 0, 0],
        Attributes::Batch(value) => [BATCH, nice(value), 0, 0, 0, 0],
        Attributes::Idle => [IDLE, 0, 0, 0, 0, 0],
        Attributes::Fifo(priority) => [FIFO, u64::from(priority), 0, 0, 0, 0],
        Attributes::RoundRobin(priority) => [ROUND_ROBIN, u64::from(priority), 0, 0, 0, 0],
        Attributes::Deadline { runtime_ns, deadline_ns, period_ns, reclaim, overrun_signal } => {
            let flags = [u64::from(reclaim), u64::from(overrun_signal)];
            [DEADLINE, runtime_ns, deadline_ns, period_ns, flags[0], flags[1]]
        }
    }
}

pub(super) fn attributes(words: &UndoWords) -> Option<Attributes> {
    let number = |index: usize| words[ATTRIBUTES + index];
    Some(match number(0) {
        OTHER => Attributes::Other(number(1) as u8 as i8),
        BATCH => Attributes::Batch(number(1) as u8 as i8),
        IDLE => Attributes::Idle,
        FIFO => Attributes::Fifo(number(1) as u8),
        ROUND_ROBIN => Attributes::RoundRobin(number(1) as u8),
        DEADLINE => Attributes::Deadline {
            runtime_ns: number(1),
            deadline_ns: number(2),
            period_ns: number(3),
            reclaim: number(4) != 0,
            overrun_signal: number(5) != 0,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_cpus_come_back() {
        let thread = TaskIdentity::of_task(std::process::id()).unwrap();
        let deadline = Attributes::Deadline {
            runtime_ns: 3_100_000,
            deadline_ns: 7_000_000,
            period_ns: 8_000_000,
            reclaim: true,
            overrun_signal: false,
        };
        for given in [
            Attributes::Other(-20),
            Attributes::Batch(19),
            Attributes::Idle,
            Attributes::Fifo(99),
            Attributes::RoundRobin(1),
            deadline,
        ] {
            let undo = UndoAction::Thread {
                thread,
                attributes: Some(given),
                cpus: Some(vec![0, 63, 64, 1023]),
            };
            let words = undo.written().unwrap();
            assert_eq!(attributes(&words), Some(given));
            assert_eq!(cpus(&words).collect::<Vec<_>>(), [0, 63, 64, 1023]);
            assert_eq!((words[ID], words[STARTED]), (u64::from(thread.id), thread.started));
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let life = TaskIdentity { id: 4711, started: 99 };
        let (one, two) = (PathBuf::from("/sys/one"), PathBuf::from("/sys/two"));
        for undo in [
            UndoAction::Write { path: one.clone(), text: "0".into() },
            UndoAction::Continue(life),
            UndoAction::Cookie(life),
            UndoAction::Members { list: one.clone(), cpus: Some(vec![3, 70]) },
            UndoAction::Thread { thread: life, attributes: Some(Attributes::Fifo(7)), cpus: None },
            UndoAction::Move { from: one.clone(), to: two.clone() },
            UndoAction::Strays {
                root: life,
                priority: 62,
                mark: "A=b".into(),
                pin: None,
                cpus: None,
            },
            UndoAction::Strays {
                root: life,
                priority: 1,
                mark: "A=b".into(),
                pin: Some(0),
                cpus: None,
            },
            UndoAction::Remove(one.clone()),
            UndoAction::RemoveGroup(two),
            UndoAction::RemoveUnheld(one),
        ] {
            assert_eq!(UndoAction::read(&undo.written().unwrap()), Some(undo));
        }
        // A damaged record names no files by chance.
        assert_eq!(UndoAction::read(&UndoAction::Remove("here".into()).written().unwrap()), None);
        assert_eq!(UndoAction::read(&[u64::MAX; WORDS]), None);
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused() {
        let fits = "x".repeat(UndoAction::LONGEST - 1);
        assert!(UndoAction::Remove(fits.clone().into()).written().is_ok());
        for undo in [
            UndoAction::Remove(format!("{fits}x").into()),
            UndoAction::Write { path: "/a".into(), text: "a\0b".into() },
        ] {
            assert_eq!(undo.written().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_life_is_not_that_of_another_with_its_number() {
        let own = TaskIdentity::of_task(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert!(!TaskIdentity { started: own.started + 1, ..own }.is_alive());
        assert_eq!(TaskIdentity::of_task(u32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
