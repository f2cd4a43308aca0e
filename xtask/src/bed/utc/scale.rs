//! The time that is served and taken as true: this machine's, or one in which 2026 is about to end by a leap second.
//!
//! POSIX has no label for 23:59:60. Linux repeats those of 23:59:59, so that two instants of UTC have one label; where
//! that second is left out, its labels are of no instant. A bracket across the change has labels before it and labels after
//! it, and nothing between: a reading is wrong only if it excludes every label that the bracket may have.

const S: i64 = 1_000_000_000;
/// 2027-01-01T00:00:00, by POSIX.
const MIDNIGHT_NS: i64 = 1_798_761_600 * S;
/// Since 2017, for all that is known of 2026.
const TAI_AHEAD_S: i64 = 37;
/// How long before midnight the date begins.
const BEFORE_NS: i64 = 35 * S;
/// So long that no error of a clock that is vouched for hides the change.
const NEAR_NS: i64 = 3 * S;
/// 100 ppm, that something is to be seen within a minute; who smears takes a day, 11.6 ppm.
const SMEARED_EACH: i64 = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Leap {
    #[default]
    None,
    Inserted,
    Deleted,
    /// Inserted bit by bit, from this long before midnight on: the served time is then not UTC, and nobody is told.
    Smeared(i64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Scale {
    ahead_ns: i64,
    leap: Leap,
}

impl Scale {
    /// What is served from now on, if the phase begins a date.
    pub(super) fn of(phase: &str, now_ns: i64) -> Option<Scale> {
        let leap = match phase.strip_prefix("premise-date-")? {
            "inserted" | "slewed" | "slewed-slowly" => Leap::Inserted,
            "deleted" | "forgotten" => Leap::Deleted,
            "smeared" => Leap::Smeared(12 * S),
            _ => return Some(Scale::default()),
        };
        Some(Scale { ahead_ns: MIDNIGHT_NS - BEFORE_NS - now_ns, leap })
    }

    /// As if no second were a leap second.
    fn even(&self, here_ns: i64) -> i64 {
        here_ns + self.ahead_ns
    }

    /// When, evenly, labels change, and by how much.
    fn change(&self) -> Option<(i64, i64)> {
        match self.leap {
            Leap::Inserted => Some((MIDNIGHT_NS, -S)),
            Leap::Deleted => Some((MIDNIGHT_NS - S, S)),
            Leap::None | Leap::Smeared(_) => None,
        }
    }

    /// The label of a moment of this machine, ns since 1970.
    pub(super) fn label(&self, here_ns: i64) -> i64 {
        let even = self.even(here_ns);
        match (self.change(), self.leap) {
            (Some((at, by)), _) if even >= at => even + by,
            (_, Leap::Smeared(before)) => {
                even - (even - (MIDNIGHT_NS - before)).max(0) / SMEARED_EACH
            }
            _ => even,
        }
    }

    /// The labels from one moment to another: of both sides of a change.
    fn labels(&self, since_ns: i64, until_ns: i64) -> Vec<(i64, i64)> {
        let (first, last) = (self.label(since_ns), self.label(until_ns));
        match self.change() {
            Some((at, by)) if self.even(since_ns) < at && self.even(until_ns) >= at => {
                vec![(first, at - 1), (at + by, last)]
            }
            _ => vec![(first, last)],
        }
    }

    /// By how much a reading misses every label of its bracket, ns; not above 0 if it has one.
    pub(super) fn misses(
        &self,
        (earliest, latest): (i64, i64),
        since_ns: i64,
        until_ns: i64,
    ) -> i64 {
        let labels = self.labels(since_ns, until_ns).into_iter();
        labels.map(|(from, to)| (from - latest).max(earliest - to)).min().unwrap_or(0)
    }

    /// What TAI has at a moment of this machine, ns since 1970; it has no leap seconds.
    pub(super) fn tai(&self, here_ns: i64) -> i64 {
        self.even(here_ns) + TAI_AHEAD_S * S
    }

    /// By how much TAI is ahead of UTC, s.
    pub(super) fn utc_offset_s(&self, here_ns: i64) -> i16 {
        ((self.tai(here_ns) - self.label(here_ns)) / S) as i16
    }

    /// NTP's leap indicator.
    pub(super) fn indicator(&self, here_ns: i64) -> u8 {
        match (self.change(), self.leap) {
            (Some((at, _)), Leap::Inserted) if self.even(here_ns) < at => 1,
            (Some((at, _)), Leap::Deleted) if self.even(here_ns) < at => 2,
            _ => 0,
        }
    }

    /// What a row of a phase is named by: whether the bracket is before the change, near it, or after it.
    pub(super) fn part(&self, since_ns: i64, until_ns: i64) -> &'static str {
        match self.change() {
            None => "",
            Some((at, _)) if self.even(until_ns) < at - NEAR_NS => "-before",
            Some((at, _)) if self.even(since_ns) > at + NEAR_NS => "-after",
            Some(_) => "-near",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = S / 1_000;

    /// It begins at 0 of this machine.
    fn begun(leap: &str) -> Scale {
        Scale::of(&format!("premise-date-{leap}"), 0).unwrap()
    }

    #[test]
    fn a_second_is_repeated_or_left_out_or_smeared() {
        let before = |scale: Scale, ms: i64| scale.label(BEFORE_NS + ms * MS) - MIDNIGHT_NS;
        let labels = |name| [-1_001, -1_000, -1, 0, 999, 1_000].map(|ms| before(begun(name), ms));
        assert_eq!(labels("inserted"), [-1_001, -1_000, -1, -1_000, -1, 0].map(|ms| ms * MS));
        assert_eq!(labels("slewed"), labels("inserted"));
        assert_eq!(labels("deleted"), [-1_001, 0, 999, 1_000, 1_999, 2_000].map(|ms| ms * MS));
        let offsets = |name| {
            let at = |ms: i64| begun(name).utc_offset_s(BEFORE_NS + ms * MS);
            [-1_001, -1, 0].map(at)
        };
        assert_eq!(offsets("inserted"), [37, 37, 38]);
        assert_eq!(offsets("deleted"), [37, 36, 36]);
        let smeared = begun("smeared");
        assert_eq!([-12_000, 8_000].map(|ms| before(smeared, ms)), [-12 * S, 8 * S - 2 * MS]);
        let indicators =
            |name| [-1_001, -1, 0].map(|ms| begun(name).indicator(BEFORE_NS + ms * MS));
        assert_eq!(indicators("inserted"), [1, 1, 0]);
        assert_eq!(indicators("deleted"), [2, 0, 0]);
        assert_eq!(indicators("smeared"), [0, 0, 0]);
        assert_eq!((begun("none"), Scale::of("settled", 5)), (Scale::default(), None));
        let parts = |name| {
            [-3_001, -1, 3_001].map(|ms| begun(name).part(ms * MS + BEFORE_NS, ms * MS + BEFORE_NS))
        };
        assert_eq!(parts("inserted"), ["-before", "-near", "-after"]);
        assert_eq!(parts("smeared"), [""; 3]);
    }

    #[test]
    fn a_reading_may_have_a_label_of_either_side() {
        let misses = |name: &str, reading: (i64, i64), bracket: (i64, i64)| {
            let at = |ms: i64| MIDNIGHT_NS + ms * MS;
            let here = |ms: i64| BEFORE_NS + ms * MS;
            let found = begun(name).misses(
                (at(reading.0), at(reading.1)),
                here(bracket.0),
                here(bracket.1),
            );
            found.max(0) / MS
        };
        // 23:59:59 and its repetition; between its beginning and its end no label is in this bracket.
        for (reading, by) in [((-5, -1), 0), ((-1_002, -995), 0), ((-900, -100), 90), ((3, 9), 3)] {
            assert_eq!(misses("inserted", reading, (-10, 10)), by, "{reading:?}");
        }
        // Well in the repetition only its labels count.
        assert_eq!(misses("inserted", (500, 502), (500, 510)), 990);
        assert_eq!(misses("inserted", (-500, -495), (500, 510)), 0);
        // The labels of 23:59:59 are of no instant, but for a bound that holds more.
        for (reading, by) in
            [((-1_009, -1_005), 0), ((-900, -100), 100), ((5, 9), 0), ((-900, 0), 0)]
        {
            assert_eq!(misses("deleted", reading, (-1_010, -990)), by, "{reading:?}");
        }
    }
}
