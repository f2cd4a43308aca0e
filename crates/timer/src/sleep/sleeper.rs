//! The sleeper.

use std::ops::Deref;

use hourglass_clock::timekeeping::Timebase;
use hourglass_clock::{Clock, process};
use hourglass_sys::ahead;

use super::interrupt::{Interrupt, Interrupter};
use super::kernel::Kernel;
use super::margin::{Charge, Margins, Place, Plan, SHORTEST_WAIT_NS, WORTH_NS};
use super::mechanism::{Class, Mechanism, Woken};
use super::outcome::{Delay, Slept};
use super::settings::{EndsWhen, Policy, Settings};
use super::spin::{Spun, spin};

/// Puts a thread to sleep until an absolute time, to some tens of nanoseconds, at little CPU time.
///
/// Most of a sleep is a kernel wait, which ends late by tens of microseconds; it is asked to end
/// earlier by a margin, and the rest is spun. The margin is learnt while sleeping, for each
/// scheduling class and CPU of the thread, within a [`super::Budget`] of CPU time.
///
/// A sleep **never ends before its deadline** on its own clock (unless interrupted): what ends it is
/// a reading of `now_ordered`, taken after everything before it, that is at the deadline. It ends
/// late by whatever the scheduler does; [`Slept`] tells by how much and why.
///
/// A deadline that has passed does not enter the kernel, where such a wait would cost as much as any
/// (25 us were measured). Nothing is allocated while sleeping. Signals whose handlers do not
/// interrupt the sleeper do not end a sleep. The timer slack of the thread is 1 ns while it is in
/// the kernel, and as before afterwards.
///
/// One sleeper belongs to one thread at a time, since what it learns is the thread's. It may be
/// moved; what is left is then a guess that is soon corrected.
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::Sleeper;
///
/// let mut sleeper = Sleeper::new();
/// let slept = sleeper.sleep_for(Span::from_micros(200));
/// assert!(slept.reached() && !slept.interrupted);
/// println!("{} ns late, {} ns spun", slept.miss_ns(), slept.spin_ns);
/// ```
#[derive(Debug)]
pub struct Sleeper<C = &'static Clock, M = Kernel> {
    pub(super) clock: C,
    pub(super) mechanism: M,
    settings: Settings,
    interrupter: Interrupter,
    margins: Margins,
    /// As last asked for.
    class: Option<Class>,
    /// Kernel waits so far.
    waits: u32,
    /// What the last sleep cost, until it is charged.
    charge: Option<Charge>,
    /// Where the program goes on after the sleep.
    here: usize,
}

/// When a sleep is to end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// At this time, ns.
    Time(u64),
    /// When so much time has passed, ns.
    Passed(u64),
}

/// A kernel wait that is over.
#[derive(Clone, Copy, Debug)]
struct Waited {
    /// The time after it, ns.
    woke_ns: u64,
    /// When it was to be over, ns.
    until_ns: u64,
    interrupted: bool,
    /// What it took of the CPU, where that was measured.
    cost_ns: Option<u64>,
}

/// A sleep of which only the spin is left.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// What is known so far.
    slept: Slept,
    place: Place,
    begun_ns: u64,
    /// A reading of the clock, the last one or the one before, ns.
    from_ns: u64,
    /// The longest time between two readings so far, ns.
    longest_step_ns: u64,
    waited: Option<Waited>,
    /// Preemptions before the sleep, where they were asked for.
    before: Option<u64>,
}

impl Sleeper {
    /// On the clock of the process, learning.
    #[must_use]
    pub fn new() -> Sleeper {
        Sleeper::with(Settings::DEFAULT)
    }

    /// On the clock of the process.
    #[must_use]
    pub fn with(settings: Settings) -> Sleeper {
        Sleeper::on(process::clock(), Kernel::new(), settings)
    }
}

impl Default for Sleeper {
    fn default() -> Self {
        Sleeper::new()
    }
}

