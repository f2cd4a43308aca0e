//! What the kernel's counts of a thread say of its activations: their rate, and bounds on the longest execution time.
//!
//! Owns: the reckoning. Must not: read `/proc`, read a clock.
//!
//! An activation begins with a waking and ends with a voluntary switch. The kernel brings the time on a CPU up to date
//! before it counts such a switch, so that the time of activation k is exactly the difference of the counts at switches
//! k - 1 and k, however late a look at a running thread finds the count of its time. Each look reads that time
//! before and after the number of switches. A look that found fewer than k - 1 switches has, by its first reading, no more than
//! the count at switch k - 1, and one that found k or more has, by its second reading, no less than the count at switch k:
//! the difference of the two bounds activation k. The look between them may lie within it, and bounds nothing.

use hourglass_documents::task_model::{
    CountModel, CountWindow, CountedActivations, LongestActivation,
};

/// Windows of the highest utilisation and of most switches are this long or longer: a count of a thread that runs may be
/// behind by a tick.
const WINDOW_NS: u64 = 100_000_000;
const PPM: u128 = 1_000_000;
const NS_IN_1000_S: u128 = 1_000_000_000_000;

/// The kernel's counts of a thread at one look. `None` stands where the kernel does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountSample {
    /// The clock before the first count was read, ns.
    pub from_ns: u64,
    /// The clock after the last one was read, ns.
    pub to_ns: u64,
    /// Time on a CPU, read before the switches and once more after them, ns.
    pub run_ns: Option<[u64; 2]>,
    /// Voluntary switches.
    pub voluntary: Option<u64>,
}

/// What all looks at one thread say.
#[derive(Clone, Debug, Default)]
pub struct CountReckoning {
    last: Option<CountSample>,
    /// The look that the open window began with.
    window: Option<CountSample>,
    /// Time on a CPU, by the second reading, at the first of the looks that found as many switches as the last one.
    unswitched_ns: Option<u64>,
    /// Time on a CPU, by the first reading, at the last of the looks that found fewer switches than the last one; zero where
    /// that is the begin of the thread.
    before_ns: Option<u64>,
    looks: u64,
    holes: u64,
    /// From the begins of looks to those of the next, without holes.
    observed_ns: u64,
    /// From the ends of looks to those of the next.
    observed_ends_ns: u64,
    /// Lengths of the looks that began a row.
    edges_ns: u64,
    /// Times at which such a row began.
    rows: u64,
    run_ns: Option<u64>,
    switches: Option<u64>,
    busiest: Option<CountWindow>,
    most_switches: Option<CountWindow>,
    longest: LongestActivation,
}

impl CountReckoning {
    /// Of a thread that began while others were looked at: its counts are from zero on.
    #[must_use]
    pub fn since_begin() -> CountReckoning {
        CountReckoning { before_ns: Some(0), ..CountReckoning::default() }
    }

    /// The thread may have become another one: nothing is reckoned across.
    pub fn cut(&mut self) {
        if self.last.take().is_some() {
            self.holes = self.holes.saturating_add(1);
        }
        (self.window, self.unswitched_ns, self.before_ns) = (None, None, None);
    }

    /// Takes the counts of a look, which came after the earlier ones.
    pub fn take(&mut self, sample: CountSample) {
        if self.last.is_some_and(|last| !follows(&last, &sample)) {
            self.cut();
        }
        self.looks = self.looks.saturating_add(1);
        match self.last {
            None => {
                self.rows = self.rows.saturating_add(1);
                let length_ns = sample.to_ns.saturating_sub(sample.from_ns);
                self.edges_ns = self.edges_ns.saturating_add(length_ns);
                self.window = Some(sample);
                self.begin(&sample);
            }
            Some(last) => {
                self.add(&last, &sample);
                self.activations(&last, &sample);
                self.close_window(&sample);
            }
        }
        self.last = Some(sample);
    }

