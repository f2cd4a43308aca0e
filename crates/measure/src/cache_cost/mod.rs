//! The indirect cost of context switches by the size of working sets (Hourglass paper, section 5.2).
//!
//! Owns: the order of the runs, what is kept of each, what spoils the numbers. Must not: compute the
//! cost, which is an inference, or draw.
//!
//! One thread and several in turns do the same work for the same time on the same CPU, one run right
//! after the other; which of the two comes first changes from trial to trial. All sizes have their turn
//! before the next trial begins, so that a slow hour of the machine does not fall upon one size.

mod figure;
mod sizes;
mod trial;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use hourglass_clock::{Choice, choice};
use hourglass_documents::cache_cost::{CACHE_COST_SCHEMA, CacheCostDocument, SizeCost};
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_machine::facts::HostReader;
use hourglass_sys::{signal, thread};
use hourglass_time::Span;
use hourglass_trace::inferences::{CacheTrial, cache_cost};
use hourglass_trace::statistics::Estimate;
use hourglass_workload::models::{self, Model};
use hourglass_workload::spec::MOST_THREADS;

use crate::experiment::{RunFailure, failure};
use crate::niceness;
use crate::resources::{check_cpus, check_memory};
pub use figure::curves;
pub use sizes::{SizesError, sizes};
use trial::TrialResult;

/// Others may take this share of the CPU from the run of one thread without a warning.
const OTHERS: f64 = 0.02;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheCost {
    /// Working sets, bytes.
    pub sizes: Vec<u64>,
    /// Trials of each size, from 1.
    pub trials: u32,
    /// How long each run takes; a trial is two runs.
    pub duration: Span,
    /// Threads of the run that is compared with that of one, from 2.
    pub threads: u32,
    /// CPU on which all run; the last one that this process may use if `None`.
    pub cpu: Option<u32>,
}

impl CacheCost {
    pub const THREADS: std::ops::RangeInclusive<u32> = 2..=MOST_THREADS as u32;

    /// How long the whole experiment takes, but for what lies between the runs.
    pub fn length(&self) -> Span {
        let runs = self.sizes.len() as i64 * i64::from(self.trials) * 2;
        Span::from_nanos(self.duration.nanos().saturating_mul(runs))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub done: u64,
    pub all: u64,
    /// Working set of the next run, bytes.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    single: TrialResult,
    shared: TrialResult,
}

#[derive(Debug)]
pub struct CacheCostResult {
    pub document: CacheCostDocument,
    pub signal: Option<i32>,
}

/// Measures. `watch` is called before each run, while nothing is measured.
///
/// SIGINT, SIGTERM and SIGHUP end the experiment; what was complete by then is in the document.
///
/// # Errors
/// A CPU that is not there or not permitted, more memory than there is.
pub fn measure(
    wanted: &CacheCost,
    mut watch: impl FnMut(Step),
) -> Result<CacheCostResult, RunFailure> {
    let host = HostReader::new(Path::new("/")).read();
    let cpu = match wanted.cpu {
        Some(cpu) => cpu,
        None => last_permitted()?,
    };
    let bench = TrialSetup {
        wanted,
        cpu,
        choice: choice::choose(Path::new("/")),
        host: &host,
        shifted: RefCell::default(),
    };
    let models = bench.models()?;
    // Without the handlers a signal ends the process, as it does anywhere else.
    let _ = signal::catch_stop();
    let mut pairs: Vec<Vec<Pair>> = vec![Vec::new(); wanted.sizes.len()];
    let all = u64::from(wanted.trials) * 2 * wanted.sizes.len() as u64;
    let mut done = 0;
    'trials: for trial in 0..wanted.trials {
        for ((bytes, model), pairs) in wanted.sizes.iter().zip(&models).zip(&mut pairs) {
            let mut tell = || {
                watch(Step { done, all, bytes: *bytes });
                done += 1;
            };
            match bench.pair(model, trial % 2 == 1, &mut tell)? {
                Some(pair) => pairs.push(pair),
                None => break 'trials,
            }
        }
    }
    let signal = signal::stop_asked();
    Ok(CacheCostResult { document: bench.document(&pairs, signal.is_some()), signal })
}

fn last_permitted() -> Result<u32, RunFailure> {
    let cpus = thread::affinity().map_err(|error| RunFailure::Other(error.to_string()))?;
    cpus.last().copied().ok_or_else(|| RunFailure::Other("no CPU to run on".to_owned()))
}

