//! Where this node's clocks stand to UTC, the bound on that, and who vouches for it.

use std::ops::ControlFlow;
use std::time::Duration;

use hourglass_clock::timekeeping::UtcStatement;
use hourglass_clock::utc::{
    Kernel, Ptp4l, UtcAnswer, UtcDenial, UtcEvidence, UtcKeeper, UtcSource,
};
use hourglass_documents::clocks::{SourceEvidence, UtcFacts, UtcSourceFacts};
use hourglass_documents::manifest::UtcReading;
use hourglass_sys::adjtimex::{self, ClockPair};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::signal;
use hourglass_time::Span;

/// Time between two checks for signals.
const ATTENTION_NS: u64 = 50_000_000;
/// Below this a better source is hardly to be had over a network.
const NARROW_NS: u64 = 1_000_000;
/// What manifests call the kernel's bound.
const ADJTIMEX: &str = "adjtimex";
/// A page is written each second.
const PAGES: u32 = 8;
const PAGE_WAIT: Duration = Duration::from_millis(200);
const OLDER: &str =
    "it says nothing of the clock since that was looked at: its daemon has ended, or hears nothing";
/// How often the sources are asked again after the clock was set meanwhile.
const TRIES: u32 = 4;

/// Asks everybody who may vouch, and takes the narrowest bound.
#[must_use]
pub fn look() -> UtcFacts {
    look_at(&UtcKeeper::sources())
}

/// Asks the kernel and these.
fn look_at(others: &[Box<dyn UtcSource>]) -> UtcFacts {
    read_at(others).1
}

/// The same, with both clocks.
fn read_at(others: &[Box<dyn UtcSource>]) -> (ClockPair, UtcFacts) {
    let ask = || {
        let kernel = (Kernel.name(), Kernel.ask());
        let others = others.iter().map(|source| (source.name(), source.ask()));
        std::iter::once(kernel).chain(others).collect()
    };
    of_one_clock(Moment::read, ask)
}

/// Both clocks, and between which values of `CLOCK_MONOTONIC_RAW`, which no daemon slews.
#[derive(Clone, Copy, Debug)]
struct Moment {
    both: ClockPair,
    raw_ns: (u64, u64),
}

impl Moment {
    fn read() -> Moment {
        let raw = || now_ns(ClockId::MonotonicRaw);
        let (before, both) = (raw(), adjtimex::both_clocks());
        Moment { both, raw_ns: (before, raw()) }
    }

    /// By how much the clock was slewed from an earlier moment to this one, at most, ns: what a source says of the time between
    /// them is off by as much at this one.
    fn slewed_since(&self, earlier: &Moment) -> u64 {
        let passed = i128::from(self.both.realtime_ns) - i128::from(earlier.both.realtime_ns);
        let raw = |until: u64, from: u64| i128::from(until) - i128::from(from);
        let longest = raw(self.raw_ns.1, earlier.raw_ns.0);
        let shortest = raw(self.raw_ns.0, earlier.raw_ns.1);
        let most = passed.abs_diff(longest).max(passed.abs_diff(shortest));
        u64::try_from(most).unwrap_or(u64::MAX)
    }
}