    /// The first look, or the first one after a hole.
    fn begin(&mut self, sample: &CountSample) {
        let Some((switches, [first_ns, run_ns])) = sample.voluntary.zip(sample.run_ns) else {
            self.before_ns = None;
            return;
        };
        self.unswitched_ns = Some(run_ns);
        if self.before_ns.is_some() {
            self.ended(switches, 0, run_ns);
            self.at_least(first_ns / switches.saturating_add(1));
        }
    }

    /// Sums up what passed between two looks.
    fn add(&mut self, last: &CountSample, sample: &CountSample) {
        let passed =
            |sum: u64, last_ns: u64, ns: u64| sum.saturating_add(ns.saturating_sub(last_ns));
        self.observed_ns = passed(self.observed_ns, last.from_ns, sample.from_ns);
        self.observed_ends_ns = passed(self.observed_ends_ns, last.to_ns, sample.to_ns);
        let first = |sample: &CountSample| sample.run_ns.map(|[first_ns, _]| first_ns);
        add(&mut self.run_ns, first(last), first(sample));
        add(&mut self.switches, last.voluntary, sample.voluntary);
    }

    /// Bounds the activations that ended between two looks, and those that were there.
    fn activations(&mut self, last: &CountSample, sample: &CountSample) {
        let (Some((before, [last_ns, last_end_ns])), Some((switches, [first_ns, end_ns]))) =
            (last.voluntary.zip(last.run_ns), sample.voluntary.zip(sample.run_ns))
        else {
            (self.unswitched_ns, self.before_ns) = (None, None);
            return;
        };
        let ended = switches.saturating_sub(before);
        if ended == 0 {
            // One activation alone ran since.
            let since_ns = *self.unswitched_ns.get_or_insert(last_end_ns);
            self.at_least(first_ns.saturating_sub(since_ns));
            return;
        }
        match self.before_ns {
            Some(before_ns) => self.ended(ended, before_ns, end_ns),
            None => {
                // The first of them began before the looks.
                self.longest.unbounded = self.longest.unbounded.saturating_add(1);
                self.ended(ended - 1, last_ns, end_ns);
            }
        }
        // It ran in one piece of an activation more than ended, at most.
        self.at_least(first_ns.saturating_sub(last_end_ns) / ended.saturating_add(1));
        self.before_ns = Some(last_ns);
        self.unswitched_ns = Some(end_ns);
    }

    /// Activations that began and ended while the time on a CPU went from one count to another.
    fn ended(&mut self, activations: u64, from_ns: u64, to_ns: u64) {
        if activations > 0 {
            let longest = &mut self.longest;
            longest.bounded = longest.bounded.saturating_add(activations);
            let most_ns = to_ns.saturating_sub(from_ns);
            longest.at_most_ns = Some(longest.at_most_ns.map_or(most_ns, |ns| ns.max(most_ns)));
        }
    }

    fn at_least(&mut self, ns: u64) {
        self.longest.at_least_ns = self.longest.at_least_ns.max(ns);
    }

    /// Ends the open window if it is long enough.
    fn close_window(&mut self, sample: &CountSample) {
        let Some(begin) = self.window else { return };
        let length_ns = sample.from_ns.saturating_sub(begin.from_ns);
        if length_ns < WINDOW_NS {
            return;
        }
        self.window = Some(*sample);
        let between = |of: fn(&CountSample) -> Option<u64>| of(sample)?.checked_sub(of(&begin)?);
        let window = CountWindow {
            from_ns: begin.from_ns,
            to_ns: sample.from_ns,
            run_ns: between(|sample| sample.run_ns.map(|[first_ns, _]| first_ns)),
            switches: between(|sample| sample.voluntary),
        };
        let share = |window: &CountWindow| share_ppm(window.run_ns?, length(window));
        keep(&mut self.busiest, window, share);
        let rate = |window: &CountWindow| rate_floor(window.switches?, length(window));
        keep(&mut self.most_switches, window, rate);
    }

