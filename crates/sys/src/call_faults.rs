//! System calls of another program that fail, or at which it is killed, for tests.
//!
//! A program is run under `ptrace(2)`, which reaches every system call of its threads and of the processes that it forks,
//! those of the standard library too, and puts nothing into the program. A process that becomes another program (`execve`)
//! is left to itself.
//!
//! Owns: which errors are tried of which call ([`ERRORS`]). Must not: know what must hold afterwards.

mod calls;

use std::collections::HashMap;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub use calls::{CHANGES_NOTHING, ERRORS, FIRST_OF_RUNTIME};

use crate::{checked_long, thread};

/// A call that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunCall {
    /// The process, in the order in which they were begun: 0 is the program itself.
    pub process: usize,
    /// Its number (`SYS_...`).
    pub number: i64,
}

/// What befalls the program. Calls are counted from 0, in the order in which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// Nothing.
    None,
    /// The call of this number that is the `nth` of its kind is not carried out, and gives `errno`.
    Fails { number: i64, nth: usize, errno: i32 },
    /// The process gets SIGKILL where its `nth` call begins, which is not carried out. The other processes do not.
    Killed { process: usize, nth: usize },
    /// As [`CallFault::Killed`] for the program itself, and the processes that it has forked are stopped (SIGSTOP) since
    /// they first waited (`poll`).
    KilledAlone { nth: usize },
    /// As [`CallFault::Killed`] for the program itself, at its call `killed`. Of the calls that processes begin afterwards
    /// which it has forked, number `others` kills the process that begins it.
    Orphaned { killed: usize, others: usize },
    /// As [`CallFault::Orphaned`], where each of them is killed at the call that is its own number `own` afterwards.
    AllKilled { killed: usize, own: usize },
}

/// A program that has ended.
#[derive(Debug)]
pub struct FaultedProgram {
    /// How it ended; by SIGKILL also where it took longer than its limit.
    pub status: ExitStatus,
    /// Its calls, until the fault.
    pub calls: Vec<BegunCall>,
    /// Whether the call was reached.
    pub is_hit: bool,
    /// Whether it took longer than its limit.
    pub is_late: bool,
    /// Its processes, as they are numbered.
    pub pids: Vec<u32>,
}

/// Runs a program until it ends, for `limit` at most. Whatever it has forked may still run then; not so after
/// [`CallFault::AllKilled`], or [`CallFault::Orphaned`] whose second call was not reached.
///
/// # Errors
/// The program cannot be started; EPERM where `ptrace` is not permitted.
pub fn run(command: &mut Command, fault: CallFault, limit: Duration) -> io::Result<FaultedProgram> {
    // A thread of its own: what it traces goes on by itself once it has ended.
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(command, fault, limit));
        tracer.join().unwrap_or_else(|_| Err(io::Error::other("the tracer ended")))
    })
}

fn trace(command: &mut Command, fault: CallFault, limit: Duration) -> io::Result<FaultedProgram> {
    // SAFETY: the child makes one system call that takes no memory.
    unsafe { command.pre_exec(|| request(libc::PTRACE_TRACEME, 0, 0).map(drop)) };
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut tracer = Tracer::new(child, fault);
    // It stops where it has become its program.
    wait(pid)?;
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SETOPTIONS, pid, options as usize)?;
    tracer.go_on(pid, 0);
    let (ended, watched) = channel::<()>();
    let own = thread::id();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || ends_late((pid, own), &watched, limit));
        let status = tracer.follow(pid);
        drop(ended);
        let is_late = watch.join().unwrap_or(false);
        let Tracer { calls, is_hit, pids, .. } = tracer;
        let pids = pids.into_iter().map(libc::pid_t::unsigned_abs).collect();
        Ok(FaultedProgram { status: status?, calls, is_hit, is_late, pids })
    })
}

/// Kills a process that is not said to have ended within `limit`, then whatever else its tracer follows; whether it was
/// late.
fn ends_late((pid, tracer): (libc::pid_t, u32), ended: &Receiver<()>, limit: Duration) -> bool {
    let lasts = |limit| ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    let is_late = lasts(limit);
    if is_late && is_traced(pid, tracer) {
        kill(pid);
    }
    while is_late && lasts(Duration::from_secs(1)) {
        let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
        pids.filter(|pid| is_traced(*pid, tracer)).for_each(kill);
    }
    is_late
}

