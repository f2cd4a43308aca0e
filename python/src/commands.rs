//! Reserved commands, for the process that the package starts for each.
//!
//! Owns: the words of a request, read as the command line's. Must not: be called in a process with several
//! threads: they would take the signals that are to be passed on, and the guardian would be forked among them.

use std::ffi::OsString;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_reserve::session::{
    self as reserve, CoRunnerSettings, SessionFailure as NoReservation, SessionRequest,
    SessionTarget, arguments,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{ErrorKind, PyFailure};
use crate::keyword_args::given;
use crate::runs::json;
use crate::spans::DurationArg;

given! {
    /// Options of a reservation; `None` stands for the command's default.
    struct ReserveOptions {
        command: Vec<OsString>,
        budget: DurationArg,
        period: DurationArg,
        soft: bool,
        deadline: Option<DurationArg>,
        cpu: Option<u32>,
        backend: String,
        smt: Option<String>,
        interferes: String,
        stop: Vec<String>,
        stopper: String,
        slow_first: bool,
        alpha: String,
    }
}

impl ReserveOptions {
    fn request(self) -> Result<SessionRequest, PyFailure> {
        let (budget, period) = (self.budget.0, self.period.0);
        let strength = if self.soft { ReservationKind::Soft } else { ReservationKind::Hard };
        let mut reservation = Reservation::new(budget, period, strength)
            .map_err(|error| PyFailure::invalid(format_args!("{budget}/{period}: {error}")))?;
        if let Some(DurationArg(deadline)) = self.deadline {
            reservation = reservation.with_deadline(deadline).map_err(|error| {
                PyFailure::argument("deadline", format_args!("{deadline}: {error}"))
            })?;
        }
        Ok(SessionRequest {
            reservation,
            cpu: self.cpu,
            backend: arguments::backend(&self.backend)
                .map_err(|error| PyFailure::argument("backend", error))?,
            siblings: self.siblings()?,
            subject: match self.command.is_empty() {
                true => SessionTarget::CheckOnly,
                false => SessionTarget::Command(self.command),
            },
            additional: Vec::new(),
            aside: false,
        })
    }

    fn siblings(&self) -> Result<Option<CoRunnerSettings>, PyFailure> {
        let Some(policy) = &self.smt else { return Ok(None) };
        let stopped = self
            .stop
            .iter()
            .map(|whom| whom.parse().map_err(|error| PyFailure::argument("stop", error)));
        Ok(Some(CoRunnerSettings {
            policy: arguments::policy(policy).map_err(|error| PyFailure::argument("smt", error))?,
            interference: { &self.interferes }
                .parse()
                .map_err(|error| PyFailure::argument("interferes", error))?,
            stopped: stopped.collect::<Result<_, _>>()?,
            stopper: arguments::stopper(&self.stopper)
                .map_err(|error| PyFailure::argument("stopper", error))?,
            graded: self.slow_first,
            alpha: arguments::rate(&self.alpha)
                .map_err(|error| PyFailure::argument("alpha", error))?,
            interval: None,
            margin: None,
            progress: None,
        }))
    }
}

/// Why there is no reservation.
fn refused(failure: NoReservation) -> PyFailure {
    let text = failure.to_string();
    match failure {
        NoReservation::System { what, source } => PyFailure::os(what, &source),
        other => PyFailure::new(kind(&other), text),
    }
}

fn kind(failure: &NoReservation) -> ErrorKind {
    match failure {
        NoReservation::Refused(_) => ErrorKind::Permission,
        NoReservation::Siblings(_) | NoReservation::Progress(_) => ErrorKind::Unsupported,
        NoReservation::System { .. } => ErrorKind::Os,
        NoReservation::NotStarted(_) | NoReservation::NotAdopted(_) | NoReservation::Words(_) => {
            ErrorKind::Invalid
        }
    }
}

/// Checks the words of a request.
#[pyfunction]
fn reserve_words(asked: &Bound<'_, PyDict>) -> PyResult<()> {
    Ok(ReserveOptions::of(asked)?.request().map(drop)?)
}

/// Runs a command under a reservation: `document` and `hourglass.reserve/1` as JSON; `refused` and the same with
/// the refusals; or the kind of a failure and its sentence. Only for a process with one thread; if its
/// parent `parent` is killed, the command is asked to end, and everything is undone.
#[pyfunction]
fn reserve_command(
    py: Python<'_>,
    asked: &Bound<'_, PyDict>,
    parent: u32,
) -> PyResult<(&'static str, String)> {
    let request = ReserveOptions::of(asked)?.request()?;
    reserve::end_with_parent(parent)
        .map_err(|error| PyFailure::os("the program that asks has ended", &error))?;
    Ok(match py.detach(|| reserve::run(&request)) {
        Ok(outcome) => ("document", json(&outcome.document)?),
        Err(NoReservation::Refused(document)) => ("refused", json(&*document)?),
        Err(failure) => (kind(&failure).name(), failure.to_string()),
    })
}

/// Says whether a reservation would be granted: `hourglass.reserve/1` as JSON. Nothing is started.
#[pyfunction]
fn reserve_check(py: Python<'_>, asked: &Bound<'_, PyDict>) -> PyResult<String> {
    let request = ReserveOptions::of(asked)?.request()?;
    let document = py.detach(|| reserve::check(&request)).map_err(refused)?;
    json(&document)
}

/// Adds them to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(reserve_words, module)?)?;
    module.add_function(wrap_pyfunction!(reserve_command, module)?)?;
    module.add_function(wrap_pyfunction!(reserve_check, module)?)
}
