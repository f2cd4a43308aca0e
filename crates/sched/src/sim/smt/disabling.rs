//! The other CPUs of a core are idle while a real-time thread runs on it (section 4.2).

use super::Watched;
use super::plan::{Core, Plan};
use crate::sim::{Gate, Monitor, Orders, Reasons, View};

/// Closes and opens CPUs as real-time threads come and go.
#[derive(Debug)]
pub(super) struct Disabling {
    cores: Vec<Core>,
    /// Whether the siblings of each core are closed.
    closed: Vec<bool>,
    stops: u64,
}

impl Disabling {
    pub(super) fn new(plan: Plan) -> Disabling {
        Disabling { closed: vec![false; plan.cores.len()], cores: plan.cores, stops: 0 }
    }

    pub(super) fn watched(&self) -> Watched {
        Watched { stops: self.stops, ..Watched::default() }
    }
}

impl Monitor for Disabling {
    fn timers(&self) -> usize {
        0
    }

    fn wants(&self) -> Reasons {
        Reasons { dispatch: true, ..Reasons::default() }
    }

    fn look(&mut self, view: &View<'_>, orders: &mut Orders<'_>) {
        for (core, closed) in self.cores.iter().zip(&mut self.closed) {
            let runs = view.running(core.cpu).is_some_and(|thread| core.threads.contains(&thread));
            if runs != *closed {
                *closed = runs;
                self.stops += u64::from(runs);
                let gate = if runs { Gate::Closed } else { Gate::Open };
                core.siblings.iter().for_each(|cpu| orders.gate(*cpu, gate));
            }
        }
    }
}
