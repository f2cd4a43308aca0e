//! Threads and processes that run already.

use std::io;

use hourglass_documents::thread_name;
use hourglass_sys::guardian::TaskIdentity;
use hourglass_sys::pidfd::PidFd;

use crate::backend::{ActiveReservation, members};
use crate::ownership::NotOwned;
use crate::target::Target;

/// The target as the user selects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSelector {
    /// A process by its number.
    Process(u32),
    /// A thread by its number.
    Thread(u32),
    /// A thread by its name, as `ps -L` and `top -H` show it.
    Named(String),
}

impl TargetSelector {
    /// A thread by what the user wrote: a number, or a name.
    pub fn thread(text: &str) -> TargetSelector {
        text.parse().map_or_else(|_| TargetSelector::Named(text.to_owned()), TargetSelector::Thread)
    }
}

/// Why a thread or process is not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No thread or process has this number, or it has just ended.
    #[error("no {what} {id}; it may have ended")]
    Gone {
        /// Thread or process.
        what: &'static str,
        /// Its process or thread ID.
        id: u32,
    },
    /// No thread has this name.
    #[error("no thread is called '{0}'; see ps -eLo tid,comm")]
    NoName(String),
    /// There are several of this name.
    #[error("{} threads are called '{name}' ({}); give a number", .ids.len(), list(.ids))]
    Several {
        /// The ambiguous name.
        name: String,
        /// Their numbers.
        ids: Vec<u32>,
    },
    /// It is a thread of the kernel.
    #[error("{0} is a thread of the kernel, which is not to be reserved for")]
    Kernel(u32),
    /// It is another user's.
    #[error(transparent)]
    Foreign(#[from] NotOwned),
    /// It is this program, or what keeps it.
    #[error("{0} is this program itself")]
    Own(u32),
    /// It cannot be watched.
    #[error("{id} cannot be watched: {source}")]
    Unwatched {
        /// Its process or thread ID.
        id: u32,
        /// Why.
        source: io::Error,
    },
}

fn list(ids: &[u32]) -> String {
    const MOST: usize = 8;
    let mut text = ids.iter().take(MOST).map(u32::to_string).collect::<Vec<_>>().join(", ");
    if ids.len() > MOST {
        text.push_str(", ...");
    }
    text
}

/// A thread or process that runs already, watched for its end.
#[derive(Debug)]
pub(crate) struct AttachedTarget {
    target: Target,
    name: String,
    life: TaskIdentity,
    file: Option<PidFd>,
}

impl AttachedTarget {
    /// Finds it. Nothing about it is changed.
    pub(crate) fn find(whom: &TargetSelector) -> Result<AttachedTarget, AttachError> {
        let (id, thread) = match whom {
            TargetSelector::Process(pid) => (*pid, false),
            TargetSelector::Thread(tid) => (*tid, true),
            TargetSelector::Named(name) => (named(name)?, true),
        };
        let what = if thread { "thread" } else { "process" };
        let gone = AttachError::Gone { what, id };
        let Ok(life) = TaskIdentity::of_task(id) else { return Err(gone) };
        let Some(status) = Status::read(id) else { return Err(gone) };
        if !thread && status.process != id {
            // A thread other than the first has a folder under /proc as well.
            return Err(gone);
        }
        if status.process == std::process::id() {
            return Err(AttachError::Own(id));
        }
        if status.kernel {
            return Err(AttachError::Kernel(id));
        }
        if let Some(foreign) = NotOwned::find(id) {
            return Err(foreign.into());
        }
        let file = match thread {
            // Before Linux 6.9 threads are looked at in turn.
            true => PidFd::of_thread(id).ok(),
            false => Some(PidFd::open(id).map_err(|source| AttachError::Unwatched { id, source })?),
        };
        if !life.is_alive() {
            return Err(gone);
        }
        let target = if thread { Target::Thread(id) } else { Target::Process(id) };
        Ok(AttachedTarget { target, name: status.name, life, file })
    }

