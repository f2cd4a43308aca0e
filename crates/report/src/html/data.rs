//! The run as data for the page's script: JSON whose columns are differences in base64.
//!
//! A thread's records are a chain: the time since the end of the one before, then its length. So
//! the numbers are small whatever the run's length, and a page of 300,000 records has about 4 MB.
//! A trace with more gaps than [`MOST_RECORDS`] loses the shortest of them, and texts beyond
//! [`MOST_TEXT`] belong to the longest gaps; the page says so.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use hourglass_trace::{Evidence, Interval};
use serde_json::{Value, json};

use super::columns::{ColumnEncoder, least_kept};
use super::cpu_occupancy::{self, OccupancyData};
use super::gaps::{Gap, KINDS};
use super::jobs;
use super::wake_ups;
use crate::export::kernel::{Phase, phase, words};
use crate::run::{RunView, evidence, label};

/// Records that a page has at most.
const MOST_RECORDS: usize = 500_000;

/// Kernel events that a page has at most.
const MOST_EVENTS: usize = 400_000;

/// Bytes of texts about gaps and events, all different ones together.
const MOST_TEXT: usize = 3 << 20;

/// Bytes beyond that for texts of which there are few.
const RESERVE: usize = 1 << 20;

/// The data as JSON, harmless within a `script` element: neither `<` nor a line end of
/// JavaScript's own is in it.
pub(super) fn json(run: &RunView<'_>, gaps: &[Gap<'_>], ran: &OccupancyData) -> String {
    let mut texts = Texts::default();
    // No more than MOST_RECORDS records are drawn.
    let excess = run.intervals.len().saturating_sub(MOST_RECORDS).min(gaps.len());
    let shortest_ns = least_kept(gaps.iter().map(Gap::length_ns), excess);
    let evidence = evidence_of(run, gaps, &mut texts);
    let threads: Vec<Value> = chains(run, shortest_ns, gaps, &evidence);
    let events = events(run, &mut texts);
    let elapsed = run.document.manifest.elapsed_ns;
    let last = run.intervals.iter().map(|record| record.end_ns).max().unwrap_or(0);
    let data = json!({
        "from": run.intervals.first().map_or(0, |record| record.start_ns.min(0)),
        "to": last.max(i64::try_from(elapsed).unwrap_or(i64::MAX)),
        "shortest": shortest_ns,
        "threads": threads,
        "kinds": KINDS,
        "texts": texts.all,
        "events": events,
        "ran": cpu_occupancy::json(run, ran),
        "wakes": wake_ups::json(run),
        "jobs": jobs::json(run),
    });
    escaped(&data.to_string())
}

/// `json` without what could end a script or begin a comment.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Texts, each once.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
    bytes: usize,
}

impl Texts {
    /// The place of `text` plus one; 0 if it is empty, or all would be more than `most` bytes.
    fn place(&mut self, text: &str, most: usize) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        if self.bytes + text.len() > most {
            return 0;
        }
        self.bytes += text.len();
        self.all.push(crate::clean::for_terminal(text));
        let place = self.all.len() as u64;
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// The place of each gap's evidence among the texts; the longest gaps first, lest their texts
/// find no room. Without room for a text only the indications are written, which are few.
fn evidence_of(run: &RunView<'_>, gaps: &[Gap<'_>], texts: &mut Texts) -> Vec<u64> {
    let mut order: Vec<usize> =
        (0..gaps.len()).filter(|at| gaps[*at].attribution.is_some()).collect();
    order.sort_unstable_by_key(|at| (Reverse(gaps[*at].length_ns()), *at));
    let mut places = vec![0; gaps.len()];
    for at in order {
        let Some(why) = gaps[at].attribution else { continue };
        places[at] = match texts.place(&evidence(why, run.thread_names()), MOST_TEXT) {
            0 => texts.place(&why.evidence.to_string(), MOST_TEXT + RESERVE),
            place => place,
        };
    }
    places
}

/// The columns of one thread.
#[derive(Default)]
struct Chain {
    records: u64,
    end_ns: i64,
    start_ns: i64,
    /// Where the record began that is being made longer, if any.
    open: bool,
    before: ColumnEncoder,
    length: ColumnEncoder,
    cpus: Vec<(u32, u64)>,
    seen: ColumnEncoder,
    counted: ColumnEncoder,
    kind: ColumnEncoder,
    confidence: ColumnEncoder,
    text: ColumnEncoder,
}

fn chains(run: &RunView<'_>, shortest_ns: u64, gaps: &[Gap<'_>], evidence: &[u64]) -> Vec<Value> {
    let mut chains: BTreeMap<u32, Chain> = BTreeMap::new();
    let mut next = gaps.iter().zip(evidence).peekable();
    for record in run.intervals {
        let found = |gap: &(&Gap<'_>, &u64)| {
            gap.0.thread == record.thread && gap.0.to_ns == record.start_ns
        };
        // A thread's first record has no gap before it, whatever its onset says.
        let known = chains.contains_key(&record.thread);
        let gap = if known && record.onset.is_gap() { next.next_if(found) } else { None };
        chains.entry(record.thread).or_default().push(record, gap, shortest_ns);
    }
    let named: BTreeMap<u32, _> = run.document.result.threads.iter().map(|t| (t.id, t)).collect();
    let finished = chains.into_iter().map(|(id, mut chain)| {
        chain.close();
        let thread = named.get(&id);
        chain.value(
            id,
            thread.map_or("", |thread| label(thread)),
            thread.map_or("", |thread| &thread.policy),
        )
    });
    finished.collect()
}

