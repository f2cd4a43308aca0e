//! The recorder for a loop of the user's own, for Python.

use pyo3::prelude::*;

/// Adds it to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
