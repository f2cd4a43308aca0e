//! Who may vouch for the wall clock.

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{ClockSettings, Native, SourceId, Start, states_bound};
use hourglass_documents::clocks::SourceEvidence;
use hourglass_sys::adjtimex;
use hourglass_sys::clock::{ClockId, now_ns};

/// Somebody who may vouch for `CLOCK_REALTIME`.
///
/// A source MUST
/// - say a bound that holds for the whole distance of `CLOCK_REALTIME` from UTC, what it knows of that distance
///   included, at `at_ns` and, with `growth_ppb`, after it;
/// - refuse, with the reason, where it is not synchronised to UTC itself: never a number instead;
/// - answer within 0.1 s, without privileges, and change nothing;
/// - take every answer of another program as strange bytes.
pub(super) trait UtcSource {
    /// In documents.
    fn name(&self) -> &'static str;
    /// What it says now.
    fn ask(&self) -> UtcAnswer;
}

/// What a source says, or why it does not vouch; and what that stands on.
pub(super) struct UtcAnswer {
    pub(super) said: Result<UtcStatement, String>,
    pub(super) evidence: Vec<SourceEvidence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UtcStatement {
    /// At `at_ns`.
    pub(super) error_ns: u64,
    pub(super) growth_ppb: u64,
    /// `CLOCK_MONOTONIC` at the latest when it held.
    pub(super) at_ns: u64,
    /// How long before the source heard from its own, at most.
    pub(super) age_ns: u64,
}

impl UtcStatement {
    /// The bound some time after it was said.
    pub(super) fn error_ns(&self, since_ns: u64) -> u64 {
        self.error_ns.saturating_add(growth_ns(since_ns, self.growth_ppb))
    }
}

/// What a rate comes to, ns rounded up.
pub(super) fn growth_ns(since_ns: u64, rate_ppb: u64) -> u64 {
    let grown = u128::from(since_ns) * u128::from(rate_ppb);
    u64::try_from(grown.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

pub(super) fn evidence(id: &str, found: String, verdict: &str) -> SourceEvidence {
    SourceEvidence { id: id.to_owned(), found, verdict: verdict.to_owned() }
}

/// What the kernel was told by its synchroniser (`adjtimex`), grown by 500 ppm since.
pub(super) struct Kernel;

/// As in the kernel (`MAXFREQ`).
pub(super) const KERNEL_GROWTH_PPB: u64 = 500_000;

impl UtcSource for Kernel {
    fn name(&self) -> &'static str {
        super::KERNEL
    }

    fn ask(&self) -> UtcAnswer {
        let at_ns = now_ns(ClockId::Monotonic);
        let state = match adjtimex::discipline() {
            Ok(state) => state,
            Err(error) => {
                let said = Err(format!("adjtimex is refused here: {error}"));
                return UtcAnswer { said, evidence: Vec::new() };
            }
        };
        let flag = if state.synchronised { "clear" } else { "set" };
        let verdict = if state.synchronised { "for" } else { "against" };
        let evidence = vec![
            evidence("unsync_flag", format!("STA_UNSYNC is {flag}"), verdict),
            evidence("max_error", format!("{} us", state.max_error_us), "neutral"),
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
        UtcAnswer { said: said.ok_or_else(|| refused.to_owned()), evidence }
    }
}
