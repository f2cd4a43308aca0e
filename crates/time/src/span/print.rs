//! How a span is printed.

use core::fmt::{self, Write};

use crate::Span;

/// A unit, its length in nanoseconds, and how many decimals a nanosecond takes in it.
type Unit = (u64, u32, &'static str);

/// From the smallest to the largest.
const UNITS: [Unit; 4] = [(1, 0, "ns"), (1_000, 3, "us"), (1_000_000, 6, "ms"), SECOND];

const SECOND: Unit = (1_000_000_000, 9, "s");

/// More decimals than a nanosecond has are not printed.
const MOST_DECIMALS: u32 = 9;

/// `9223372036.854775807s` has 21.
const MOST_LETTERS: usize = 24;

/// Prints in the largest unit of `s`, `ms`, `us`, `ns` that keeps at least one whole unit.
///
/// Without a precision exactly, without trailing zeros: `1.5s`, `1.02s`, `87us`; what is printed
/// parses back to the same span. With a precision (`{:.3}`) with that number of decimals, nine at
/// most, rounded to the nearest, a tie away from zero: `1.500s`, `87.000us`, and `999.9996ms` as
/// `1.000s`. Width, fill, alignment, `+` and `0` work as for numbers.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(*self, "", f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints a span, a prefix before its sign. A prefix asks for the sign in any case.
pub(crate) fn print(span: Span, prefix: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let magnitude = span.nanos().unsigned_abs();
    let mut text = Text::new();
    match f.precision() {
        None => write_exactly(magnitude, &mut text)?,
        Some(decimals) => {
            let decimals = u32::try_from(decimals).unwrap_or(MOST_DECIMALS).min(MOST_DECIMALS);
            write_rounded(magnitude, decimals, &mut text)?;
        }
    }
    if prefix.is_empty() {
        return f.pad_integral(!span.is_negative(), "", text.as_str()?);
    }
    f.write_str(prefix)?;
    f.write_str(if span.is_negative() { "-" } else { "+" })?;
    f.write_str(text.as_str()?)
}

/// The largest unit that goes into this; the second for nothing at all.
fn unit_of(magnitude: u64) -> Unit {
    UNITS.into_iter().rev().find(|(length, ..)| *length <= magnitude).unwrap_or(SECOND)
}

fn write_exactly(magnitude: u64, out: &mut Text) -> fmt::Result {
    let (length, digits, name) = unit_of(magnitude);
    write!(out, "{}", magnitude / length)?;
    let mut rest = magnitude % length;
    let mut width = digits as usize;
    if rest != 0 {
        while rest.is_multiple_of(10) {
            rest /= 10;
            width -= 1;
        }
        write!(out, ".{rest:0width$}")?;
    }
    out.write_str(name)
}

fn write_rounded(magnitude: u64, decimals: u32, out: &mut Text) -> fmt::Result {
    let (length, digits, name) = unit_of(rounded(magnitude, unit_of(magnitude), decimals));
    let magnitude = rounded(magnitude, (length, digits, name), decimals);
    write!(out, "{}", magnitude / length)?;
    if decimals > 0 {
        // The digits that are there, then the zeros of those that are finer than a nanosecond.
        let (there, missing) = (decimals.min(digits), decimals.saturating_sub(digits));
        let shown = magnitude % length / 10_u64.pow(digits - there);
        let (there, missing) = (there as usize, missing as usize);
        out.write_str(".")?;
        if there > 0 {
            write!(out, "{shown:0there$}")?;
        }
        write!(out, "{:.missing$}", "000000000")?;
    }
    out.write_str(name)
}

/// The magnitude at this number of decimals of the unit, a tie upwards.
fn rounded(magnitude: u64, (_, digits, _): Unit, decimals: u32) -> u64 {
    let step = 10_u64.pow(digits.saturating_sub(decimals));
    let below = magnitude - magnitude % step;
    let up = magnitude % step >= step.div_ceil(2) && step > 1;
    // Magnitudes are below 2^63, steps at most 10^9.
    if up { below.saturating_add(step) } else { below }
}

/// A text of a few letters, without allocation.
struct Text {
    letters: [u8; MOST_LETTERS],
    length: usize,
}

impl Text {
    const fn new() -> Text {
        Text { letters: [0; MOST_LETTERS], length: 0 }
    }

    fn as_str(&self) -> Result<&str, fmt::Error> {
        let letters = self.letters.get(..self.length).ok_or(fmt::Error)?;
        core::str::from_utf8(letters).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.saturating_add(text.len());
        let room = self.letters.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;

    #[test]
    fn prints_in_the_largest_whole_unit() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (-1, "-1ns"),
            (87_000, "87us"),
            (1_020_000_000, "1.02s"),
            (3_100_000, "3.1ms"),
            (60_000_000_000, "60s"),
            (1_000_000_001, "1.000000001s"),
            (i64::MAX, "9223372036.854775807s"),
        ] {
            assert_eq!(Span::from_nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn a_precision_is_a_number_of_decimals() {
        for (ns, decimals, text) in [
            (0, 3, "0.000s"),
            (87, 3, "87.000ns"),
            (87_040, 1, "87.0us"),
            (87_050, 1, "87.1us"),
            (-87_050, 1, "-87.1us"),
            (87_050, 5, "87.05000us"),
            (1_500_000_000, 3, "1.500s"),
            (1_500_000_000, 0, "2s"),
            (999_999_600, 3, "1.000s"),
            (999_999_400, 3, "999.999ms"),
            (999_500, 0, "1ms"),
            (i64::MAX, 9, "9223372036.854775807s"),
            (i64::MAX, 60_000, "9223372036.854775807s"),
            (-i64::MAX, 0, "-9223372037s"),
        ] {
            assert_eq!(format!("{:.decimals$}", Span::from_nanos(ns)), text);
        }
    }

    #[test]
    fn columns_and_signs_as_for_numbers() {
        let span = Span::from_millis(1_500);
        assert_eq!(
            format!("{span:>8}|{span:<8}|{span:+}|{:06.1}", -span),
            "    1.5s|1.5s    |+1.5s|-01.5s"
        );
        assert_eq!(format!("{:>4}", Span::ZERO), "  0s");
    }
}
