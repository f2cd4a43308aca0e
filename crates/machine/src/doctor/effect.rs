//! How much a condition costs, and which conditions matter most.

use hourglass_documents::doctor::{CheckEffect, CheckResult, Status};
use hourglass_time::Span;

use super::registry::Check;
use super::verdict::CheckVerdict;

/// The effect of `check`: what this machine's settings give, else what is known of such machines.
pub(super) fn effect(check: &Check, verdict: &CheckVerdict) -> CheckEffect {
    if verdict.status == Status::Ok {
        return CheckEffect::default();
    }
    let by_settings = verdict.delay_ns.map(|ns| {
        let delay = Span::saturating_from_nanos(ns);
        (ns, format!("up to {delay} at a time; by the settings found here"))
    });
    let known = || check.effect.map(|(ns, words)| (ns, words.to_owned()));
    let (ns, words) = by_settings.or_else(known).unzip();
    CheckEffect { ns, words: words.unwrap_or_else(|| "not known".to_owned()), rank: None }
}

/// Numbers the checks that fail or warn, from 1: by class of their effect on the worst latency, in a
/// class those that fail first, then by size, then in the order of documents.
pub(super) fn rank(checks: &mut [CheckResult]) {
    let bad = |check: &&mut CheckResult| matches!(check.status, Status::Fail | Status::Warn);
    let mut bad: Vec<&mut CheckResult> = checks.iter_mut().filter(bad).collect();
    bad.sort_by_key(|check| {
        let ns = check.effect.ns.unwrap_or(0);
        (class(check), check.status, std::cmp::Reverse(ns))
    });
    for (place, check) in (1..).zip(bad) {
        check.effect.rank = Some(place);
    }
}

/// 0 for milliseconds, then 100 us, 10 us, 1 us, less, not known. What fails refuses real-time work or
/// delays it for milliseconds: that is what the status says.
fn class(check: &CheckResult) -> u8 {
    match (check.status, check.effect.ns) {
        (Status::Fail, _) | (_, Some(1_000_000..)) => 0,
        (_, Some(100_000..)) => 1,
        (_, Some(10_000..)) => 2,
        (_, Some(1_000..)) => 3,
        (_, Some(_)) => 4,
        (_, None) => 5,
    }
}
