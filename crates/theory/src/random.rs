//! Seeds of tests.

use hourglass_time::Span;

pub(crate) fn us(number: u64) -> Span {
    Span::from_nanos(i64::try_from(number * 1_000).unwrap())
}

/// How many sets `HOURGLASS_SETS` asks for.
pub(crate) fn sets() -> Option<u64> {
    std::env::var("HOURGLASS_SETS").ok().and_then(|text| text.parse().ok())
}

/// The first `usual` seeds, or the number that the environment requests.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..sets().unwrap_or(usual)
}
