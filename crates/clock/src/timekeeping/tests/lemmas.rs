//! What `proofs/timekeeping.py` claims, of the functions themselves: a proof is of what is written there, and this ties it to
//! what runs. Each lemma has its test here, by its name.

use std::collections::BTreeSet;
use std::path::Path;

use hourglass_dice::Dice;
use num_bigint::BigInt;

use super::bound::Status;
use super::clock_offsets::difference;
use super::line::{ClockLine, LineValidity, UNORDERED_NS};
use super::line_fit::{self, LineParameters};
use super::reference_rate::ReferenceLine;
use super::sample::{self, ClockSample, SlopeFit};
use super::slope::{RELATIVE_BITS, Slope, relative, share_of};
use super::timebase::{Discipline, ReferenceClock, SourceId, Timebase};

const DRAWS: usize = 4_000;

/// What the roundings of a read take of what is left to unordered ones.
const READ_ROUNDINGS_NS: u64 = 2;

type Test = fn(&mut Dice) -> Option<()>;

/// By name, what is drawn, computed and compared; nothing, if that does not meet what the lemma assumes.
const TESTS: [(&str, Test); 22] = [
    ("Slope::between: mult is off by half a unit at most", between),
    ("Slope::ns_floor: within a nanosecond and half a unit a tick of the truth", ns_floor),
    ("Slope::ticks_floor, ns_within: ticks that begin within n ns last n ns at most", ticks_floor),
    ("Slope::ticks_floor: more time has no fewer ticks", more_time),
    ("over_counter: the line ends within its interval, whichever way it is corrected", interval),
    ("share_of: never less than the product", share),
    (
        "share_of(length, relative(part, whole)): never less than length * part / whole",
        share_of_part,
    ),
    ("Slope::distance: what the wider shift gives up is allowed for", distance),
    ("absorbed: never more than the error", absorbed),
    ("Slope::slower: within a sixteenth, so that time goes on", slower),
    (
        "Slope::slower: what is absorbed within the interval is no more than the error",
        slower_absorbs,
    ),
    ("anchor_error_ns: the reference is no further from what the anchor and the slope say", anchor),
    ("over_os: ahead until its end, and no further than at its base", over_os),
    (
        "ReferenceLine::confirms: what holds at both ends holds between, but for two roundings",
        confirms,
    ),
    ("over_counter: ahead of the truth, the bound holds for a growth of at most one", ahead),
    ("over_counter: ahead, and slower than the truth", ahead),
    ("over_counter: behind the truth", behind),
    ("ClockLine::held: no product of a read overflows, and no time", held),
    ("ClockLine::bound_within: never less than the bound and its growth", bound_within),
    ("sample::bracket: the middle is within half the width", bracket),
    ("sample::bracket: rates differ by h * ns + ticks at most", fit),
    ("SlopeFit::between: the error is enough, relative to the measured slope", fit),
];

/// Of the rules of arithmetic alone.
const OF_NO_FUNCTION: &str = "scaled, which hints are made of";

