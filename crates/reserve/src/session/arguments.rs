//! The arguments that describe a reservation.
//!
//! Owns: their meaning and the errors of wrong ones. Must not: know options, reserve anything.

use hourglass_time::Span;

use super::{Backend, ProgressFrom, ProgressRate, SiblingPolicy, Stopper};

/// The period of a share, unless its budget would be shorter than [`SHARED_BUDGET_NS`], ns.
const SHARED_PERIOD_NS: u64 = 10_000_000;
/// Shorter budgets would mostly be the keeper's own time, ns.
const SHARED_BUDGET_NS: u64 = 500_000;

/// Budget and period, such as `3.1ms/8ms`, or a share of a CPU, such as `30%`: in each 10 ms; for a share below 5 % in the
/// shortest multiple of 10 ms in which it is half a millisecond.
///
/// # Errors
/// A text that says what is wanted.
pub fn amount(text: &str) -> Result<(Span, Span), String> {
    if let Some(percent) = text.strip_suffix('%') {
        return share(percent);
    }
    let Some((budget, period)) = text.split_once('/') else {
        return Err(
            "budget and period are wanted, such as 3.1ms/8ms, or a share, such as 30%".to_owned()
        );
    };
    let span = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
    let (budget, period) = (span(budget)?, span(period)?);
    if budget.nanos_or_zero() == 0 || period.nanos_or_zero() == 0 {
        return Err("budget and period above zero are wanted, such as 3.1ms/8ms".to_owned());
    }
    Ok((budget, period))
}

/// Budget and period of a share of a CPU in percent, with up to three decimals.
fn share(percent: &str) -> Result<(Span, Span), String> {
    /// One percent in thousandths of it.
    const UNIT: u64 = 1_000;
    let wrong = || "a share above 0% and up to 100% is wanted, such as 30% or 12.5%".to_owned();
    let (whole, decimals) = percent.split_once('.').unwrap_or((percent, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.is_empty() || decimals.len() > 3 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{decimals:0<3}").parse().map_err(|_| wrong())?;
    let share = whole.checked_mul(UNIT).and_then(|share| share.checked_add(part));
    let share = share.filter(|share| (1..=100 * UNIT).contains(share)).ok_or_else(wrong)?;
    // No overflow: a share is at most 100,000, and the number of periods at most 5,000.
    let of_one = SHARED_PERIOD_NS / (100 * UNIT) * share;
    let periods = SHARED_BUDGET_NS.div_ceil(of_one).max(1);
    let span = |ns: u64| i64::try_from(ns * periods).map(Span::from_nanos).map_err(|_| wrong());
    Ok((span(of_one)?, span(SHARED_PERIOD_NS)?))
}

/// The number of a process.
///
/// # Errors
/// A text that says what is wanted.
pub fn process(text: &str) -> Result<u32, String> {
    let wrong = || "the number of a process is wanted, such as 4711 (pgrep NAME finds it)";
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| wrong().to_owned())
}

/// The number of a CPU.
///
/// # Errors
/// A text that says what is wanted.
pub fn cpu(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "the number of a CPU is wanted, from 0 on".to_owned())
}

/// The backend of a name; `None` is `auto`.
///
/// # Errors
/// A text with all names.
pub fn backend(text: &str) -> Result<Option<Backend>, String> {
    match text {
        "auto" => Ok(None),
        name => Backend::from_name(name)
            .map(Some)
            .ok_or_else(|| "there are auto, deadline, user and quota".to_owned()),
    }
}

/// The policy towards co-runners of a name.
///
/// # Errors
/// A text with all names.
pub fn policy(text: &str) -> Result<SiblingPolicy, String> {
    SiblingPolicy::from_name(text).ok_or_else(|| "there are monitor, disable and ignore".to_owned())
}

/// How they are stopped; `None` is `auto`.
///
/// # Errors
/// A text with all names.
pub fn stopper(text: &str) -> Result<Option<Stopper>, String> {
    match text {
        "auto" => Ok(None),
        name => Stopper::from_name(name).map(Some).ok_or_else(|| {
            format!(
                "unknown stopper '{name}'; expected cgroup2_freeze, sigstop, cgroup1_freezer and core_cookie"
            )
        }),
    }
}

/// A decimal below one; exactly, as a fraction.
///
/// # Errors
/// A text that says what is wanted.
pub fn rate(text: &str) -> Result<ProgressRate, String> {
    const DIGITS: usize = 9;
    let wrong = || "a decimal from 0 to below 1 is wanted, such as 0.5".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > DIGITS || !digits(whole) || !digits(decimals) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("0{decimals}").parse().map_err(|_| wrong())?;
    let power = 10u64.pow(u32::try_from(decimals.len()).map_err(|_| wrong())?);
    let sum = whole.checked_mul(power).and_then(|sum| sum.checked_add(part)).ok_or_else(wrong)?;
    ProgressRate::new(sum, power).ok_or_else(wrong)
}