    /// Checks that what was just reserved is for this target. Its number may have passed to another task before the
    /// kernel got it: then the reservation is undone.
    pub(crate) fn confirm(&self, reserved: &mut dyn ActiveReservation) -> Result<(), AttachError> {
        if self.life.is_alive() {
            return Ok(());
        }
        // The task that has the number now gets its former settings back, as far as it still exists.
        let _ = reserved.release();
        Err(match self.target {
            Target::Thread(id) => AttachError::Gone { what: "thread", id },
            Target::Process(id) => AttachError::Gone { what: "process", id },
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn life(&self) -> TaskIdentity {
        self.life
    }

    /// A descriptor that becomes readable when it ends; `None` where the kernel has none for threads.
    pub(crate) fn file(&self) -> Option<&PidFd> {
        self.file.as_ref()
    }
}

struct Status {
    name: String,
    process: u32,
    kernel: bool,
}

impl Status {
    fn read(id: u32) -> Option<Status> {
        let text = members::text(&format!("/proc/{id}/status"))?;
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        Some(Status {
            name: field("Name:")?,
            process: field("Tgid:")?.parse().ok()?,
            // Since Linux 6.8; before that, only what has no memory of its own is the kernel's.
            kernel: field("Kthread:").map_or_else(|| field("VmSize:").is_none(), |is| is == "1"),
        })
    }
}

/// The only thread of this name, among those that are the caller's to reserve for if there are any: a user who gives a
/// thread the name of another's thread cannot block it.
fn named(name: &str) -> Result<u32, AttachError> {
    let own = std::process::id();
    let mut ids: Vec<u32> = members::all_processes()
        .into_iter()
        .filter(|pid| *pid != own)
        .flat_map(members::threads_of)
        .filter(|tid| {
            members::text(&format!("/proc/{tid}/comm")).is_some_and(|comm| {
                let comm = comm.strip_suffix('\n').unwrap_or(&comm);
                comm == name || thread_name(comm) == name
            })
        })
        .collect();
    ids.sort_unstable();
    let own: Vec<u32> = ids.iter().copied().filter(|tid| NotOwned::find(*tid).is_none()).collect();
    if !own.is_empty() {
        ids = own;
    }
    match ids[..] {
        [] => Err(AttachError::NoName(name.to_owned())),
        [id] => Ok(id),
        _ => Err(AttachError::Several { name: name.to_owned(), ids }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Program, soon};
    use std::process::Command;

    /// A program of a name, as the shell's `printf` writes it.
    fn other(printed: &str, name: &str) -> Program {
        let mut command = Command::new("sh");
        // The shell itself writes, so that the name is its own.
        command.args(["-c", &format!("printf '{printed}' > /proc/$$/comm; read nothing")]);
        let child = Program::spawn(command.stdin(std::process::Stdio::piped()));
        let path = format!("/proc/{}/comm", child.pid());
        soon("it has its name", || members::text(&path).is_some_and(|comm| comm.trim() == name));
        child
    }

    #[test]
    fn threads_are_found_by_number_and_by_name() {
        let name = format!("hg-{}", std::process::id());
        let one = other(&name, &name);
        let id = one.pid();
        let by_name = AttachedTarget::find(&TargetSelector::thread(&name)).unwrap();
        assert_eq!(by_name.target(), &Target::Thread(id));
        assert_eq!(by_name.name(), name);
        let by_number = AttachedTarget::find(&TargetSelector::thread(&id.to_string())).unwrap();
        assert_eq!(by_number.life(), by_name.life());
        assert_eq!(
            AttachedTarget::find(&TargetSelector::Process(id)).unwrap().target(),
            &Target::Process(id)
        );
        let two = other(&name, &name);
        let several = AttachedTarget::find(&TargetSelector::thread(&name)).unwrap_err().to_string();
        let mut ids = [id, two.pid()];
        ids.sort_unstable();
        let wanted =
            format!("2 threads are called '{name}' ({}, {}); give a number", ids[0], ids[1]);
        assert_eq!(several, wanted);
    }

    /// The bug: a name that is not UTF-8 made the kernel's files of the process unreadable, as if it had ended.
    #[test]
    fn a_name_may_be_any_bytes() {
        let own = std::process::id();
        let child = other(&format!("h\\377\\t{own}"), &format!("h\u{fffd}\t{own}"));
        let id = child.pid();
        assert_eq!((members::process_of(id), members::parent_of(id)), (Some(id), Some(own)));
        let by_name = TargetSelector::thread(&format!("h\u{fffd}?{own}"));
        assert_eq!(AttachedTarget::find(&by_name).unwrap().target(), &Target::Thread(id));
        assert!(AttachedTarget::find(&TargetSelector::Process(id)).is_ok());
    }

    #[test]
    fn no_other_process_is_attached_to() {
        let id = other("hg-ended", "hg-ended").pid();
        for (whom, wanted) in [
            (TargetSelector::Process(id), format!("no process {id}; it may have ended")),
            (TargetSelector::Thread(id), format!("no thread {id}; it may have ended")),
            (
                TargetSelector::Named("no such".into()),
                "no thread is called 'no such'; see ps".into(),
            ),
            (TargetSelector::Process(std::process::id()), "is this program itself".into()),
        ] {
            let said = AttachedTarget::find(&whom).unwrap_err().to_string();
            assert!(said.contains(&wanted), "{said}");
        }
    }

    #[derive(Debug, Default)]
    struct FakeReservation {
        released: bool,
    }

    impl ActiveReservation for FakeReservation {
        fn spent(&mut self) -> crate::supply::Spent {
            crate::supply::Spent::default()
        }

        fn supply(&mut self) -> crate::supply::Supply {
            crate::supply::Supply::default()
        }

        fn release(&mut self) -> io::Result<()> {
            self.released = true;
            Ok(())
        }
    }

    /// The bug: a number that another got between finding and reserving was reserved for, and stayed so.
    #[test]
    fn what_was_reserved_for_another_of_its_number_is_undone() {
        let one = other("hg-reused", "hg-reused");
        let adopted = AttachedTarget::find(&TargetSelector::Process(one.pid())).unwrap();
        let mut fake = FakeReservation::default();
        adopted.confirm(&mut fake).unwrap();
        assert!(!fake.released);
        // The number is the same, and the one that has it now began later.
        let life = TaskIdentity { started: adopted.life.started - 1, ..adopted.life };
        let before = AttachedTarget { life, ..adopted };
        let said = before.confirm(&mut fake).unwrap_err().to_string();
        assert_eq!(said, format!("no process {}; it may have ended", one.pid()));
        assert!(fake.released);
        drop(one);
        let mut fake = FakeReservation::default();
        assert!(before.confirm(&mut fake).is_err() && fake.released);
    }
}
