//! Who may vouch for the wall clock.

use hourglass_sys::adjtimex;
use hourglass_sys::clock::{ClockId, now_ns};

use crate::timekeeping::{
    Clock, ClockSettings, Native, SourceId, Start, UtcStatement, states_bound,
};

/// Somebody who may vouch for `CLOCK_REALTIME`.
///
/// A source MUST
/// - say a bound that holds for the whole distance of `CLOCK_REALTIME` from UTC, what it knows of that distance
///   included, at `at_ns` and, with `growth_ppb`, after it;
/// - refuse, with the reason, where it is not synchronised to UTC itself, and where the state of the kernel's clock speaks against
///   what it knows or cannot be had: never a number instead;
/// - answer within 0.1 s, without privileges, and change nothing;
/// - take every answer of another program as strange bytes.
pub trait UtcSource: Send {
    /// In documents.
    fn name(&self) -> &'static str;
    /// What it says now.
    fn ask(&self) -> UtcAnswer;
}

/// What a source says, or why it does not vouch; and what that stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtcAnswer {
    /// The bound, or one line with the reason and, where there is one, the remedy.
    pub said: Result<UtcStatement, String>,
    /// What a refusal speaks against.
    pub denies: UtcDenial,
    /// What was looked at.
    pub evidence: Vec<UtcEvidence>,
}

/// What does not count any more where a source does not vouch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UtcDenial {
    /// It is not there: what it said before counts for its time.
    #[default]
    Nothing,
    /// What it said before.
    Own,
    /// That, and the kernel's bound: it is what keeps the kernel's clock, or may be.
    Kernel,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtcEvidence {
    /// What; constant between versions.
    pub id: &'static str,
    /// What was found.
    pub found: String,
    /// What that says about the source: `for`, `against`, `neutral`.
    pub verdict: &'static str,
}

pub(super) fn evidence(id: &'static str, found: String, verdict: &'static str) -> UtcEvidence {
    UtcEvidence { id, found, verdict }
}

/// What the kernel was told by its synchroniser (`adjtimex`), grown by 500 ppm since.
#[derive(Clone, Copy, Debug)]
pub struct Kernel;

/// As in the kernel (`MAXFREQ`).
pub(super) const KERNEL_GROWTH_PPB: u64 = 500_000;

impl Kernel {
    /// Of the source.
    pub const NAME: &str = "kernel";
}

impl UtcSource for Kernel {
    fn name(&self) -> &'static str {
        Kernel::NAME
    }

    fn ask(&self) -> UtcAnswer {
        let at_ns = now_ns(ClockId::Monotonic);
        let state = match adjtimex::discipline() {
            Ok(state) => state,
            Err(error) => {
                let said = Err(format!("adjtimex is refused here: {error}"));
                return UtcAnswer { said, denies: UtcDenial::Own, evidence: Vec::new() };
            }
        };
        let flag = if state.synchronised { "clear" } else { "set" };
        let verdict = if state.synchronised { "for" } else { "against" };
        let evidence = vec![
            evidence("unsync_flag", format!("STA_UNSYNC is {flag}"), verdict),
            evidence("max_error", format!("{} us", state.max_error_us), "neutral"),
            evidence("est_error", format!("{} us", state.est_error_us), "neutral"),
            evidence("leap_second", format!("{:?}", state.leap).to_lowercase(), "neutral"),
        ];
        let start = Start::With(SourceId::OS);
        let clock = Clock::on(Native, ClockSettings { start, ..ClockSettings::DEFAULT });
        let said = clock.wall().error_ns.map(|error_ns| UtcStatement {
            error_ns,
            growth_ppb: KERNEL_GROWTH_PPB,
            at_ns,
            // It began at 0 at the earliest, and grew by 500 ppm.
            age_ns: error_ns.saturating_mul(2_000),
            supersedes_kernel: false,
        });
        let refused = if state.synchronised
            && !states_bound(state.max_error_us.saturating_mul(1_000))
        {
            "its synchroniser states no bound: systemd-timesyncd, ptp4l and phc2sys set maxerror to 0"
        } else if state.synchronised {
            "it is slewed by more than 500 ppm, faster than its bound grows"
        } else {
            "it is not synchronised"
        };
        let said = said.ok_or_else(|| refused.to_owned());
        UtcAnswer { said, denies: UtcDenial::Own, evidence }
    }
}
