//! Comma-separated values (RFC 4180, with a header): a line for each record of the trace, for each wake-up, or for each
//! point of a sweep's curves.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use hourglass_documents::sweep::SweepPoint;
use hourglass_trace::IntervalStart;

use crate::run::RunView;

const PS_PER_NS: u64 = 1_000;

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

/// A wake-up of a latency test.
#[derive(Clone, Copy, Debug)]
pub struct WakeUpRow {
    pub thread: u32,
    /// When the thread saw the time, ns from the run's start; `None` where that was not stored.
    pub woke_ns: Option<i64>,
    pub latency_ps: u64,
}

/// Writes a line for each wake-up, in the order in which they come: when the timer expired and when the thread saw the
/// time, both from the run's start, and the latency, to a picosecond.
///
/// # Errors
/// Those of the wake-ups and of the writer beneath.
pub fn csv_wake_ups<E: From<io::Error>>(
    out: impl Write,
    wake_ups: impl Iterator<Item = Result<WakeUpRow, E>>,
) -> Result<(), E> {
    let mut out = BufWriter::new(out);
    writeln!(out, "thread,expiry_ns,woke_ns,latency_ns")?;
    for one in wake_ups {
        let WakeUpRow { thread, woke_ns, latency_ps } = one?;
        let (latency_ns, rest_ps) = (latency_ps / PS_PER_NS, latency_ps % PS_PER_NS);
        write!(out, "{thread},")?;
        match woke_ns {
            Some(woke_ns) => {
                let nearest = latency_ns + u64::from(rest_ps >= PS_PER_NS / 2);
                write!(out, "{},{woke_ns},", woke_ns.saturating_sub_unsigned(nearest))?;
            }
            None => write!(out, ",,")?,
        }
        writeln!(out, "{latency_ns}.{rest_ps:03}")?;
    }
    Ok(out.flush()?)
}

/// Writes a line for each latency of a thread's histogram, to three digits: how many wake-ups had it.
///
/// # Errors
/// Those of the writer beneath.
pub fn csv_latency_counts(
    out: impl Write,
    threads: &BTreeMap<u32, Vec<(u64, u64)>>,
) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "thread,latency_ns,count")?;
    for (thread, counts) in threads {
        for (ns, count) in counts {
            writeln!(out, "{thread},{ns},{count}")?;
        }
    }
    out.flush()
}

/// Writes a line for each point of each curve of an experiment of schedulability.
///
/// # Errors
/// Those of the writer beneath.
pub fn csv_sweep(out: impl Write, analyses: &[String], points: &[SweepPoint]) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "utilisation,analysis,sets,accepted,undecided")?;
    for point in points {
        for name in analyses {
            let count = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or(0);
            let (accepted, undecided) = (count(&point.accepted), count(&point.undecided));
            let (utilisation, sets, name) = (point.utilisation, point.sets, field(name));
            writeln!(out, "{utilisation},{name},{sets},{accepted},{undecided}")?;
        }
    }
    out.flush()
}

/// A text as a field: in quotes where it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
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
