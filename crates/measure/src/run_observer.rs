//! Passes the engine's progress on to the observer of a run.
//!
//! Owns: the order in which recordings of the kernel begin and end around it. Must not: decide what is
//! recorded.

use hourglass_documents::document::Warning;
use hourglass_time::Span;
use hourglass_workload::LiveThreads;
use hourglass_workload::run::Shortfall;

use crate::load::Load;
use crate::observer::ExperimentObserver;
use crate::premises::Masks;
use crate::{concurrent_threads, interrupt_counts, kernel_trace, switch_records};

pub(crate) struct RunObserver<'a> {
    pub(crate) watch: &'a mut dyn ExperimentObserver,
    /// What will spoil the numbers, if threads get what they ask for.
    pub(crate) warnings: &'a mut Vec<Warning>,
    /// Judges anew what threads without what was refused to them will meet.
    pub(crate) without: &'a dyn Fn(&[Shortfall], &mut Vec<Warning>),
    pub(crate) interrupts: &'a mut interrupt_counts::InterruptSession,
    pub(crate) tracing: Option<&'a mut kernel_trace::TraceSession>,
    pub(crate) switches: Option<&'a mut switch_records::SwitchSession>,
    /// Who runs meanwhile, by counts, where nothing is traced.
    pub(crate) meanwhile: &'a mut Option<concurrent_threads::RunTimeSampler>,
    pub(crate) masks: &'a mut Masks,
    pub(crate) load: Option<&'a mut Load>,
    /// Before the run: none.
    pub(crate) live_threads: Option<LiveThreads>,
}

impl RunObserver<'_> {
    fn look_at_masks(&mut self, elapsed: Span) {
        if let Some(live) = &self.live_threads {
            let broken = self.masks.look(live, elapsed);
            broken.iter().for_each(|premise| self.watch.broke(premise));
        }
    }
}

impl hourglass_workload::RunObserver for RunObserver<'_> {
    fn started(&mut self, duration: Span, ticking: bool) {
        // Not earlier: if there is no run, its refusal is the only thing to say.
        self.watch.warn(self.warnings);
        self.watch.started(duration, ticking);
        self.look_at_masks(Span::ZERO);
        if let Some(load) = &mut self.load {
            load.begin();
        }
        self.interrupts.begin();
        if let Some(counts) = &mut self.meanwhile {
            counts.sample();
        }
        if let Some(tracing) = &mut self.tracing {
            let live = self.live_threads.iter().flat_map(LiveThreads::read);
            let tids: Vec<u32> = live.map(|glance| glance.tid).collect();
            tracing.begin(&tids);
        }
        if let Some(switches) = &mut self.switches {
            switches.begin();
        }
    }
    fn tick(&mut self, elapsed: Span) {
        if let Some(counts) = &mut self.meanwhile {
            counts.look_if_due();
        }
        self.look_at_masks(elapsed);
        if let Some(load) = &mut self.load {
            load.look().iter().for_each(|premise| self.watch.broke(premise));
        }
        self.watch.tick(elapsed);
    }
    fn refused(&mut self, shortfalls: &[Shortfall]) {
        if !shortfalls.is_empty() {
            (self.without)(shortfalls, self.warnings);
        }
    }
    fn live_threads(&mut self, live_threads: &LiveThreads) {
        self.live_threads = Some(live_threads.clone());
        if let Some(switches) = &mut self.switches {
            switches.know(live_threads);
        }
        self.watch.live_threads(live_threads);
    }
    fn status_requested(&mut self, elapsed: Span) {
        self.watch.status_requested(elapsed);
    }
    fn ended(&mut self) {
        if let Some(tracing) = &mut self.tracing {
            tracing.end();
        }
        if let Some(switches) = &mut self.switches {
            switches.end();
        }
        if let Some(counts) = &mut self.meanwhile {
            counts.sample();
        }
        self.interrupts.end();
        self.watch.ended();
        if let Some(load) = &mut self.load {
            load.end().iter().for_each(|premise| self.watch.broke(premise));
        }
    }
}