struct TrialSetup<'a> {
    wanted: &'a CacheCost,
    cpu: u32,
    choice: Choice,
    host: &'a Host,
    /// Why the threads run at another nice value than 0.
    shifted: RefCell<Option<Warning>>,
}

impl TrialSetup<'_> {
    /// The model of each size, after it is clear that the machine has what it needs.
    fn models(&self) -> Result<Vec<Arc<dyn Model>>, RunFailure> {
        let mut models = Vec::new();
        for bytes in &self.wanted.sizes {
            let kib = (bytes >> 10).max(1);
            let model = models::parse(&["CPU_SCAN", &kib.to_string()])
                .map_err(|error| RunFailure::Other(error.to_string()))?;
            let spec = trial::spec(&model, self.wanted.threads, self.cpu, self.wanted.duration);
            spec.check()?;
            check_cpus(&spec, self.host)?;
            check_memory(&spec, self.host).map_err(|failure| match failure {
                RunFailure::Memory { wanted, limit, .. } => {
                    RunFailure::Sizes { kib, wanted, limit }
                }
                other => other,
            })?;
            models.push(model);
        }
        Ok(models)
    }

    /// Both runs of a trial, in either order; `None` if a signal came.
    fn pair(
        &self,
        model: &Arc<dyn Model>,
        many_first: bool,
        tell: &mut dyn FnMut(),
    ) -> Result<Option<Pair>, RunFailure> {
        let mut run = |threads: u32| {
            if signal::stop_asked().is_some() {
                return Ok(None);
            }
            tell();
            let mut spec = trial::spec(model, threads, self.cpu, self.wanted.duration);
            // The same warning each time; the document has it once.
            let shifted = niceness::fit(&mut spec, self.host);
            self.shifted.replace(shifted);
            match trial::run(&spec, &self.choice) {
                Ok(ran) => Ok(Some(ran).filter(|ran| !ran.interrupted)),
                Err(error) => Err(failure(error, self.host)),
            }
        };
        let many = self.wanted.threads;
        let (first, second) = if many_first { (many, 1) } else { (1, many) };
        let Some(first) = run(first)? else { return Ok(None) };
        let Some(second) = run(second)? else { return Ok(None) };
        let (one, many) = if many_first { (second, first) } else { (first, second) };
        Ok(Some(Pair { single: one, shared: many }))
    }

    fn document(&self, pairs: &[Vec<Pair>], interrupted: bool) -> CacheCostDocument {
        let sizes = self.wanted.sizes.iter().zip(pairs);
        CacheCostDocument {
            schema: CACHE_COST_SCHEMA.to_owned(),
            cpu: self.cpu,
            processor: self.host.cpu.model.clone(),
            kernel: self.host.kernel.clone(),
            threads: self.wanted.threads,
            duration_ns: self.wanted.duration.nanos_or_zero(),
            trials: self.wanted.trials,
            sizes: sizes.map(|(bytes, pairs)| size_cost(*bytes, pairs)).collect(),
            warnings: others(pairs).into_iter().chain(self.shifted.take()).collect(),
            interrupted,
        }
    }
}

fn size_cost(bytes: u64, pairs: &[Pair]) -> SizeCost {
    let by = |trial: fn(&Pair) -> CacheTrial| {
        cache_cost(&pairs.iter().map(trial).collect::<Vec<CacheTrial>>())
    };
    let (whole, refill) = (by(whole), by(in_received_time));
    let value = |found: &Option<Estimate>| found.map(|found| found.value);
    let end = |found: &Option<Estimate>, end: fn(&Estimate) -> f64| {
        found.as_ref().map(end).filter(|end| end.is_finite())
    };
    let mean = |of: fn(&Pair) -> f64| {
        let sum: f64 = pairs.iter().map(of).sum();
        (!pairs.is_empty()).then(|| sum / pairs.len() as f64)
    };
    SizeCost {
        bytes,
        penalty_ns: value(&whole),
        ci_lo_ns: end(&whole, |found| found.lo),
        ci_hi_ns: end(&whole, |found| found.hi),
        refill_ns: value(&refill),
        refill_ci_lo_ns: end(&refill, |found| found.lo),
        refill_ci_hi_ns: end(&refill, |found| found.hi),
        trials: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        switches_per_s: mean(|pair| pair.shared.switches as f64 * 1e9 / pair.shared.elapsed_ns),
        work_of_one: mean(|pair| pair.single.passes),
        work_of_many: mean(|pair| pair.shared.passes),
    }
}

