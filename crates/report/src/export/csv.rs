//! The trace as comma-separated values (RFC 4180, with a header), one record a line.

use std::io::{self, BufWriter, Write};

use hourglass_trace::IntervalStart;

use crate::run::RunView;

/// The columns, in order.
const HEADER: &str = "thread,cpu,start_ns,end_ns,start_ticks,end_ticks,onset,cleared,\
                      involuntary_switches,voluntary_switches,page_faults,cause,confidence";

/// Writes the records in order of start. Times are in nanoseconds from the run's start and in
/// ticks of the raw counter. What is not known is an empty field; `cause` and `confidence` are
/// those of the gap before the record.
///
/// # Errors
/// Those of the writer beneath.
pub fn csv(out: impl Write, run: &RunView<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "{HEADER}")?;
    for record in run.intervals {
        write!(
            out,
            "{},{},{},{},{},{},{},",
            record.thread,
            record.cpu,
            record.start_ns,
            record.end_ns,
            record.start_ticks,
            record.end_ticks,
            onset(record.onset)
        )?;
        let cleared = record.evidence.cleared.map_or("", |cleared| if cleared { "1" } else { "0" });
        write!(out, "{cleared},")?;
        match record.evidence.counted {
            Some(n) => write!(out, "{},{},{},", n.involuntary, n.voluntary, n.faults)?,
            None => write!(out, ",,,")?,
        }
        match run.cause_of(record.thread, record.start_ns) {
            Some(why) => writeln!(out, "{},{:.3}", why.cause.name(), why.confidence())?,
            None => writeln!(out, ",")?,
        }
    }
    out.flush()
}

/// The word for what stands before a record.
pub(super) fn onset(onset: IntervalStart) -> &'static str {
    match onset {
        IntervalStart::Start => "start",
        IntervalStart::Gap => "gap",
        IntervalStart::Wait => "wait",
        IntervalStart::Yield => "yield",
        IntervalStart::Migration => "migration",
        IntervalStart::Late => "late",
    }
}
