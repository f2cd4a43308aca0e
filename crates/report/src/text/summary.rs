//! The summary that a person reads on a terminal.

use std::collections::BTreeMap;

use hourglass_documents::document::{
    Deadlines, GateReport, LatencyReport, RunDocument, RunResult, ThreadReport,
};
use hourglass_documents::manifest::{ClockFacts, Manifest, ReservedFacts, ThreadFacts};

use super::Style;
use super::confidence;
use super::inferences;
use super::late_jobs;
use super::occupants;
use super::sites;
use super::stacks;
use super::table::{
    ColumnFormat, LabelledLines, NARROW, NOTHING, TextCell, TextStyle, TextTable, paint,
    wrapped_within,
};
use super::verdict::{broken, verdict};
use super::wakeups;
use super::watched_threads;
use crate::clean;
use crate::run::cpus_of;
use crate::units::{UnitScale, amount, rounded, share};

/// Width of the words that stand before the lines below the tables.
const LABEL: usize = 13;

/// A list of CPUs longer than this is given as their number.
const LONGEST_CPU_LIST: usize = 12;

/// The summary of a run: blocks of one row for each thread, each block in one unit, then the
/// clock, a verdict in one line, warnings with what mends them, and what is missing from the
/// record.
///
/// At most 100 columns wide, except for a single word that is longer (a command in a remedy).
#[must_use]
pub fn summary(document: &RunDocument, style: Style) -> String {
    let result = &document.result;
    let mut out = String::new();
    if let Some(reservation) = &result.reservation {
        out.push_str(&super::reserve(reservation, style));
        out.push('\n');
        let mut lines = LabelledLines { out, style, indent: LABEL, page: NARROW };
        cautions(&mut lines, document);
        return lines.out;
    }
    for premise in broken(result) {
        let text = clean::for_terminal(&format!("No verdict: {}", premise.text));
        out.push_str(&paint(&wrapped_within(NARROW, &text, 0, 0), TextStyle::Caution, style));
        out.push_str("\n\n");
    }
    if let Some(found) = &result.watched {
        out.push_str(&watched_threads::found(found, style));
    }
    title(&mut out, document, style);
    if !result.sites.is_empty() {
        sites::sites(&result.sites).write(&mut out, style);
        if let Some(table) = sites::causes(&result.sites) {
            table.write(&mut out, style);
        }
    }
    if !result.threads.is_empty() {
        threads(&result.threads).write(&mut out, style);
        gaps(&result.threads).write(&mut out, style);
    }
    if result.threads.iter().any(|t| t.deadlines.is_some()) {
        deadlines(&result.threads).write(&mut out, style);
    }
    if result.threads.iter().any(|t| t.latency.is_some()) {
        latency(&result.threads).write(&mut out, style);
    }
    if let Some(table) = wakeups::table(&result.wakeups) {
        table.write(&mut out, style);
    }
    if !result.causes.is_empty() {
        causes(result).write(&mut out, style);
    }
    if let Some(table) = inferences::times(&result.inferences) {
        table.write(&mut out, style);
    }
    let mut lines = LabelledLines { out, style, indent: LABEL, page: NARROW };
    facts(&mut lines, document);
    reserved(&mut lines, &document.manifest.threads);
    let (text, tone) = verdict(result);
    lines.line("Verdict", &text, tone);
    if let Some(control) = &result.control {
        lines.line("Control", &control.statement, TextStyle::Normal);
        for statement in &control.statements {
            lines.below(&super::diff::follows(statement));
        }
    }
    cautions(&mut lines, document);
    lines.out
}

fn title(out: &mut String, document: &RunDocument, style: Style) {
    let count = document.result.threads.len();
    let threads = if count == 1 { "thread" } else { "threads" };
    let mut text = format!("{count} {threads}, {}", rounded(document.manifest.elapsed_ns));
    if document.manifest.simulation.is_some() {
        text.push_str(" simulated");
    }
    let kernel = clean::for_terminal(&document.manifest.host.kernel);
    if !kernel.is_empty() {
        text.push_str(", Linux ");
        text.push_str(&clean::shortened(&kernel, 64));
    }
    out.push_str(&paint(&text, TextStyle::Heading, style));
    out.push_str("\n\n");
}