fn whole(pair: &Pair) -> CacheTrial {
    // The runs may differ by microseconds.
    let same_time = pair.shared.elapsed_ns / pair.single.elapsed_ns;
    CacheTrial {
        work_of_one: pair.single.passes * same_time,
        work_of_many: pair.shared.passes,
        duration_ns: pair.shared.elapsed_ns,
        switches: pair.shared.switches,
    }
}

/// Work in the time that the threads received: what others took drops out, and so does the time in
/// the kernel.
fn in_received_time(pair: &Pair) -> CacheTrial {
    let same_time = pair.shared.received_ns / pair.single.received_ns.max(1.0);
    CacheTrial {
        work_of_one: pair.single.passes * same_time,
        work_of_many: pair.shared.passes,
        duration_ns: pair.shared.received_ns,
        switches: pair.shared.switches,
    }
}

fn others(pairs: &[Vec<Pair>]) -> Option<Warning> {
    let ones = || pairs.iter().flatten().map(|pair| pair.single);
    let elapsed: f64 = ones().map(|one| one.elapsed_ns).sum();
    let received: f64 = ones().map(|one| one.received_ns).sum();
    let lost = 1.0 - received / elapsed;
    (elapsed > 0.0 && lost > OTHERS).then(|| Warning {
        id: "others-run".to_owned(),
        text: format!(
            "a thread that had the CPU to itself received {:.1} % of it: other work took the remaining time, which \
             the penalty cannot distinguish from switches",
            received / elapsed * 100.0
        ),
        remedy: "end other programs, name a quieter --cpu, or use the refill, which excludes their \
                 time"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passes: f64, received_ns: f64, switches: u64) -> TrialResult {
        TrialResult { passes, received_ns, elapsed_ns: 1e9, switches, interrupted: false }
    }

    /// Ten threads with 250 switches that cost 20 µs in the kernel and 80 µs of slow running lose
    /// 2.5 per cent of the work: 100 µs a switch, 80 of which are refill.
    #[test]
    fn the_formula_and_its_parts() {
        let (one, many) = (ran(1e6, 1e9, 0), ran(0.975e6, 0.995e9, 250));
        let found = size_cost(64 << 10, &[Pair { single: one, shared: many }; 3]);
        let near = |found: Option<f64>, value: f64| (found.unwrap() - value).abs() < 1.0;
        assert!(near(found.penalty_ns, 100e3), "{found:?}");
        assert!(near(found.refill_ns, 80e3), "{found:?}");
        assert!(near(found.ci_hi_ns, 100e3) && found.trials == 3);
        assert!(near(found.switches_per_s, 250.0));
    }

    /// A cache of which others take half is left out of the refill, and a warning says so.
    #[test]
    fn others_are_reported() {
        let (one, many) = (ran(0.5e6, 0.5e9, 0), ran(0.9e6, 0.9e9, 250));
        let found = size_cost(4096, &[Pair { single: one, shared: many }]);
        assert!(found.penalty_ns.unwrap() < 0.0 && found.refill_ns.unwrap().abs() < 1.0);
        assert_eq!(found.ci_lo_ns, None, "one trial has no interval");
        assert!(
            others(&[vec![Pair { single: one, shared: many }]])
                .is_some_and(|w| w.text.contains("50.0 %"))
        );
        assert!(others(&[vec![Pair { single: ran(1.0, 0.99e9, 0), shared: many }]]).is_none());
        assert!(others(&[Vec::new()]).is_none());
    }

    /// A short experiment on this machine: all is there, and more work is done than none.
    #[test]
    fn a_short_experiment() {
        let wanted = CacheCost {
            sizes: vec![4 << 10, 32 << 10],
            trials: 2,
            duration: Span::from_millis(30),
            threads: 3,
            cpu: None,
        };
        let mut steps = Vec::new();
        let found = measure(&wanted, |step| steps.push(step)).unwrap();
        assert_eq!((steps.len(), steps[7].done, steps[7].all), (8, 7, 8));
        assert_eq!(found.document.sizes.len(), 2);
        for size in &found.document.sizes {
            assert_eq!(size.trials, 2);
            assert!(size.work_of_one.unwrap() > 10.0 && size.work_of_many.unwrap() > 10.0);
        }
        let elsewhere = CacheCost { cpu: Some(4_000), ..wanted };
        let refused = measure(&elsewhere, |_| ()).unwrap_err();
        assert!(matches!(refused, RunFailure::NoSuchCpu { cpu: 4_000, .. }), "{refused}");
    }
}
