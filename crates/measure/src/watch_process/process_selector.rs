//! Who is to be watched.

use std::collections::BTreeSet;

use hourglass_machine::facts::HostReader;
use hourglass_sys::pidfd::PidFd;

use super::command::CommandRequest;

/// Bytes of a thread's name that the kernel keeps.
const NAME_BYTES: usize = 15;
/// The search for names takes at most one part in `SHARE` of the time.
const SHARE: u64 = 50;
/// And it is not done more often than this.
const PAUSE_NS: u64 = 500_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSelector {
    /// Processes with all their threads; or threads, by their own numbers.
    Numbers(Vec<u32>),
    /// Every thread of this name, as `ps -L` and `top -H` show it.
    Named(String),
    /// A command that is started, with the processes that it starts.
    Command(CommandRequest),
}

impl ProcessSelector {
    pub(super) fn has_all_of(&self, pid: u32) -> bool {
        match self {
            ProcessSelector::Numbers(numbers) => numbers.contains(&pid),
            ProcessSelector::Named(_) => false,
            // At the first look, its own.
            ProcessSelector::Command(_) => true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessNotFound {
    #[error("no process {0}; it may have ended: ps -eLo pid,tid,comm lists those that there are")]
    Gone(u32),
    #[error(
        "process {0} is another user's, and this /proc hides those (hidepid); run it as root (sudo hourglass ...)"
    )]
    Hidden(u32),
    #[error("no thread is called '{0}'; ps -eLo pid,tid,comm lists those that there are")]
    NoName(String),
    #[error("{0} is this program itself; name another")]
    Own(u32),
}

#[derive(Debug)]
pub(super) struct Finder {
    pub(super) whom: ProcessSelector,
    due_ns: u64,
    /// The process of a command, and all that it started.
    tree: BTreeSet<u32>,
    /// The process of a command.
    pub(super) command: Option<u32>,
}

impl Finder {
    pub(super) fn new(whom: &ProcessSelector) -> Finder {
        Finder { whom: whom.clone(), due_ns: 0, tree: BTreeSet::new(), command: None }
    }

    /// Of a command whose process is `pid`.
    pub(super) fn of_command(whom: &ProcessSelector, pid: u32) -> Finder {
        Finder { tree: [pid].into(), command: Some(pid), ..Finder::new(whom) }
    }

    /// Whether everybody is there who is named.
    pub(super) fn find(&mut self, reader: &HostReader) -> Result<(), ProcessNotFound> {
        match &self.whom {
            ProcessSelector::Numbers(numbers) => {
                numbers.iter().try_for_each(|id| may_see(reader, *id))?;
            }
            ProcessSelector::Named(name) => {
                if self.named(reader, name).is_empty() {
                    return Err(ProcessNotFound::NoName(name.clone()));
                }
            }
            ProcessSelector::Command(_) => {}
        }
        Ok(())
    }

    /// Those who are there now, as process and thread. Names are not looked for each time.
    pub(super) fn again(&mut self, reader: &HostReader, now_ns: u64) -> Vec<(u32, u32)> {
        match &self.whom {
            ProcessSelector::Numbers(numbers) => {
                numbers.iter().flat_map(|id| threads(reader, *id)).collect()
            }
            ProcessSelector::Named(name) if now_ns >= self.due_ns => {
                let begin_ns = super::used_ns();
                let name = name.clone();
                let found = self.named(reader, &name);
                let took_ns = super::used_ns().saturating_sub(begin_ns);
                let pause_ns = PAUSE_NS.max(took_ns.saturating_mul(SHARE));
                self.due_ns = now_ns.saturating_add(pause_ns);
                found
            }
            ProcessSelector::Named(_) => Vec::new(),
            ProcessSelector::Command(_) => self.descendants(reader),
        }
    }

    /// The threads of the tree. A process whose parent has ended stays in it.
    fn descendants(&mut self, reader: &HostReader) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut next: Vec<u32> = self.tree.iter().copied().collect();
        while let Some(pid) = next.pop() {
            let threads = threads(reader, pid);
            if threads.is_empty() {
                self.tree.remove(&pid);
            }
            found.extend(threads);
            let children = reader.children_of(pid).into_iter();
            next.extend(children.filter(|child| self.tree.insert(*child)));
        }
        found
    }

    fn named(&self, reader: &HostReader, name: &str) -> Vec<(u32, u32)> {
        let own = std::process::id();
        let others = reader.processes().into_iter().filter(|pid| *pid != own);
        let threads =
            others.flat_map(|pid| reader.threads_of(pid).into_iter().map(move |tid| (pid, tid)));
        threads
            .filter(|(pid, tid)| {
                reader.thread_name(*pid, *tid).is_some_and(|found| is(&found, name))
            })
            .collect()
    }
}

/// Whether a thread of this name is meant: of a longer one the kernel keeps the beginning.
fn is(found: &str, wanted: &str) -> bool {
    found == wanted
        || (wanted.len() > NAME_BYTES
            && wanted.as_bytes().get(..NAME_BYTES) == Some(found.as_bytes()))
}

/// The threads of a process, or the thread itself if it is one of several.
fn threads(reader: &HostReader, id: u32) -> Vec<(u32, u32)> {
    match reader.process_of(id) {
        Some(pid) if pid == id => {
            reader.threads_of(pid).into_iter().map(|tid| (pid, tid)).collect()
        }
        Some(pid) => vec![(pid, id)],
        None => Vec::new(),
    }
}

fn may_see(reader: &HostReader, id: u32) -> Result<(), ProcessNotFound> {
    match reader.process_of(id) {
        Some(pid) if pid == std::process::id() => Err(ProcessNotFound::Own(id)),
        Some(_) => Ok(()),
        // The kernel gives out a descriptor of every process, also of one that /proc hides.
        None if PidFd::open(id).is_ok() => Err(ProcessNotFound::Hidden(id)),
        None => Err(ProcessNotFound::Gone(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_keeps() {
        assert!(is("data-loop.0", "data-loop.0"));
        assert!(is("a-name-that-is-", "a-name-that-is-too-long"));
        assert!(!is("data-loop.0", "data-loop"));
        assert!(!is("a-name-that-is-", "a-name-that-is"));
    }

    #[test]
    fn who_is_not_there_is_named() {
        let reader = HostReader::new(std::path::Path::new("/"));
        let find = |whom: ProcessSelector| Finder::new(&whom).find(&reader);
        let gone = u32::MAX >> 1;
        assert_eq!(find(ProcessSelector::Numbers(vec![gone])), Err(ProcessNotFound::Gone(gone)));
        let own = std::process::id();
        assert_eq!(find(ProcessSelector::Numbers(vec![own])), Err(ProcessNotFound::Own(own)));
        let name = "no thread has it".to_owned();
        assert_eq!(find(ProcessSelector::Named(name.clone())), Err(ProcessNotFound::NoName(name)));
    }
}
