//! A command that is started to be watched.
//!
//! It waits at its gate until it is watched. The keys of a terminal reach it as they reach this program, which goes on
//! until it has ended; signals that others send to this program alone are passed on.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::Duration;

use hourglass_documents::watched::WatchedCommand;
use hourglass_machine::facts::HostReader;
use hourglass_reserve::command::{Child, ExitStatus, Gated, Launch, LaunchError};
use hourglass_sys::eventfd::either_readable;
use hourglass_sys::signal_file::{ENDING, PASSED, SignalFile};

/// A signal counts so much more in exit codes, as shells have it.
const SIGNALLED: i32 = 128;

/// How long it may take to come to its gate, in looks: on a busy machine it may not have run yet.
const ARRIVAL_LOOKS: u32 = 2_000;
/// Between two of them.
const ARRIVAL_PAUSE: Duration = Duration::from_micros(500);

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    /// The program, with its arguments.
    pub words: Vec<OsString>,
    /// Its output goes to stderr: stdout is for something else.
    pub aside: bool,
}

/// At its gate.
pub(super) struct PendingCommand {
    words: Vec<OsString>,
    launch: Launch,
    gated: Gated,
    signals: SignalFile,
}

impl PendingCommand {
    pub(super) fn start(request: &CommandRequest) -> Result<PendingCommand, LaunchError> {
        let launch = Launch::find(&request.words, &[])?;
        let launch = if request.aside { launch.printing_aside() } else { launch };
        let name = || request.words.first().map(|word| word.to_string_lossy().into_owned());
        let signals = SignalFile::block(&PASSED).map_err(|source| LaunchError::NoProcess {
            file: name().unwrap_or_default(),
            source,
        })?;
        let gated = launch.start()?;
        Ok(PendingCommand { words: request.words.clone(), launch, gated, signals })
    }

    /// Waits until it is at its gate: what it runs before is not the command's.
    pub(super) fn arrive(&self, reader: &HostReader) {
        let waits = || reader.thread(self.pid(), self.pid()).is_none_or(|found| found.state == 'S');
        for _ in 0..ARRIVAL_LOOKS {
            if waits() {
                return;
            }
            std::thread::sleep(ARRIVAL_PAUSE);
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.gated.pid()
    }

    pub(super) fn open(self) -> Result<RunningCommand, LaunchError> {
        let PendingCommand { words, launch, gated, signals } = self;
        let child = launch.open(gated)?;
        Ok(RunningCommand { words, child, signals, asked: None })
    }
}

pub(super) struct RunningCommand {
    words: Vec<OsString>,
    child: Child,
    signals: SignalFile,
    /// The last signal that asked for its end.
    asked: Option<i32>,
}

impl RunningCommand {
    pub(super) fn has_ended(&self) -> bool {
        self.child.file().has_ended().unwrap_or(true)
    }

    /// Sleeps until it has ended, a signal came or the time is over; without a time, until one of the others.
    pub(super) fn sleep(&mut self, ns: Option<u64>) {
        while let Ok(Some(came)) = self.signals.next() {
            if ENDING.contains(&came.signal) {
                self.asked = Some(came.signal);
            }
            if !came.by_kernel {
                // It may have ended meanwhile.
                let _ = self.child.file().signal(came.signal);
            }
        }
        // Woken too early the caller looks, and comes again.
        let _ = either_readable(self.child.file().as_fd(), self.signals.as_fd(), ns);
    }

    /// Waits for its end.
    pub(super) fn finish(mut self) -> (Option<WatchedCommand>, Option<i32>) {
        while !self.has_ended() {
            self.sleep(None);
        }
        let exit = match self.child.wait() {
            Ok(ExitStatus::Exited(code)) => code,
            Ok(ExitStatus::Killed(signal)) => SIGNALLED.saturating_add(signal),
            // No other caller waits for it.
            Err(_) => return (None, self.asked),
        };
        let words = self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (Some(WatchedCommand { words, pid: self.child.pid(), exit }), self.asked)
    }
}
