//! Failures on their way to Python.
//!
//! Owns: [`PyFailure`], which becomes an exception of `hourglass.errors` when it leaves Rust.
//! Must not: decide which exception a kind is; `hourglass/errors.py` has that table.

use std::fmt;
use std::io;

use hourglass_timer::errno_class::ErrnoClass;
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

hourglass_documents::named_enum! {
    /// What kind a failure is; `hourglass/errors.py` has an exception for each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ErrorKind {
        /// A value is invalid: another value helps.
        Invalid => "invalid",
        /// A handle that was closed, or an object that has ended.
        Closed => "closed",
        /// Another call uses it now.
        Busy => "busy",
        /// It belongs to another thread.
        WrongThread => "wrong_thread",
        /// A privilege is missing.
        Permission => "permission",
        /// The machine has no more of it.
        Exhausted => "exhausted",
        /// This machine cannot.
        Unsupported => "unsupported",
        /// The operating system refused for another reason.
        Os => "os",
        /// A file or folder does not hold what it should.
        Data => "data",
        /// It belongs to the process from which this one was forked.
        Forked => "forked",
        /// A time that did not come: the timer was cancelled or terminated, or its clock set.
        Cancelled => "cancelled",
        /// A deadline's handler ended the work.
        Ended => "ended",
    }
}

impl ErrorKind {
    /// What a number of the operating system means to a caller.
    pub(crate) fn of_errno(errno: i32) -> ErrorKind {
        match ErrnoClass::of_errno(errno) {
            ErrnoClass::Permission => ErrorKind::Permission,
            ErrnoClass::Exhausted => ErrorKind::Exhausted,
            ErrnoClass::Busy => ErrorKind::Busy,
            ErrnoClass::Invalid => ErrorKind::Invalid,
            ErrnoClass::Unsupported => ErrorKind::Unsupported,
            _ => ErrorKind::Os,
        }
    }
}

/// Why something cannot be done.
#[derive(Debug)]
pub(crate) struct PyFailure {
    kind: ErrorKind,
    errno: Option<i32>,
    text: String,
    remedy: Option<String>,
}

impl PyFailure {
    /// A failure of a kind, with a sentence that names cause and remedy.
    pub(crate) fn new(kind: ErrorKind, text: impl fmt::Display) -> PyFailure {
        PyFailure { kind, errno: None, text: text.to_string(), remedy: None }
    }

    /// A value is invalid.
    pub(crate) fn invalid(text: impl fmt::Display) -> PyFailure {
        PyFailure::new(ErrorKind::Invalid, text)
    }

    /// The argument of this name is invalid.
    pub(crate) fn argument(name: &str, why: impl fmt::Display) -> PyFailure {
        PyFailure::invalid(format_args!("{name}: {why}"))
    }

    /// The operating system refused.
    pub(crate) fn os(what: impl fmt::Display, error: &io::Error) -> PyFailure {
        let errno = error.raw_os_error();
        let kind = errno.map_or(ErrorKind::Os, ErrorKind::of_errno);
        PyFailure { errno, ..PyFailure::new(kind, format_args!("{what}: {error}")) }
    }

    /// Adds the operating system's number (`errno(3)`).
    pub(crate) fn with_errno(self, errno: i32) -> PyFailure {
        PyFailure { errno: (errno != 0).then_some(errno), ..self }
    }

    /// Adds the remedy, unless the sentence already has it.
    pub(crate) fn with_remedy(self, remedy: impl fmt::Display) -> PyFailure {
        PyFailure { remedy: Some(remedy.to_string()), ..self }
    }
}

impl From<PyFailure> for PyErr {
    fn from(failure: PyFailure) -> PyErr {
        Python::attach(|py| made(py, &failure).unwrap_or_else(|error| error))
    }
}

/// The exception, made by the package.
fn made(py: Python<'_>, failure: &PyFailure) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let PyFailure { kind, errno, text, remedy } = failure;
    let make = MAKE.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("hourglass.errors")?.getattr("_of_kind")?.unbind())
    });
    let make = make.map_err(|error| {
        // The extension alone, without its package. What a signal's handler raised goes on.
        match error.is_instance_of::<PyImportError>(py) {
            true => PyRuntimeError::new_err(text.clone()),
            false => error,
        }
    })?;
    let made = make.bind(py).call1((kind.name(), text, *errno, remedy.as_deref()))?;
    Ok(PyErr::from_value(made))
}

/// Nothing of it is seen from Python but through the package.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
