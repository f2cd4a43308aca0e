//! A loss as fields of its span, or as an event within it.

use hourglass_time::Span;
use hourglass_witness::Loss;
use tracing::field::Value;
use tracing::span::{Id, Record};
use tracing::{Dispatch, Level, Metadata};

/// The fields that a span may declare (`tracing::field::Empty`): for how long its threads were off the CPU at most
/// and at least (ns), how often, why, and how sure that is (0 to 1).
pub const FIELDS: [&str; 5] = ["off_cpu_ns", "off_cpu_least_ns", "switches", "cause", "confidence"];

fn ns(span: Span) -> u64 {
    u64::try_from(span.nanos()).unwrap_or(0)
}

fn switches(loss: &Loss) -> u64 {
    loss.switches.voluntary.saturating_add(loss.switches.involuntary)
}

/// Records the fields that the span declares; whether there is one.
pub(crate) fn recorded(
    dispatch: &Dispatch,
    id: &Id,
    metadata: &'static Metadata<'static>,
    loss: &Loss,
) -> bool {
    let (most, least) = (ns(loss.off_cpu.latest()), ns(loss.off_cpu.earliest()));
    let (switches, cause) = (switches(loss), loss.cause.name());
    let values: [&dyn Value; 5] = [&most, &least, &switches, &cause, &loss.confidence];
    let fields = metadata.fields();
    let mut any = false;
    for (name, value) in FIELDS.iter().zip(values) {
        if let Some(field) = fields.field(name) {
            dispatch.record(id, &Record::new(&fields.value_set(&[(&field, Some(value))])));
            any = true;
        }
    }
    any
}

/// An event with all of them.
pub(crate) fn event(dispatch: &Dispatch, id: &Id, loss: &Loss) {
    tracing::dispatcher::with_default(dispatch, || {
        tracing::event!(
            target: "hourglass",
            parent: id.clone(),
            Level::INFO,
            off_cpu_ns = ns(loss.off_cpu.latest()),
            off_cpu_least_ns = ns(loss.off_cpu.earliest()),
            switches = switches(loss),
            cause = loss.cause.name(),
            confidence = loss.confidence,
            "the scheduler took this span's thread away"
        );
    });
}