/// Whether this thread follows that process, which keeps its number then.
fn is_traced(pid: libc::pid_t, tracer: u32) -> bool {
    status_line(pid, "TracerPid:")
        .is_some_and(|traced| traced == libc::pid_t::try_from(tracer).unwrap_or(-1))
}

/// A number that the kernel tells of a thread.
fn status_line(tid: libc::pid_t, name: &str) -> Option<libc::pid_t> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

fn kill(pid: libc::pid_t) {
    // SAFETY: takes its arguments by value.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn request(what: libc::c_uint, pid: libc::pid_t, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: the requests used here take numbers, or an address where the kernel writes what belongs there.
    checked_long(unsafe { libc::ptrace(what, pid, 0usize, data) })
}

/// Waits for a thread that this one traces, or for any (-1): which one, and its state.
fn wait(pid: libc::pid_t) -> io::Result<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: writes to a live local. Children of other threads of this process are not waited for.
    let found = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    crate::checked(found).map(|found| (found, status))
}

/// A thread has begun another one, or a process.
const BEGINS: [libc::c_int; 3] =
    [libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK, libc::PTRACE_EVENT_CLONE];

struct Tracer {
    fault: CallFault,
    calls: Vec<BegunCall>,
    is_hit: bool,
    /// Whether the program was killed, and its orphans are followed.
    is_orphaned: bool,
    /// How many calls each process has begun; since the program was killed, where its orphans are followed.
    begun: Vec<usize>,
    pids: Vec<libc::pid_t>,
    threads: HashMap<libc::pid_t, TracedThread>,
    /// Not waited for but here.
    _child: Child,
}

#[derive(Clone, Copy, Default)]
struct TracedThread {
    process: usize,
    /// Whether it is inside a call.
    inside: bool,
    /// What the call gives that was not carried out.
    answer: Option<i32>,
}

impl Tracer {
    fn new(child: Child, fault: CallFault) -> Tracer {
        let mut tracer = Tracer {
            fault,
            calls: Vec::new(),
            is_hit: false,
            is_orphaned: false,
            begun: Vec::new(),
            pids: Vec::new(),
            threads: HashMap::new(),
            _child: child,
        };
        let pid = tracer._child.id() as libc::pid_t;
        tracer.process_of(pid);
        tracer.threads.insert(pid, TracedThread::default());
        tracer
    }

    /// The number of the process to which a thread belongs.
    fn process_of(&mut self, tid: libc::pid_t) -> usize {
        let pid = status_line(tid, "Tgid:").unwrap_or(tid);
        self.pids.iter().position(|known| *known == pid).unwrap_or_else(|| {
            self.pids.push(pid);
            self.begun.push(0);
            self.pids.len() - 1
        })
    }

    /// Follows all until the program has ended, and its orphans until they have ended or are left.
    fn follow(&mut self, program: libc::pid_t) -> io::Result<ExitStatus> {
        let mut ended = None;
        loop {
            let (tid, status) = match (wait(-1), ended) {
                (Err(error), Some(status)) if error.raw_os_error() == Some(libc::ECHILD) => {
                    return Ok(status);
                }
                (waited, _) => waited?,
            };
            if !libc::WIFSTOPPED(status) {
                self.threads.remove(&tid);
                if tid == program {
                    ended = Some(ExitStatus::from_raw(status));
                }
                match ended {
                    Some(status) if !self.is_orphaned => {
                        self.leave_the_new();
                        return Ok(status);
                    }
                    _ => continue,
                }
            }
            let known = self.threads.contains_key(&tid);
            if !known {
                let process = self.process_of(tid);
                self.threads.insert(tid, TracedThread { process, ..TracedThread::default() });
            }
            let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
            if event == libc::PTRACE_EVENT_EXEC {
                self.leave(tid, 0);
            } else if signal == libc::SIGTRAP | 0x80 {
                self.at_call(tid)?;
            } else if BEGINS.contains(&event) {
                // In the order in which they are begun.
                let mut begun: libc::c_ulong = 0;
                let message = (&raw mut begun) as usize;
                if request(libc::PTRACE_GETEVENTMSG, tid, message).is_ok() {
                    self.process_of(begun as libc::pid_t);
                }
                self.go_on(tid, 0);
            } else if event != 0 || (!known && signal == libc::SIGSTOP) {
                self.go_on(tid, 0);
            } else {
                self.go_on(tid, signal);
            }
        }
    }

