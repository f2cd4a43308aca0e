//! Starting another program so that it waits at a gate, and waiting for its end.
//!
//! Owns: the fork with a gate before the `exec`, waiting for children.
//! Must not: search for programs, decide which signal goes where.

use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::pidfd::PidFd;
use crate::{checked, checked_long, inherited_signals};

/// A program with its words and its environment, ready to be handed to the kernel.
#[derive(Debug)]
pub struct Program {
    /// Files to try, the first that can be executed is taken.
    files: Vec<CString>,
    /// Its words, beginning with its own name.
    argv: Vec<CString>,
    /// `NAME=VALUE`.
    environment: Vec<CString>,
    aside: bool,
    helps: bool,
    /// Descriptors that it inherits besides the standard ones.
    handed: Vec<OwnedFd>,
}

impl Program {
    /// A program from the first of `files` that the kernel executes, in the order of `execvp(3)`.
    ///
    /// # Errors
    /// `InvalidInput` for a zero in any of the texts.
    pub fn new(
        files: impl IntoIterator<Item = Vec<u8>>,
        words: impl IntoIterator<Item = Vec<u8>>,
        environment: impl IntoIterator<Item = Vec<u8>>,
    ) -> io::Result<Program> {
        fn texts(all: impl IntoIterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
            let text = |bytes| CString::new(bytes).map_err(io::Error::from);
            all.into_iter().map(text).collect()
        }
        let (files, words) = (texts(files)?, texts(words)?);
        let environment = texts(environment)?;
        Ok(Program {
            files,
            argv: words,
            environment,
            aside: false,
            helps: false,
            handed: Vec::new(),
        })
    }

    /// Sends its output to this process's stderr: the stdout is for something else.
    #[must_use]
    pub fn printing_aside(self) -> Program {
        Program { aside: true, ..self }
    }

    /// It is a helper: it ends (SIGTERM) with the thread that starts it, whatever ends that, and has a process group of
    /// its own, so that keys of the terminal do not reach it.
    #[must_use]
    pub fn helping(self) -> Program {
        Program { helps: true, ..self }
    }

    /// It inherits this descriptor, under the same number.
    #[must_use]
    pub fn handing_down(mut self, descriptor: OwnedFd) -> Program {
        self.handed.push(descriptor);
        self
    }
}

/// A process that waits at its gate: it has its number, and can be given policy, CPUs and group,
/// but has not yet become its program. Dropped, it ends.
#[derive(Debug)]
pub struct Gated {
    /// Closed to end it, written to let it go.
    gate: Option<NoSigpipeWriter>,
    /// Gives an error number if the program cannot be executed, and ends if it can.
    answer: File,
    child: Option<Child>,
}

impl Gated {
    /// Starts one. It keeps what this process would hand to any program, but ignores and blocks the signals that this
    /// process was started with ignored and blocked ([`crate::inherited_signals`]), whatever this process does with
    /// them. It ends with this process as long as it is at the gate.
    ///
    /// # Errors
    /// No descriptors, memory or processes left.
    pub fn start(program: &Program) -> io::Result<Gated> {
        let (waiting, gate) = NoSigpipeWriter::line()?;
        let (answer, telling) = pipe()?;
        let files = pointers(&program.files);
        let words = pointers(&program.argv);
        let environment = pointers(&program.environment);
        // For a script that does not name its shell; the second word will be the file.
        let mut shell = vec![c"sh".as_ptr(), ptr::null()];
        shell.extend(words.iter().skip(1));
        // SAFETY: the child makes nothing but system calls with memory that was made before, so
        // that locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            // The gate opens for the child only if its parent alone holds the other end. SAFETY: a descriptor of this
            // process, which nothing here uses.
            unsafe { libc::close(gate.as_raw_fd()) };
            // SAFETY: takes its arguments by value.
            unsafe {
                if program.helps && libc::setpgid(0, 0) == 0 {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                }
            }
            if program.aside {
                // SAFETY: takes its arguments by value.
                unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) };
            }
            for handed in &program.handed {
                // SAFETY: takes its arguments by value; the child's copy alone is not closed by `exec`.
                unsafe { libc::fcntl(handed.as_raw_fd(), libc::F_SETFD, 0) };
            }
            let errno = wait_and_become(&waiting, &files, &words, &mut shell, &environment);
            tell(&telling, errno);
        }
        let pid = pid.unsigned_abs();
        let file = PidFd::open(pid).inspect_err(|_| {
            // No other caller will ever know its number. SAFETY: takes no memory; the child was not waited for, so that
            // the number is its own.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            let _ = wait_for(pid);
        })?;
        let child = Some(Child { pid, file });
        Ok(Gated { gate: Some(gate), answer: File::from(answer), child })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, |child| child.pid)
    }

    /// Lets it become its program, and returns when it has.
    ///
    /// # Errors
    /// The kernel does not execute it; then the process has ended. ESRCH if it was killed at the gate.
    pub fn open(mut self) -> io::Result<Child> {
        let Some(gate) = self.gate.take() else { return Err(ended()) };
        gate.say(b'!').map_err(|_| ended())?;
        drop(gate);
        let mut errno = [0; size_of::<i32>()];
        match self.answer.read_exact(&mut errno) {
            Ok(()) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.child.take().ok_or_else(ended)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        drop(self.gate.take());
        if let Some(child) = self.child.take() {
            // It ends by itself, now that the gate has no holder, unless something stopped it.
            let _ = child.file.kill();
            let _ = child.wait();
        }
    }
}