/// What the sources say is of the clock as it was when they were asked: where it is set before it is read, they are asked again; and
/// where one says what it knew before (a page), until it says more.
fn of_one_clock(
    mut read: impl FnMut() -> Moment,
    mut ask: impl FnMut() -> Vec<(&'static str, UtcAnswer)>,
) -> (ClockPair, UtcFacts) {
    let mut before = read();
    let (mut tries, mut pages) = (TRIES, PAGES);
    while tries > 0 {
        let mut answers = ask();
        let now = read();
        if is_stepped(before.both, now.both) {
            (before, tries) = (now, tries - 1);
            continue;
        }
        let is_older = |said: &UtcStatement| said.at_ns < before.both.monotonic_ns;
        if pages > 0 && answers.iter().any(|(_, answer)| answer.said.as_ref().is_ok_and(is_older)) {
            pages -= 1;
            std::thread::sleep(PAGE_WAIT);
            continue;
        }
        for (_, answer) in &mut answers {
            if answer.said.as_ref().is_ok_and(is_older) {
                answer.said = Err(OLDER.to_owned());
            }
        }
        return (now.both, facts(now.both, now.slewed_since(&before), answers));
    }
    let refused = |(name, answer): (_, UtcAnswer)| {
        let said = Err("the clock was set while it was asked, again and again".to_owned());
        (name, UtcAnswer { said, ..answer })
    };
    (before.both, facts(before.both, 0, ask().into_iter().map(refused).collect()))
}

/// Slewing changes both clocks alike.
fn is_stepped(before: ClockPair, after: ClockPair) -> bool {
    let distance = |both: ClockPair| i128::from(both.realtime_ns) - i128::from(both.monotonic_ns);
    let unsure_ns = before.bracket_ns.saturating_add(after.bracket_ns).saturating_add(2);
    distance(before).abs_diff(distance(after)) > unsure_ns.into()
}

/// `slewed_ns`: by how much the clock was slewed since the sources were asked.
fn facts(both: ClockPair, slewed_ns: u64, answers: Vec<(&str, UtcAnswer)>) -> UtcFacts {
    let unsure_ns = both.bracket_ns.saturating_add(slewed_ns).saturating_add(1);
    // What chronyd states to the kernel is of its estimate alone, also where that is refused.
    let is_denied = answers.iter().any(|(_, answer)| match &answer.said {
        Ok(said) => said.supersedes_kernel,
        Err(_) => answer.denies == UtcDenial::Kernel,
    });
    let sources: Vec<UtcSourceFacts> = answers
        .into_iter()
        .map(|(name, answer)| source_facts(both, unsure_ns, name, answer))
        .collect();
    let best = sources
        .iter()
        .filter(|source| source.error_ns.is_some() && !(is_denied && source.name == Kernel::NAME));
    let best = best.min_by_key(|source| source.error_ns);
    let error_ns = best.and_then(|source| source.error_ns);
    UtcFacts {
        status: if best.is_some() { "vouched" } else { "unvouched" }.to_owned(),
        source: best.map_or_else(|| "none".to_owned(), |source| source.name.clone()),
        realtime_ns: both.realtime_ns,
        earliest_ns: error_ns.map(|error| both.realtime_ns.saturating_sub(error)),
        latest_ns: error_ns.map(|error| both.realtime_ns.saturating_add(error)),
        error_ns,
        growth_ppb: best.and_then(|source| source.growth_ppb),
        age_ns: best.and_then(|source| source.age_ns),
        narrower: narrower(best).to_owned(),
        sources,
    }
}

/// The answer at the moment `both` was read, which adds `unsure_ns` to its error.
fn source_facts(both: ClockPair, unsure_ns: u64, name: &str, answer: UtcAnswer) -> UtcSourceFacts {
    let (said, reason) = match answer.said {
        Ok(said) => (Some(said), String::new()),
        Err(reason) => (None, reason),
    };
    let until_ns = both.monotonic_ns.saturating_add(both.bracket_ns);
    let since = |said: &UtcStatement| until_ns.saturating_sub(said.at_ns);
    UtcSourceFacts {
        name: name.to_owned(),
        reason,
        error_ns: said.map(|said| said.error_ns(since(&said)).saturating_add(unsure_ns)),
        growth_ppb: said.map(|said| said.growth_ppb),
        age_ns: said.map(|said| said.age_ns.saturating_add(since(&said))),
        evidence: answer.evidence.into_iter().map(document_of).collect(),
    }
}

fn document_of(row: UtcEvidence) -> SourceEvidence {
    SourceEvidence { id: row.id.to_owned(), found: row.found, verdict: row.verdict.to_owned() }
}

fn narrower(best: Option<&UtcSourceFacts>) -> &'static str {
    match best {
        None => "run chronyd, or ptp4l and phc2sys, to have the clock synchronised",
        Some(source) if source.name == Kernel::NAME => {
            "run chronyd ('chronyc tracking' shows its bound), or a PTP clock with phc2sys"
        }
        Some(source) if source.error_ns.is_none_or(|error| error <= NARROW_NS) => "",
        Some(source) if source.name == Ptp4l::OWN.name() => {
            "have the grandmaster announce how accurate it is (clockAccuracy), by hardware time stamps over a shorter path"
        }
        Some(_) => {
            "give chronyd a nearer server, let it ask more often ('maxpoll 4'), or use a PTP clock with phc2sys"
        }
    }
}

/// Looks every `every` until `length` has passed or a signal comes, whose number it returns.
pub fn watch(
    every: Span,
    length: Option<Span>,
    mut each: impl FnMut(UtcFacts) -> ControlFlow<()>,
) -> Option<i32> {
    // Without handlers Ctrl-C just ends the program.
    let _ = signal::catch_stop();
    // Some learn by what they said before.
    let sources = UtcKeeper::sources();
    let begin_ns = now_ns(ClockId::Monotonic);
    let length_ns = length.map_or(u64::MAX, Span::nanos_or_zero);
    for turn in 0u64.. {
        let at_ns = turn.saturating_mul(every.nanos_or_zero().max(1));
        if at_ns > length_ns || !wait_until(begin_ns.saturating_add(at_ns)) {
            break;
        }
        if each(look_at(&sources)).is_break() {
            break;
        }
    }
    signal::stop_asked()
}