impl Chain {
    fn push(&mut self, record: &Interval, gap: Option<(&Gap<'_>, &u64)>, shortest_ns: u64) {
        let same_cpu = self.cpus.last().is_some_and(|(cpu, _)| *cpu == record.cpu);
        if let Some((gap, _)) = gap
            && gap.length_ns() < shortest_ns
            && same_cpu
            && self.open
        {
            self.end_ns = self.end_ns.max(record.end_ns);
            return;
        }
        let end_before = self.end_ns;
        self.close();
        self.before.signed(record.start_ns.saturating_sub(end_before));
        (self.start_ns, self.end_ns, self.open) = (record.start_ns, record.end_ns, true);
        match self.cpus.last_mut() {
            Some((cpu, times)) if *cpu == record.cpu => *times += 1,
            _ => self.cpus.push((record.cpu, 1)),
        }
        self.seen.byte(record.onset.code() | seen(record.evidence) << 3);
        if let Some(counted) = record.evidence.counted {
            for count in [counted.involuntary, counted.voluntary, counted.faults] {
                self.counted.byte(count);
            }
        }
        self.kind.byte(gap.map_or(0, |(gap, _)| gap.kind as u8 + 1));
        let confidence =
            gap.and_then(|(gap, _)| gap.attribution).map_or(0.0, |why| why.confidence());
        self.confidence.byte((confidence.clamp(0.0, 1.0) * 200.0).round() as u8);
        self.text.unsigned(gap.map_or(0, |(_, text)| *text));
    }

    /// Ends the record that is being made.
    fn close(&mut self) {
        if self.open {
            self.length.unsigned(self.end_ns.abs_diff(self.start_ns));
            self.records += 1;
            self.open = false;
        }
    }

    fn value(&self, id: u32, label: &str, policy: &str) -> Value {
        let mut cpus = ColumnEncoder::default();
        for (cpu, times) in &self.cpus {
            cpus.unsigned((*cpu).into());
            cpus.unsigned(*times);
        }
        json!({
            "id": id,
            "label": crate::clean::for_terminal(label),
            "policy": crate::clean::for_terminal(policy),
            "records": self.records,
            "before": self.before.text(),
            "length": self.length.text(),
            "cpus": cpus.text(),
            "seen": self.seen.text(),
            "counted": self.counted.text(),
            "kind": self.kind.text(),
            "confidence": self.confidence.text(),
            "text": self.text.text(),
        })
    }
}

/// Evidence in three bits: 0 nothing about the critical section, 1 not cleared, 2 cleared; and 4
/// where counts follow.
fn seen(evidence: Evidence) -> u8 {
    let cleared = match evidence.cleared {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    cleared | u8::from(evidence.counted.is_some()) << 2
}

/// Kernel events: time since the one before, CPU, kind with what it begins or ends, and words.
fn events(run: &RunView<'_>, texts: &mut Texts) -> Value {
    let (mut before, mut cpu, mut what, mut text) = (
        ColumnEncoder::default(),
        ColumnEncoder::default(),
        ColumnEncoder::default(),
        ColumnEncoder::default(),
    );
    let mut last_ns = 0;
    let shown = &run.events[..run.events.len().min(MOST_EVENTS)];
    for event in shown {
        before.signed(event.ns.saturating_sub(last_ns));
        last_ns = event.ns;
        cpu.unsigned(event.cpu.into());
        let phase = match phase(event.kind) {
            Phase::Moment => 0,
            Phase::Begin => 1,
            Phase::End => 2,
        };
        what.byte(event.kind.code() << 2 | phase);
        text.unsigned(texts.place(&words(event, run.names), MOST_TEXT + RESERVE));
    }
    json!({
        "all": run.events.len(),
        "records": shown.len(),
        "before": before.text(),
        "cpu": cpu.text(),
        "what": what.text(),
        "text": text.text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_not_ended() {
        let text = escaped("</script><!-- \u{2028}&");
        assert_eq!(text, "\\u003c/script\\u003e\\u003c!-- \\u2028\\u0026");
    }

    #[test]
    fn texts_are_kept_once_and_have_an_end() {
        let mut texts = Texts::default();
        let mut place = |text: &str| texts.place(text, 9);
        assert_eq!((place("a"), place("b"), place("a")), (1, 2, 1));
        assert_eq!((place(""), place("0123456789"), place("c\u{1b}")), (0, 0, 3));
        assert_eq!(texts.all, ["a", "b", "c"]);
    }
}
