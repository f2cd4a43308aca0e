//! A loss as attributes of OpenTelemetry: names and values, without its crates.

use hourglass_time::Span;

use crate::Loss;

/// The value of an attribute, of one of the kinds that OpenTelemetry has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue {
    /// `i64`: nanoseconds, or a count.
    Int(i64),
    /// `f64`, from 0 to 1.
    Double(f64),
    /// A word of a list.
    Text(&'static str),
}

fn whole(count: u64) -> AttributeValue {
    AttributeValue::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn ns(span: Span) -> AttributeValue {
    AttributeValue::Int(span.nanos())
}

impl Loss {
    /// Names and values for a span of OpenTelemetry, or for whatever else keeps such pairs: eight, always.
    ///
    /// | name | value |
    /// |---|---|
    /// | `hourglass.off_cpu_ns` | for how long the thread was off the CPU, at most |
    /// | `hourglass.off_cpu_least_ns` | the same, at least |
    /// | `hourglass.waited_ns` | of that: it was ready and waited for a CPU |
    /// | `hourglass.length_ns` | of the span |
    /// | `hourglass.switches.voluntary`, `hourglass.switches.involuntary` | how often |
    /// | `hourglass.cause` | a word: `context_switch_involuntary`, `quota`, ... |
    /// | `hourglass.confidence` | of the cause, from 0 to 1; 0 means unknown |
    ///
    /// ```ignore
    /// use hourglass_witness::AttributeValue::{Double, Int, Text};
    /// use opentelemetry::KeyValue;
    ///
    /// span.set_attributes(loss.attributes().map(|(name, value)| match value {
    ///     Int(number) => KeyValue::new(name, number),
    ///     Double(number) => KeyValue::new(name, number),
    ///     Text(word) => KeyValue::new(name, word),
    /// }));
    /// ```
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = (&'static str, AttributeValue)> {
        [
            ("hourglass.off_cpu_ns", ns(self.off_cpu.latest())),
            ("hourglass.off_cpu_least_ns", ns(self.off_cpu.earliest())),
            ("hourglass.waited_ns", ns(self.waited)),
            ("hourglass.length_ns", ns(self.length)),
            ("hourglass.switches.voluntary", whole(self.switches.voluntary)),
            ("hourglass.switches.involuntary", whole(self.switches.involuntary)),
            ("hourglass.cause", AttributeValue::Text(self.cause.name())),
            ("hourglass.confidence", AttributeValue::Double(self.confidence)),
        ]
        .into_iter()
    }
}
