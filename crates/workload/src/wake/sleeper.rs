//! The precise sleep of `hourglass-timer`: a kernel wait that ends early by a learnt margin, and a spin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hourglass_clock::process;
use hourglass_timer::sleep::{
    Interrupter, KernelSleep, Mechanism, SchedClass, Sleeper as Precise, SleeperSettings,
    WakeReason,
};

use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod};
use crate::tokens::WordError;

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "SLEEPER",
    synopsis: "SLEEPER[:INTENT]",
    about: "waits, then spins a learnt margin; INTENT is frugal, default or precise",
    aliases: &[],
    parse: |parameter| Ok(Arc::new(SleeperWakeUp { intent: Intent::read(parameter)? })),
};

/// What counts for more, misses or CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    Frugal,
    Default,
    Precise,
}

impl Intent {
    fn read(parameter: Option<&str>) -> Result<Intent, WordError> {
        match parameter {
            Some("frugal") => Ok(Intent::Frugal),
            None | Some("default") => Ok(Intent::Default),
            Some("precise") => Ok(Intent::Precise),
            Some(other) => Err(WordError::Bad {
                synopsis: ENTRY.synopsis,
                what: "INTENT",
                given: other.to_owned(),
                reason: "give frugal, default or precise".to_owned(),
            }),
        }
    }

    const fn settings(self) -> SleeperSettings {
        match self {
            Intent::Frugal => SleeperSettings::FRUGAL,
            Intent::Default => SleeperSettings::DEFAULT,
            Intent::Precise => SleeperSettings::PRECISE,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct SleeperWakeUp {
    intent: Intent,
}

impl fmt::Display for SleeperWakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.intent {
            Intent::Frugal => write!(f, "{}:frugal", ENTRY.name),
            Intent::Default => f.write_str(ENTRY.name),
            Intent::Precise => write!(f, "{}:precise", ENTRY.name),
        }
    }
}

impl WakeUpMethod for SleeperWakeUp {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        let interrupter = Interrupter::new();
        let kernel =
            InterruptibleKernel { kernel: KernelSleep::new(), interrupter: interrupter.clone() };
        let sleeper = Precise::on(process::clock(), kernel, self.intent.settings());
        let mut sleeper = sleeper.interrupted_through(interrupter);
        sleeper.take_slack();
        Ok(OpenWakeUp::native(move |alarm| {
            // One that a signal ended is an early return, which the caller takes care of.
            let _ = sleeper.sleep_until_ns(alarm.due_ns);
            sleeper.clear();
        }))
    }
}

/// This machine's kernel, where a signal ends a sleep: so a run is ended.
struct InterruptibleKernel {
    kernel: KernelSleep,
    interrupter: Interrupter,
}

impl Mechanism for InterruptibleKernel {
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason {
        let woken = self.kernel.wait_until(word, expected, deadline_ns);
        if woken == WakeReason::Signal {
            self.interrupter.interrupt();
        }
        woken
    }

    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason {
        self.kernel.wait_for(word, expected, length_ns)
    }

    fn relax(&mut self, left_ns: u64) {
        self.kernel.relax(left_ns);
    }

    fn cpu(&mut self) -> u32 {
        self.kernel.cpu()
    }

    fn class(&mut self) -> SchedClass {
        self.kernel.class()
    }

    fn preemptions(&mut self) -> u64 {
        self.kernel.preemptions()
    }

    fn cpu_time_ns(&mut self) -> u64 {
        self.kernel.cpu_time_ns()
    }

    fn slack_ns(&mut self) -> Option<u64> {
        self.kernel.slack_ns()
    }

    fn set_slack_ns(&mut self, slack_ns: u64) {
        self.kernel.set_slack_ns(slack_ns);
    }

    fn clock_says(&mut self, now_ns: u64) {
        self.kernel.clock_says(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn intents_are_read_as_they_are_printed() {
        for (given, printed) in [
            ("SLEEPER", "SLEEPER"),
            ("SLEEPER:default", "SLEEPER"),
            ("SLEEPER:frugal", "SLEEPER:frugal"),
            ("SLEEPER:precise", "SLEEPER:precise"),
        ] {
            assert_eq!(parse(given).unwrap().to_string(), printed);
        }
        let refused = parse("SLEEPER:exact").unwrap_err().to_string();
        assert!(refused.contains("INTENT 'exact'") && refused.contains("frugal, default"));
    }
}