/// False if a signal came.
fn wait_until(due_ns: u64) -> bool {
    while signal::stop_asked().is_none() {
        let Some(left_ns @ 1..) = due_ns.checked_sub(now_ns(ClockId::Monotonic)) else {
            return true;
        };
        std::thread::sleep(Duration::from_nanos(left_ns.min(ATTENTION_NS)));
    }
    false
}

/// Reads both clocks and asks everybody who may vouch, without a privilege; a tenth of a second at most, and two seconds where a page
/// is waited for.
pub(crate) fn reading() -> UtcReading {
    let (both, facts) = read_at(&UtcKeeper::sources());
    stated(both, &facts, adjtimex::discipline().is_ok())
}

/// The time in UTC; without a bound where nobody vouches for it.
fn stated(both: ClockPair, facts: &UtcFacts, is_asked: bool) -> UtcReading {
    let source = match facts.source.as_str() {
        "none" if !is_asked => "none",
        "none" => ADJTIMEX,
        name if name == Kernel::NAME => ADJTIMEX,
        name => name,
    };
    UtcReading {
        monotonic_ns: both.monotonic_ns,
        realtime_ns: both.realtime_ns,
        bracket_ns: both.bracket_ns,
        max_error_ns: facts.error_ns,
        source: source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hourglass_clock::utc::Chronyd;

    use super::*;

    fn statement(error_ns: u64, growth_ppb: u64, at_ns: u64, age_ns: u64) -> UtcStatement {
        UtcStatement { error_ns, growth_ppb, at_ns, age_ns, supersedes_kernel: false }
    }

    fn answer(said: Result<UtcStatement, String>) -> UtcAnswer {
        UtcAnswer { said, denies: UtcDenial::Own, evidence: Vec::new() }
    }

    /// A page that is written again counts; one that is not says nothing of a clock that may have been set since.
    #[test]
    fn what_was_known_before_the_clock_was_looked_at_does_not_count() {
        let read = || {
            let mut turn = 0;
            move || {
                turn += 1_000;
                let both =
                    ClockPair { monotonic_ns: turn, realtime_ns: 70_000 + turn, bracket_ns: 1 };
                Moment { both, raw_ns: (turn, turn) }
            }
        };
        for (renewed_at, asked, is_bound) in
            [(0, 1, true), (3, 3, true), (u32::MAX, PAGES + 1, false)]
        {
            let mut times = 0;
            let (_, found) = of_one_clock(read(), || {
                times += 1;
                let at_ns = if times >= renewed_at { 1_000 } else { 999 };
                vec![("clockbound", answer(Ok(statement(9, 0, at_ns, 0))))]
            });
            assert_eq!((times, found.error_ns.is_some()), (asked, is_bound), "{found:?}");
            assert_eq!(found.sources[0].reason.is_empty(), is_bound);
        }
    }

    #[test]
    fn a_manifest_has_the_narrowest_bound_or_none() {
        let both = ClockPair { monotonic_ns: 5, realtime_ns: 7, bracket_ns: 2 };
        let said = |error_ns| answer(Ok(statement(error_ns, 0, 0, 0)));
        let silent = || answer(Err("away".to_owned()));
        let of = |kernel, chronyd, is_asked| {
            let answers = vec![(Kernel::NAME, kernel), (Chronyd::NAME, chronyd)];
            stated(both, &facts(both, 0, answers), is_asked)
        };
        let best = of(said(1_501_000), said(2_000), true);
        assert_eq!((best.max_error_ns, best.source.as_str()), (Some(2_003), "chronyd"));
        assert_eq!((best.monotonic_ns, best.realtime_ns, best.bracket_ns), (5, 7, 2));
        let kernel = of(said(1_501_000), silent(), true);
        assert_eq!((kernel.max_error_ns, kernel.source.as_str()), (Some(1_501_003), "adjtimex"));
        for (is_asked, source) in [(true, "adjtimex"), (false, "none")] {
            let without = of(silent(), silent(), is_asked);
            assert_eq!((without.max_error_ns, without.source.as_str()), (None, source));
        }
    }

    #[test]
    fn the_narrowest_bound_answers_and_none_is_an_answer() {
        let both = ClockPair { monotonic_ns: 2_000_000_000, realtime_ns: 9_000_000, bracket_ns: 9 };
        let said = |error_ns| answer(Ok(statement(error_ns, 500, 1_000_000_000, 7)));
        let silent = || answer(Err("away".to_owned()));
        // 1 s and 9 ns at 500 ppb are 501 ns; the bracket, and one for rounding.
        let found = facts(both, 0, vec![("kernel", said(1_000_000)), ("chronyd", said(2_000))]);
        assert_eq!((found.source.as_str(), found.error_ns), ("chronyd", Some(2_511)));
        assert_eq!(found.age_ns, Some(1_000_000_016));
        assert_eq!((found.earliest_ns, found.latest_ns), (Some(8_997_489), Some(9_002_511)));
        let its = statement(2_000, 500, 1_000_000_000, 7);
        let its = answer(Ok(UtcStatement { supersedes_kernel: true, ..its }));
        let found = facts(both, 0, vec![("kernel", said(1_000)), ("chronyd", its)]);
        assert_eq!((found.source.as_str(), found.error_ns), ("chronyd", Some(2_511)));
        // What makes a bound narrower is advice for whose bound it is.
        for (name, advice) in [("chronyd", "nearer server"), ("ptp4l", "grandmaster")] {
            let narrower = |error_ns| facts(both, 0, vec![(name, said(error_ns))]).narrower;
            assert!(narrower(NARROW_NS).contains(advice), "{name}");
            assert_eq!(narrower(NARROW_NS / 2), "", "{name}");
        }
        let found = facts(both, 0, vec![("kernel", said(1_000)), ("chronyd", silent())]);
        assert_eq!((found.status.as_str(), found.source.as_str()), ("vouched", "kernel"));
        // Also one that is there and does not answer in time, as where a leap second is slewed away, or strangely.
        let refused = UtcAnswer { denies: UtcDenial::Kernel, ..silent() };
        let found = facts(both, 0, vec![("kernel", said(1_000)), ("chronyd", refused)]);
        assert_eq!((found.status.as_str(), found.error_ns), ("unvouched", None));
        let found = facts(both, 0, vec![("kernel", silent()), ("chronyd", silent())]);
        assert_eq!((found.status.as_str(), found.error_ns), ("unvouched", None));
        assert_eq!(found.sources[1].reason, "away");
    }

    #[test]
    fn a_clock_that_is_set_between_question_and_reading_is_asked_again() {
        let said = || answer(Ok(statement(9, 0, u64::MAX, 0)));
        let read = |stepped_at: u64, always: bool| {
            let mut turn = 0;
            move || {
                turn += 1;
                let step =
                    if always { turn * 5_000 } else { u64::from(turn >= stepped_at) * 5_000 };
                let monotonic_ns = turn * 1_000;
                let realtime_ns = 70_000 + monotonic_ns + step;
                let both = ClockPair { monotonic_ns, realtime_ns, bracket_ns: 100 };
                Moment { both, raw_ns: (monotonic_ns, monotonic_ns) }
            }
        };
        for (stepped_at, always, questions) in [(9, false, 1), (2, false, 2), (0, true, TRIES + 1)]
        {
            let mut asked = 0;
            let (_, found) = of_one_clock(read(stepped_at, always), || {
                asked += 1;
                vec![("kernel", said())]
            });
            assert_eq!((asked, found.error_ns.is_none()), (questions, always), "{found:?}");
        }
        let both = ClockPair { monotonic_ns: 0, realtime_ns: 1_000, bracket_ns: 10 };
        for (by_ns, stepped) in [(22, false), (23, true)] {
            let after = ClockPair { monotonic_ns: 500, realtime_ns: 1_500 + by_ns, ..both };
            assert_eq!((is_stepped(both, after), is_stepped(after, both)), (stepped, stepped));
        }
    }

    /// The bug: chronyd slews by up to 100,000 ppm, 3 ms while it is asked.
    #[test]
    fn what_is_slewed_while_sources_are_asked_is_in_the_bound() {
        let both = |monotonic_ns| ClockPair {
            monotonic_ns,
            realtime_ns: 1_000_000_000 + monotonic_ns,
            bracket_ns: 100,
        };
        let said = || answer(Ok(statement(9, 0, u64::MAX, 0)));
        for (raw_ns, error_ns) in
            [(40_000_000, 110), (36_000_000, 4_000_110), (44_000_000, 4_000_110)]
        {
            let mut raw = [(5, 7), (raw_ns + 5, raw_ns + 7)].into_iter();
            let mut at_ns = [0, 40_000_000].into_iter();
            let read = || Moment { both: both(at_ns.next().unwrap()), raw_ns: raw.next().unwrap() };
            let (_, found) = of_one_clock(read, || vec![("chronyd", said())]);
            assert_eq!(found.error_ns, Some(error_ns + 2), "{raw_ns}");
        }
    }

    #[test]
    fn a_manifest_has_a_bound_or_says_null() {
        let written = serde_json::to_value(UtcReading::default()).unwrap();
        assert!(written["max_error_ns"].is_null() && written.get("source").is_some(), "{written}");
    }
}
