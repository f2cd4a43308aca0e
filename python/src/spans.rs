//! Lengths of time as Python writes them.
//!
//! Owns: the one way to read them: `1_000_000` (ns), `"1ms"` (the command's own words), a
//! `datetime.timedelta`. Must not: take a `float`, whose unit is unknown.

use hourglass_time::Span;
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::errors::PyFailure;
use crate::values::{class_of, is_overflow};

/// A length of time that was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DurationArg(pub(crate) Span);

impl DurationArg {
    /// In nanoseconds, where a negative length cannot be meant.
    pub(crate) fn not_negative(self, name: &str) -> Result<u64, PyFailure> {
        match self.0 {
            span if span.is_negative() => {
                Err(PyFailure::argument(name, format_args!("{span} is negative; give 0 or more")))
            }
            span => Ok(span.nanos_or_zero()),
        }
    }
}

/// A point of time that was given, ns on a clock whose zero is the least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeArg(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for TimeArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<TimeArg> {
        let given: &Bound<'py, PyAny> = &given;
        if !is_whole(given)? {
            let name = class_of(given)?;
            return Err(PyTypeError::new_err(format!(
                "a point of time is a whole number of nanoseconds, not {name}"
            )));
        }
        given.extract().map(TimeArg).map_err(|error: PyErr| {
            if !is_overflow(given.py(), &error) {
                return error;
            }
            // Not the number itself: it may have more digits than Python writes.
            PyFailure::invalid(format_args!(
                "a point of time is out of range: give 0 to {}",
                u64::MAX
            ))
            .into()
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for DurationArg {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<DurationArg> {
        let given: &Bound<'py, PyAny> = &given;
        if let Ok(text) = given.cast::<PyString>() {
            let text = text.to_string_lossy();
            let span: Result<Span, _> = text.parse();
            let span = span.map_err(|error| PyFailure::invalid(format_args!("'{text}': {error}")));
            return Ok(DurationArg(span?));
        }
        if is_whole(given)? {
            return Ok(DurationArg(Span::from_nanos(whole_ns(given)?)));
        }
        let Some(ns) = timedelta_ns(given)? else {
            let name = class_of(given)?;
            return Err(PyTypeError::new_err(format!(
                "a time is whole nanoseconds, a text such as '1.5ms', or a timedelta, not {name}"
            )));
        };
        Ok(DurationArg(Span::from_nanos(ns)))
    }
}

/// Whether it is a whole number, also one of numpy's; True and False are meant as none.
fn is_whole(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!given.is_instance_of::<PyBool>() && given.hasattr("__index__")?)
}

/// A whole number that a span can hold.
fn whole_ns(given: &Bound<'_, PyAny>) -> PyResult<i64> {
    given.extract().map_err(|error: PyErr| {
        if is_overflow(given.py(), &error) {
            PyFailure::invalid("longer than 292 years; times are in nanoseconds").into()
        } else {
            error
        }
    })
}

/// Converts a `datetime.timedelta`, which counts in whole microseconds, to ns; `None` for another type.
fn timedelta_ns(given: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let part = |name: &str| -> PyResult<i64> { given.getattr(name)?.extract() };
    if class_of(given)? != "timedelta" {
        return Ok(None);
    }
    let (days, seconds) = (part("days")?, part("seconds")?);
    let us = part("microseconds")?;
    let whole = days.checked_mul(86_400).and_then(|days| days.checked_add(seconds));
    let ns = whole
        .and_then(|seconds| seconds.checked_mul(1_000_000))
        .and_then(|all| all.checked_add(us))
        .and_then(|us| us.checked_mul(1_000));
    let ns = ns.ok_or_else(|| PyFailure::invalid("longer than 292 years"));
    Ok(Some(ns?))
}

/// A length of time in nanoseconds, from any of its forms.
#[pyfunction]
fn span_ns(time: DurationArg) -> i64 {
    time.0.nanos()
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(span_ns, module)?)
}