impl<C, M> Sleeper<C, M> {
    /// On any clock (a reference, an `Arc`), by any mechanism: both MUST be of one machine, real or
    /// simulated. Allocates the word that interrupts it and room for what it learns.
    #[must_use]
    pub fn on(clock: C, mechanism: M, settings: Settings) -> Sleeper<C, M> {
        Sleeper {
            clock,
            mechanism,
            settings,
            interrupter: Interrupter::own(),
            margins: Margins::new(),
            class: None,
            waits: 0,
            charge: None,
            here: 0,
        }
    }

    /// The same, interrupted by this instead of a word of its own.
    #[must_use]
    pub fn interrupted_by(self, interrupt: &'static Interrupt) -> Sleeper<C, M> {
        Sleeper { interrupter: Interrupter::of(interrupt), ..self }
    }

    /// A handle that interrupts it from anywhere.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Lets sleeps last again after an interrupt; tells whether there was one.
    pub fn clear(&self) -> bool {
        self.interrupter.clear()
    }

    /// How it sleeps.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sleeps otherwise from now on; what was learnt stays.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The mechanism: simulated ones take orders.
    pub fn mechanism(&mut self) -> &mut M {
        &mut self.mechanism
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    /// The margin that a long sleep here and now would have, ns; `None` if nothing was learnt here.
    #[must_use]
    pub fn margin_ns(&mut self) -> Option<u64> {
        let place = self.place(true);
        self.settle();
        self.margins.margin_ns(&self.settings, place)
    }

    /// The time on the sleeper's clock, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ordered()
    }

    /// Sleeps until an absolute time on the clock's scale, ns.
    #[inline(always)]
    pub fn sleep_until_ns(&mut self, deadline_ns: u64) -> Slept {
        self.sleep_and_return(Until::Time(deadline_ns), ahead::here())
    }

    /// Sleeps, to go on at `here`.
    #[inline(never)]
    pub(super) fn sleep_and_return(&mut self, until: Until, here: usize) -> Slept {
        let begun = self.clock.now_ordered();
        self.here = here;
        self.sleep_from(
            begun,
            match until {
                Until::Time(deadline_ns) => deadline_ns,
                Until::Passed(length_ns) => begun.saturating_add(length_ns),
            },
        )
    }

    /// Sleeps from a time that was just read.
    pub(super) fn sleep_from(&mut self, begun: u64, deadline: u64) -> Slept {
        let mut slept = Slept {
            deadline_ns: deadline,
            woke_ns: begun,
            kernel_ns: 0,
            spin_ns: 0,
            margin_ns: 0,
            longest_step_ns: 0,
            interrupted: self.interrupter.is_set(),
            delay: Delay::None,
        };
        if self.surely_reached(begun, deadline) {
            slept.delay = Delay::AlreadyPast;
            return slept;
        }
        if slept.interrupted {
            return slept;
        }
        let mut rest = self.approach(slept, deadline.saturating_sub(begun));
        // The way out is gone once shortly before it counts: what other programs ran meanwhile has
        // driven it out of the caches, which costs some 100 ns. The caller's code is brought near,
        // too.
        let rehearsal = deadline.saturating_sub(REHEARSAL_NS);
        let mut until = if rest.from_ns < rehearsal { rehearsal } else { deadline };
        loop {
            let slept = self.finish(&mut rest, until);
            if until == deadline || slept.interrupted {
                return slept;
            }
            ahead::prefetch(self.here, LINES_AHEAD);
            until = deadline;
        }
    }

    /// Gets near the deadline: all that is done before the spin.
    fn approach(&mut self, slept: Slept, left: u64) -> Rest {
        let Slept { deadline_ns: deadline, woke_ns: begun, .. } = slept;
        let place = self.place(left >= WORTH_ASKING_NS);
        let plan = self.plan(place, left);
        let before = (left > WORTH_NS).then(|| self.mechanism.preemptions());
        let mut rest = Rest {
            slept,
            place,
            begun_ns: begun,
            from_ns: begun,
            longest_step_ns: 0,
            waited: None,
            before,
        };
        if let Plan::Kernel { margin_ns, .. } = plan {
            let waited = self.wait(place, begun, deadline, margin_ns);
            self.learn(place, plan, waited, deadline);
            rest.slept.margin_ns = margin_ns;
            rest.slept.kernel_ns = waited.woke_ns.saturating_sub(begun);
            rest.slept.woke_ns = waited.woke_ns;
            rest.slept.interrupted = waited.interrupted;
            rest.waited = Some(waited);
            rest.from_ns = self.clock.now_ordered();
        }
        rest
    }