    /// What the looks say, of a thread that was first looked at `since_ns` after the first look of all.
    #[must_use]
    pub fn result(&self) -> CountModel {
        // The switches of a look were read anywhere within it.
        let least_ns = self.observed_ns.saturating_sub(self.edges_ns);
        let most_ns = self.observed_ends_ns.saturating_add(self.edges_ns);
        let activations = self.switches.map(|ended| {
            // A row of looks may begin within an activation, and end within another.
            let (min, max) = (ended.saturating_sub(self.rows), ended.saturating_add(self.rows));
            CountedActivations {
                ended,
                min,
                max,
                min_millihertz: rate_floor(min, most_ns).unwrap_or(0),
                max_millihertz: rate_ceil(max, least_ns),
                most_switches: self.most_switches,
            }
        });
        CountModel {
            looks: self.looks,
            holes: self.holes,
            observed_ns: self.observed_ns,
            run_ns: self.run_ns,
            utilisation_ppm: self.run_ns.and_then(|run_ns| share_ppm(run_ns, self.observed_ns)),
            busiest: self.busiest.filter(|window| window.run_ns.is_some()),
            activations,
            longest_activation: LongestActivation {
                unbounded_because: self.unbounded_because().map(str::to_owned),
                ..self.longest.clone()
            },
            ..CountModel::default()
        }
    }

    /// Why no activation is bounded.
    fn unbounded_because(&self) -> Option<&'static str> {
        match (self.longest.at_most_ns, self.run_ns, self.switches) {
            (Some(_), ..) => None,
            _ if self.looks < 2 => Some("it was there at less than two looks"),
            (_, None, _) => Some("the kernel counted no time on a CPU"),
            (.., None) => Some("its voluntary switches cannot be read"),
            (.., Some(0)) => Some("it ended no activation between the looks"),
            _ => Some("no activation began and ended between the looks"),
        }
    }
}

/// Whether counts are later ones of the same thread: no count falls.
fn follows(last: &CountSample, sample: &CountSample) -> bool {
    let grows = |last: Option<u64>, next: Option<u64>| last.zip(next).is_none_or(|(a, b)| b >= a);
    let second = last.run_ns.map(|[_, ns]| ns);
    let within = sample.run_ns.is_none_or(|[first_ns, second_ns]| first_ns <= second_ns);
    within
        && sample.from_ns >= last.to_ns
        && grows(second, sample.run_ns.map(|[ns, _]| ns))
        && grows(last.voluntary, sample.voluntary)
}

fn add(sum: &mut Option<u64>, last: Option<u64>, next: Option<u64>) {
    if let Some((last, next)) = last.zip(next) {
        *sum = Some(sum.unwrap_or(0).saturating_add(next.saturating_sub(last)));
    }
}

fn keep(
    kept: &mut Option<CountWindow>,
    new: CountWindow,
    of: impl Fn(&CountWindow) -> Option<u64>,
) {
    if of(&new) > kept.as_ref().and_then(&of) {
        *kept = Some(new);
    }
}

fn length(window: &CountWindow) -> u64 {
    window.to_ns.saturating_sub(window.from_ns)
}

/// At most the whole: a count may catch up with what ran before.
fn share_ppm(part: u64, whole: u64) -> Option<u64> {
    let ppm = (u128::from(part) * PPM).checked_div(u128::from(whole))?;
    u64::try_from(ppm.min(PPM)).ok()
}

fn rate_floor(count: u64, ns: u64) -> Option<u64> {
    let rate = (u128::from(count) * NS_IN_1000_S).checked_div(u128::from(ns))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

fn rate_ceil(count: u64, ns: u64) -> Option<u64> {
    let whole = u128::from(ns);
    let up = (u128::from(count) * NS_IN_1000_S).checked_add(whole.checked_sub(1)?)?;
    Some(u64::try_from(up.checked_div(whole)?).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
