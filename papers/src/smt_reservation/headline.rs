//! The evaluation in a few numbers, for a benchmark.
//!
//! Owns: running the product beside the integer product under the three policies. Must not: judge.

use super::contention::CoRunner;
use super::jobs::product;
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;
use super::test_host::SmtTestHost;
use super::trial;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFigures {
    /// `ignore`, `disable` or `monitor, word`.
    pub policy: &'static str,
    pub periods: u64,
    pub missed: u64,
    /// Late because the job needed more than was reserved, where that is known.
    pub overran: u64,
    /// Late only by gaps that the kernel knows nothing of.
    pub excused: u64,
    /// What the others did of a CPU's time.
    pub best_effort: f64,
    /// What the monitor's thread used of a CPU's time.
    pub monitor: f64,
    pub looks: f64,
    /// The latest look after its time, ns.
    pub latest_look_ns: u64,
    pub margin_ns: u64,
    pub late: Vec<String>,
}

/// The product of section 5.2 beside the integer product, periods of all policies in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    pub emulated: bool,
    /// Slack that the monitor keeps back for stopping and for the lateness of timers, as measured, ns.
    pub margin_ns: u64,
    /// Best-effort throughput with monitored slack, relative to disabled SMT; `None` if the latter gave
    /// nothing.
    pub ratio: Option<f64>,
    pub policies: Vec<PolicyFigures>,
}

/// Measures `turns` times `periods` periods of 70 ms of each policy.
///
/// # Errors
/// One line: what is missing, and what would mend it.
pub fn headline(turns: usize, periods: usize) -> Result<Headline, String> {
    let rig = SmtTestHost::for_this_machine()?;
    let jobs = product(periods);
    let mut found = [SmtMethod::Ignore, SmtMethod::Disable, SmtMethod::Word]
        .map(|way| (way, ProcessOutcome::default()));
    for _ in 0..turns {
        for (way, outcome) in &mut found {
            let more = trial::run(&rig, &jobs, Some(CoRunner::Integer), *way, || false)?;
            outcome.append(more.ok_or("a signal ended it")?);
        }
    }
    let [_, (_, disable), (_, word)] = &found;
    let base = disable.best_effort();
    let ratio = (base > 0.0).then(|| word.best_effort() / base);
    let margin_ns = rig.stopping.margin_ns();
    let policies = found.iter().map(figures).collect();
    Ok(Headline { emulated: rig.emulated, margin_ns, ratio, policies })
}

fn figures((way, outcome): &(SmtMethod, ProcessOutcome)) -> PolicyFigures {
    let time = (outcome.periods * outcome.deadline_ns).max(1) as f64;
    PolicyFigures {
        policy: way.name(),
        periods: outcome.periods,
        missed: outcome.missed(),
        overran: outcome.overran(),
        excused: outcome.excused(),
        best_effort: outcome.best_effort(),
        monitor: outcome.monitor_ns as f64 / time,
        looks: outcome.checks as f64 / outcome.periods.max(1) as f64,
        latest_look_ns: outcome.latest_look_ns,
        margin_ns: outcome.margin_ns,
        late: outcome.late_words(),
    }
}
