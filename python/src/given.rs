//! What was given by name, in a dictionary that the package's own modules make.
//!
//! Owns: taking a value out, and naming it where it is of a wrong type. Must not: have defaults.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::values::shown;

/// Values by name.
pub(crate) struct Given<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    /// The value of this name.
    ///
    /// # Errors
    /// `TypeError` that names it, or what its type says.
    pub(crate) fn take<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?;
        let value = value.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        value.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            match error.is_instance_of::<PyTypeError>(value.py()) {
                true => match shown(error.value(value.py())) {
                    Ok(said) => PyTypeError::new_err(format!("{name}: {said}")),
                    Err(other) => other,
                },
                false => error,
            }
        })
    }
}
