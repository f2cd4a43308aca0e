//! The decision of each sleep: how long in the kernel, how long spinning.
//!
//! Owns: what is learnt for each scheduling class and CPU, the account of CPU time, the forced
//! samples.
//! Must not: sleep, read a clock, allocate.
//!
//! The margin between the kernel's wake-up and the deadline is the smaller of two: what covers the
//! wanted share of the wake-ups seen lately, and what the account affords. The account is of spinning
//! alone, and is measured by what the kernel's wait takes of the CPU here: a budget of wait and spin
//! together in nanoseconds (45 us and a thousandth) left nothing to spin with on machines where the
//! wait after 10 ms of idling takes 40 to 60 us, and a share of the time alone is nothing at 1 ms and
//! too much at 100 ms. Twice a plain sleep is also the least that never has a peer with a fixed margin
//! (spin_sleep) miss less for the same CPU, on simulated machines whose waits take 4 to 70 us and are
//! late by 3 to 250 us. Where waits are cheap and wake-ups far apart, it does not cover the median; a
//! share of the time slept is there for that.
//!
//! A sleeper that only spins learns nothing, and one that learns nothing spins for ever (an
//! estimate above the time asked for has locked programs into that). So every n-th sleep that would
//! only spin waits in the kernel, as early as it can.
//!
//! What does not help: waking early and waiting in the kernel a second time, when the CPU is not deep
//! asleep. Measured with SCHED_FIFO and sleeps of 1 ms on a virtual machine, the second wake-up was
//! late by 30 us where a single one was by 50, but spread as widely (99th percentile 35 us above the
//! mean, both), and each kernel wait took 30 us of CPU time, for nothing.

use super::mechanism::SchedClass;
use super::overhead::{MILLION, Overheads};
use super::settings::{Budget, SleeperSettings};

const PLACES: usize = 12;
/// Nothing shorter is worth a thought: it is spun.
pub(super) const WORTH_NS: u64 = 2_000;
/// The shortest kernel wait: what passes between the decision and the kernel's look at the time.
pub(super) const SHORTEST_WAIT_NS: u64 = 1_000;
/// What a kernel wait is thought to cost before one was measured, ns.
const COST_SEED_NS: u64 = 10_000;
/// The greatest interval between forced samples, sleeps.
const RAREST_SAMPLE: u32 = 1 << 16;
/// The share of the wake-ups that a part of the time slept may be spun for: two of three, parts per
/// million. Enough for the median sleep to be precise, also where the last few wake-ups mislead.
const USUAL_PPM: u32 = 666_667;
/// Number of sleeps over which a debt or credit is settled.
const SETTLE: i64 = 16;

/// Where a thread runs, by what rules, and for how long it sleeps: what wake-up times depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarginKey {
    pub(super) class: SchedClass,
    pub(super) cpu: u32,
    pub(super) length: Length,
}

impl MarginKey {
    /// Not asked for.
    pub(super) const UNKNOWN: MarginKey =
        MarginKey { class: SchedClass::OTHER, cpu: u32::MAX, length: Length::Short };
}

/// Lengths of sleeps that are alike. An idle CPU sleeps the deeper the longer it may: wake-ups after
/// 0.1, 1 and 10 ms were 20, 45 and 60 us late in the same minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Middle,
    Long,
}

