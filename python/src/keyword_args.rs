//! Keyword arguments, in a dictionary that the package's own modules make.
//!
//! Owns: taking values out ([`given!`]), and naming one that is of a wrong type or out of range. Must not: have defaults.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyKeyError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::values::{is_overflow, shown};

/// Values by name.
pub(crate) struct KeywordArgs<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl<'py> KeywordArgs<'_, 'py> {
    /// The value of this name.
    ///
    /// # Errors
    /// `TypeError` with its name, or the error of its type.
    pub(crate) fn take<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?;
        let value = value.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        value.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            let py = value.py();
            let said = match shown(error.value(py)) {
                Ok(said) => format!("{name}: {said}"),
                Err(other) => return other,
            };
            match () {
                () if error.is_instance_of::<PyTypeError>(py) => PyTypeError::new_err(said),
                () if is_overflow(py, &error) => PyOverflowError::new_err(said),
                () => error,
            }
        })
    }
}

/// A struct whose fields are values of the same names, and `of`, which takes them out of a dictionary.
macro_rules! given {
    ($(#[$about:meta])* struct $name:ident { $($(#[$said:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        struct $name {
            $($(#[$said])* $field: $type,)*
        }

        impl $name {
            fn of(given: &pyo3::Bound<'_, pyo3::types::PyDict>) -> pyo3::PyResult<$name> {
                let given = $crate::keyword_args::KeywordArgs(given);
                Ok($name { $($field: given.take(stringify!($field))?,)* })
            }
        }
    };
}
pub(crate) use given;