fn threads(threads: &[ThreadReport]) -> TextTable {
    let work = threads.iter().any(|t| t.work.is_some());
    let migrations = threads.iter().any(|t| t.migrations > 0);
    let named = threads.iter().any(|t| t.name.is_some());
    TextTable::of("Threads", threads)
        .number("thread", |thread| thread.id)
        .column_if(named, ColumnFormat::Elastic, "name", |thread| thread.name.as_deref())
        .elastic("workload", |thread| thread.workload.as_str())
        .elastic("policy", |thread| thread.policy.as_str())
        .number("CPU share", |thread| share(thread.cpu_time_ns, thread.wall_ns))
        .text("CPUs", cpus)
        .number("intervals", |thread| thread.intervals)
        .number_if(migrations, "migrations", |thread| thread.migrations)
        .number_if(work, "work", |thread| thread.work)
        .narrow()
}

/// What kept the reservations of threads; several threads that have the same stand in one line.
fn reserved(lines: &mut LabelledLines, threads: &[ThreadFacts]) {
    let mut rest: Vec<(u32, &ReservedFacts)> =
        threads.iter().filter_map(|thread| Some((thread.id, thread.reserved.as_ref()?))).collect();
    while let Some((_, first)) = rest.first().copied() {
        let (same, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(_, facts)| *facts == first);
        let ids: Vec<String> = same.iter().map(|(id, _)| id.to_string()).collect();
        let by = match first.by.as_str() {
            "user" => "a user-space reserve",
            "deadline" => "the kernel's deadline class",
            other => other,
        };
        let reason = clean::for_terminal(&first.reason);
        let (kept, tone) = match (first.kept, &first.broken_by[..]) {
            (None, _) => (String::new(), TextStyle::Normal),
            (Some(true), _) => ("; kept in every period".to_owned(), TextStyle::Normal),
            (Some(false), []) => {
                ("; not kept, the occupant of the CPU is not known".to_owned(), TextStyle::Bad)
            }
            (Some(false), by) => {
                let by = clean::for_terminal(&by.join(", "));
                (format!("; not kept, because of {by}"), TextStyle::Bad)
            }
        };
        let text = format!("thread {} by {by}: {reason}{kept}", ids.join(", "));
        lines.line("Reserved", &text, tone);
        rest = others;
    }
}

fn gaps(threads: &[ThreadReport]) -> TextTable {
    let scale = UnitScale::for_block(threads.iter().map(|t| t.gaps.p50_ns));
    let rows: Vec<Percentiles> = threads
        .iter()
        .map(|ThreadReport { id, gaps, .. }| Percentiles {
            id: *id,
            count: gaps.count,
            times: [gaps.p50_ns, gaps.p99_ns, gaps.p999_ns, gaps.max_ns],
            lost: 0,
        })
        .collect();
    percentiles(format!("Gaps, {}", scale.name()), "gaps", &rows, scale)
}

fn deadlines(threads: &[ThreadReport]) -> TextTable {
    let with: Vec<(&ThreadReport, Deadlines)> =
        threads.iter().filter_map(|thread| Some((thread, thread.deadlines?))).collect();
    let completed = threads.iter().any(|t| super::completed(t).is_some());
    let if_any = |n: u64| TextCell::bad_if(n > 0, n);
    TextTable::of("Deadlines, periods", &with)
        .number("thread", |(thread, _)| thread.id)
        .number("hit", |(_, deadlines)| deadlines.hit)
        .number("missed", |(_, deadlines)| if_any(deadlines.missed))
        .number("lost", |(_, deadlines)| if_any(deadlines.lost))
        .number_if(completed, "completed", |(thread, _)| super::completed(thread))
        .table()
}

fn latency(threads: &[ThreadReport]) -> TextTable {
    let row = |id: u32, l: LatencyReport| Percentiles {
        id,
        count: l.count,
        times: [l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns],
        lost: l.lost,
    };
    let rows: Vec<Percentiles> =
        threads.iter().filter_map(|t| Some(row(t.id, t.latency?))).collect();
    let scale = UnitScale::for_block(rows.iter().map(|row| row.times[0]));
    percentiles(format!("Latency of wake-ups, {}", scale.name()), "wake-ups", &rows, scale)
}

