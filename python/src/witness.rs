//! Spans of a program and their losses, for Python.
//!
//! Owns: spans as Python holds them, which any thread may hold and only their own may end.
//! Must not: let the interpreter go: a span is about the thread that runs the program.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_time::Span;
use hourglass_witness::{DetachedSpan, OpenSpan, SpanError, Witness};
use pyo3::prelude::*;

use crate::errors::{ErrorKind, PyFailure};
use crate::thread_owned::ThreadOwned;
use crate::values::repr;

const SPAN: &str = "span";

/// The loss of a span.
#[pyclass(frozen, get_all, name = "Loss", module = "hourglass.witness")]
pub(crate) struct PyLoss {
    length_ns: u64,
    off_cpu_ns: (u64, u64),
    voluntary: u64,
    involuntary: u64,
    waited_ns: u64,
    faults: u64,
    migrated: Option<(u32, u32)>,
    cause: String,
    confidence: f64,
    evidence: String,
    who: Option<u32>,
}

fn ns(span: Span) -> u64 {
    u64::try_from(span.nanos()).unwrap_or(0)
}

impl From<hourglass_witness::Loss> for PyLoss {
    fn from(loss: hourglass_witness::Loss) -> PyLoss {
        PyLoss {
            length_ns: ns(loss.length),
            off_cpu_ns: (ns(loss.off_cpu.earliest()), ns(loss.off_cpu.latest())),
            voluntary: loss.switches.voluntary,
            involuntary: loss.switches.involuntary,
            waited_ns: ns(loss.waited),
            faults: loss.faults,
            migrated: loss.migrated,
            cause: loss.cause.name().to_owned(),
            confidence: loss.confidence,
            evidence: loss.evidence.to_string(),
            who: loss.who,
        }
    }
}

/// All of a loss, in the order of its fields, as `pickle` and `copy` keep it.
type LossState =
    ((u64, (u64, u64), u64, u64, u64, u64), (Option<(u32, u32)>, String, f64, String, Option<u32>));

#[pymethods]
impl PyLoss {
    #[new]
    fn new(kept: LossState) -> PyLoss {
        let ((length_ns, off_cpu_ns, voluntary, involuntary, waited_ns, faults), rest) = kept;
        let (migrated, cause, confidence, evidence, who) = rest;
        PyLoss {
            length_ns,
            off_cpu_ns,
            voluntary,
            involuntary,
            waited_ns,
            faults,
            migrated,
            cause,
            confidence,
            evidence,
            who,
        }
    }

    fn __getnewargs__(&self) -> (LossState,) {
        let counted = (self.voluntary, self.involuntary, self.waited_ns, self.faults);
        let (voluntary, involuntary, waited_ns, faults) = counted;
        let numbers = (self.length_ns, self.off_cpu_ns, voluntary, involuntary, waited_ns, faults);
        let (cause, evidence) = (self.cause.clone(), self.evidence.clone());
        ((numbers, (self.migrated, cause, self.confidence, evidence, self.who)),)
    }

    fn __repr__(slf: &Bound<'_, PyLoss>) -> PyResult<String> {
        repr(slf, &["off_cpu_ns", "voluntary", "involuntary", "cause", "confidence"])
    }
}

/// Where a span is.
enum State {
    /// It goes on in a thread.
    Open(ThreadOwned<OpenSpan>),
    /// Its task waits, or it has not begun.
    Paused(DetachedSpan),
    /// It has ended.
    Over,
}

/// A stretch of a program, witnessed.
#[pyclass(frozen, subclass, name = "Span", module = "hourglass.witness")]
struct PySpan {
    state: Mutex<State>,
}

fn witness() -> Result<Witness, PyFailure> {
    Witness::new().map_err(|error| PyFailure::new(ErrorKind::Closed, error))
}

fn failure(error: SpanError) -> PyFailure {
    let kind = match error {
        SpanError::OtherThread => ErrorKind::WrongThread,
        SpanError::Forked => ErrorKind::Forked,
        SpanError::Interrupted => ErrorKind::Busy,
    };
    PyFailure::new(kind, error)
}

fn closed() -> PyFailure {
    PyFailure::new(ErrorKind::Closed, "the span is over: begin another one")
}

impl PySpan {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the open span out, to end it or to replace it.
    fn take(state: &mut State) -> Result<OpenSpan, PyFailure> {
        let State::Open(open) = state else {
            let text = "the span does not go on: resume it before";
            return Err(if matches!(state, State::Over) {
                closed()
            } else {
                PyFailure::new(ErrorKind::Closed, text)
            });
        };
        open.not_inherited(SPAN)?;
        open.take(SPAN)?.ok_or_else(closed)
    }
}

#[pymethods]
impl PySpan {
    #[new]
    #[pyo3(signature = (*, busy = false))]
    fn new(busy: bool) -> PySpan {
        let not_begun = if busy { DetachedSpan::busy() } else { DetachedSpan::new() };
        PySpan { state: Mutex::new(State::Paused(not_begun)) }
    }

    /// The span begins or goes on, in the thread that calls.
    fn resume(&self) -> PyResult<()> {
        let witness = witness()?;
        let mut state = self.state();
        let State::Paused(travelling) = &*state else {
            let text = "the span goes on already: pause it before";
            let over = matches!(*state, State::Over);
            return Err(if over { closed() } else { PyFailure::new(ErrorKind::Busy, text) }.into());
        };
        if let Some(error) = travelling.unknown() {
            return Err(failure(error).into());
        }
        let open = witness.attach(*travelling);
        *state = State::Open(ThreadOwned::for_this_thread(open));
        Ok(())
    }

    /// Pauses the span while its task waits or moves to another thread. It loses nothing meanwhile.
    fn pause(&self) -> PyResult<()> {
        let mut state = self.state();
        let open = PySpan::take(&mut state)?;
        *state = State::Paused(witness()?.detach(open));
        Ok(())
    }

    /// The span is over. None if nothing took its thread away.
    fn end(&self) -> PyResult<Option<PyLoss>> {
        let mut state = self.state();
        if let State::Paused(travelling) = *state {
            // A paused span is attached for an instant, so that its end returns the loss.
            *state = State::Open(ThreadOwned::for_this_thread(witness()?.attach(travelling)));
        }
        let open = PySpan::take(&mut state)?;
        *state = State::Over;
        let loss = witness()?.try_end(open).map_err(failure)?;
        Ok(loss.map(PyLoss::from))
    }
}

/// Why each begin and end of a span asks the kernel, which costs some 400 ns; None where only disturbed spans do.
#[pyfunction]
fn why_witness_asks() -> PyResult<Option<String>> {
    Ok(witness()?.counter_read_reason().map(ToString::to_string))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLoss>()?;
    module.add_class::<PySpan>()?;
    module.add_function(pyo3::wrap_pyfunction!(why_witness_asks, module)?)
}
