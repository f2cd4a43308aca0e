//! A reservation inside another one, which is refused.
//!
//! A user-space reserve raises, lowers and suspends all that its program makes. A `hourglass` in it would have its own
//! keeper and guardian lowered and suspended as work, and its reserved threads given another policy than its own: it
//! could promise nothing, and enforce nothing. So a process inside a reserve is refused, and so is a reservation for a
//! program that holds one itself.
//!
//! Owns: finding out. A reserve is known by its control group, whose name has its holder's number, or by the mark that
//! its command has in its environment; its holder by the thread that keeps it. A program that imitates these is refused
//! a reservation, and gains nothing. Must not: change anything.

use std::fs;

use crate::admission::{Obstacle, Refusal};
use crate::backend::{BackendKind, members, target_group, user};
use crate::command::RESERVED_BY;
use crate::target::Target;

/// Why a reservation by `kind` for `target` would be inside another one, or around one; `None` if it would not.
pub(crate) fn refusal(kind: BackendKind, target: &Target) -> Option<Refusal> {
    let first = target.id();
    let own = std::process::id();
    let around = || match target {
        Target::Process(root) => {
            members::tree(*root).into_iter().find(|pid| *pid != own && holds_reservation(*pid))
        }
        Target::Thread(_) => None,
    };
    let (cause, remedy) = if let Some(holder) = holder_of(own).or_else(by_mark) {
        (
            format!(
                "this command runs inside the reservation that hourglass (process {holder}) keeps, which takes its \
                 threads for work"
            ),
            "start it outside: from another shell, or without that reservation".to_owned(),
        )
    } else if let Some(holder) = holder_of(first) {
        (
            format!("{first} has a reservation already, which hourglass (process {holder}) keeps"),
            format!("end that one first: kill -INT {holder}"),
        )
    } else {
        let holder = around()?;
        (
            format!(
                "hourglass (process {holder}), which keeps a reservation, would be part of this one"
            ),
            format!("name the program itself, or end that reservation first: kill -INT {holder}"),
        )
    };
    Some(Refusal { backend: kind, id: Obstacle::Nested, errno: None, cause, remedy })
}

/// The holder of the reserve in whose control group a thread is, in any hierarchy.
fn holder_of(tid: u32) -> Option<u32> {
    let groups = fs::read_to_string(format!("/proc/{tid}/cgroup")).ok()?;
    let own = std::process::id();
    holders(&groups).into_iter().find(|holder| *holder != own && holds_reservation(*holder))
}

fn holders(groups: &str) -> Vec<u32> {
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.flat_map(|path| path.split('/')).filter_map(target_group::holder).collect()
}

/// The process that started this one under a reservation without a group.
fn by_mark() -> Option<u32> {
    let holder: u32 = std::env::var(RESERVED_BY).ok()?.parse().ok()?;
    let mut ancestor = std::process::id();
    // A chain of parents ends; a number that is used again can close it to a ring.
    for _ in 0..1_000 {
        ancestor = members::parent_of(ancestor).filter(|parent| *parent > 1)?;
        if ancestor == holder {
            return holds_reservation(holder).then_some(holder);
        }
    }
    None
}

/// Whether a process has a thread that keeps a reserve.
pub(super) fn holds_reservation(pid: u32) -> bool {
    let name = |tid: u32| fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
    members::threads_of(pid)
        .into_iter()
        .any(|tid| name(tid).is_ok_and(|name| name.trim_end() == user::KEEPER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Program;

    #[test]
    fn groups_of_a_reserve_name_its_holder() {
        let groups = "4:freezer:/hourglass-12-0\n1:name=systemd:/user/a:b\n0::/x/hourglass-4711-3/hourglass-9-1/y\n";
        assert_eq!(holders(groups), [12, 4_711, 9]);
        let others = "0::/hourglass-/hourglass-x-1/hourglass-5/hourglass/hourglass--1/hourglass-1-x/hourglass.slice/a-1-2\n";
        assert!(holders(others).is_empty());
    }

    /// No process keeps a reserve on the test host; other tests of this process do.
    #[test]
    fn an_ordinary_process_is_not_nested() {
        let child = Program::sleeping();
        assert!(!holds_reservation(child.pid()));
        assert_eq!(refusal(BackendKind::User, &Target::Thread(child.pid())), None);
    }

    /// A thread of that name makes a process a holder, as the thread of the keeper does.
    #[test]
    fn a_holder_is_known_by_its_keeper() {
        let (tell, receiver) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let life = move || {
            ready.send(()).unwrap();
            let _ = receiver.recv();
        };
        let keeper = std::thread::Builder::new().name(user::KEEPER.to_owned()).spawn(life).unwrap();
        is_ready.recv().unwrap();
        let found = holds_reservation(std::process::id());
        drop(tell);
        keeper.join().unwrap();
        assert!(found);
    }
}
