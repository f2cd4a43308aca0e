//! Runs, reserved commands, experiments, for Python.

use pyo3::prelude::*;

/// Adds them to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
