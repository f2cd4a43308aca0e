//! Threads of a running process by the names that tasks have.
//!
//! Owns: which thread a name means. Must not: change anything about one.

use hourglass_documents::{Policy, thread_name};
use hourglass_sys::sched::{self, Attributes};

use crate::backend::members;

/// Names that a message lists at most.
const MOST_NAMES: usize = 12;

/// Why a name means no thread. The text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedThreadError {
    /// The process has no threads that can be seen.
    #[error("no process {0}; it may have ended")]
    Gone(u32),
    /// No thread has the name.
    #[error("no thread of process {pid} is called '{name}'; it has {}", listed(.threads))]
    NoThread {
        /// The process ID.
        pid: u32,
        /// The name.
        name: String,
        /// The names that there are.
        threads: Vec<String>,
    },
    /// Several threads have it.
    #[error(
        "{} threads of process {pid} are called '{name}': name the task by one of them, such as '{name}-{}'",
        .ids.len(), .ids.first().copied().unwrap_or_default()
    )]
    Several {
        /// The process ID.
        pid: u32,
        /// The name.
        name: String,
        /// The kernel's numbers of the threads.
        ids: Vec<u32>,
    },
    /// Two names mean one thread.
    #[error("'{one}' and '{other}' are both thread {tid} of process {pid}; leave one out")]
    Twice {
        /// The process ID.
        pid: u32,
        /// A name.
        one: String,
        /// The other name.
        other: String,
        /// The kernel's number of the thread.
        tid: u32,
    },
}

fn listed(threads: &[String]) -> String {
    let mut text = threads.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if threads.len() > MOST_NAMES {
        text.push_str(", ...");
    }
    text
}

/// The thread of a process for each name: the one that is called so, of several the one with the policy that is stated, or
/// `NAME-TID` for the thread `TID` of that name, as `hourglass model` writes where several tasks have one name. Where that number is
/// of another process of the program, the thread of that name.
///
/// # Errors
/// A name means no thread, or several; or two names mean one.
pub fn named_threads<'a>(
    pid: u32,
    names: impl IntoIterator<Item = (&'a str, Option<Policy>)>,
) -> Result<Vec<u32>, NamedThreadError> {
    let name = |tid: u32| Some((tid, members::text(&format!("/proc/{pid}/task/{tid}/comm"))?));
    let threads: Vec<(u32, String)> =
        members::threads_of(pid).into_iter().filter_map(name).collect();
    if threads.is_empty() {
        return Err(NamedThreadError::Gone(pid));
    }
    among(pid, names, &threads, policy_of)
}

fn policy_of(tid: u32) -> Option<Policy> {
    Some(match sched::read(tid).ok()?? {
        Attributes::Other(nice) => Policy::Other(nice),
        Attributes::Batch(_) => Policy::Batch,
        Attributes::Idle => Policy::Idle,
        Attributes::Fifo(priority) => Policy::Fifo(priority),
        Attributes::RoundRobin(priority) => Policy::RoundRobin(priority),
        Attributes::Deadline { .. } => Policy::Deadline,
    })
}

/// A name as `NAME-TID` without its number.
fn without_number(name: &str) -> Option<&str> {
    let (plain, number) = name.rsplit_once('-')?;
    number.parse::<u32>().is_ok().then_some(plain)
}

/// As `hourglass model` writes a name.
fn written(tid: u32, comm: &str) -> String {
    let name = thread_name(comm.strip_suffix('\n').unwrap_or(comm));
    if name.is_empty() { format!("thread-{tid}") } else { name }
}

