//! Common functions for values of Python, made by Rust or given to it.
//!
//! Owns: their texts. Python looks for signals where it makes one, and `Display` of PyO3 drops what a
//! handler raises there: Ctrl-C would be lost, and the text another one. So nothing here uses that.

use std::fmt::Write as _;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

/// A value as text, as `str` has it.
///
/// # Errors
/// The exception of its `__str__`, or of a signal's handler.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.str()?.to_string_lossy().into_owned())
}

/// The name of a value's class.
///
/// # Errors
/// It has none.
pub(crate) fn class_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.get_type().name()?.to_string_lossy().into_owned())
}

/// Whether an error only says that a number is out of range, and no signal's handler raised it.
pub(crate) fn is_overflow(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyOverflowError>(py)
}

/// The text of a value: its class and the attributes of these names.
pub(crate) fn repr(value: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<String> {
    let mut shown = class_of(value)? + "(";
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let attribute = value.getattr(*name)?.repr()?;
        let attribute = attribute.to_string_lossy();
        // Writing to a text does not fail.
        let _ = write!(shown, "{comma}{name}={attribute}");
    }
    shown.push(')');
    Ok(shown)
}
