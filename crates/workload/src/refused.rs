//! What a run was refused, and why there was none.

use hourglass_documents::{CpuSet, Policy, Reservation};
use thiserror::Error;

use crate::reservation::ReservationDenied;
use crate::spec::SpecError;
use crate::wake::Unavailable;

#[derive(Clone, Debug, PartialEq)]
pub enum ThreadRefusal {
    /// A policy; with the errno.
    Policy(Policy, i32),
    Reservation(Reservation, ReservationDenied),
    /// CPUs; with the errno.
    Affinity(CpuSet, i32),
    Timer(Unavailable),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    pub thread: u32,
    pub refused: ThreadRefusal,
    /// Whether the run could not go on without it.
    pub fatal: bool,
}

#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The machine refused something, and best effort was not asked for.
    #[error("the machine refused something to {} threads", .0.len())]
    Refused(Vec<Shortfall>),
    #[error("thread {0} could not be started: {1}")]
    Spawn(u32, std::io::Error),
    /// A thread ended without a result, which is a defect of Hourglass.
    #[error("thread {0} ended without a result; please report this")]
    Lost(u32),
    #[error("the counter {0} does not advance")]
    Counter(&'static str),
}
