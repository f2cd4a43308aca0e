//! What goes wrong, and what happens, in a simulation.

use hourglass_time::Span;

use super::DeviceWaitEnd;

/// Something that goes wrong with one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimFault {
    /// Which event, from 0: the times that the device was programmed, and its ticks.
    pub event: u64,
    /// What goes wrong with the event.
    pub kind: SimFaultKind,
}

/// What goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimFaultKind {
    /// It comes late by this length.
    Late(Span),
    /// It comes early by this length, against the contract.
    Early(Span),
    /// It never comes.
    Lost,
}

/// Something that happens outside, and ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ExternalEvent {
    /// A kick arrives.
    Kick,
    /// A signal is handled.
    Signal,
}

impl ExternalEvent {
    pub(super) fn woken(self) -> DeviceWaitEnd {
        match self {
            ExternalEvent::Kick => DeviceWaitEnd::Kicked,
            ExternalEvent::Signal => DeviceWaitEnd::Signal,
        }
    }
}