    /// Spins until `until` (the deadline, but in a rehearsal) and says how the sleep went.
    #[inline(never)]
    fn finish(&mut self, rest: &mut Rest, until: u64) -> Slept {
        let mut slept = rest.slept;
        let mut away_ns = 0;
        if !slept.interrupted {
            let spun = self.spin(rest.from_ns, until);
            slept.spin_ns = spun.ended_ns.saturating_sub(slept.woke_ns);
            slept.woke_ns = spun.ended_ns;
            slept.interrupted = spun.interrupted;
            slept.longest_step_ns = spun.longest_step_ns.max(rest.longest_step_ns);
            rest.longest_step_ns = slept.longest_step_ns;
            // After a rehearsal its last step counts again: it may have led beyond the deadline.
            rest.from_ns = spun.ended_ns.saturating_sub(spun.last_step_ns);
            if slept.miss_ns() > Delay::ON_TIME_NS && !slept.interrupted {
                slept.delay = self.delay(rest, spun);
                let stood_still = spun.last_step_ns > Delay::ON_TIME_NS;
                away_ns = if stood_still { spun.last_step_ns } else { 0 };
            }
        }
        self.charge = Some(Charge {
            place: rest.place,
            length_ns: slept.woke_ns.saturating_sub(rest.begun_ns),
            spin_ns: slept.spin_ns.saturating_sub(away_ns),
            waited: rest.waited.is_some(),
        });
        slept
    }

    #[inline(always)]
    fn spin(&mut self, from: u64, until: u64) -> Spun {
        let (clock, word) = (&*self.clock, &*self.interrupter);
        match self.settings.ends_when {
            EndsWhen::Reached => {
                let read = |clock: &Clock<B>| (clock.now_ordered(), None);
                spin(clock, &mut self.mechanism, word, read, from, until)
            }
            EndsWhen::SurelyReached => {
                let read = |clock: &Clock<B>| {
                    let bounds = clock.now_bounded();
                    (bounds.middle(), Some(bounds.earliest))
                };
                spin(clock, &mut self.mechanism, word, read, from, until)
            }
        }
    }

    /// Why a sleep ended late.
    #[cold]
    fn delay(&mut self, rest: &Rest, spun: Spun) -> Delay {
        let deadline = rest.slept.deadline_ns;
        let woken_late = rest.waited.is_some_and(|waited| waited.woke_ns >= deadline);
        if !woken_late && spun.last_step_ns <= Delay::ON_TIME_NS {
            return Delay::None;
        }
        let switched = rest.before.is_some_and(|before| self.mechanism.preemptions() > before);
        match (switched, woken_late) {
            (true, _) => Delay::Preempted,
            (false, true) => Delay::WokenLate,
            (false, false) => Delay::Stalled,
        }
    }

    fn plan(&mut self, place: Place, left: u64) -> Plan {
        if left < SHORTEST_WAIT_NS {
            return Plan::Spin;
        }
        let kernel = |margin_ns| Plan::Kernel { margin_ns, forced: false };
        match (self.settings.policy, self.settings.policy.tick_ns()) {
            (_, Some(tick)) if left >= tick => kernel(tick),
            (Policy::SpinOnly | Policy::Thesis { .. }, _) => Plan::Spin,
            (Policy::KernelOnly, _) => kernel(0),
            (Policy::Learned, _) => {
                self.settle();
                self.margins.plan(&self.settings, place, left)
            }
        }
    }

