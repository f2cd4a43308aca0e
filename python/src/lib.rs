//! Hourglass for Python: the extension module below the package `hourglass`.
//!
//! Owns: what crosses the border between Rust and Python: arguments, failures as exceptions, the
//! interpreter let go while a thread waits or measures, signals that come meanwhile. The package's
//! modules (`hourglass/*.py`) hold what a user reads first.
//! Must not: add behaviour; wait or measure while it holds the interpreter.
//!
//! Each file has a noun of the package and registers what it offers.
//!
//! # How Python is faced
//!
//! `python/` is one extension module (`src/`, PyO3, the stable ABI of 3.10) below a package of Python modules
//! (`hourglass/`), which hold what a user reads and are imported when they are first used. Lengths of time, policies and
//! CPUs are read by the library's own parsers (`spans.rs`, `scheduling.rs`). A `PyFailure` becomes an exception by the table in
//! `hourglass/errors.py`. A thread that waits lets the interpreter go. Handlers of signals run in Python's main
//! thread and only when that asks for it, so a long wait of the main thread is slept in slices of 15 ms
//! (`sleep.rs`), the last part as precisely as ever. A loop's tick is a job by hand (`PeriodicLoop::wait_for_release`, `start`,
//! `complete`): it starts when the interpreter was taken again, so that its latency includes that too. Values of one
//! thread are `ThreadOwned` (`thread_owned.rs`). A timer holds its function, and the service only a weak handle on that, so that
//! Python's collector sees a timer and its function that hold each other. `cargo xtask python` builds and tests it; the
//! stubs are held against the runtime by a test.
//!
//! A run takes the signals that ask for its end from Python for as long as it lasts, also on a machine of which every CPU is
//! measured: no slices. `sys::signal::catch_stop_during` gives the handlers back afterwards and sends the signal once more,
//! so that Python does with it what it would have done (`interrupts.rs`). Documents cross the border as JSON, records as
//! the bytes of columns (`tables.rs`, `records.rs`), which `hourglass/frames.py` shows as arrays. A reserved command gets a
//! process of its own, a Python that loads the extension module and nothing else (`hourglass/reserved.py`), because
//! `reserve::session` wants one without threads; it ends with its parent (`sys::process::end_with_parent`).

mod clock;
mod commands;
mod deadlines;
mod distribution;
mod errors;
mod interrupts;
mod keyword_args;
mod lab;
mod periodic;
mod recorder;
mod records;
mod reserve;
mod runs;
mod sched;
mod scheduling;
mod sites;
mod sleep;
mod spans;
mod tables;
mod thread_owned;
mod timers;
mod utc;
mod values;
mod witness;

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
    utc::register(module)?;
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
    sites::register(module)?;
    witness::register(module)?;
    Ok(())
}