fn ended() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

/// Pointers to the texts, and a null behind them.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// The child: waits, and becomes its program; returns the error number if it cannot.
fn wait_and_become(
    gate: &OwnedFd,
    files: &[*const c_char],
    words: &[*const c_char],
    shell: &mut [*const c_char],
    environment: &[*const c_char],
) -> i32 {
    let mut word = 0u8;
    loop {
        // SAFETY: the kernel writes one byte to a live local.
        match unsafe { libc::read(gate.as_raw_fd(), (&raw mut word).cast(), 1) } {
            1 => break,
            -1 if errno() == libc::EINTR => {}
            // SAFETY: ends the child at once; its parent is gone or does not want it.
            _ => unsafe { libc::_exit(GATE_CLOSED) },
        }
    }
    inherited_signals::put_back();
    let mut refused = libc::ENOENT;
    for file in files.iter().filter(|file| !file.is_null()) {
        // SAFETY: terminated strings and null-terminated arrays of such, all made before the fork.
        unsafe { libc::execve(*file, words.as_ptr(), environment.as_ptr()) };
        // Of several, the one that was found but not executed says more.
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::ENOEXEC => {
                shell[1] = *file;
                // SAFETY: as above.
                unsafe { libc::execve(SHELL.as_ptr(), shell.as_ptr(), environment.as_ptr()) };
                refused = libc::ENOEXEC;
            }
            other => refused = other,
        }
    }
    refused
}

/// The shell that executes files without a format that the kernel knows (`execvp(3)`).
const SHELL: &std::ffi::CStr = c"/bin/sh";

