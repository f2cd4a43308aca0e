//! The reckoning against programs of which every activation is known.

use hourglass_dice::{Dice, seed};

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A thread whose time on a CPU is counted as the kernel does it: at ticks, and when it leaves the CPU.
struct Simulated {
    tick_ns: u64,
    /// Times on a CPU, in order.
    ran: Vec<(u64, u64)>,
    /// When each activation begins and ends, and for how long it runs.
    activations: Vec<(u64, u64, u64)>,
}

impl Simulated {
    /// Activations in pieces, between which the CPU is taken away.
    fn random(dice: &mut Dice, end_ns: u64) -> Simulated {
        let (longest_run, longest_wait) = (dice.between(10, 40_000), dice.between(10, 60_000));
        let mut of = Simulated {
            tick_ns: dice.between(1, 10) * MS,
            ran: Vec::new(),
            activations: Vec::new(),
        };
        let mut now = dice.below(MS);
        while now < end_ns {
            let woken = now;
            let mut exec = 0;
            for _ in 0..dice.between(1, 3) {
                now += dice.below(longest_run / 2 * US);
                let run_ns = dice.between(1, longest_run * US);
                of.ran.push((now, now + run_ns));
                exec += run_ns;
                now += run_ns;
            }
            of.activations.push((woken, now, exec));
            now += dice.between(1, longest_wait * US);
        }
        of
    }

    fn counted_ns(&self, at_ns: u64) -> u64 {
        let counted = |(from, to): &(u64, u64)| match at_ns {
            at if at >= *to => to - from,
            at => (at / self.tick_ns * self.tick_ns).saturating_sub(*from),
        };
        self.ran.iter().map(counted).sum()
    }

    fn switches(&self, at_ns: u64) -> u64 {
        self.activations.partition_point(|(_, end, _)| *end <= at_ns) as u64
    }

    fn wakings(&self, at_ns: u64) -> u64 {
        self.activations.partition_point(|(woken, ..)| *woken <= at_ns) as u64
    }

    /// A look whose three readings are apart; and when the switches were read.
    fn look(&self, dice: &mut Dice, from_ns: u64) -> (CountSample, u64) {
        let mut at = from_ns;
        let mut later = || {
            at += dice.below(200 * US);
            at
        };
        let times = [later(), later(), later(), later()];
        let sample = CountSample {
            from_ns,
            to_ns: times[3],
            run_ns: Some([self.counted_ns(times[0]), self.counted_ns(times[2])]),
            voluntary: Some(self.switches(times[1])),
        };
        (sample, times[1])
    }
}

fn rate(count: u64, ns: u64) -> u128 {
    u128::from(count) * NS_IN_1000_S / u128::from(ns)
}

/// Nothing that is said of a random program is wrong: no activation that is bounded runs for longer, the longest runs for at
/// least what is said, and wakings are within their bounds.
#[test]
fn no_bound_is_below_the_truth() {
    let mut dice = Dice::new(seed());
    let mut too_low = 0;
    for program in 0..1_000 {
        let end_ns = dice.between(S / 10, 2 * S);
        let of = Simulated::random(&mut dice, end_ns);
        let pause_ns = dice.between(1, 100) * MS;
        let mut reckoning = CountReckoning::default();
        let (mut now, mut reads, mut samples) = (dice.below(end_ns / 2), Vec::new(), Vec::new());
        while now < end_ns {
            let (sample, read_ns) = of.look(&mut dice, now);
            reckoning.take(sample);
            reads.push(read_ns);
            samples.push(sample);
            now = sample.to_ns + dice.below(pause_ns);
        }
        let found = reckoning.result();
        let (first, last) = (reads[0], reads[reads.len() - 1]);
        let (before, after) = (of.switches(first) as usize, of.switches(last) as usize);
        // The first that ends after the first look may have begun before it.
        let whole = of.activations.get(before + 1..after).unwrap_or_default();
        let truth = whole.iter().map(|(.., exec)| *exec).max();
        let longest = &found.longest_activation;
        assert_eq!(longest.bounded, whole.len() as u64, "{program}");
        assert_eq!(longest.bounded + longest.unbounded, (after - before) as u64, "{program}");
        assert!(longest.at_most_ns >= truth, "{program}: {longest:?}, {truth:?}");
        assert_eq!(longest.at_most_ns.is_none(), longest.unbounded_because.is_some(), "{program}");
        let there = of.activations.get(before..=after.min(of.activations.len() - 1));
        let most = there.into_iter().flatten().map(|(.., exec)| *exec).max().unwrap_or(0);
        assert!(longest.at_least_ns <= most, "{program}: {longest:?}, {most}");
        let wakings = of.wakings(last) - of.wakings(first);
        if samples.len() > 1 {
            let counted = found.activations.unwrap();
            assert!((counted.min..=counted.max).contains(&wakings), "{program}: {counted:?}");
            let truth = rate(wakings, last - first);
            assert!(u128::from(counted.min_millihertz) <= truth, "{program}: {counted:?}");
            assert!(counted.max_millihertz.is_none_or(|max| u128::from(max) >= truth), "{program}");
        }
        // The time between two looks alone is no bound.
        let naive = samples.windows(2).filter(|pair| pair[0].voluntary < pair[1].voluntary);
        let naive = naive.map(|pair| pair[1].run_ns.unwrap()[1] - pair[0].run_ns.unwrap()[0]).max();
        too_low += u32::from(naive < truth);
    }
    assert!(too_low > 0, "programs whose activations span looks are among them");
}

