//! What a reservation took, and how one goes.

use hourglass_documents::live::ReserveMoment;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_time::Span;

use super::{Style, TextStyle, line, periods};
use crate::units::rounded;

/// What it cost: processor time, and the waits of others.
pub(super) fn took(out: &mut String, document: &ReserveDocument, style: Style) {
    let Some(wall_ns) = document.wall_ns else { return };
    let used = match document.cpu_time_ns {
        Some(ns) => {
            format!("{} in {}: {} of a CPU", rounded(ns), rounded(wall_ns), share(ns, wall_ns))
        }
        None => format!("unknown, in {}", rounded(wall_ns)),
    };
    let keeper = document.keeper_ns.map(|ns| format!("; keeping it took {}", share(ns, wall_ns)));
    line(out, "CPU time", &(used + &keeper.unwrap_or_default()), TextStyle::Normal, style);
    if let (Some(ns), [cpu]) = (document.others_waited_max_ns, &document.cpus[..]) {
        let text =
            format!("on CPU {cpu} waited for it up to {} in a row, as measured", rounded(ns));
        line(out, "others", &text, TextStyle::Normal, style);
    }
    let begin = (document.budget_ns, document.period_ns);
    let before = std::iter::once(begin)
        .chain(document.changes.iter().map(|to| (to.budget_ns, to.period_ns)));
    for (change, from) in document.changes.iter().zip(before) {
        let to = (change.budget_ns, change.period_ns);
        let text =
            format!("from {} to {} after {}", amount(from), amount(to), rounded(change.at_ns));
        line(out, "changed", &text, TextStyle::Normal, style);
    }
}

/// A part of a time, in percent.
fn share(part_ns: u64, whole_ns: u64) -> String {
    let mille = u128::from(part_ns) * 1_000 / u128::from(whole_ns.max(1));
    match (mille / 10, mille % 10) {
        (0, 0) if part_ns > 0 => "below 0.1 %".to_owned(),
        (whole, tenths) => format!("{whole}.{tenths} %"),
    }
}

/// As the command line takes it.
pub(super) fn amount((budget_ns, period_ns): (u64, u64)) -> String {
    format!("{}/{}", exact(budget_ns), exact(period_ns))
}

pub(super) fn exact(ns: u64) -> Span {
    Span::saturating_from_nanos(ns)
}

/// How a reservation goes while it is in force, in a line.
#[must_use]
pub fn reserve_moment(moment: &ReserveMoment) -> String {
    let kept = match moment.missed {
        Some(missed) => {
            let kept = moment.periods.saturating_sub(missed);
            format!("kept in {kept} of {}", periods(moment.periods))
        }
        None => format!("{} so far", periods(moment.periods)),
    };
    let promise = if moment.guarantee { "guaranteed" } else { "not guaranteed" };
    let budget = rounded(moment.budget_ns);
    let last = moment.last_ns.map(|ns| format!(", the last {} of {budget}", rounded(ns)));
    let used_up = match moment.overruns {
        0 => String::new(),
        overruns => format!(", used up in {overruns}"),
    };
    let elapsed_s = moment.elapsed_ns / 1_000_000_000;
    format!("{elapsed_s} s: {promise}, {kept}{}{used_up}", last.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use hourglass_documents::reserve::ReserveChange;

    use super::*;

    const MS: u64 = 1_000_000;

    fn text(change: impl FnOnce(&mut ReserveDocument)) -> String {
        let mut document = super::super::tests::document();
        document.wall_ns = Some(8_000 * MS);
        change(&mut document);
        let mut out = String::new();
        took(&mut out, &document, Style::Plain);
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Wanted by users: what it took of the CPU, and of others' time.
    #[test]
    fn what_it_took_is_said_as_far_as_it_is_known() {
        assert_eq!(text(|document| document.wall_ns = None), "");
        assert_eq!(text(|_| {}), "CPU time unknown, in 8.00 s");
        let whole = text(|document| {
            document.cpu_time_ns = Some(2_480 * MS);
            document.keeper_ns = Some(3 * MS);
            document.others_waited_max_ns = Some(6 * MS);
            document.cpus = vec![1];
            let change = |at_ns, budget_ns| ReserveChange { at_ns, budget_ns, period_ns: 8 * MS };
            document.changes = vec![change(2_100 * MS, 4 * MS), change(3_000 * MS, 5 * MS)];
        });
        let expected = "CPU time 2.48 s in 8.00 s: 31.0 % of a CPU; keeping it took below 0.1 % \
                        others on CPU 1 waited for it up to 6.00 ms in a row, as measured \
                        changed from 3.1ms/8ms to 4ms/8ms after 2.10 s \
                        changed from 4ms/8ms to 5ms/8ms after 3.00 s";
        assert_eq!(whole, expected);
    }

    #[test]
    fn a_moment_is_a_line() {
        let moment = ReserveMoment {
            elapsed_ns: 12_300 * MS,
            budget_ns: 3_100_000,
            last_ns: Some(3_050_000),
            periods: 1_500,
            missed: Some(2),
            overruns: 12,
            guarantee: true,
        };
        let text = reserve_moment(&moment);
        let expected = "12 s: guaranteed, kept in 1498 of 1500 periods, the last 3.05 ms of 3.10 ms, used up in 12";
        assert_eq!(text, expected);
        let quota = ReserveMoment { last_ns: None, missed: None, guarantee: false, ..moment };
        assert_eq!(
            reserve_moment(&quota),
            "12 s: not guaranteed, 1500 periods so far, used up in 12"
        );
    }
}
