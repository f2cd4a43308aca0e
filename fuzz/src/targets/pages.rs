//! What the kernel and other processes write into memory, and what daemons answer.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::PageReader;
use hourglass_clock::utc;
use hourglass_reserve::progress::{Progress, ProgressPage, ProgressSource, WordProgress};
use hourglass_sys::memfd::SharedWords;
use hourglass_sys::tracefs::{Format, Page, PageLayout};

use super::{of_result, of_text};
use crate::{Answer, Body, Target, answer};

const LAYOUT: &str = include_str!("../../../crates/sys/tests/data/header_page.txt");

pub(super) const RING: Target = Target {
    name: "ring",
    purpose: "pieces of the kernel's ring",
    examples: || {
        let text = include_str!("../../../crates/sys/tests/data/page.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(str::split_ascii_whitespace);
        vec![words.filter_map(|word| u8::from_str_radix(word, 16).ok()).collect()]
    },
    start: || {
        let layout = PageLayout::parse(LAYOUT).expect("the layout of the tests is one");
        Box::new(move |bytes| {
            let Some(page) = Page::new(&layout, bytes) else { return 0 };
            let mut entries = page.entries();
            let inside: usize = entries.by_ref().map(|entry| entry.data.len() + 4).sum();
            assert!(inside <= bytes.len(), "{inside} bytes in {}", bytes.len());
            let sizes = (inside as u64 / 16).min(20);
            1 + u64::from(entries.damaged()) + 2 * u64::from(page.lost().is_some()) + 8 * sizes
        })
    },
};

const FORMAT: &str = "name: sched_switch\nID: 372\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char prev_comm[8];\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"vec=%u [%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 0x10, \"RCU\" })\n";

pub(super) const EVENT_FORMAT: Target = Target {
    name: "event-format",
    purpose: "`format` and `header_page` of the kernel's trace, and entries read by them",
    examples: || vec![FORMAT.as_bytes().to_vec(), LAYOUT.as_bytes().to_vec()],
    start: || {
        of_text(|text| {
            let entry: Vec<u8> = text.bytes().rev().collect();
            let layout = PageLayout::parse(text);
            let read =
                layout.and_then(|layout| Some(Page::new(&layout, &entry)?.entries().count()));
            let format = Format::parse(text);
            let names = ["common_type", "prev_comm", "prev_pid", "name", "commit"];
            let fields = format.iter().flat_map(|format| names.map(|name| format.field(name)));
            let mut seen = 0;
            for field in fields.flatten() {
                let found = (field.read(&entry), field.text(&entry), field.rest(&entry));
                seen = seen * 8 + u64::from(found.0.is_some()) + 2 * u64::from(found.1.is_some());
            }
            let symbols = format.map_or(0, |format| format.symbols().len() as u64);
            answer(seen ^ symbols << 32, "")
                ^ u64::from(layout.is_some())
                ^ u64::from(read.is_some()) << 1
        })
    },
};

pub(super) const CLOCK_WORDS: usize = 64;

pub(super) fn clock_page() -> Vec<u8> {
    let clock = Clock::new();
    let _ = clock.now();
    let shared = clock.share().expect("the kernel shares memory");
    let mut bytes = vec![0; 8 * CLOCK_WORDS];
    File::from(shared).read_exact_at(&mut bytes, 0).expect("a page is as long");
    bytes
}

/// What another process may have written: reads end, bounds are in order, nothing panics.
fn clock() -> Body {
    let page = SharedWords::create(c"fuzz", CLOCK_WORDS).expect("the kernel shares memory");
    let file = File::from(page.as_fd().try_clone_to_owned().expect("a descriptor is left"));
    Box::new(move |bytes| {
        for (word, chunk) in page.words().iter().zip(padded(bytes).chunks_exact(8)) {
            word.store(u64::from_le_bytes(chunk.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
        let reader = match PageReader::open(&file) {
            Ok(reader) => reader,
            Err(error) => return answer(1, &error.to_string()),
        };
        for _ in 0..2 {
            let bounds = [reader.now_bounded(), reader.now_bounded_ordered()];
            assert!(bounds.iter().all(|b| b.earliest <= b.latest), "{bounds:?}");
            let _ = (reader.now(), reader.recent(), reader.guard());
        }
        let writer = reader.writer();
        2 + u64::from(writer.expired) + 2 * u64::from(reader.counter().is_some())
    })
}

pub(super) fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(8 * CLOCK_WORDS, 0);
    bytes
}

pub(super) const CLOCK: Target = Target {
    name: "clock-page",
    purpose: "the page that another process's clock writes",
    examples: || vec![clock_page()],
    start: clock,
};

fn progress() -> Body {
    Box::new(|bytes| {
        let page = ProgressPage::create().expect("the kernel shares memory");
        let file = File::options().write(true).open(page.path()).expect("a page can be opened");
        let mut word = WordProgress::new(page.try_clone().expect("a page can be mapped again"));
        let mut answer: Answer = 0;
        // Words between which it is read: what a program does in several steps.
        for step in bytes.chunks(64) {
            file.write_all_at(&step[..step.len().min(128)], 64).expect("a page can be written");
            word.begin(1_000_000);
            let done = word.done_ns();
            assert!(done <= 1_000_000, "{done} of 1000000 ns");
            let reported =
                (word.begun_ns().is_some(), word.is_silent(), word.is_idle(), word.has_ended());
            answer = answer.rotate_left(3)
                ^ u64::from(reported.0)
                ^ u64::from(reported.1) << 1
                ^ (done % 7) << 2;
        }
        file.write_all_at(&bytes[..bytes.len().min(128)], 0).expect("a page can be written");
        let (read, opened, grid) = (page.was_reported(), page.was_opened(), page.grid());
        let again = ProgressPage::open(&page.path());
        if again.is_ok() {
            let mut writer = Progress::on(page);
            let _ = writer.next_release_ns(u64::from_le_bytes([bytes.len() as u8; 8]));
            writer.begin();
            writer.report(1, 2);
            let _ = writer.job();
        }
        answer ^ u64::from(read) << 9 ^ u64::from(opened) << 10 ^ u64::from(grid.is_some()) << 11
    })
}

pub(super) const PROGRESS: Target = Target {
    name: "progress-page",
    purpose: "the page in which a program tells how far it is",
    examples: || {
        let page = |job: u64| [job, 100, 40, 0, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
        let head = [u64::from_le_bytes(*b"hgprogr\0"), 1, 1_000, 500, 1, 0, 0, 0]
            .map(u64::to_le_bytes)
            .concat();
        let last = [head.clone(), page(u64::MAX)].concat();
        vec![[page(2), page(4), page(3)].concat(), [head, page(2)].concat(), last]
    },
    start: progress,
};

pub(super) const CLOCK_BOUND: Target = Target {
    name: "clock-bound",
    purpose: "the page of ClockBound's daemon, and the moment at which it is read",
    examples: || {
        let times = |numbers: [i64; 5]| numbers.map(i64::to_ne_bytes).concat();
        let page = |version: u16, size: u32| {
            let magic = [0x414d_5a4eu32, 0x4342_0200, size].map(u32::to_ne_bytes).concat();
            let numbers = [version, 4].map(u16::to_ne_bytes).concat();
            let disruptions: &[u8] = if version == 2 { &[0; 8] } else { &[] };
            let rest = [1_000u32, 1, 1, 0].map(u32::to_ne_bytes).concat();
            let page = [&magic, &numbers, &times([5, 0, 1_005, 0, 10_000])[..], disruptions, &rest];
            let mut page = page.concat();
            page.resize(size as usize, 0);
            [page, 7_000_000_000u64.to_be_bytes().to_vec()].concat()
        };
        vec![page(1, 72), page(2, 80)]
    },
    start: || {
        Box::new(|bytes| {
            let found = utc::of_clock_bound(bytes);
            of_result(found.as_ref().map_or(0, |found| 1 + u64::from(found.is_some())), found)
        })
    },
};

pub(super) const CHRONYD: Target = Target {
    name: "chronyd",
    purpose: "what chronyd answers about its tracking and its source, and the moment",
    examples: || {
        let reply = |length: usize, command: u32, parts: &[(usize, u32)]| {
            let mut reply = vec![0; length];
            reply[..2].copy_from_slice(&[6, 2]);
            for (at, value) in [(4, command), (28, 0x0a00_0001)].iter().chain(parts) {
                reply[*at..*at + 4].copy_from_slice(&value.to_be_bytes());
            }
            reply
        };
        let address = 1 << 16;
        let part = 0xfa80_0000;
        let tracking = [(32, 0x0a00_0001), (48, address), (52, 3 << 16), (60, 9), (68, part)]
            .into_iter()
            .chain([80, 84, 88, 92, 96].map(|at| (at, part)))
            .collect::<Vec<_>>();
        let source = [(44, address), (60, 3), (68, part), (72, part)];
        let replies = [reply(104, (33 << 16) | 5, &tracking), reply(76, (15 << 16) | 3, &source)];
        let numbers = [10_000_000_000i64, 65_536, -50_000, 50_000].map(i64::to_be_bytes);
        vec![[replies.concat(), numbers.concat()].concat()]
    },
    start: || {
        Box::new(|bytes| {
            let found = utc::of_chronyd(bytes);
            if let Ok((_, growth_ppb)) = found {
                assert!(growth_ppb >= 1_000, "a growth of {growth_ppb} parts in 10^9");
            }
            of_result(u64::from(found.is_ok()), found)
        })
    },
};

/// The answers of a clock that follows a grandmaster, in the order of the questions.
fn ptp4l() -> Vec<u8> {
    const DAY_NS: u64 = 86_400_000_000_000;
    let answer = |(sequence, (id, body)): (usize, (u16, Vec<u8>))| {
        let mut message = vec![0; 54 + body.len()];
        message[..2].copy_from_slice(&[0x0d, 2]);
        message[3] = 54 + body.len() as u8;
        message[31] = sequence as u8;
        message[46..52].copy_from_slice(&[2, 0, 0, 1, 0, 2 + body.len() as u8]);
        message[52..54].copy_from_slice(&id.to_be_bytes());
        message[54..].copy_from_slice(&body);
        [vec![message.len() as u8], message].concat()
    };
    let body = |length: usize, parts: &[(usize, &[u8])]| {
        let mut body = vec![0; length];
        for (at, part) in parts {
            body[*at..*at + part.len()].copy_from_slice(part);
        }
        body
    };
    let sets = [
        (0x2000, body(20, &[(3, &[1])])),
        (0x2004, body(26, &[(10, &[9]), (23, &[1])])),
        (0x2001, body(18, &[(1, &[1]), (14, &[4])])),
        (0x2002, body(32, &[(19, &[6, 0x22])])),
        (0x2003, vec![0, 37, 0x1c, 0x20]),
        (0xc000, body(50, &[(7, &[100]), (8, &DAY_NS.to_be_bytes()), (41, &[1])])),
        (0xc004, body(14, &[(11, &[1])])),
        (0xc009, body(16, &[])),
    ];
    let messages = sets.into_iter().enumerate().flat_map(answer);
    let utc_ns = DAY_NS - 36_000_000_000;
    let clocks = [utc_ns, DAY_NS + 1_000_000_000, utc_ns + 500].map(u64::to_be_bytes);
    messages.chain(clocks.concat()).collect()
}

pub(super) const PTP4L: Target = Target {
    name: "ptp4l",
    purpose: "what ptp4l answers, and its clock beside the system's",
    examples: || vec![ptp4l()],
    start: || {
        Box::new(|bytes| {
            let found = utc::of_ptp4l(bytes);
            if let Ok(error_ns) = found {
                assert!(error_ns >= 2, "a bound of {error_ns} ns");
            }
            of_result(u64::from(found.is_ok()), found)
        })
    },
};
