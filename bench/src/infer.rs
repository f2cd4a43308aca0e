//! The suite `infer`: what finding the causes of gaps costs, and how often it is right.

mod attribute;
mod calibration;
mod ground_truth;
mod peers;

use anyhow::Result;
use hourglass_clock::{Counter, CounterReading};
use hourglass_sys::rseq::{self, SectionState};
use hourglass_sys::thread::Counters;
use hourglass_workload::MeasuringCounter;
use hourglass_workload::gap_evidence::{EvidenceSource, ThreadEvidence};

use crate::document::Row;
use crate::paired::{Rounds, median};
use crate::workload::{COUNTER, GapLoop};

/// The most that the evidence may add to an iteration of the loop, ns.
const GOAL_NS: f64 = 1.0;

pub(crate) fn measure(rounds: u32, only: &[String]) -> Result<Vec<Row>> {
    if only.iter().any(|part| part == "calibration") {
        return calibration::measure();
    }
    let mut rows = Vec::new();
    rows.extend(classifier(rounds)?);
    rows.extend(attribute::measure()?);
    rows.extend(ground_truth::measure()?);
    rows.extend(calibration::measure()?);
    rows.extend(peers::measure()?);
    Ok(rows)
}

#[derive(Clone, Copy, Debug)]
struct WithoutEvidence<C>(C);

impl<C: Counter> Counter for WithoutEvidence<C> {
    const NAME: &'static str = C::NAME;

    #[inline(always)]
    fn read(&self) -> CounterReading {
        self.0.read()
    }
}

impl<C: Counter> MeasuringCounter for WithoutEvidence<C> {
    type EvidenceSource = NoEvidence;
}

enum NoEvidence {}

impl EvidenceSource for NoEvidence {
    fn arm(&mut self) {}

    fn section_state(&self) -> Option<SectionState> {
        None
    }

    fn sees_system_calls(&self) -> bool {
        true
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn cpu_ns(&self) -> u64 {
        0
    }
    fn waited_ns(&self) -> Option<u64> {
        None
    }
}

/// An iteration of the gap loop while a critical section is armed and asked about, beside one that is
/// compiled without. What it adds is the median of the differences within a round.
fn classifier(rounds: u32) -> Result<Vec<Row>> {
    let (counter, _) = COUNTER;
    let tested = rseq::self_test();
    if let Err(reason) = &tested {
        eprintln!("classifier: {reason}; the counters are asked after every gap instead");
    }
    let seeing = GapLoop::new(counter)?;
    let blind = GapLoop::new(WithoutEvidence(counter))?;
    let mut found = Rounds::of(vec!["hourglass/with", "hourglass/without"]);
    let mut added = Vec::new();
    for _ in 0..rounds {
        let mut pair = [0.0; 2];
        found.round(|subject| {
            pair[subject] = match subject {
                0 => seeing.round(|| Some(ThreadEvidence::open(&tested))),
                _ => blind.round(|| None),
            };
            pair[subject]
        });
        added.push(pair[0] - pair[1]);
    }
    let added = Row::alone("classifier", "hourglass", median(&mut added), "ns");
    let mut rows = vec![added.at_most(GOAL_NS)];
    rows.extend(found.rows("classifier", "ns"));
    Ok(rows)
}
