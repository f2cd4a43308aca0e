//! Failures on their way to Python.
//!
//! Owns: [`Failure`], which becomes an exception of `hourglass.errors` when it leaves Rust.
//! Must not: decide which exception a kind is; `hourglass/errors.py` has that table.

use std::fmt;
use std::io;

use hourglass_timer::errno_class::ErrnoClass;
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What kind a failure is; `hourglass/errors.py` has an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something was given that cannot be meant: another value helps.
    Invalid,
    /// A handle that was closed, a thing that has ended.
    Closed,
    /// Somebody else uses it now.
    Busy,
    /// It belongs to another thread.
    WrongThread,
    /// A privilege is missing.
    Permission,
    /// The machine has no more of it.
    Exhausted,
    /// This machine cannot.
    Unsupported,
    /// The operating system said no otherwise.
    Os,
    /// A file or folder does not hold what it should.
    Data,
    /// It belongs to the process from which this one was forked.
    Forked,
    /// A time that did not come: the timer was cancelled or terminated, or its clock set.
    Cancelled,
    /// A deadline's handler ended the work.
    Ended,
}

impl Kind {
    /// Its word, as `Error.kind` tells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::Closed => "closed",
            Kind::Busy => "busy",
            Kind::WrongThread => "wrong_thread",
            Kind::Permission => "permission",
            Kind::Exhausted => "exhausted",
            Kind::Unsupported => "unsupported",
            Kind::Os => "os",
            Kind::Data => "data",
            Kind::Forked => "forked",
            Kind::Cancelled => "cancelled",
            Kind::Ended => "ended",
        }
    }

    /// What a number of the operating system means to a caller.
    pub(crate) fn of_errno(errno: i32) -> Kind {
        match ErrnoClass::of_errno(errno) {
            ErrnoClass::Permission => Kind::Permission,
            ErrnoClass::Exhausted => Kind::Exhausted,
            ErrnoClass::Busy => Kind::Busy,
            ErrnoClass::Invalid => Kind::Invalid,
            ErrnoClass::Unsupported => Kind::Unsupported,
            _ => Kind::Os,
        }
    }
}

/// Why something cannot be done.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    errno: Option<i32>,
    text: String,
    remedy: Option<String>,
}

impl Failure {
    /// Of a kind, with a sentence that names culprit and remedy.
    pub(crate) fn new(kind: Kind, text: impl fmt::Display) -> Failure {
        Failure { kind, errno: None, text: text.to_string(), remedy: None }
    }

    /// Something was given that cannot be meant.
    pub(crate) fn invalid(text: impl fmt::Display) -> Failure {
        Failure::new(Kind::Invalid, text)
    }

    /// What was given under this name cannot be meant.
    pub(crate) fn argument(name: &str, why: impl fmt::Display) -> Failure {
        Failure::invalid(format_args!("{name}: {why}"))
    }

    /// The operating system said no.
    pub(crate) fn os(what: impl fmt::Display, error: &io::Error) -> Failure {
        let errno = error.raw_os_error();
        let kind = errno.map_or(Kind::Os, Kind::of_errno);
        Failure { errno, ..Failure::new(kind, format_args!("{what}: {error}")) }
    }

    /// The same with the operating system's number (`errno(3)`).
    pub(crate) fn with_errno(self, errno: i32) -> Failure {
        Failure { errno: (errno != 0).then_some(errno), ..self }
    }

    /// The same with the line that mends it, where that is not in the sentence already.
    pub(crate) fn with_remedy(self, remedy: impl fmt::Display) -> Failure {
        Failure { remedy: Some(remedy.to_string()), ..self }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| made(py, &failure).unwrap_or_else(|error| error))
    }
}

/// The exception, made by the package.
fn made(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Failure { kind, errno, text, remedy } = failure;
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
    let made = make.bind(py).call1((kind.word(), text, *errno, remedy.as_deref()))?;
    Ok(PyErr::from_value(made))
}

/// Nothing of it is seen from Python but through the package.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