    /// Waits in the kernel.
    fn wait(&mut self, place: Place, begun: u64, deadline: u64, margin: u64) -> Waited {
        /// Of so many waits the cost of one is measured, and of each of the first ones.
        const MEASURE_EVERY: u32 = 8;
        let until = deadline - margin;
        let learning = self.settings.policy == Policy::Learned;
        let measuring = self.waits < MEASURE_EVERY || self.waits.is_multiple_of(MEASURE_EVERY);
        self.waits = self.waits.wrapping_add(1);
        let before = (learning && measuring).then(|| self.mechanism.cpu_time_ns());
        self.mechanism.clock_says(begun);
        let waited = match self.settings.policy {
            Policy::Thesis { .. } => self.wait_relative(begun, until),
            _ => self.wait_absolute(place, until),
        };
        self.mechanism.clock_says(waited.woke_ns);
        // Who is late already does not stay for measurements.
        let cost = before.filter(|_| waited.woke_ns < deadline);
        let cost_ns = cost.map(|cost| self.mechanism.cpu_time_ns().saturating_sub(cost));
        Waited { cost_ns, ..waited }
    }

    /// Waits for an absolute time, without slack.
    fn wait_absolute(&mut self, place: Place, until: u64) -> Waited {
        const LEAST_SLACK_NS: u64 = 1;
        let slack = if place.class.is_real_time() { None } else { self.mechanism.slack_ns() };
        let slack = slack.filter(|slack| *slack > LEAST_SLACK_NS);
        if slack.is_some() {
            self.mechanism.set_slack_ns(LEAST_SLACK_NS);
        }
        self.interrupter.enter();
        let (woke_ns, interrupted) = loop {
            let Some((word, value)) = self.interrupter.unset() else {
                break (self.clock.now_ordered(), true);
            };
            let woken = self.mechanism.wait_until(word, value, until);
            let now = self.clock.now_ordered();
            // Otherwise a signal, or a wake-up of somebody else's: there is time left to wait.
            if woken == Woken::Timeout || now >= until {
                break (now, false);
            }
        };
        self.interrupter.leave();
        if let Some(slack) = slack {
            self.mechanism.set_slack_ns(slack);
        }
        Waited { woke_ns, until_ns: until, interrupted, cost_ns: None }
    }

    /// Waits for a length of time as the thesis does: once, with the slack that the thread has, for
    /// the length computed before. `usleep`, but on the word that interrupts it.
    fn wait_relative(&mut self, begun: u64, until: u64) -> Waited {
        self.interrupter.enter();
        if let Some((word, value)) = self.interrupter.unset() {
            self.mechanism.wait_for(word, value, until - begun);
        }
        self.interrupter.leave();
        Waited {
            woke_ns: self.clock.now_ordered(),
            until_ns: until,
            interrupted: self.interrupter.is_set(),
            cost_ns: None,
        }
    }

    /// Waits in the kernel until about that time, and learns nothing from it; `false` if
    /// interrupted.
    pub(super) fn wait_coarsely(&mut self, until: u64) -> bool {
        let place = self.place(true);
        !self.wait_absolute(place, until).interrupted
    }

    /// Before the spin, where it costs nothing.
    fn learn(&mut self, place: Place, plan: Plan, waited: Waited, deadline: u64) {
        if self.settings.policy == Policy::Learned && !waited.interrupted {
            let overhead = waited.woke_ns.saturating_sub(waited.until_ns);
            let late = waited.woke_ns >= deadline;
            self.margins.record(&self.settings, place, plan, overhead, late);
            if let Some(cost_ns) = waited.cost_ns {
                self.margins.record_cost(&self.settings, place, cost_ns);
            }
        }
    }

    /// Charges the last sleep to the account; not at its end, where it would make it late.
    fn settle(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.margins.charge(&self.settings, charge);
        }
    }

    /// Where the thread is; the class as of the last time unless it is to be asked for.
    fn place(&mut self, ask: bool) -> Place {
        let class = match self.class {
            Some(class) if !ask => class,
            _ => *self.class.insert(self.mechanism.class()),
        };
        Place { class, cpu: self.mechanism.cpu() }
    }

    fn surely_reached(&self, now: u64, deadline: u64) -> bool {
        now >= deadline
            && (self.settings.ends_when == EndsWhen::Reached
                || self.clock.now_bounded().earliest >= deadline)
    }
}

/// Sleeps as long as this are worth a system call to ask for the scheduling class.
const WORTH_ASKING_NS: u64 = 20_000;
/// So long before the deadline the end of the sleep is rehearsed, ns.
const REHEARSAL_NS: u64 = 1_500;
/// As much of the caller's code is fetched, cache lines.
const LINES_AHEAD: usize = 4;
