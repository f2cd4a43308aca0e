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

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The interpreter that imported this first.
static INTERPRETER: OnceLock<i64> = OnceLock::new();

/// That no other interpreter of this process has imported it: timers and their functions, classes and the signals that
/// are heard belong to one.
fn only_interpreter() -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, which both calls are about; none is kept.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if *INTERPRETER.get_or_init(|| this) == this {
        return Ok(());
    }
    let text = "hourglass serves one interpreter of a process, and another has imported it: use threads or processes";
    Err(PyImportError::new_err(text))
}

/// What `hourglass._hourglass` holds. It was never tried without the interpreter's lock, so that a free-threaded Python
/// takes that when this is imported.
#[pymodule(gil_used = true)]
fn _hourglass(module: &Bound<'_, PyModule>) -> PyResult<()> {
    only_interpreter()?;
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