    /// Leaves processes that are about to stop for the first time, and would stay so without this thread.
    fn leave_the_new(&mut self) {
        const LOOKS: u32 = 5;
        let flags = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
        for _ in 0..LOOKS {
            let mut status = 0;
            // SAFETY: writes to a live local.
            while let tid @ 1.. = unsafe { libc::waitpid(-1, &raw mut status, flags) } {
                self.leave(tid, 0);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A thread begins or ends a call.
    fn at_call(&mut self, tid: libc::pid_t) -> io::Result<()> {
        let mut thread = self.threads.get(&tid).copied().unwrap_or_default();
        thread.inside = !thread.inside;
        if let (false, Some(errno)) = (thread.inside, thread.answer.take()) {
            change(tid, |registers| registers.rax = i64::from(-errno).cast_unsigned())?;
        }
        let mut waits = false;
        let is_over =
            |tracer: &Tracer| tracer.is_hit && !matches!(tracer.fault, CallFault::AllKilled { .. });
        if thread.inside && !is_over(self) {
            let Ok(registers) = registers(tid) else {
                self.go_on(tid, 0);
                return Ok(());
            };
            let number = registers.orig_rax.cast_signed();
            waits = number == libc::SYS_poll;
            thread.answer = self.begins(tid, BegunCall { process: thread.process, number });
            if thread.answer.is_some() {
                change(tid, |registers| registers.orig_rax = u64::MAX)?;
            }
        }
        self.threads.insert(tid, thread);
        if waits && thread.process != 0 && matches!(self.fault, CallFault::KilledAlone { .. }) {
            // Stopped from here on, as by another program.
            self.leave(tid, libc::SIGSTOP);
        } else if is_over(self) && thread.answer.is_none() {
            // The rest is of no interest.
            self.leave(tid, 0);
        } else {
            self.go_on(tid, 0);
        }
        Ok(())
    }

    /// Counts a call; what it is to give, if it is the one that fails.
    fn begins(&mut self, tid: libc::pid_t, call: BegunCall) -> Option<i32> {
        self.calls.push(call);
        let place = self.begun[call.process];
        self.begun[call.process] += 1;
        match self.fault {
            CallFault::Fails { number, nth, errno } if number == call.number => {
                let before = self.calls.iter().filter(|one| one.number == number).count();
                self.is_hit = before == nth + 1;
                return self.is_hit.then_some(errno);
            }
            CallFault::Killed { process, nth } if (process, nth) == (call.process, place) => {
                self.is_hit = true;
            }
            CallFault::KilledAlone { nth } if (0, nth) == (call.process, place) => {
                self.is_hit = true;
            }
            CallFault::Orphaned { killed, .. } | CallFault::AllKilled { killed, .. }
                if !self.is_orphaned && (0, killed) == (call.process, place) =>
            {
                self.is_orphaned = true;
                self.begun.fill(0);
            }
            CallFault::Orphaned { others, .. }
                if self.is_orphaned
                    && call.process != 0
                    && self.begun[1..].iter().sum::<usize>() == others + 1 =>
            {
                self.is_hit = true;
            }
            CallFault::AllKilled { own, .. }
                if self.is_orphaned && call.process != 0 && place == own =>
            {
                self.is_hit = true;
            }
            _ => return None,
        }
        // It does not begin the call: it ends where it stands.
        kill(self.pids[self.threads.get(&tid).map_or(0, |thread| thread.process)]);
        None
    }

    fn go_on(&mut self, tid: libc::pid_t, signal: libc::c_int) {
        // It may have been killed meanwhile; then that is heard of.
        let _ = request(libc::PTRACE_SYSCALL, tid, signal as usize);
    }

    fn leave(&mut self, tid: libc::pid_t, signal: libc::c_int) {
        let _ = request(libc::PTRACE_DETACH, tid, signal as usize);
        self.threads.remove(&tid);
    }
}

fn registers(tid: libc::pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: an all-zero structure of numbers is a valid one.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    request(libc::PTRACE_GETREGS, tid, (&raw mut registers) as usize)?;
    Ok(registers)
}

fn change(tid: libc::pid_t, by: impl FnOnce(&mut libc::user_regs_struct)) -> io::Result<()> {
    let Ok(mut registers) = registers(tid) else { return Ok(()) };
    by(&mut registers);
    // It may have been killed meanwhile.
    let _ = request(libc::PTRACE_SETREGS, tid, (&raw const registers) as usize);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn cat(fault: CallFault) -> io::Result<FaultedProgram> {
        run(
            Command::new("cat").arg("/proc/self/maps").stdout(std::process::Stdio::null()),
            fault,
            LIMIT,
        )
    }

    /// The bare program first; then each of its calls is one at which it can be killed, and its reads fail as they are
    /// told to.
    #[test]
    fn calls_are_counted_fail_and_kill() {
        let whole = match cat(CallFault::None) {
            Err(error) => {
                return hourglass_skip::skip(hourglass_skip::Requirement::program("strace"), error);
            }
            Ok(whole) => whole,
        };
        assert!(whole.status.success() && !whole.is_hit && !whole.is_late, "{whole:?}");
        let reads = whole.calls.iter().filter(|call| call.number == libc::SYS_read).count();
        assert!(reads > 2, "{whole:?}");
        let fault = CallFault::Fails { number: libc::SYS_read, nth: reads - 1, errno: libc::EIO };
        let failed = cat(fault).unwrap();
        assert!(failed.is_hit && failed.status.code() == Some(1), "{failed:?}");
        let killed = cat(CallFault::Killed { process: 0, nth: whole.calls.len() / 2 }).unwrap();
        assert!(killed.is_hit && killed.status.signal() == Some(libc::SIGKILL), "{killed:?}");
        assert_eq!(killed.calls.len(), whole.calls.len() / 2 + 1);
        let mut sleep = Command::new("sleep");
        let late = run(sleep.arg("60"), CallFault::None, Duration::from_millis(300)).unwrap();
        assert!(late.is_late && late.status.signal() == Some(libc::SIGKILL), "{late:?}");
    }

    /// A shell is killed where it waits for a subshell, which writes; then that is killed at a call of its own.
    #[test]
    fn orphans_are_killed_at_their_calls() {
        let script = "(i=0; while [ $i -lt 1000 ]; do echo $((i+=1)); done) & wait";
        let shell = |fault| {
            let mut shell = Command::new("sh");
            run(shell.args(["-c", script]).stdout(std::process::Stdio::null()), fault, LIMIT)
        };
        let whole = match shell(CallFault::None) {
            Err(error) => {
                return hourglass_skip::skip(hourglass_skip::Requirement::program("strace"), error);
            }
            Ok(whole) => whole,
        };
        let own = whole.calls.iter().filter(|call| call.process == 0);
        let killed = own.clone().position(|call| call.number == libc::SYS_wait4).unwrap();
        let others = 100;
        for (fault, is_hit) in [
            (CallFault::Orphaned { killed, others }, true),
            (CallFault::AllKilled { killed, own: others }, true),
            (CallFault::Orphaned { killed, others: 10_000 }, false),
        ] {
            let ended = shell(fault).unwrap();
            assert!(ended.status.signal() == Some(libc::SIGKILL) && !ended.is_late, "{ended:?}");
            assert_eq!((ended.is_hit, ended.pids.len()), (is_hit, 2), "{fault:?}");
            let at = |call: &BegunCall| call.process == 0;
            let last = ended.calls.iter().rposition(at).unwrap();
            let after = ended.calls.len() - last - 1;
            assert!(
                if is_hit { after == others + 1 } else { after > others },
                "{after}: {fault:?}"
            );
        }
    }
}