#[test]
fn every_lemma_is_of_the_code_that_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proofs/timekeeping.py");
    let Ok(proofs) = std::fs::read_to_string(&path) else {
        // A crate that was published has no proofs beside it.
        assert!(!path.parent().is_some_and(Path::exists));
        return;
    };
    let named = proofs
        .split("lemma(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    let named: BTreeSet<&str> = named.filter(|name| *name != OF_NO_FUNCTION).collect();
    assert_eq!(named, TESTS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn lemmas_hold_of_the_functions() {
    let seed = hourglass_dice::seed();
    for (name, test) in TESTS {
        println!("{name}");
        let mut dice = Dice::new(seed);
        let met = (0..DRAWS).filter(|_| test(&mut dice).is_some()).count();
        assert!(met >= DRAWS / 10, "{name}: what it assumes was met {met} times");
    }
}

fn big(number: impl Into<BigInt>) -> BigInt {
    number.into()
}

/// 2^`bits`.
fn power(bits: u32) -> BigInt {
    big(1) << bits
}

fn unit() -> BigInt {
    power(RELATIVE_BITS)
}

fn any(dice: &mut Dice, bits: u64) -> u64 {
    dice.magnitude(bits).unsigned_abs()
}

/// Whether `left` is no more than `right`.
fn at_most(left: &BigInt, right: &BigInt) {
    assert!(left <= right, "{left} > {right}");
}

/// A slope as those of counters are, with the ns and ticks that it is made of.
fn slope(dice: &mut Dice) -> Option<(Slope, u64, u64)> {
    let (ns, ticks) = (1 + any(dice, 62), 1 + any(dice, 62));
    Some((Slope::between(ns, ticks)?, ns, ticks))
}

/// Between 1 kHz and 16 GHz.
fn counter_slope(dice: &mut Dice) -> Slope {
    Slope::between(1_000_000_000, dice.between(1_000, 16_000_000_000)).unwrap()
}

fn between(dice: &mut Dice) -> Option<()> {
    let (slope, ns, ticks) = slope(dice)?;
    let off = big(slope.mult) * ticks - big(ns) * power(slope.shift);
    at_most(&(off.magnitude().clone() * 2u32).into(), &big(ticks));
    Some(())
}

fn ns_floor(dice: &mut Dice) -> Option<()> {
    let (slope, ns, ticks) = slope(dice)?;
    let d = any(dice, 63);
    let q = Some(slope.ns_floor(d)).filter(|q| *q < u64::MAX)?;
    assert_eq!(q, slope.ns_within(d));
    let scale = power(slope.shift) * ticks * 2;
    let truth = big(d) * ns * power(slope.shift) * 2;
    at_most(&(big(q) * &scale), &(&truth + big(d) * ticks));
    assert!((big(q) + 1) * scale > truth - big(d) * ticks);
    Some(())
}

fn ticks_floor(dice: &mut Dice) -> Option<()> {
    let (slope, n) = (slope(dice)?.0, any(dice, 63));
    let t = Some(slope.ticks_floor(n)).filter(|t| *t < u64::MAX)?;
    let end = big(n) * power(slope.shift);
    at_most(&(big(t) * slope.mult), &end);
    assert!((big(t) + 1) * slope.mult > end);
    assert!(slope.ns_floor(t) <= n);
    Some(())
}

fn more_time(dice: &mut Dice) -> Option<()> {
    let (slope, n) = (slope(dice)?.0, any(dice, 63));
    assert!(slope.ticks_floor(n) <= slope.ticks_floor(n + 1));
    Some(())
}

fn share(dice: &mut Dice) -> Option<()> {
    let (length, relative) = (any(dice, 63), any(dice, 63));
    let share = Some(share_of(length, relative)).filter(|share| *share < u64::MAX)?;
    at_most(&(big(length) * relative), &(big(share) * unit()));
    Some(())
}

fn share_of_part(dice: &mut Dice) -> Option<()> {
    let (length, part, whole) = (any(dice, 63), any(dice, 50), 1 + any(dice, 50));
    let relative = Some(relative(part, whole)).filter(|relative| *relative < u64::MAX)?;
    let share = Some(share_of(length, relative)).filter(|share| *share < u64::MAX)?;
    at_most(&(big(length) * part), &(big(share) * whole));
    Some(())
}

fn distance(dice: &mut Dice) -> Option<()> {
    let own = slope(dice)?.0;
    let mult = dice.between(own.mult - own.mult / 16, own.mult + own.mult / 16);
    let near = Slope { mult, shift: own.shift };
    let lost = dice.between(0, 4) as u32;
    let other = Slope { mult: mult >> lost, shift: own.shift.checked_sub(lost)? };
    for (one, two) in [(own, near), (own, other), (other, own)] {
        let found = Some(one.distance(two)).filter(|_| one.mult > 0 && two.mult > 0)?;
        let common = one.shift.max(two.shift);
        let own = big(one.mult) << (common - one.shift);
        let theirs = big(two.mult) << (common - two.shift);
        let apart: BigInt = (&own - theirs).magnitude().clone().into();
        at_most(&(apart * unit()), &(own * found));
    }
    Some(())
}

fn absorbed(dice: &mut Dice) -> Option<()> {
    let error = dice.magnitude(62);
    let taken = line_fit::absorbed(error);
    assert!((0..=error).contains(&taken) && taken >= error / 16 * 15);
    assert_eq!(line_fit::absorbed(-error), -taken);
    Some(())
}

fn slower(dice: &mut Dice) -> Option<()> {
    let slope = Some(slope(dice)?.0).filter(|slope| slope.mult >= 16)?;
    let by = if dice.one_in(2) { dice.magnitude(62) } else { -dice.magnitude(62) };
    let corrected = slope.slower(by, any(dice, 62));
    at_most(&(big(slope.mult) * 15), &(big(corrected.mult) * 16));
    at_most(&(big(corrected.mult) * 16), &(big(slope.mult) * 17));
    Some(())
}

fn slower_absorbs(dice: &mut Dice) -> Option<()> {
    let (slope, error, over) = (slope(dice)?.0, dice.magnitude(50), 1 + any(dice, 50));
    let taken = line_fit::absorbed(error);
    let d = Some(slope.ticks_floor(over)).filter(|d| *d < u64::MAX)?;
    let w = slope.mult - slope.slower(taken, over).mult;
    at_most(&(big(d) * w), &(big(taken) * power(slope.shift)));
    Some(())
}

/// A counter and a clock that are what they are set to; the counter of [`SourceId::SIMULATED`].
#[derive(Debug, Default)]
struct Fixed {
    ticks: u64,
    ns: u64,
    /// The counter at the end of a bracket.
    after: u64,
}

impl Timebase for Fixed {
    fn ticks(&self, _: SourceId) -> u64 {
        self.ticks
    }
    fn ticks_ordered(&self, _: SourceId) -> u64 {
        self.after
    }
    fn ticks_enclosing(&self, _: SourceId) -> u64 {
        self.ticks
    }
    fn reference_ns(&self, _: ReferenceClock) -> u64 {
        self.ns
    }
    fn supports(&self, _: SourceId) -> bool {
        true
    }
    fn choose(&self, _: &Path) -> SourceId {
        SourceId::SIMULATED
    }
    fn discipline(&self) -> Option<Discipline> {
        None
    }
}

/// A line as `over_counter` draws it, `ahead_ns` from what its anchor and slope say.
struct DrawnLine {
    plan: LineParameters,
    line: ClockLine,
    since: u64,
    ahead_ns: i64,
}

fn drawn(dice: &mut Dice, ahead_ns: i64) -> DrawnLine {
    let slope = counter_slope(dice);
    let plan = LineParameters {
        source: SourceId::SIMULATED,
        status: Status::Steady,
        epoch: 1,
        slope,
        error: any(dice, 30),
        interval_ns: 1_000_000 + any(dice, 36),
        anchor: ClockSample {
            ticks: dice.roll(),
            half_ticks: slope.ticks_floor(any(dice, 20)),
            ns: 1 << 50 | any(dice, 50),
        },
        floor_ns: 0,
        validity: LineValidity::Always,
    };
    let since = plan.anchor.half_ticks + slope.ticks_floor(any(dice, 34));
    let ticks = plan.anchor.ticks.wrapping_add(since);
    let told_ns = plan.anchor.ns + slope.ns_floor(since);
    let old = ClockLine {
        source: plan.source,
        base_ticks: ticks,
        base_ns: told_ns.saturating_add_signed(ahead_ns),
        valid_for: 1,
        ..ClockLine::UNDRAWN
    };
    let line = line_fit::over_counter(&Fixed { ticks, ..Fixed::default() }, &old, &plan);
    assert_eq!(difference(line.base_ns, told_ns), ahead_ns);
    DrawnLine { plan, line, since, ahead_ns }
}

fn interval(dice: &mut Dice) -> Option<()> {
    let ahead_ns = dice.within(-(1 << 30), 1 << 30);
    let DrawnLine { plan, line, .. } = drawn(dice, ahead_ns);
    let (end, d) = (big(plan.interval_ns) * power(plan.slope.shift), big(line.valid_for));
    at_most(&(&d * plan.slope.mult), &end);
    at_most(&(d * line.slope.mult), &end);
    Some(())
}

fn anchor(dice: &mut Dice) -> Option<()> {
    let DrawnLine { plan, since, .. } = drawn(dice, 0);
    let since_ns = plan.slope.ns_floor(since);
    let error_ns = line_fit::anchor_error_ns(&plan, since_ns);
    let scale = power(plan.slope.shift) * unit();
    let told = big(since_ns) * &scale;
    let latest =
        (big(since) + plan.anchor.half_ticks) * plan.slope.mult * (unit() + plan.error) + &scale;
    let earliest = (big(since) - plan.anchor.half_ticks) * plan.slope.mult * (unit() - plan.error);
    at_most(&(latest - &told), &(big(error_ns) * &scale));
    at_most(&(told - earliest), &(big(error_ns) * &scale));
    Some(())
}

/// The bound of a read, against all that the reference may be.
fn assert_bounded(drawn: &DrawnLine, dice: &mut Dice) {
    let end = drawn.line.valid_for;
    for d in [0, dice.between(0, end), end] {
        assert_bounded_at(drawn, d);
    }
}

fn assert_bounded_at(drawn: &DrawnLine, d: u64) {
    let DrawnLine { plan, line, since, .. } = drawn;
    let read_ns = line.at(d);
    let bound_ns = ClockLine::bound_within(line.bound_ns, line.growth, read_ns - line.base_ns);
    let scale = power(plan.slope.shift) * unit();
    let read = (big(read_ns) - plan.anchor.ns) * &scale;
    let latest =
        (big(*since) + d + plan.anchor.half_ticks) * plan.slope.mult * (unit() + plan.error)
            + &scale;
    let earliest =
        (big(*since) + d - plan.anchor.half_ticks) * plan.slope.mult * (unit() - plan.error);
    let room = big(bound_ns - UNORDERED_NS + READ_ROUNDINGS_NS) * scale;
    at_most(&(latest - &read), &room);
    at_most(&(read - earliest), &room);
}

fn ahead(dice: &mut Dice) -> Option<()> {
    let ahead_ns = dice.magnitude(30);
    let drawn = drawn(dice, ahead_ns);
    assert_bounded(&drawn, dice);
    Some(())
}

fn behind(dice: &mut Dice) -> Option<()> {
    let ahead_ns = -dice.magnitude(30);
    let drawn = drawn(dice, ahead_ns);
    assert!(drawn.ahead_ns <= 0);
    assert_bounded(&drawn, dice);
    Some(())
}

fn over_os(dice: &mut Dice) -> Option<()> {
    let (ns, ahead_ns) = (1 << 50 | any(dice, 50), 1 + any(dice, 40));
    let look_again_ns = dice.one_in(2).then(|| 1 + any(dice, 40));
    let os = Fixed { ns, ..Fixed::default() };
    let old = ClockLine::UNDRAWN;
    let line = line_fit::over_os(&os, &old, ns + ahead_ns, 1, Status::OsClock, look_again_ns);
    for d in [0, dice.between(0, line.valid_for), line.valid_for] {
        let off = difference(line.at(d), ns + d);
        assert!((0..=ahead_ns as i64).contains(&off), "{off} of {ahead_ns} at {d}");
        assert!(off as u64 <= ClockLine::bound_within(line.bound_ns, line.growth, d));
    }
    Some(())
}

fn confirms(dice: &mut Dice) -> Option<()> {
    let DrawnLine { line, .. } = drawn(dice, 0);
    let shift = 24 + dice.below(9) as u32;
    let mult = u32::try_from(line.slope.mult >> (line.slope.shift - shift)).ok()?;
    let kernel = ReferenceLine {
        generation: 2,
        base_ticks: line.base_ticks,
        base_ns: line.base_ns.saturating_add_signed(dice.magnitude(12) - dice.magnitude(12)),
        fraction: dice.below(1 << shift),
        mult: mult.saturating_add_signed(dice.magnitude(6) as i32 - dice.magnitude(6) as i32),
        shift,
    };
    let from = dice.between(0, line.valid_for);
    let confirmed = kernel.confirms(&line, line.base_ticks.wrapping_add(from));
    for _ in 0..8 {
        let d = dice.between(from, line.valid_for);
        let apart_ns = line.at(d).abs_diff(kernel.at(line.base_ticks.wrapping_add(d)));
        let room_ns = line.bound_at(d) - UNORDERED_NS + READ_ROUNDINGS_NS;
        assert!(
            !confirmed || apart_ns <= room_ns,
            "{apart_ns} of {room_ns} at {d}: {line:?} {kernel:?}"
        );
    }
    confirmed.then_some(())
}

fn held(dice: &mut Dice) -> Option<()> {
    let line = ClockLine {
        slope: slope(dice)?.0,
        base_ns: any(dice, 63),
        growth: any(dice, 63),
        valid_for: dice.roll(),
        ..ClockLine::UNDRAWN
    };
    let held = line.held();
    let elapsed = held.slope.ns_floor(dice.between(0, held.valid_for));
    assert!(big(elapsed) * held.growth < power(63) && big(held.base_ns) + elapsed < power(63));
    Some(())
}

fn bound_within(dice: &mut Dice) -> Option<()> {
    let (bound, growth, elapsed) = (any(dice, 60), any(dice, 62), any(dice, 62));
    elapsed.checked_mul(growth).filter(|product| *product < 1 << 63)?;
    let found = ClockLine::bound_within(bound, growth, elapsed);
    at_most(&(big(bound) * unit() + big(elapsed) * growth), &(big(found) * unit()));
    Some(())
}

fn bracket(dice: &mut Dice) -> Option<()> {
    let (ticks, width, grain) = (dice.roll(), any(dice, 62), any(dice, 30));
    let base = Fixed { ticks, ns: 7, after: ticks.wrapping_add(width) };
    let sample =
        sample::narrowest(&base, SourceId::SIMULATED, ReferenceClock::Monotonic, grain, 1, 0)
            .ok()?;
    let middle = sample.ticks.wrapping_sub(ticks);
    assert!(
        middle + grain <= sample.half_ticks + grain && width - middle + grain <= sample.half_ticks
    );
    Some(())
}

fn fit(dice: &mut Dice) -> Option<()> {
    let at = |dice: &mut Dice, ticks, ns| ClockSample { ticks, half_ticks: any(dice, 24), ns };
    let (ticks, ns) = (1 + any(dice, 50), 1 + any(dice, 50));
    let (first, last) = (at(dice, 1 << 60, 1 << 60), at(dice, (1 << 60) + ticks, (1 << 60) + ns));
    let half_ticks = first.half_ticks + last.half_ticks;
    let fit = SlopeFit::between(&first, &last)
        .filter(|fit| half_ticks < ticks && fit.error < u64::MAX / 2)?;
    for (true_ticks, true_ns) in [(ticks + half_ticks, ns - 1), (ticks - half_ticks, ns + 1)] {
        let off = big(ns) * true_ticks - big(true_ns) * ticks;
        let off: BigInt = off.magnitude().clone().into();
        at_most(&off, &(big(half_ticks) * ns + ticks));
        at_most(&(off * unit()), &(big(fit.error) * ns * true_ticks));
    }
    Some(())
}