/// What was counted of a thread: median, p99, p99.9 and maximum, ns.
struct Percentiles {
    id: u32,
    count: u64,
    times: [u64; 4],
    lost: u64,
}

fn percentiles(
    title: String,
    counted: &'static str,
    rows: &[Percentiles],
    scale: UnitScale,
) -> TextTable {
    let time =
        |at: usize| move |row: &Percentiles| (row.count > 0).then(|| scale.text(row.times[at]));
    let lost = rows.iter().any(|row| row.lost > 0);
    TextTable::of(title, rows)
        .number("thread", |row| row.id)
        .number(counted, |row| row.count)
        .number("median", time(0))
        .number("p99", time(1))
        .number("p99.9", time(2))
        .number("max", time(3))
        .number_if(lost, "lost", |row| row.lost)
        .table()
}

fn causes(result: &RunResult) -> TextTable {
    let scale = UnitScale::for_block(result.causes.iter().map(|c| c.p50_ns));
    TextTable::of(format!("Causes of gaps, {}", scale.name()), &result.causes)
        .elastic("cause", |cause| cause.cause.as_str())
        .number("gaps", |cause| cause.count)
        .number("total", |cause| scale.text(cause.total_ns))
        .number("median", |cause| scale.text(cause.p50_ns))
        .number("max", |cause| scale.text(cause.max_ns))
        .number("confidence", |cause| format!("{:.0} %", cause.confidence * 100.0))
        .table()
}

/// What explains the numbers: switches, emulated devices, the clock.
fn facts(lines: &mut LabelledLines, document: &RunDocument) {
    let result = &document.result;
    // Threads that measure latency alone write no trace, so that it proves nothing of them.
    let untraced = result.threads.iter().filter(|thread| thread.latency.is_some()).count();
    if result.threads.len() > untraced + 1 && result.sites.is_empty() {
        let beside = match untraced {
            0 => "",
            _ => "; those of threads that measure latency are not counted",
        };
        let text = format!(
            "{} from one thread of the run to another on the same CPU{beside}",
            result.switches
        );
        lines.line("Switches", &text, TextStyle::Normal);
        if let Some(text) = inferences::switches(&result.inferences) {
            lines.below(&text);
        }
    }
    let certain = inferences::certain(&result.inferences);
    if !certain.is_empty() {
        lines.line("Certain", &certain, TextStyle::Normal);
    }
    lines.block("Interrupted", &inferences::interrupts(&result.inferences));
    lines.block("Late", &inferences::late(&result.inferences));
    lines.block("Late jobs", &late_jobs::lines(&result.late_jobs));
    lines.block("Ran", &occupants::lines(&result.causes));
    lines.block("Meanwhile", &occupants::worst_meanwhile(&result.meanwhile));
    lines.block("Worst", &sites::worst(&result.worst_spans));
    lines.block("Stack", &stacks::worst(&result.stacks));
    let mut emulated: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for thread in &result.threads {
        if let Some(how) = &thread.emulated {
            emulated.entry(how).or_default().push(thread.id);
        }
    }
    for (how, mut ids) in emulated {
        ids.sort_unstable();
        let threads = if ids.len() == 1 { "thread" } else { "threads" };
        let text = format!("{how} ({threads} {})", clean::ranges(&ids));
        lines.line("Emulated", &text, TextStyle::Normal);
    }
    if let Some(load) = &document.manifest.load {
        let tone = if load.ran { TextStyle::Normal } else { TextStyle::Caution };
        lines.line("Beside", &load.to_string(), tone);
    }
    let (text, tone) = clock(&document.manifest.clock);
    lines.line("Clock", &text, tone);
}

fn clock(clock: &ClockFacts) -> (String, TextStyle) {
    let calibration = &clock.calibration_end;
    let mut text = format!(
        "{}, {} within {} ppb, each reading within {} ns",
        clock.source,
        frequency(clock.frequency_hz),
        calibration.rate_error_ppb,
        calibration.bracket_ns,
    );
    if clock.trusted {
        return (text, TextStyle::Normal);
    }
    text.push_str("; not trusted: ");
    text.push_str(&clock.reason);
    (text, TextStyle::Caution)
}