fn among<'a>(
    pid: u32,
    names: impl IntoIterator<Item = (&'a str, Option<Policy>)>,
    threads: &[(u32, String)],
    policy_of: impl Fn(u32) -> Option<Policy>,
) -> Result<Vec<u32>, NamedThreadError> {
    let threads: Vec<(u32, String)> =
        threads.iter().map(|(tid, comm)| (*tid, written(*tid, comm))).collect();
    let mut found: Vec<(u32, &str)> = Vec::new();
    for (name, policy) in names {
        let numbered = |(tid, comm): &&(u32, String)| {
            name.strip_prefix(comm.as_str()).and_then(|rest| rest.strip_prefix('-'))
                == Some(tid.to_string().as_str())
        };
        let called = |name: &str| -> Vec<u32> {
            let all = threads.iter().filter(|(_, comm)| comm == name).map(|(tid, _)| *tid);
            let all: Vec<u32> = all.collect();
            let alike = all.iter().filter(|tid| policy.is_some() && policy_of(**tid) == policy);
            let alike: Vec<u32> = alike.copied().collect();
            if alike.len() == 1 { alike } else { all }
        };
        let exact = called(name);
        let tid = match exact[..] {
            [tid] => tid,
            [] => {
                let numbered = threads.iter().find(numbered).map(|(tid, _)| *tid);
                let other = || match called(without_number(name)?)[..] {
                    [tid] => Some(tid),
                    _ => None,
                };
                numbered.or_else(other).ok_or_else(|| {
                    let threads = threads.iter().map(|(_, comm)| comm.clone()).collect();
                    NamedThreadError::NoThread { pid, name: name.to_owned(), threads }
                })?
            }
            _ => return Err(NamedThreadError::Several { pid, name: name.to_owned(), ids: exact }),
        };
        if let Some((_, one)) = found.iter().find(|(other, _)| *other == tid) {
            let (one, other) = ((*one).to_owned(), name.to_owned());
            return Err(NamedThreadError::Twice { pid, one, other, tid });
        }
        found.push((tid, name));
    }
    Ok(found.into_iter().map(|(tid, _)| tid).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Result<Vec<u32>, String> {
        let threads = [(7, "player\n"), (8, "data-loop.0\n"), (9, "work\n"), (10, "work\n")];
        let threads = threads.map(|(tid, comm)| (tid, comm.to_owned()));
        let policy_of = |tid| Some(Policy::Fifo(if tid == 9 { 9 } else { 1 }));
        let names = names.iter().map(|name| match name.split_once('@') {
            Some((name, policy)) => (name, policy.parse().ok()),
            None => (*name, None),
        });
        among(7, names, &threads, policy_of).map_err(|error| error.to_string())
    }

    #[test]
    fn each_name_means_one_thread() {
        assert_eq!(found(&["data-loop.0", "work-10", "work-9"]), Ok(vec![8, 10, 9]));
        for (names, said) in [
            (
                vec!["player", "work"],
                "2 threads of process 7 are called 'work': name the task by one of them, such as 'work-9'",
            ),
            (
                vec!["audio"],
                "no thread of process 7 is called 'audio'; it has player, data-loop.0, work, work",
            ),
            (vec!["work-8"], "no thread of process 7 is called 'work-8'"),
            (vec!["work@FIFO:2"], "2 threads of process 7 are called 'work'"),
            (vec!["player-70", "player"], "'player-70' and 'player' are both thread 7"),
            (vec!["player", "player-7"], "'player' and 'player-7' are both thread 7"),
        ] {
            let why = found(&names).unwrap_err();
            assert!(why.starts_with(said), "{why}");
        }
    }

    /// The number of a task is of the process that was recorded, and a task has none where its other threads did not run.
    #[test]
    fn a_task_of_another_process_has_another_number() {
        assert_eq!(found(&["player-70", "data-loop.0-3"]), Ok(vec![7, 8]));
        assert_eq!(found(&["work@FIFO:9", "work-10"]), Ok(vec![9, 10]));
        assert_eq!(found(&["work-70@FIFO:9"]), Ok(vec![9]));
    }

    /// The bug: the file had `ab` for `a<TAB>b`, and here it was `a?b`; the blank one was no thread at all.
    #[test]
    fn a_name_is_what_the_model_writes_for_it() {
        let comms = ["a\tb\n", "\u{1b}[31mred\n", "x\u{fffd}y\n", "  \n", "two\nlines\n", " a\n"];
        for (tid, comm) in (7..).zip(comms) {
            let plain = comm.strip_suffix('\n').unwrap();
            let task = match thread_name(plain) {
                name if name.is_empty() => format!("thread-{tid}"),
                name => name,
            };
            let threads = [(tid, comm.to_owned()), (3, "other\n".to_owned())];
            assert_eq!(
                among(7, [(task.as_str(), None)], &threads, |_| None),
                Ok(vec![tid]),
                "{task}"
            );
            assert!(!task.contains(char::is_control), "{task:?}");
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_said() {
        let none = named_threads(u32::MAX, [("a", None)]).unwrap_err();
        assert_eq!(none.to_string(), format!("no process {}; it may have ended", u32::MAX));
    }
}