fn look(at_ms: u64, run_ms: u64, voluntary: u64) -> CountSample {
    CountSample {
        from_ns: at_ms * MS,
        to_ns: at_ms * MS,
        run_ns: Some([run_ms * MS; 2]),
        voluntary: Some(voluntary),
    }
}

fn after(looks: &[CountSample]) -> CountModel {
    let mut reckoning = CountReckoning::default();
    looks.iter().for_each(|sample| reckoning.take(*sample));
    reckoning.result()
}

/// An activation spans three windows, which add up; the one before it may have a part in the first.
#[test]
fn an_activation_over_several_looks_is_summed_up() {
    let looks = [look(0, 5, 3), look(10, 6, 4), look(20, 14, 4), look(30, 24, 4), look(40, 25, 5)];
    let longest = after(&looks).longest_activation;
    assert_eq!((longest.at_most_ns, longest.at_least_ns), (Some(20 * MS), 18 * MS));
    assert_eq!((longest.bounded, longest.unbounded), (1, 1));
}

/// The utilisation of a thread is that of its time, and the highest that of the window of most.
#[test]
fn utilisation_is_of_all_and_of_the_busiest_window() {
    let found = after(&[look(0, 0, 1), look(100, 10, 3), look(200, 70, 4), look(300, 75, 14)]);
    assert_eq!((found.run_ns, found.utilisation_ppm), (Some(75 * MS), Some(250_000)));
    let busiest = found.busiest.unwrap();
    assert_eq!((busiest.from_ns, busiest.to_ns), (100 * MS, 200 * MS));
    assert_eq!(busiest.run_ns, Some(60 * MS));
    let counted = found.activations.unwrap();
    assert_eq!((counted.ended, counted.min, counted.max), (13, 12, 14));
    assert_eq!((counted.min_millihertz, counted.max_millihertz), (40_000, Some(46_667)));
    assert_eq!(counted.most_switches.unwrap().switches, Some(10));
}

/// A thread that never waits has no bound, and a longest activation that is at least as long as it ran.
#[test]
fn a_thread_that_never_waits_is_not_bounded() {
    let longest = after(&[look(0, 0, 7), look(100, 99, 7), look(200, 198, 7)]).longest_activation;
    assert_eq!((longest.at_most_ns, longest.at_least_ns, longest.bounded), (None, 198 * MS, 0));
    let why = longest.unbounded_because.unwrap();
    assert!(why.contains("ended no activation"), "{why}");
}

/// Counts that fall are another program's, also under the same number: nothing is reckoned across.
#[test]
fn counts_that_fall_are_a_hole() {
    let found = after(&[look(0, 90, 9), look(10, 91, 12), look(20, 1, 1), look(30, 3, 2)]);
    assert_eq!((found.holes, found.looks), (1, 4));
    assert_eq!((found.run_ns, found.observed_ns), (Some(3 * MS), 20 * MS));
    let longest = found.longest_activation;
    assert_eq!((longest.at_most_ns, longest.bounded, longest.unbounded), (Some(MS), 2, 2));
}

/// What began meanwhile has counts from zero: its first activation is bounded, too.
#[test]
fn a_thread_that_begins_meanwhile_is_bounded_from_its_begin() {
    let mut reckoning = CountReckoning::since_begin();
    [look(10, 4, 0), look(20, 9, 1)].iter().for_each(|sample| reckoning.take(*sample));
    let longest = reckoning.result().longest_activation;
    assert_eq!((longest.at_most_ns, longest.bounded, longest.unbounded), (Some(9 * MS), 1, 0));
}

/// A kernel without schedstats, and a `status` that is not readable.
#[test]
fn what_is_not_counted_is_said() {
    let untimed = |at, switches| CountSample { run_ns: None, ..look(at, 0, switches) };
    let found = after(&[untimed(0, 3), untimed(100, 9)]);
    assert_eq!((found.run_ns, found.utilisation_ppm, found.busiest), (None, None, None));
    assert_eq!(found.activations.unwrap().ended, 6);
    assert!(found.longest_activation.unbounded_because.unwrap().contains("no time on a CPU"));
    let uncounted = |at, run| CountSample { voluntary: None, ..look(at, run, 0) };
    let found = after(&[uncounted(0, 3), uncounted(100, 9)]);
    assert_eq!((found.run_ns, found.activations), (Some(6 * MS), None));
    assert!(found.longest_activation.unbounded_because.unwrap().contains("cannot be read"));
    assert!(after(&[]).longest_activation.unbounded_because.unwrap().contains("less than two"));
}

/// Counts at the ends of their range, and looks in no order, end in no overflow.
#[test]
fn strange_counts_are_taken() {
    let mut dice = Dice::new(seed());
    for _ in 0..2_000 {
        let mut reckoning = CountReckoning::since_begin();
        for _ in 0..dice.between(1, 6) {
            let mut number = || match dice.below(4) {
                0 => u64::MAX,
                1 => 0,
                _ => dice.roll(),
            };
            let mut some = || Some(number()).filter(|number| number % 5 > 0);
            reckoning.take(CountSample {
                from_ns: some().unwrap_or(0),
                to_ns: some().unwrap_or(1),
                run_ns: some().zip(some()).map(|(a, b)| [a, b]),
                voluntary: some(),
            });
        }
        let found = reckoning.result();
        assert!(found.utilisation_ppm.is_none_or(|ppm| ppm <= 1_000_000), "{found:?}");
    }
}
