//! What tests of several modules need: programs that end with them, requests.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::pidfd::PidFd;
use hourglass_time::Span;

use crate::backend::{BackendRequest, members};

/// A program that ends with the test, and so do its descendants.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn spawn(command: &mut Command) -> Program {
        Program(command.spawn().unwrap())
    }

    pub(crate) fn shell(script: &str) -> Program {
        Program::spawn(Command::new("sh").args(["-c", script]))
    }

    pub(crate) fn sleeping() -> Program {
        Program::spawn(Command::new("sleep").arg("60"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The number of one that was waited for may be another's.
        if let Ok(None) = self.0.try_wait() {
            for process in
                members::tree(self.pid()).into_iter().filter_map(|pid| PidFd::open(pid).ok())
            {
                let _ = process.kill();
            }
        }
        let _ = self.0.wait();
    }
}

pub(crate) fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn hard(budget_us: i64, period_us: i64) -> Reservation {
    let (budget, period) = (Span::from_micros(budget_us), Span::from_micros(period_us));
    Reservation::new(budget, period, ReservationKind::Hard).unwrap()
}

/// A hard reservation on no CPU in particular.
pub(crate) fn request(budget_us: i64, period_us: i64) -> BackendRequest {
    BackendRequest { reservation: hard(budget_us, period_us), cpu: None }
}