/// How a child ends whose gate is never opened.
const GATE_CLOSED: libc::c_int = 125;

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn tell(telling: &OwnedFd, errno: i32) -> ! {
    let bytes = errno.to_ne_bytes();
    // SAFETY: reads the bytes of a live array; then ends the child at once.
    unsafe {
        libc::write(telling.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(GATE_CLOSED)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// A child of this process.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    file: PidFd,
}

impl Child {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A descriptor that becomes readable when it ends.
    #[must_use]
    pub fn file(&self) -> &PidFd {
        &self.file
    }

    /// Waits for its end and lets the kernel forget it.
    ///
    /// # Errors
    /// Another caller waited for it.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        wait_for(self.pid)
    }
}

/// Waits for the end of a child with this number, and lets the kernel forget it.
fn wait_for(pid: u32) -> io::Result<ExitStatus> {
    let mut status = 0;
    loop {
        // SAFETY: writes to a live local.
        match checked(unsafe { libc::waitpid(pid as libc::pid_t, &raw mut status, 0) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) if libc::WIFSIGNALED(status) => {
                return Ok(ExitStatus::Killed(libc::WTERMSIG(status)));
            }
            Ok(_) => return Ok(ExitStatus::Exited(libc::WEXITSTATUS(status))),
        }
    }
}

/// From here on this process gets SIGTERM when the thread of `parent` that started it has ended, whatever
/// ended it.
///
/// # Errors
/// ESRCH: the parent has ended already.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: takes no memory; the setting is this process's own.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })?;
    // SAFETY: takes no memory.
    let now = unsafe { libc::getppid() };
    if u32::try_from(now) == Ok(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// The end of a line on which a process is spoken to that may be gone. Writing into a pipe without a reader ends a
/// program by SIGPIPE unless it ignores that, which programs in C do not; here it is the error EPIPE.
#[derive(Debug)]
pub(crate) struct NoSigpipeWriter(OwnedFd);

impl NoSigpipeWriter {
    /// The line: the end to read from, the end to speak into. A program that this one starts has neither.
    pub(crate) fn line() -> io::Result<(OwnedFd, NoSigpipeWriter)> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: the kernel fills the live array.
        checked(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
        // SAFETY: both descriptors were just opened and have no other owner.
        let [hears, speaks] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok((hears, NoSigpipeWriter(speaks)))
    }

    /// Says one byte.
    ///
    /// # Errors
    /// EPIPE: no process reads any more.
    pub(crate) fn say(&self, word: u8) -> io::Result<()> {
        loop {
            // SAFETY: reads one byte of a live local.
            let sent = unsafe {
                libc::send(self.0.as_raw_fd(), (&raw const word).cast(), 1, libc::MSG_NOSIGNAL)
            };
            match checked_long(sent as libc::c_long) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                said => return said.map(drop),
            }
        }
    }
}

impl AsRawFd for NoSigpipeWriter {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A pipe: the end to read from, the end to write to. A program that this one starts has neither.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel fills the live array.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors were just opened and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let environment = vec![b"GATE=open".to_vec()];
        let files = [format!("/nowhere/{}", words[0]), format!("/bin/{}", words[0])];
        let files = files.iter().map(|file| bytes(file));
        Program::new(files, words.iter().map(|word| bytes(word)), environment).unwrap()
    }

    #[test]
    fn a_gated_process_waits_and_then_becomes_its_program() {
        let script = "test \"$GATE\" = open && exit 7";
        let gated = Gated::start(&program(&["sh", "-c", script])).unwrap();
        let name = std::fs::read_to_string(format!("/proc/{}/comm", gated.pid())).unwrap();
        assert_ne!(name.trim(), "sh");
        let child = gated.open().unwrap();
        assert_eq!(child.wait().unwrap(), ExitStatus::Exited(7));
        assert!(child.file().probe().is_err());
    }

    /// A descriptor that is handed down is open in the program, under its number, and no other one is.
    #[test]
    fn a_descriptor_is_handed_down() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let [kept, handed] = [(); 2].map(|()| OwnedFd::from(file.try_clone().unwrap()));
        let numbers = [&kept, &handed].map(|one| one.as_raw_fd());
        let script = format!(
            "test ! -e /proc/self/fd/{} && test -e /proc/self/fd/{}",
            numbers[0], numbers[1]
        );
        let program = program(&["sh", "-c", &script]).handing_down(handed);
        let child = Gated::start(&program).unwrap().open().unwrap();
        assert_eq!(child.wait().unwrap(), ExitStatus::Exited(0));
        drop(kept);
    }

    #[test]
    fn what_cannot_be_executed_is_reported() {
        let missing = Program::new([b"/nowhere/x".to_vec()], [b"x".to_vec()], []).unwrap();
        let refused = Gated::start(&missing).unwrap().open().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
        let folder = [b"/".to_vec(), b"/nowhere".to_vec()];
        let folder = Program::new(folder, [b"x".to_vec()], []).unwrap();
        let refused = Gated::start(&folder).unwrap().open().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EACCES));
    }

    #[test]
    fn one_that_is_dropped_at_the_gate_is_gone() {
        let gated = Gated::start(&program(&["true"])).unwrap();
        let pid = gated.pid();
        drop(gated);
        assert!(PidFd::open(pid).is_err());
    }

    /// Without a descriptor for the child (EMFILE), the child stayed behind as a zombie.
    #[test]
    fn one_that_cannot_be_watched_is_gone() {
        let program = program(&["true"]);
        let said = crate::fork::child_says(10_000, move || {
            // Room for both lines, and for nothing more.
            let (waiting, gate) = pipe().unwrap();
            let (answer, telling) = pipe().unwrap();
            let ends = [&waiting, &gate, &answer, &telling].map(|end| end.as_raw_fd());
            let most = ends.into_iter().max().unwrap() as libc::rlim_t + 1;
            drop((waiting, gate, answer, telling));
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: reads a live local; the limit is this child's own.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
            let refused = Gated::start(&program).unwrap_err();
            let mut status = 0;
            // SAFETY: writes to a live local.
            let left = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            refused.raw_os_error() == Some(libc::EMFILE) && left == -1 && errno() == libc::ECHILD
        });
        assert!(said.unwrap());
    }

    /// Pipes ended the program by SIGPIPE: Rust's programs ignore that, other languages' do not.
    #[test]
    fn a_writer_without_a_reader_lives_on() {
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: sets this child's own action.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            let (hears, speaker) = NoSigpipeWriter::line().unwrap();
            speaker.say(b'1').unwrap();
            let mut word = [0];
            File::from(hears).read_exact(&mut word).unwrap();
            let unheard = speaker.say(b'2').unwrap_err();
            word == *b"1" && unheard.raw_os_error() == Some(libc::EPIPE)
        });
        assert!(said.unwrap());
    }

    #[test]
    fn signals_end_a_child_and_its_end_is_reported() {
        let child = Gated::start(&program(&["sleep", "60"])).unwrap().open().unwrap();
        child.file().signal(libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap(), ExitStatus::Killed(libc::SIGTERM));
    }
}
