//! Signals that come while Rust measures.
//!
//! Owns: handing them on to Python when the work is over, which raises `KeyboardInterrupt` for Ctrl-C.
//! Must not: decide what a signal means; Python's own handlers do.

use hourglass_measure::catch_stop_during;
use pyo3::prelude::*;

use crate::errors::PyFailure;

/// Calls `work` without the interpreter. Ctrl-C, SIGTERM and SIGHUP end it early, cleanly; afterwards they
/// act as they do in this program. Of Python's first thread, whose business signals are, this one may
/// raise an exception; then what `work` returned is gone.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let caught = py.detach(|| catch_stop_during(work));
    py.check_signals()?;
    Ok(caught.map_err(|error| PyFailure::os("signals cannot be caught", &error))?)
}
