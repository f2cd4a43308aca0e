//! Whether bounds hold while a daemon changes the rate of the kernel's clock: this one is the daemon.
//!
//! What it changes is put back, also when it is killed ([`FrequencyGuard`]).

use anyhow::Result;
use hourglass_clock::Clock;
use hourglass_sys::adjtimex::FrequencyGuard;

use super::accuracy::{ClockCase, helped, watch};
use super::settle;
use crate::document::Row;

const SECONDS: u64 = 6;
const STATE_NS: u64 = 60_000_000;
/// From here on the tick is changed as well: up to then it is only the frequency, as by ntpd.
const TICKS_NS: u64 = 3_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    frequency_ppm: i64,
    tick_us: i64,
}

/// One after the other: up by 100 ppm and back, from one end of NTP's range to the other, chrony's
/// fastest slew (`maxslewrate` 83333.333), the ends of the kernel's range.
const STATES: [State; 10] = [
    State { frequency_ppm: 100, tick_us: 10_000 },
    State { frequency_ppm: 0, tick_us: 10_000 },
    State { frequency_ppm: -500, tick_us: 10_000 },
    State { frequency_ppm: 500, tick_us: 10_000 },
    State { frequency_ppm: 0, tick_us: 10_833 },
    State { frequency_ppm: 333, tick_us: 9_167 },
    State { frequency_ppm: 0, tick_us: 10_000 },
    State { frequency_ppm: 500, tick_us: 11_000 },
    State { frequency_ppm: -500, tick_us: 9_000 },
    State { frequency_ppm: 0, tick_us: 10_001 },
];

impl State {
    fn at(since_ns: u64) -> State {
        let state = STATES[(since_ns / STATE_NS) as usize % STATES.len()];
        let tick_us = if since_ns < TICKS_NS { 10_000 } else { state.tick_us };
        State { tick_us, ..state }
    }
}

/// The case `violations_slewing`; no rows, and the reason on standard error, where the clock may not
/// be slewed.
pub(super) fn measure(cpus: &[u32]) -> Result<Vec<Row>> {
    let slewing = match FrequencyGuard::begin() {
        Ok(slewing) => slewing,
        Err(error) => {
            eprintln!("violations_slewing: skipped, the kernel's clock may not be slewed: {error}");
            return Ok(Vec::new());
        }
    };
    let by_reader = Clock::new();
    let (helper, page) = helped()?;
    settle(&by_reader);
    let mut last = State { frequency_ppm: 0, tick_us: 10_000 };
    let slew = |since_ns: u64| {
        let state = State::at(since_ns);
        if state != last {
            last = state;
            // Both were allowed when it began.
            let _ = slewing.set_frequency(state.frequency_ppm);
            let _ = slewing.set_tick(state.tick_us);
        }
    };
    let mut kept = vec![
        ClockCase::new("hourglass", || by_reader.now_bounded()).disturbed(slew),
        ClockCase::new("hourglass/helper", || helper.clock().now_bounded()),
        ClockCase::new("hourglass/page", || page.now_bounded()),
    ];
    watch(&mut kept, SECONDS, cpus);
    let mut rows: Vec<Row> =
        kept.iter().flat_map(|kept| kept.violation_rows("violations_slewing")).collect();
    rows.extend(kept.iter().flat_map(|kept| kept.width_rows("violations_slewing")));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_within_the_kernels_limits_and_the_tick_comes_later() {
        for state in STATES {
            assert!(state.frequency_ppm.abs() <= 500 && (9_000..=11_000).contains(&state.tick_us));
        }
        let begin = (0..TICKS_NS / STATE_NS).map(|turn| State::at(turn * STATE_NS));
        assert!(begin.clone().all(|state| state.tick_us == 10_000));
        assert!(begin.clone().any(|state| state.frequency_ppm == 100));
        assert_eq!(State::at(TICKS_NS + 4 * STATE_NS).tick_us, 10_833);
    }
}
