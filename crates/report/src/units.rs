//! Times for people: one unit for a block of numbers, three or four digits for a single one.

/// Names and lengths in nanoseconds, ascending.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A unit and a number of decimals that a block of numbers shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitScale {
    name: &'static str,
    unit_ns: u64,
    decimals: u32,
}

impl UnitScale {
    /// The scale for a block whose typical lengths are `typical_ns` (the medians of its rows, in
    /// any order; zeros say nothing).
    ///
    /// The unit suits the middle one of them, and the decimals let the least one keep two digits,
    /// as far as whole nanoseconds go.
    pub(crate) fn for_block(typical_ns: impl Iterator<Item = u64>) -> UnitScale {
        let mut typical: Vec<u64> = typical_ns.filter(|&ns| ns > 0).collect();
        typical.sort_unstable();
        let least = typical.first().copied().unwrap_or(0);
        let middle = typical.get(typical.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let (name, unit_ns) = unit_of(middle);
        let most = match unit_ns {
            1 => 0,
            1_000 => 3,
            _ => 4,
        };
        let mut scale = UnitScale { name, unit_ns, decimals: u32::min(most, 1) };
        while scale.decimals < most && u128::from(least) * scale.power() < 10 * u128::from(unit_ns)
        {
            scale.decimals += 1;
        }
        scale
    }

    /// The same with as many decimals as it takes to write neighbours of `ns` that differ differently, as
    /// far as whole nanoseconds go.
    pub(crate) fn telling_apart(mut self, ns: &[u64]) -> UnitScale {
        let alike = |scale: &UnitScale| {
            ns.windows(2)
                .any(|pair| pair[0] != pair[1] && scale.scaled(pair[0]) == scale.scaled(pair[1]))
        };
        while self.power() < u128::from(self.unit_ns) && alike(&self) {
            self.decimals += 1;
        }
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// `ns` in this scale, rounded to its decimals, without the unit.
    pub(crate) fn text(&self, ns: u64) -> String {
        let scaled = self.scaled(ns);
        let whole = scaled / self.power();
        match self.decimals as usize {
            0 => whole.to_string(),
            decimals => format!("{whole}.{:0decimals$}", scaled % self.power()),
        }
    }

    pub(crate) fn signed(&self, ns: i64) -> String {
        let sign = if ns < 0 { "-" } else { "" };
        format!("{sign}{}", self.text(ns.unsigned_abs()))
    }

    /// `ns` in units of the last decimal, rounded to the nearest.
    fn scaled(&self, ns: u64) -> u128 {
        let unit = u128::from(self.unit_ns);
        (u128::from(ns) * self.power() + unit / 2) / unit
    }

    fn power(&self) -> u128 {
        10u128.pow(self.decimals)
    }
}

/// The largest unit of which `ns` holds at least one.
fn unit_of(ns: u64) -> (&'static str, u64) {
    UNITS.iter().rev().find(|(_, unit_ns)| ns >= *unit_ns).copied().unwrap_or(UNITS[0])
}

/// A single length of time for people: three digits (of nanoseconds and seconds as many as there
/// are), and its unit: `2.18 us`, `58.2 ms`, `120 s`. Input in nanoseconds.
#[must_use]
pub fn rounded(ns: u64) -> String {
    let mut scale = UnitScale { name: UNITS[0].0, unit_ns: UNITS[0].1, decimals: 0 };
    // From the finest on, the first that shows three digits after rounding.
    for (name, unit_ns) in UNITS {
        let most = if unit_ns == 1 { 0 } else { 2 };
        for decimals in (0..=most).rev() {
            scale = UnitScale { name, unit_ns, decimals };
            if scale.scaled(ns) < 1_000 {
                return format!("{} {name}", scale.text(ns));
            }
        }
    }
    format!("{} {}", scale.text(ns), scale.name)
}

/// Nanoseconds as seconds, exactly: `0.0000012`.
pub(crate) fn seconds(ns: u64) -> String {
    const NS: u64 = 1_000_000_000;
    let text = format!("{}.{:09}", ns / NS, ns % NS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `part` of `whole` in per cent with one decimal; `None` of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<String> {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let per_mille = (part * 1000 + whole / 2).checked_div(whole)?;
    Some(format!("{}.{} %", per_mille / 10, per_mille % 10))
}

/// What a gate counts, with its unit. A time keeps all its digits, so that what lies next to a
/// limit is not shown at it.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format!("{} us", value / 1e3),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_lengths() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (2_184, "2.18 us"),
            (97_843, "97.8 us"),
            (999_700, "1.00 ms"),
            (9_998_000, "10.0 ms"),
            (58_249_000, "58.2 ms"),
            (120_000_000_000, "120 s"),
            (u64::MAX, "18446744074 s"),
        ] {
            assert_eq!(rounded(ns), text);
        }
    }

    #[test]
    fn a_block_takes_the_unit_of_its_middle() {
        let scale = UnitScale::for_block([2_184, 0, 3_100, 58_000_000].into_iter());
        assert_eq!(scale.name(), "us");
        assert_eq!(scale.text(2_184), "2.2");
        assert_eq!(scale.text(58_000_000), "58000.0");
    }

    /// A row of interrupts among rows of quantum expirations keeps its digits.
    #[test]
    fn the_least_keeps_two_digits() {
        let scale = UnitScale::for_block([120_000_000, 110_000_000, 2_184].into_iter());
        assert_eq!((scale.name(), scale.text(2_184).as_str()), ("ms", "0.0022"));
        assert_eq!(UnitScale::for_block([7].into_iter()).text(7), "7");
        assert_eq!(UnitScale::for_block(std::iter::empty()).name(), "ns");
    }
}