impl Length {
    pub(super) const fn for_length(ns: u64) -> Length {
        match ns {
            0..300_000 => Length::Short,
            300_000..3_000_000 => Length::Middle,
            _ => Length::Long,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SleepPlan {
    Spin,
    /// In the kernel until `margin_ns` before the deadline.
    Kernel {
        margin_ns: u64,
        /// Whether it is a sample that the account would not have asked for.
        forced: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WaitCost {
    pub(super) wait_ns: u64,
    /// From the begin of the sleep to the wait: the questions and this decision. Not little, since what
    /// it needs is in no cache after a long wait.
    pub(super) thought_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) place: MarginKey,
    pub(super) length_ns: u64,
    pub(super) spin_ns: u64,
    pub(super) waited: bool,
}

#[derive(Clone, Debug)]
struct MarginEntry {
    place: MarginKey,
    known: Overheads,
    /// Number of the sleep that used it last.
    used: u64,
    /// Sleeps that were spun since the last sample.
    spun: u32,
    sample_after: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Margins {
    /// At most [`PLACES`], room for which is made at the beginning.
    entries: Vec<MarginEntry>,
    sleeps: u64,
    /// Time spun beyond the allowance, ns; negative if less was spun.
    debt_ns: i64,
}

impl Margins {
    pub(super) fn new() -> Margins {
        Margins { entries: Vec::with_capacity(PLACES), sleeps: 0, debt_ns: 0 }
    }

    pub(super) fn plan(
        &mut self,
        settings: &SleeperSettings,
        place: MarginKey,
        left_ns: u64,
    ) -> SleepPlan {
        if left_ns <= WORTH_NS {
            return SleepPlan::Spin;
        }
        let debt_ns = self.debt_ns;
        let entry = self.entry(settings, place);
        let known = &entry.known;
        let allowed =
            SpinBudget::for_length(&settings.budget, known, left_ns).less(debt_ns / SETTLE);
        let margin = covering_ns(settings, known, allowed).min(left_ns - SHORTEST_WAIT_NS);
        let kernel_cost = known.cost_ns.saturating_add(known.mean_spin_ns(margin));
        let pointless = left_ns <= (margin + SHORTEST_WAIT_NS).max(kernel_cost);
        if !pointless || left_ns > known.cost_ns.saturating_add(allowed.besides_ns) {
            entry.spun = 0;
            return SleepPlan::Kernel { margin_ns: margin, forced: false };
        }
        entry.spun += 1;
        if entry.spun >= entry.sample_after {
            entry.spun = 0;
            return SleepPlan::Kernel { margin_ns: left_ns - SHORTEST_WAIT_NS, forced: true };
        }
        SleepPlan::Spin
    }

    /// Counts a wake-up that came this much later than asked. `late`: after the deadline.
    pub(super) fn record(
        &mut self,
        settings: &SleeperSettings,
        place: MarginKey,
        plan: SleepPlan,
        overhead_ns: u64,
        late: bool,
    ) {
        let entry = self.entry(settings, place);
        entry.known.record(overhead_ns);
        if matches!(plan, SleepPlan::Kernel { forced: true, .. }) {
            // A sample that costs lateness is taken less often, one that shows a way out often.
            entry.sample_after = if late {
                entry.sample_after.saturating_mul(2).min(RAREST_SAMPLE)
            } else {
                settings.sample_every.max(1)
            };
        }
    }

    /// Counts what a kernel wait took of the CPU.
    pub(super) fn record_cost(
        &mut self,
        settings: &SleeperSettings,
        place: MarginKey,
        cost: WaitCost,
    ) {
        self.entry(settings, place).known.record_cost(cost.wait_ns, cost.thought_ns);
    }

    pub(super) fn charge(&mut self, settings: &SleeperSettings, charge: Charge) {
        let Charge { place, length_ns, spin_ns, waited } = charge;
        let known = &self.entry(settings, place).known;
        let cost_ns = known.cost_ns;
        let allowed = SpinBudget::for_length(&settings.budget, known, length_ns);
        let usual = known.mean_spin_ns(known.quantile_ns(USUAL_PPM));
        // The share is there for the usual wake-ups, and is not saved for others.
        let allowed_ns = allowed.at_any_rate_ns.max(allowed.besides_ns.min(usual));
        // A sleep that did not wait has spun what the wait would have taken as well.
        let spent = if waited { spin_ns } else { spin_ns.saturating_sub(cost_ns) };
        let signed = |ns| i64::try_from(ns).unwrap_or(i64::MAX);
        let most = signed(allowed_ns.max(cost_ns)).saturating_mul(SETTLE);
        let debt = self.debt_ns.saturating_add(signed(spent)).saturating_sub(signed(allowed_ns));
        self.debt_ns = debt.clamp(-most, most);
    }

    pub(super) fn margin_ns(
        &self,
        settings: &SleeperSettings,
        place: MarginKey,
        length_ns: u64,
    ) -> Option<u64> {
        let entry = self.entries.iter().find(|entry| entry.place == place)?;
        let known = &entry.known;
        let allowed = SpinBudget::for_length(&settings.budget, known, length_ns);
        let margin = covering_ns(settings, known, allowed.less(self.debt_ns / SETTLE));
        Some(margin.min(length_ns))
    }

    fn entry(&mut self, settings: &SleeperSettings, place: MarginKey) -> &mut MarginEntry {
        self.sleeps += 1;
        let index = match self.entries.iter().position(|entry| entry.place == place) {
            Some(index) => index,
            None => self.add(settings, place),
        };
        let entry = &mut self.entries[index];
        entry.used = self.sleeps;
        entry
    }

    /// Makes an entry, in the place of the one that was not used for longest if need be.
    fn add(&mut self, settings: &SleeperSettings, place: MarginKey) -> usize {
        let known = self.guess(settings, place);
        let sample_after = settings.sample_every.max(1);
        let new = MarginEntry { place, known, used: 0, spun: 0, sample_after };
        if self.entries.len() < PLACES {
            self.entries.push(new);
            return self.entries.len() - 1;
        }
        let oldest = (0..PLACES).min_by_key(|index| self.entries[*index].used).unwrap_or(0);
        self.entries[oldest] = new;
        oldest
    }

    /// What to believe of a new place: what was learnt last in its class, else the seed.
    fn guess(&self, settings: &SleeperSettings, place: MarginKey) -> Overheads {
        let same_class = self.entries.iter().filter(|entry| entry.place.class == place.class);
        match same_class.max_by_key(|entry| entry.used) {
            Some(entry) => Overheads::inherited(&entry.known),
            None => Overheads::seeded(settings.seed_ns, COST_SEED_NS),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct SpinBudget {
    /// For any wake-up, ns.
    at_any_rate_ns: u64,
    /// With what is there for the usual ones besides, ns.
    besides_ns: u64,
}

impl SpinBudget {
    /// In a sleep of that length. What the sleeper itself takes counts as spinning.
    fn for_length(budget: &Budget, known: &Overheads, length_ns: u64) -> SpinBudget {
        let of_wait = part(known.cost_ns, budget.of_wait_ppm);
        let at_any_rate_ns =
            budget.per_sleep_ns.saturating_add(of_wait).saturating_sub(known.thought_ns);
        let share = part(length_ns, budget.share_ppm);
        SpinBudget { at_any_rate_ns, besides_ns: at_any_rate_ns.saturating_add(share) }
    }

    /// Less what others took, or more by what they left.
    fn less(self, taken_ns: i64) -> SpinBudget {
        let left = |ns: u64| {
            let ns = i64::try_from(ns).unwrap_or(i64::MAX);
            u64::try_from(ns.saturating_sub(taken_ns)).unwrap_or(0)
        };
        let SpinBudget { at_any_rate_ns, besides_ns } = self;
        SpinBudget { at_any_rate_ns: left(at_any_rate_ns), besides_ns: left(besides_ns) }
    }
}

/// The margin that covers as many of the wake-ups as it may, ns.
fn covering_ns(settings: &SleeperSettings, known: &Overheads, allowed: SpinBudget) -> u64 {
    let wanted = known.quantile_ns(settings.quantile_ppm);
    let affordable = known.margin_spinning_ns(allowed.at_any_rate_ns);
    let usual = known.quantile_ns(USUAL_PPM).min(known.margin_spinning_ns(allowed.besides_ns));
    wanted.min(affordable.max(usual)).min(settings.longest_margin_ns)
}

fn part(whole_ns: u64, ppm: u32) -> u64 {
    let part = u128::from(whole_ns) * u128::from(ppm) / u128::from(MILLION);
    u64::try_from(part).unwrap_or(u64::MAX)
}
