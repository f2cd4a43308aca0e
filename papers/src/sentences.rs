//! Numbers and clauses as sentences about tables have them.

pub(super) fn time(ns: f64) -> String {
    match ns.abs() {
        size if size < 1e3 => format!("{ns:.1} ns"),
        size if size < 1e6 => format!("{:.2} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

pub(super) fn more(ns: f64) -> String {
    let word = if ns < 0.0 { "less" } else { "more" };
    format!("{} {word}", time(ns.abs()))
}

pub(super) fn times(value: f64, of: f64) -> String {
    let ratio = value / of;
    match ratio {
        ratio if ratio < 0.1 => format!("{ratio:.3} times"),
        ratio if ratio < 10.0 => format!("{ratio:.2} times"),
        ratio => format!("{ratio:.0} times"),
    }
}

pub(super) fn percent(value: f64) -> String {
    if value < 10.0 { format!("{value:.2} %") } else { format!("{value:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!(time(8.6956), "8.7 ns");
        assert_eq!(time(1_129.4), "1.13 us");
        assert_eq!(time(4_026_367.0), "4.0 ms");
        assert_eq!((more(7.91), more(-0.04)), ("7.9 ns more".into(), "0.0 ns less".into()));
        assert_eq!(
            (times(8.7, 10.2), times(1129.4, 27.5)),
            ("0.85 times".into(), "41 times".into())
        );
        assert_eq!(times(19.0, 1129.4), "0.017 times");
    }
}
