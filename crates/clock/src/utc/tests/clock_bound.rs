//! Pages of ClockBound, well formed and not; their layout is that of its `docs/PROTOCOL.md`.

use hourglass_dice::{Dice, seed};

use super::*;

const S: u64 = 1_000_000_000;

const KEPT: Discipline = Discipline {
    synchronised: true,
    max_error_us: 1_001,
    est_error_us: 0,
    frequency: 0,
    tick_us: 10_000,
    slewing: false,
    leap: Leap::None,
};

/// Synchronised: 10 us off at most at 5 s, void after 1,005 s, 1 ppm.
fn page(version: u16) -> Vec<u8> {
    let length = if version == 1 { OF_VERSION_1 } else { LONGEST };
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.into_iter().flat_map(u32::to_ne_bytes));
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend([version, 4].into_iter().flat_map(u16::to_ne_bytes));
    bytes.extend([5, 0, 1_005, 0, 10_000].into_iter().flat_map(i64::to_ne_bytes));
    if version == 2 {
        bytes.extend(7u64.to_ne_bytes());
    }
    bytes.extend(1_000u32.to_ne_bytes());
    if version == 1 {
        bytes.extend([0; 4]);
    }
    bytes.extend(1i32.to_ne_bytes());
    bytes.resize(length, 0);
    bytes
}

fn statement(bytes: &[u8], now_ns: u64) -> Result<UtcStatement, String> {
    BoundPage::of(bytes)?.ok_or("written")?.statement(now_ns, Some(KEPT), || Some(7))
}

#[test]
fn a_page_bounds_the_clock_from_its_time_on() {
    for version in [1, 2] {
        let said = statement(&page(version), 7 * S).unwrap();
        let wanted = UtcStatement {
            error_ns: 10_000,
            growth_ppb: 1_000,
            at_ns: 5 * S,
            age_ns: 0,
            supersedes_kernel: false,
        };
        assert_eq!(said, wanted);
        // Two seconds at 1 ppm.
        assert_eq!(said.error_ns(2 * S), 12_000);
    }
}

#[test]
fn what_bounds_nothing_is_refused() {
    let status = |value: i32| {
        let mut bytes = page(2);
        bytes[68..72].copy_from_slice(&value.to_ne_bytes());
        statement(&bytes, 7 * S)
    };
    assert!(status(2).is_ok());
    for value in [0, 3, 4, -1] {
        assert!(status(value).unwrap_err().starts_with("its clock is "), "{value}");
    }
    // It has a bound for 1,000 s, and its daemon says nothing.
    assert!(statement(&page(2), 10 * S - 1).is_ok());
    assert!(statement(&page(2), 10 * S).unwrap_err().contains("too old"));
    assert!(statement(&page(2), 5 * S - 1).unwrap_err().contains("still to come"));
    let known = BoundPage::of(&page(2)).unwrap().unwrap();
    for leap in [Leap::Announced, Leap::Running] {
        let kernel = Some(Discipline { leap, ..KEPT });
        assert!(known.statement(7 * S, kernel, || None).unwrap_err().contains("leap second"));
    }
    assert!(known.statement(7 * S, Some(KEPT), || None).is_ok());
    // After it died in a slew, and after another program set the clock, or may have; where nobody knows.
    let fast = Discipline { tick_us: 11_000, ..KEPT };
    let set = Discipline { max_error_us: 16_000_000, ..KEPT };
    let anothers = Discipline { max_error_us: 1_500, ..KEPT };
    let offset = Discipline { slewing: true, ..KEPT };
    for (kernel, why) in [
        (Some(fast), "slewed by more"),
        (Some(set), "was set"),
        (Some(anothers), "began at 0"),
        (Some(offset), "ADJ_OFFSET"),
        (None, "allow adjtimex"),
    ] {
        assert!(known.statement(7 * S, kernel, || None).unwrap_err().contains(why), "{why}");
    }
    for (at, byte, cause) in [
        (0, 1, "no page of ClockBound"),
        (12, 3, "version 3"),
        (8, 79, "not filled"),
        (14, 0, "not filled"),
        (67, 0x40, "a drift of"),
        (55, 0x80, "negative"),
        (31, 0x40, "out of range"),
        (23, 0x80, "out of range"),
    ] {
        let mut bytes = page(2);
        bytes[at] = byte;
        let why = statement(&bytes, 7 * S).unwrap_err();
        assert!(why.contains(cause), "{at}: {why}");
    }
    for length in 0..LONGEST {
        assert!(BoundPage::of(&page(2)[..length]).is_err(), "{length}");
    }
}

/// The daemon may not know yet that the machine was moved.
#[test]
fn a_disruption_that_the_daemon_has_not_seen_is_one() {
    let mut bytes = page(2);
    bytes[72] = 1;
    let known = BoundPage::of(&bytes).unwrap().unwrap();
    assert_eq!(known.disruptions, Some(7));
    for (now, holds) in [(Some(7), true), (Some(8), false), (None, false)] {
        assert_eq!(known.statement(7 * S, Some(KEPT), || now).is_ok(), holds, "{now:?}");
    }
}

#[test]
fn files_are_read_when_they_are_whole() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("var/run/clockbound");
    std::fs::create_dir_all(&folder).unwrap();
    let source = ClockBound { root: root.path().to_str().unwrap(), chronyd_answers: || false };
    assert!(source.ask().said.unwrap_err().contains("no page"));
    std::fs::write(folder.join("shm"), page(1)).unwrap();
    assert_eq!(source.page().unwrap().version, 1);
    let beside_chronyd = ClockBound { chronyd_answers: || true, ..source };
    assert!(beside_chronyd.ask().said.unwrap_err().contains("chronyd answers"));
    let mut written = page(2);
    written[14] = 5;
    std::fs::write(folder.join("shm0"), &written).unwrap();
    assert!(source.page().unwrap_err().contains("in the midst"));
    std::fs::write(folder.join("shm0"), "").unwrap();
    assert!(source.page().unwrap_err().contains("cannot be read"));
    // `clocks --utc` waited for ever for a writer of a FIFO that had the page's name.
    let made = std::process::Command::new("mkfifo").arg(folder.join("fifo")).status();
    assert!(made.unwrap().success());
    for (target, is_page) in [("fifo", false), (".", false), ("shm", true)] {
        std::fs::remove_file(folder.join("shm0")).unwrap();
        std::os::unix::fs::symlink(target, folder.join("shm0")).unwrap();
        assert_eq!(source.page().is_ok(), is_page, "{target}");
    }
}

#[test]
fn strange_bytes_are_survived() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    for _ in 0..20_000 {
        let mut bytes = page(1 + dice.below(2) as u16);
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] = dice.below(256) as u8;
        }
        let now_ns = dice.below(u64::MAX);
        if let Ok(said) = statement(&bytes, now_ns) {
            assert!(said.at_ns <= now_ns, "seed {seed}: {bytes:?}");
        }
    }
}
