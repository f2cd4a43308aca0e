//! Spans of the calling thread and their losses. The header begins and ends undisturbed spans inline.

use std::ffi::c_char;
use std::ptr;

use hourglass_witness::{Loss, RawSpan, SpanError, Witness, WitnessError};

use crate::error::{
    CapiError, HG_BUSY, HG_EMPTY, HG_FORKED, HG_STALE, HG_WRONG_THREAD, guard, hg_error, hg_status,
};
use crate::pointers::{give, is_there, read, write};

/// State that the inline functions of the header read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_witness_view {
    /// Address of the name of the section; NULL without a section.
    pub named: *const u64,
    /// The name that the section has while the thread is undisturbed.
    pub name: u64,
    /// The thread's generation and sums.
    pub sums: *const u64,
}

/// A span in progress.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hg_span {
    /// The thread's generation at the start; 0 without a span.
    pub generation: u64,
    /// The thread's sums at the start; of a detached span, its losses.
    pub sums: [u64; 8],
    /// The counter at the start; of a detached span, its length.
    pub begun: u64,
    /// The CPU on which it began.
    pub cpu: u32,
    /// Whether the span does not wait by itself.
    pub busy: bool,
    /// Whether it is detached.
    pub travelling: bool,
    /// Why it is unknown.
    pub unknown: u8,
    /// Reserved: 0.
    pub reserved: u8,
}

/// The loss of a span.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_loss {
    /// Upper bound of the length of the span, ns.
    pub length_ns: u64,
    /// Lower bound of the time off the CPU, ns.
    pub off_cpu_least_ns: u64,
    /// Upper bound of the time off the CPU, ns.
    pub off_cpu_most_ns: u64,
    /// Time ready and waiting for a CPU, ns.
    pub waited_ns: u64,
    /// Switches by its own waits.
    pub voluntary: u64,
    /// Switches forced on it.
    pub involuntary: u64,
    /// Page faults, at most.
    pub faults: u64,
    /// Name of the cause, a constant text.
    pub cause: *const c_char,
    /// Confidence in the cause, millionths.
    pub confidence_ppm: u32,
    /// The CPU on which it began.
    pub cpu_before: u32,
    /// The CPU on which it ended.
    pub cpu_after: u32,
    /// Thread that had the CPU; 0 where that is unknown.
    pub who: u32,
}

fn ends(error: &WitnessError) -> CapiError {
    CapiError::invalid(error.to_string())
}

/// Constant texts: a signal handler may end a span that is unknown, and must not allocate.
fn unknown(error: SpanError) -> CapiError {
    let (kind, text) = match error {
        SpanError::OtherThread => (
            HG_WRONG_THREAD,
            "the span began in another thread: detach it there and attach it here",
        ),
        SpanError::Forked => {
            (HG_FORKED, "the process was forked within the span, and this is the child")
        }
        SpanError::Interrupted => (
            HG_BUSY,
            "the span was begun or ended by a signal handler within the begin or end of another one",
        ),
    };
    CapiError::new(kind, text)
}

fn stale(text: &'static str) -> CapiError {
    CapiError::new(HG_STALE, text)
}

fn raw(span: &hg_span) -> RawSpan {
    RawSpan {
        generation: span.generation,
        sums: span.sums,
        ticks: span.begun,
        cpu: span.cpu,
        busy: span.busy,
        unknown: span.unknown,
    }
}

fn of_raw(raw: RawSpan, travelling: bool) -> hg_span {
    hg_span {
        generation: raw.generation,
        sums: raw.sums,
        begun: raw.ticks,
        cpu: raw.cpu,
        busy: raw.busy,
        travelling,
        unknown: raw.unknown,
        reserved: 0,
    }
}

fn in_c(loss: &Loss, cpu: u32) -> hg_loss {
    let (cpu_before, cpu_after) = loss.migrated.unwrap_or((cpu, cpu));
    hg_loss {
        length_ns: loss.length.nanos_or_zero(),
        off_cpu_least_ns: loss.off_cpu.earliest().nanos_or_zero(),
        off_cpu_most_ns: loss.off_cpu.latest().nanos_or_zero(),
        waited_ns: loss.waited.nanos_or_zero(),
        voluntary: loss.switches.voluntary,
        involuntary: loss.switches.involuntary,
        faults: loss.faults,
        cause: loss.cause.c_name().as_ptr(),
        confidence_ppm: (loss.confidence * 1e6) as u32,
        cpu_before,
        cpu_after,
        who: loss.who.unwrap_or(0),
    }
}

fn own() -> Result<Witness, CapiError> {
    Witness::new().map_err(|error| ends(&error))
}

/// Makes the calling thread's witness ready.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_witness_open(
    view: *mut hg_witness_view,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let face = own()?.view();
        let none = hg_witness_view { named: ptr::null(), name: 0, sums: ptr::null() };
        Ok(face.map_or(none, |(named, name, sums)| hg_witness_view { named, name, sums }))
    };
    // SAFETY: as the header says of `view` and `error`.
    unsafe { give(view, "view", error, work) }
}

/// Begins a span by asking the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_witness_begin_call(
    span: *mut hg_span,
    error: *mut hg_error,
) -> hg_status {
    let work = || Ok(of_raw(own()?.begin().into_raw(), false));
    // SAFETY: as the header says of `span` and `error`.
    unsafe { give(span, "span", error, work) }
}

/// Ends a span by asking the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_witness_end_call(
    span: *mut hg_span,
    loss: *mut hg_loss,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        is_there(loss, "loss")?;
        // SAFETY: as the header says of `span`.
        let before = unsafe { read(span.cast_const(), "span") }?;
        // SAFETY: as above.
        unsafe { write(span, hg_span::default(), "span") }?;
        if before.travelling {
            return Err(stale("the span was detached, and is over: attach it before its end"));
        }
        if before.generation == 0 && before.unknown == 0 {
            return Err(stale("the span was ended, or never begun: begin it"));
        }
        let witness = own()?;
        match witness.try_end(witness.of_raw(raw(&before))).map_err(unknown)? {
            // Without a text: it may be asked often.
            None => Err(CapiError::new(HG_EMPTY, "")),
            // SAFETY: as the header says of `loss`.
            Some(lost) => unsafe { write(loss, in_c(&lost, before.cpu), "loss") },
        }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Takes a span off its thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_witness_detach(span: *mut hg_span, error: *mut hg_error) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `span`.
        let before = unsafe { read(span.cast_const(), "span") }?;
        if before.travelling || (before.generation == 0 && before.unknown == 0) {
            return Err(stale("the span was ended or detached: begin or attach it first"));
        }
        let witness = own()?;
        let travelling = witness.detach(witness.of_raw(raw(&before)));
        // SAFETY: as above.
        unsafe { write(span, of_raw(travelling.into_raw(), true), "span") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// A detached span goes on in the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_witness_attach(span: *mut hg_span, error: *mut hg_error) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `span`.
        let before = unsafe { read(span.cast_const(), "span") }?;
        if !before.travelling {
            return Err(stale("the span is not detached: detach it in its thread first"));
        }
        let attached = own()?.attach(raw(&before).travelling()).into_raw();
        // SAFETY: as above.
        unsafe { write(span, of_raw(attached, false), "span") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_spans_have_the_texts_of_the_witness() {
        for error in [SpanError::OtherThread, SpanError::Forked, SpanError::Interrupted] {
            assert_eq!(unknown(error).text, error.to_string());
        }
    }
}