/// Where progress is read; `None` is `auto`.
///
/// # Errors
/// A text with all names.
pub fn progress(text: &str) -> Result<Option<ProgressFrom>, String> {
    match text {
        "auto" => Ok(None),
        "word" => Ok(Some(ProgressFrom::Word)),
        "instructions" => Ok(Some(ProgressFrom::Instructions)),
        "cpu-time" | "cpu_time" => Ok(Some(ProgressFrom::CpuTime)),
        _ => Err("there are auto, word, instructions and cpu-time".to_owned()),
    }
}

/// How often slack is looked at, such as `1ms`.
///
/// # Errors
/// A text that says what is wanted.
pub fn interval(text: &str) -> Result<Span, String> {
    let interval: Span = text.parse().map_err(|error| format!("{error}"))?;
    if interval.nanos_or_zero() == 0 {
        return Err("a time above zero is wanted, such as 1ms".to_owned());
    }
    Ok(interval)
}

/// Budget, period and the process of a further reservation, such as `2ms/20ms=4711`.
///
/// # Errors
/// A text that says what is wanted.
pub fn also(text: &str) -> Result<(Span, Span, u32), String> {
    let wrong = || "budget, period and a process are wanted, such as 2ms/20ms=4711".to_owned();
    let (reserved, whom) = text.split_once('=').ok_or_else(wrong)?;
    let (budget, period) = amount(reserved)?;
    let pid = whom.parse().ok().filter(|pid| *pid > 0).ok_or_else(wrong)?;
    Ok((budget, period, pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_a_period() {
        for (share, amount) in [
            ("30%", "3ms/10ms"),
            ("12.5%", "1.25ms/10ms"),
            ("5%", "500us/10ms"),
            ("4.999%", "999.8us/20ms"),
            ("1%", "500us/50ms"),
            ("0.001%", "500us/50s"),
            ("99.999%", "9.9999ms/10ms"),
            ("100%", "10ms/10ms"),
        ] {
            assert_eq!(super::amount(share), super::amount(amount), "{share}");
        }
        for wrong in [
            "%",
            "0%",
            "0.000%",
            "100.001%",
            "-3%",
            "1.2345%",
            "3e1%",
            "30 %",
            "99999999999999999999%",
        ] {
            assert!(super::amount(wrong).is_err(), "{wrong}");
        }
        assert!(super::amount("30").is_err() && super::amount("0.3").is_err());
    }

    #[test]
    fn rates_are_exact() {
        for (text, parts) in
            [("0", (0, 1)), ("0.5", (5, 10)), ("0.125", (125, 1000)), ("0.", (0, 1))]
        {
            assert_eq!(rate(text).unwrap().parts(), parts, "{text}");
        }
        for text in
            ["1", "1.0", "2", "-0.5", ".5", "0.5x", "", "0.1234567891", "99999999999999999999"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn further_reservations_have_a_process() {
        let wanted = (Span::from_millis(2), Span::from_millis(20), 4711);
        assert_eq!(also("2ms/20ms=4711"), Ok(wanted));
        for text in ["2ms/20ms", "2ms/20ms=", "2ms/20ms=x", "2ms=4711", "2ms/20ms=0", "=4711"] {
            assert!(also(text).is_err(), "{text}");
        }
        assert_eq!(interval("1ms"), Ok(Span::from_millis(1)));
        for text in ["0", "0ms", "-1ms", "soon"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_have_a_budget_and_a_period() {
        let wanted = (Span::from_micros(3_100), Span::from_millis(8));
        assert_eq!(amount("3.1ms/8ms"), Ok(wanted));
        for text in ["3ms", "3ms/", "/8ms", "3/8x", "3ms/8ms/9ms", "3ms/0ms", "0ms/8ms"] {
            assert!(amount(text).is_err(), "{text}");
        }
        assert!(amount("3ms/0ms").unwrap_err().contains("above zero"));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in Stopper::ALL {
            assert_eq!(stopper(kind.name()), Ok(Some(kind)));
        }
        for kind in Backend::ALL {
            assert_eq!(backend(kind.name()), Ok(Some(kind)));
        }
        assert_eq!((stopper("auto"), backend("auto")), (Ok(None), Ok(None)));
        assert!(stopper("freeze").unwrap_err().contains("'freeze'; expected cgroup2_freeze"));
        assert!(backend("none").is_err() && policy("none").is_err());
    }

    #[test]
    fn processes_and_cpus_are_numbers() {
        assert_eq!((process("4711"), cpu("0")), (Ok(4711), Ok(0)));
        for text in ["self", "0", "-1", ""] {
            assert!(process(text).unwrap_err().contains("process"), "{text}");
        }
        assert!(cpu("-1").unwrap_err().contains("CPU"));
    }
}
