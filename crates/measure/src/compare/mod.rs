//! Two ways of running measured to be compared: in turn, or a run beside an idle control.
//!
//! Owns: the order of rounds ([`rounds`]), the control ([`control`]). Which of two ways is first is drawn for every second
//! round and reversed in the next. A round that a signal cuts short is kept under another name. The control is a
//! thread that only watches, on a CPU that the load leaves free, or that takes turns with the load. Must not: judge
//! (`runs::compare` does).

pub mod control;
mod measured_quantities;
pub mod rounds;
