//! Table 5.3 and Figure 5.4: the thesis' probe for HZ.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, Curves, Decision, EdgeUnit, MeasurementKind, PaperFigure,
};
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::drawing::{curve, curves, edge};
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::{NumberResult, row};
use super::sleeps::hz::{BUSY_NS, RATES, TickKernel, counted_here, most_frequent};
use super::sleeps::{local_sleeper, probe};

const SIMULATED_TRIES: usize = 400;

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let tries = bench.at_most(400, 25);
    let _pinned = PinnedThread::to_last_cpu();
    let mut counted = Vec::with_capacity(tries);
    for _ in 0..tries {
        if (bench.stopped)() {
            return None;
        }
        counted.push(counted_here(BUSY_NS));
    }
    let conditions = local_sleeper::conditions(bench);
    let found = Table53Data { counted, probe: probe(bench), tick_hz: bench.tick_hz, conditions };
    Some(found.assembled(table, MeasurementKind::Measured))
}

pub(super) struct Table53Data {
    /// CPU time counted in each try, ns.
    pub(super) counted: Vec<u64>,
    pub(super) probe: HzProbe,
    pub(super) tick_hz: Option<u32>,
    pub(super) conditions: String,
}

impl Table53Data {
    pub(super) fn assembled(&self, table: &Table, how: MeasurementKind) -> MeasuredTable {
        let found = |ns: Option<u64>, tries: usize| -> NumberResult {
            ns.map(|ns| (ns as f64, tries as u64)).ok_or_else(|| "there was no try".into())
        };
        let mut rows = Vec::new();
        for (line, hz) in table.lines.iter().zip(RATES) {
            let usual = most_frequent(&tries(hz, SIMULATED_TRIES)).map(|(ns, _)| ns);
            let found = found(usual, SIMULATED_TRIES);
            rows.push(row(&*line.name, "ms", line.printed(0), MeasurementKind::Simulated, found));
        }
        let usual = most_frequent(&self.counted).map(|(ns, _)| ns);
        let (least, greatest) = (self.counted.iter().min(), self.counted.iter().max());
        for (what, ns) in
            [("most frequent", usual), ("least", least.copied()), ("greatest", greatest.copied())]
        {
            let found = found(ns, self.counted.len());
            rows.push(row(format!("this kernel, {what}"), "ms", None, how, found));
        }
        let values = self.values(usual.map_or(0.0, |ns| ns as f64 / 1e6));
        let measured = table.with_rows(rows, values).with_decisions(self.decisions());
        measured.with_figure(PaperFigure::Curves(self.figure()))
    }

    fn values(&self, usual: f64) -> Values {
        let hz = self.tick_hz;
        Values::default()
            .with("tries", self.counted.len())
            .with("simulated tries", SIMULATED_TRIES)
            .with("conditions", self.conditions.as_str())
            .with("usual", format!("{usual:.1} ms"))
            .with_if("precise", (usual - 14.5).abs() < 0.3)
            .with_if("short", usual < 14.2 && self.probe.found.is_none())
            .with_some("HZ", hz.map(u64::from))
            .with_if("found", hz.is_some() && hz == self.probe.found)
            .with_if("taken", hz == Some(self.probe.hz))
    }

    fn decisions(&self) -> Vec<Decision> {
        let tries = self.probe.counted_ns.map(|ns| format!("{:.1}", ns as f64 / 1e6)).join(", ");
        let decision = |given: String, probe: &HzProbe, because| Decision {
            given,
            chosen: format!("HZ {}", probe.hz),
            because,
        };
        let because = match self.probe.found {
            Some(_) => format!("{} of 5 tries ({tries} ms) stand in its row", self.probe.votes),
            None => format!("no try ({tries} ms) stands in a row, and then 250 is taken"),
        };
        let own = decision("what this kernel counts".into(), &self.probe, because);
        let simulated = RATES.into_iter().map(|hz| {
            let mut kernel = TickKernel::new(hz);
            let probe = HzProbe::with(|| kernel.counted(BUSY_NS));
            let because = format!("{} of 5 tries stand in its row", probe.votes);
            decision(format!("a simulated kernel with HZ {hz}"), &probe, because)
        });
        std::iter::once(own).chain(simulated).collect()
    }

    fn figure(&self) -> Curves {
        const SHOWN: usize = 40;
        let single = |name: String, origin, colour, counted: &[u64]| {
            let points = (1..).zip(counted.iter().take(SHOWN));
            let points = points.map(|(number, ns): (u32, _)| (f64::from(number), *ns as f64));
            Curve { joined: false, ..curve(name, origin, colour, points) }
        };
        let mut all = vec![single("this kernel".into(), CurveOrigin::Here, 0, &self.counted)];
        for (colour, hz) in (1..).zip(RATES) {
            let name = format!("counting in ticks, HZ {hz} (simulated)");
            all.push(single(name, CurveOrigin::Simulated, colour, &tries(hz, SHOWN)));
        }
        let edges = [
            ("number of the try", EdgeUnit::Number),
            ("CPU time counted by getrusage", EdgeUnit::Time),
        ]
        .map(|(text, unit)| edge(text, unit, AxisScale::Linear));
        let title = "CPU time counted for 14.5 ms of busy waiting, try by try";
        curves(("5.4", title), edges, all, "The thesis' own figure is a picture without numbers.")
    }
}

fn tries(hz: u32, count: usize) -> Vec<u64> {
    let mut kernel = TickKernel::new(hz);
    (0..count).map(|_| kernel.counted(BUSY_NS)).collect()
}
