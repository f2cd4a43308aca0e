//! The sleeper.

#[cfg(target_os = "linux")]
use std::io;
use std::ops::Deref;

use hourglass_clock::timekeeping::Timebase;
use hourglass_clock::{Clock, process};
#[cfg(target_os = "linux")]
use hourglass_sys::idle_latency::IdleLatency;

use super::KernelSleep;
use super::interrupt::{Interrupt, Interrupter};
use super::kernel_wait::LEAST_SLACK_NS;
use super::margin::{Charge, Margins};
use super::mechanism::{Mechanism, SchedClass};
use super::settings::SleeperSettings;

/// Puts a thread to sleep until an absolute time, to some tens of nanoseconds, at little CPU time.
///
/// Most of a sleep is a kernel wait, which ends late by tens of microseconds; it is asked to end
/// earlier by a margin, and the rest is spun. The margin is learnt while sleeping, for each
/// scheduling class and CPU of the thread, within a [`super::Budget`] of CPU time.
///
/// A sleep **never ends before its deadline** on its own clock (unless interrupted): what ends it is
/// a reading of `now_ordered`, taken after everything before it, that is at the deadline. It ends
/// late by whatever the scheduler does; [`super::SleepOutcome`] tells by how much and why.
///
/// A deadline that has passed does not enter the kernel, where such a wait would cost the usual time
/// (25 us were measured). Nothing is allocated while sleeping. Signals whose handlers do not
/// interrupt the sleeper do not end a sleep. The timer slack of the thread is 1 ns while it is in
/// the kernel, and as before afterwards; a thread that has it for good anyhow saves three system calls
/// a sleep by [`Sleeper::take_slack`].
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
pub struct Sleeper<C = &'static Clock, M = KernelSleep> {
    pub(super) clock: C,
    pub(super) mechanism: M,
    pub(super) settings: SleeperSettings,
    pub(super) interrupter: Interrupter,
    pub(super) margins: Margins,
    /// Whether the thread has no slack for good, so that waits need not ask.
    pub(super) has_no_slack: bool,
    /// Keeps CPUs out of deep idle states while it lives.
    #[cfg(target_os = "linux")]
    pub(super) idle_latency: Option<IdleLatency>,
    pub(super) class: Option<SchedClass>,
    pub(super) waits: u32,
    /// What the last sleep cost, until it is charged.
    pub(super) charge: Option<Charge>,
}

impl Sleeper {
    /// On the clock of the process, learning.
    #[must_use]
    pub fn new() -> Sleeper {
        Sleeper::with(SleeperSettings::DEFAULT)
    }

    /// On the clock of the process.
    #[must_use]
    pub fn with(settings: SleeperSettings) -> Sleeper {
        Sleeper::on(process::clock(), KernelSleep::new(), settings)
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
    pub fn on(clock: C, mechanism: M, settings: SleeperSettings) -> Sleeper<C, M> {
        Sleeper {
            clock,
            mechanism,
            settings,
            interrupter: Interrupter::new(),
            margins: Margins::new(),
            has_no_slack: false,
            #[cfg(target_os = "linux")]
            idle_latency: None,
            class: None,
            waits: 0,
            charge: None,
        }
    }

    /// This sleeper, interrupted by `interrupt` instead of a word of its own.
    #[must_use]
    pub fn interrupted_by(self, interrupt: &'static Interrupt) -> Sleeper<C, M> {
        Sleeper { interrupter: Interrupter::of(interrupt), ..self }
    }

    /// This sleeper, interrupted through this handle, which others may have too, and by nothing else.
    #[must_use]
    pub fn interrupted_through(self, interrupter: Interrupter) -> Sleeper<C, M> {
        Sleeper { interrupter, ..self }
    }

    /// Sets the timer slack of the calling thread to 1 ns, for all its waits and the threads that it
    /// starts, so that sleeps need neither ask for it nor change it. For the thread that sleeps, where
    /// it does little else.
    pub fn take_slack(&mut self)
    where
        M: Mechanism,
    {
        self.mechanism.set_slack_ns(LEAST_SLACK_NS);
        self.has_no_slack = true;
    }

    /// Keeps all CPUs out of idle states that take longer than `us` to leave, for as long as the
    /// sleeper lives, by holding `/dev/cpu_dma_latency`: wake-ups of the kernel are sooner and more
    /// alike, at the price of power. With 0 idle CPUs poll. A later call replaces this one.
    ///
    /// # Errors
    /// The device is missing (in many virtual machines and containers) or may not be written
    /// (`sudo chmod a+w /dev/cpu_dma_latency` grants it).
    #[cfg(target_os = "linux")]
    pub fn hold_idle_latency(&mut self, us: u32) -> io::Result<()> {
        self.idle_latency = Some(IdleLatency::hold(us)?);
        Ok(())
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

    /// Settings of the sleeper.
    #[must_use]
    pub fn settings(&self) -> &SleeperSettings {
        &self.settings
    }

    /// Sleeps otherwise from now on; what was learnt stays.
    pub fn set(&mut self, settings: SleeperSettings) {
        self.settings = settings;
    }

    /// The mechanism: simulated ones take orders.
    pub fn mechanism(&mut self) -> &mut M {
        &mut self.mechanism
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    /// The margin that a sleep of this length would have here and now, ns; `None` if nothing was
    /// learnt here.
    #[must_use]
    pub fn margin_ns(&mut self, length_ns: u64) -> Option<u64> {
        let place = self.place(length_ns);
        self.settle();
        self.margins.margin_ns(&self.settings, place, length_ns)
    }

    /// The time on the sleeper's clock, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ordered()
    }
}
