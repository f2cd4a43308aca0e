//! Who had each CPU, for the timeline's rows of CPUs: slices as columns, names, and a legend.

use std::collections::BTreeMap;
use std::fmt::Write;

use hourglass_trace::cpu_occupancy::{self, Occupant, Slice};
use serde_json::{Value, json};

use super::columns::{ColumnEncoder, least_kept};
use crate::clean::{for_terminal, for_xml};
use crate::occupants::{Colour, CpuOccupants, times};
use crate::run::RunView;
use crate::units::{rounded, share};

/// Slices that a page has at most.
const MOST_SLICES: usize = 400_000;

/// Who had the CPUs of a run that were traced.
#[derive(Debug, Default)]
pub(super) struct OccupancyData {
    /// In order of CPU and then of time, without idle ones.
    slices: Vec<Slice>,
    /// For how long a CPU was recorded, ns; each.
    recorded_ns: BTreeMap<u32, u64>,
    parties: CpuOccupants,
}

/// From the kernel's events of a run. A CPU on which no switch was recorded is left out.
pub(super) fn collect(run: &RunView<'_>) -> OccupancyData {
    let Some(facts) = &run.document.manifest.kernel else { return OccupancyData::default() };
    let end_ns = i64::try_from(run.document.manifest.elapsed_ns).unwrap_or(i64::MAX);
    let mut slices = cpu_occupancy::slices(run.events, end_ns);
    // The trace also covers a time before and after the run, which is not part of the result.
    slices.retain_mut(|slice| {
        (slice.from_ns, slice.to_ns) = (slice.from_ns.max(0), slice.to_ns.min(end_ns));
        facts.covers(slice.cpu) && slice.from_ns < slice.to_ns
    });
    let (mut recorded_ns, mut switched) = (BTreeMap::<u32, u64>::new(), BTreeMap::new());
    for slice in &slices {
        let sum = recorded_ns.entry(slice.cpu).or_default();
        *sum = sum.saturating_add(slice.length_ns());
        *switched.entry(slice.cpu).or_insert(false) |= slice.who != Occupant::Interrupts;
    }
    slices.retain(|slice| switched.get(&slice.cpu) == Some(&true) && slice.who != Occupant::Idle);
    slices.sort_by_key(|slice| (slice.cpu, slice.from_ns));
    let parties = CpuOccupants::new(&times(&slices), &run.called());
    recorded_ns.retain(|cpu, _| switched.get(cpu) == Some(&true));
    OccupancyData { slices, recorded_ns, parties }
}

/// The style sheet's name of a colour.
fn class(colour: Colour) -> String {
    match colour {
        Colour::Thread(number) => format!("t{number}"),
        Colour::Rest => "rest".to_owned(),
        Colour::Interrupts => "irq".to_owned(),
    }
}

/// What the colours of the CPUs' rows mean, and how much of the CPUs each had; nothing where nothing is known.
pub(super) fn legend(out: &mut String, ran: &OccupancyData) {
    if ran.parties.all.is_empty() {
        return;
    }
    let all = ran.recorded_ns.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    out.push_str(
        "<div class=\"legend\" id=\"ran-legend\"><span class=\"faint\">Who had the CPUs:</span>",
    );
    for party in &ran.parties.all {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<span><span class=\"dot {}\"></span>{} <span class=\"faint\">{}, {}</span></span>",
            class(party.colour),
            for_xml(&party.name),
            rounded(party.ns),
            share(party.ns, all).unwrap_or_default()
        );
    }
    out.push_str(
        "<span><span class=\"dot idle\"></span>idle</span></div>\n<p class=\"note\">Where a pixel \
         holds more than one of them, each has its share of the height.</p>\n",
    );
}

/// The slices for the script: of each CPU the time since the end of the one before, the length, who.
pub(super) fn json(run: &RunView<'_>, ran: &OccupancyData) -> Value {
    // No more than MOST_SLICES are kept for themselves.
    let excess = ran.slices.len().saturating_sub(MOST_SLICES);
    let shortest = least_kept(ran.slices.iter().map(Slice::length_ns), excess);
    let called = run.called();
    let mut who: Vec<Value> = Vec::new();
    let mut places: BTreeMap<Occupant, u64> = BTreeMap::new();
    let mut cpus: BTreeMap<u32, Chain> = BTreeMap::new();
    for slice in &ran.slices {
        let Some(party) = ran.parties.place(slice.who) else { continue };
        let place = *places.entry(slice.who).or_insert_with(|| {
            who.push(json!({ "name": for_terminal(&called.in_full(slice.who)), "party": party }));
            who.len() as u64 - 1
        });
        cpus.entry(slice.cpu).or_default().push(slice, place, shortest);
    }
    let parties = ran.parties.all.iter().map(
        |party| json!({ "name": for_terminal(&party.name), "colour": format!("--{}", class(party.colour)) }),
    );
    json!({
        "least": shortest,
        "who": who,
        "parties": parties.collect::<Vec<_>>(),
        "cpus": cpus.into_iter().map(|(cpu, chain)| chain.value(cpu)).collect::<Vec<_>>(),
    })
}

/// The slices of one CPU.
#[derive(Default)]
struct Chain {
    records: u64,
    open: Option<(i64, i64, u64)>,
    end_ns: i64,
    before: ColumnEncoder,
    length: ColumnEncoder,
    who: ColumnEncoder,
}

impl Chain {
    /// Takes the next slice. One that is too short is counted to the one before it.
    fn push(&mut self, slice: &Slice, who: u64, shortest: u64) {
        if let Some((_, end_ns, last)) = &mut self.open
            && *end_ns == slice.from_ns
            && (slice.length_ns() < shortest || *last == who)
        {
            *end_ns = slice.to_ns;
            return;
        }
        self.close();
        self.open = Some((slice.from_ns, slice.to_ns, who));
    }

    fn close(&mut self) {
        let Some((from_ns, to_ns, who)) = self.open.take() else { return };
        self.before.signed(from_ns.saturating_sub(self.end_ns));
        self.length.unsigned(to_ns.abs_diff(from_ns));
        self.who.unsigned(who);
        self.end_ns = to_ns;
        self.records += 1;
    }

    fn value(mut self, cpu: u32) -> Value {
        self.close();
        json!({
            "cpu": cpu,
            "records": self.records,
            "before": self.before.text(),
            "length": self.length.text(),
            "who": self.who.text(),
        })
    }
}