fn frequency(hz: f64) -> String {
    if hz >= 1e9 {
        format!("{:.6} GHz", hz / 1e9)
    } else if hz >= 1e6 {
        format!("{:.6} MHz", hz / 1e6)
    } else {
        format!("{hz:.0} Hz")
    }
}

/// How a limit ended, in words. One that was kept while a premise of the run broke decides nothing.
#[must_use]
pub fn gate_word(gate: &GateReport, premises_hold: bool) -> &'static str {
    gate_outcome(gate, premises_hold).0
}

/// The word, and its tone.
pub(crate) fn gate_outcome(gate: &GateReport, premises_hold: bool) -> (&'static str, TextStyle) {
    match (gate.passed, premises_hold) {
        (false, _) => ("broken", TextStyle::Bad),
        (true, true) => ("kept", TextStyle::Good),
        (true, false) => ("no verdict", TextStyle::Caution),
    }
}

/// A limit, and how it ended: `max-latency: broken, 9.01 ms found, 2.00 ms allowed`.
#[must_use]
pub fn limit(gate: &GateReport, premises_hold: bool) -> String {
    format!(
        "{}: {}, {} found, {} allowed",
        gate.name,
        gate_word(gate, premises_hold),
        amount(gate.value, &gate.unit),
        amount(gate.limit, &gate.unit)
    )
}

/// What must be known before the numbers are believed.
fn cautions(lines: &mut LabelledLines, document: &RunDocument) {
    let result = &document.result;
    let holds = broken(result).next().is_none();
    for gate in &result.gates {
        lines.line("Gate", &limit(gate, holds), gate_outcome(gate, holds).1);
        if let Some(found) = &gate.confidence {
            confidence(found).iter().for_each(|sentence| lines.below(sentence));
        }
    }
    result.warnings.iter().for_each(|warning| lines.warning(warning));
    if let Some(hit) = &result.hit {
        let text = format!(
            "by a {} of {} (thread {}, CPU {}), {} into the run",
            match hit.kind.as_str() {
                "gap" => "gap",
                _ => "wake-up latency",
            },
            rounded(hit.value_ns),
            hit.thread,
            hit.cpu,
            rounded(hit.at_ns.max(0).unsigned_abs()),
        );
        lines.line("Ended", &text, TextStyle::Bad);
    }
    if result.interrupted {
        let text = after(&document.manifest);
        lines.line("Interrupted", &text, TextStyle::Caution);
    }
    dropped(lines, document);
}

/// When a run was interrupted: `after 1.20 s of 10.0 s`; without `of` for a run without a planned length.
pub(crate) fn after(manifest: &Manifest) -> String {
    let after = format!("after {}", rounded(manifest.elapsed_ns));
    match manifest.duration_ns > manifest.elapsed_ns {
        true => format!("{after} of {}", rounded(manifest.duration_ns)),
        false => after,
    }
}

fn dropped(lines: &mut LabelledLines, document: &RunDocument) {
    let of = |t: &ThreadReport| t.records_dropped;
    let threads = &document.result.threads;
    let total = threads.iter().map(of).fold(0, u64::saturating_add);
    if total == 0 {
        return;
    }
    let mut ids: Vec<u32> = threads.iter().filter(|t| of(t) > 0).map(|t| t.id).collect();
    ids.sort_unstable();
    let which = if ids.len() == 1 { "thread" } else { "threads" };
    let kept = if document.manifest.ring { "newest" } else { "oldest" };
    let text = format!(
        "{total} records of {which} {}: the buffer of {} was full and kept the {kept}; the numbers \
         above count them, the trace lacks them",
        clean::ranges(&ids),
        document.manifest.records_capacity,
    );
    lines.line("Dropped", &text, TextStyle::Caution);
    lines.below("make room for more with -e");
}

/// As [`cpus_of`]; of many their number.
fn cpus(thread: &ThreadReport) -> String {
    let cpus = cpus_of(thread);
    let list = clean::ranges(&cpus);
    match list.len() {
        0 => NOTHING.to_owned(),
        n if n > LONGEST_CPU_LIST => format!("{} CPUs", cpus.len()),
        _ => list,
    }
}
