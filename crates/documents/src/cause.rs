//! Why a thread did not run: the causes of gaps by their names in `hourglass.run/1`.

use std::ffi::CStr;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The cause of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The thread gave up the CPU by itself (yielded or waited) and another ran.
    ContextSwitchVoluntary,
    /// Another thread was put in its place.
    ContextSwitchInvoluntary,
    /// Another thread ran; by whose will is not known.
    ContextSwitch,
    /// The periodic timer interrupt, and what it did.
    TimerTick,
    /// An interrupt of a device, or from another CPU.
    Irq,
    /// Work that an interrupt had left for later.
    Softirq,
    /// The thread was moved to another CPU.
    Migration,
    /// Memory that was not there.
    PageFault,
    /// The kernel keeps a share of the CPU from real-time threads (`sched_rt_runtime_us`).
    RtThrottling,
    /// The budget of the deadline class was used up.
    DeadlineBudget,
    /// The budget of a reserve that is kept from user space was used up.
    ReservationBudget,
    /// The quota of the control group was used up.
    CgroupQuota,
    /// The thread was stopped by a signal.
    Stopped,
    /// An interrupt or softirq that is no tick, or something below the kernel: which of the two is unknown.
    IrqOrBelow,
    /// Nothing that the kernel knows of: a hypervisor, or firmware.
    BelowKernel,
    /// Not known.
    Unknown,
}

/// Writes what each cause is called beside it.
macro_rules! names {
    ($($cause:ident => $name:literal, $words:literal;)*) => {
        impl Cause {
            /// The name in documents.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Cause::$cause => $name,)* }
            }

            /// The name in documents, as C reads it.
            #[must_use]
            pub fn c_name(self) -> &'static CStr {
                match self { $(Cause::$cause => const { terminated(concat!($name, "\0")) },)* }
            }

            /// What stands in a sentence: where most time went.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Cause::$cause => $words,)* }
            }
        }
    };
}

names! {
    ContextSwitchVoluntary => "context_switch_voluntary", "voluntary context switches";
    ContextSwitchInvoluntary => "context_switch_involuntary", "involuntary context switches";
    ContextSwitch => "context_switch", "context switches";
    TimerTick => "timer_tick", "timer ticks";
    Irq => "irq", "interrupts";
    Softirq => "softirq", "softirqs";
    Migration => "migration", "migrations";
    PageFault => "page_fault", "page faults";
    RtThrottling => "rt_throttling", "real-time throttling";
    DeadlineBudget => "deadline_budget", "used-up budgets of the deadline class";
    ReservationBudget => "reservation_budget", "used-up budgets of the reservation";
    CgroupQuota => "cgroup_quota", "the control group's quota";
    Stopped => "stopped", "stops by a signal";
    IrqOrBelow => "irq_or_below", "interrupts or what is below the kernel (which of them is not known)";
    BelowKernel => "below_kernel", "what is below the kernel (hypervisor or firmware)";
    Unknown => "unknown", "causes not known";
}

const fn terminated(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name has no NUL"),
    }
}

impl Cause {
    /// All. Folders store places in it: another one comes last.
    pub const ALL: [Cause; 16] = [
        Cause::ContextSwitchVoluntary,
        Cause::ContextSwitchInvoluntary,
        Cause::ContextSwitch,
        Cause::TimerTick,
        Cause::Irq,
        Cause::Softirq,
        Cause::Migration,
        Cause::PageFault,
        Cause::RtThrottling,
        Cause::DeadlineBudget,
        Cause::CgroupQuota,
        Cause::Stopped,
        Cause::IrqOrBelow,
        Cause::BelowKernel,
        Cause::Unknown,
        Cause::ReservationBudget,
    ];

    /// The cause with this name in documents.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Whether another thread ran in the gap.
    #[must_use]
    pub fn is_switch(self) -> bool {
        matches!(
            self,
            Cause::ContextSwitchVoluntary | Cause::ContextSwitchInvoluntary | Cause::ContextSwitch
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
            assert_eq!(cause.c_name().to_str(), Ok(cause.name()));
        }
        assert_eq!(Cause::from_name("tick"), None);
    }
}
