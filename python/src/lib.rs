//! Hourglass for Python: the extension module below the package `hourglass`.
//!
//! Owns: what crosses the border between Rust and Python: arguments, failures as exceptions, the
//! interpreter let go while a thread waits or measures, signals that come meanwhile. The package's
//! modules (`hourglass/*.py`) hold what a user reads first.
//! Must not: add behaviour; wait or measure while it holds the interpreter.
//!
//! Each file has a noun of the package and registers what it offers.

mod clock;
mod commands;
mod deadlines;
mod distribution;
mod errors;
mod given;
mod interrupts;
mod lab;
mod owned;
mod periodic;
mod recorder;
mod records;
mod reserve;
mod runs;
mod sched;
mod scheduling;
mod sleep;
mod spans;
mod tables;
mod timers;
mod values;

use pyo3::prelude::*;

/// What `hourglass._hourglass` holds.
#[pymodule]
fn _hourglass(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    spans::register(module)?;
    clock::register(module)?;
    sleep::register(module)?;
    distribution::register(module)?;
    scheduling::register(module)?;
    periodic::register(module)?;
    timers::register(module)?;
    deadlines::register(module)?;
    recorder::register(module)?;
    reserve::register(module)?;
    commands::register(module)?;
    runs::register(module)?;
    lab::register(module)?;
    sched::register(module)?;
    Ok(())
}
