//! A time axis: round numbers, not too close, in a unit that suits them.

/// Units of the axis and their lengths in nanoseconds, ascending. Beyond a few minutes a second is
/// no longer what people count in.
const UNITS: [(&str, i64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A tick's number is given from a base other than zero if it would have more characters.
const LONGEST_LABEL: usize = 8;

/// A mark on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    /// Where, in nanoseconds from the run's start.
    pub(super) at_ns: i64,
    pub(super) label: String,
}

/// The marks of an axis and what their numbers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// The marks, ascending.
    pub(super) ticks: Vec<Tick>,
    pub(super) caption: String,
}

/// An axis from `from_ns` to `to_ns` with at most `most` steps.
pub(super) fn axis(from_ns: i64, to_ns: i64, most: u32) -> Axis {
    let range = i128::from(to_ns) - i128::from(from_ns);
    let (step, unit, unit_ns) = step(range, most);
    let decimals = decimals(step, unit_ns);
    let first = i128::from(from_ns).div_euclid(step) * step;
    let first = if first < i128::from(from_ns) { first + step } else { first };
    let longest = label(i128::from(to_ns), unit_ns, decimals).len();
    let base = if longest > LONGEST_LABEL { first } else { 0 };
    let mut ticks = Vec::new();
    let mut at = first;
    while at <= i128::from(to_ns) {
        ticks.push(Tick {
            at_ns: i64::try_from(at).unwrap_or(i64::MAX),
            label: label(at - base, unit_ns, decimals),
        });
        at += step;
    }
    let caption = match base {
        0 => format!("time from the run's start, {unit}"),
        // Exact: nothing else says where in the run this is.
        base => format!("time after {} s of the run, {unit}", seconds(base)),
    };
    Axis { ticks, caption }
}

/// The least step of 1, 2 or 5 times a power of ten of a unit that divides `range` into at most
/// `most`; its unit's name and length. The unit is the largest of which `range` holds two.
fn step(range: i128, most: u32) -> (i128, &'static str, i128) {
    let (unit, unit_ns) = UNITS
        .iter()
        .map(|&(unit, ns)| (unit, i128::from(ns)))
        .rfind(|&(_, ns)| range >= 2 * ns)
        .unwrap_or(("ns", 1));
    let mut power = unit_ns;
    while power % 10 == 0 {
        power /= 10;
    }
    loop {
        for step in [power, 2 * power, 5 * power] {
            if step * i128::from(most.max(1)) >= range {
                return (step, unit, unit_ns);
            }
        }
        power *= 10;
    }
}

/// Decimals that a multiple of `step` needs in units of `unit_ns`.
fn decimals(step: i128, unit_ns: i128) -> usize {
    let mut decimals = 0;
    let mut power = 1;
    while (step * power) % unit_ns != 0 && decimals < 9 {
        decimals += 1;
        power *= 10;
    }
    decimals
}

/// `ns` in units of `unit_ns`, with that many decimals.
fn label(ns: i128, unit_ns: i128, decimals: usize) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let magnitude = ns.unsigned_abs();
    let unit = unit_ns.unsigned_abs();
    let whole = magnitude / unit;
    if decimals == 0 {
        return format!("{sign}{whole}");
    }
    let part = (magnitude % unit) * 10u128.pow(decimals as u32) / unit;
    format!("{sign}{whole}.{part:0decimals$}")
}

/// `ns` in seconds, exactly, without zeros at the end.
fn seconds(ns: i128) -> String {
    let text = label(ns, 1_000_000_000, 9);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from_ns: i64, to_ns: i64) -> (Vec<String>, String) {
        let axis = axis(from_ns, to_ns, 10);
        let labels = axis.ticks.into_iter().map(|tick| tick.label).collect();
        (labels, axis.caption)
    }

    /// Figure 3 shows 500 ms, Figure 6 shows 25 ms.
    #[test]
    fn the_papers_ranges() {
        let (ticks, caption) = labels(0, 500_000_000);
        assert_eq!(
            ticks,
            ["0", "50", "100", "150", "200", "250", "300", "350", "400", "450", "500"]
        );
        assert_eq!(caption, "time from the run's start, ms");
        let (ticks, caption) = labels(1_002_500_000, 1_027_500_000);
        assert_eq!(ticks, ["1005", "1010", "1015", "1020", "1025"]);
        assert_eq!(caption, "time from the run's start, ms");
    }

    /// Far into a run, numbers of ten digits that differ in the last say nothing.
    #[test]
    fn a_base_where_numbers_would_be_long() {
        let (ticks, caption) = labels(4_123_456_123_007, 4_123_456_131_007);
        assert_eq!(ticks, ["0", "1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(caption, "time after 4123.456124 s of the run, us");
    }

    #[test]
    fn long_runs_count_in_minutes_and_hours() {
        let (ticks, caption) = labels(0, 45 * 60_000_000_000);
        assert_eq!(ticks, ["0", "5", "10", "15", "20", "25", "30", "35", "40", "45"]);
        assert_eq!(caption, "time from the run's start, min");
        let (ticks, caption) = labels(0, 5 * 3_600_000_000_000);
        assert_eq!(ticks.first().map(String::as_str), Some("0.0"));
        assert_eq!(ticks.last().map(String::as_str), Some("5.0"));
        assert!(caption.ends_with(", h"), "{caption}");
    }

    #[test]
    fn every_range_has_a_few_ticks_inside_it() {
        let ends = [
            i64::MIN,
            -1_000_000_007,
            -1,
            0,
            1,
            2,
            7,
            999,
            1_000,
            123_456_789,
            86_400_000_000_000,
            i64::MAX - 1,
            i64::MAX,
        ];
        for (at, &from) in ends.iter().enumerate() {
            for &to in &ends[at + 1..] {
                let axis = axis(from, to, 10);
                let count = axis.ticks.len();
                assert!((1..=11).contains(&count), "{from}..{to}: {axis:?}");
                for pair in axis.ticks.windows(2) {
                    assert!(pair[0].at_ns < pair[1].at_ns && pair[0].label != pair[1].label);
                }
                for tick in &axis.ticks {
                    assert!((from..=to).contains(&tick.at_ns), "{from}..{to}");
                }
            }
        }
    }
}
