//! A load that this program makes, where stress-ng is not installed.
//!
//! Each process is a fork of this one that computes, writes or waits until it is ended. What it needs is made before:
//! afterwards it neither allocates nor locks.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hourglass_documents::CpuSet;
use hourglass_documents::load::LoadKind;
use hourglass_sys::thread;
use hourglass_sys::worker_process::{Worker, WorkerSettings};

use super::Maker;

/// Words of eight bytes: 8 MiB, as many as a common cache of the last level has for a core or two.
const CACHE_WORDS: usize = 1 << 20;
/// 64 MiB, as stress-ng is told.
const MEMORY_WORDS: usize = 8 << 20;
/// Steps of one call of the work: some milliseconds.
const STEPS: usize = 1 << 20;
/// A line of the cache, in words.
const LINE: usize = 8;
/// Written at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of the file of a process: 64 MiB.
const BLOCKS: u64 = 1024;
/// Blocks after which the disk has to have them.
const SYNCED: u64 = 16;
const TIMER: Duration = Duration::from_micros(20);
/// Numerical Recipes' generator of 64 bits.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const ADDEND: u64 = 1_442_695_040_888_963_407;

const SETTINGS: WorkerSettings = WorkerSettings { cpu: None, nice: 0, max_lifetime_ns: u64::MAX };

/// Starts `number` processes, or pairs; returns what they do.
pub(super) fn start(kind: LoadKind, number: u32, cpus: &CpuSet) -> io::Result<(Maker, String)> {
    let mut workers = Vec::new();
    for _ in 0..number {
        match kind {
            LoadKind::Cpu => workers.push(Worker::start(SETTINGS, compute())?),
            LoadKind::Cache => workers.push(Worker::start(SETTINGS, jump(CACHE_WORDS))?),
            LoadKind::Memory => workers.push(Worker::start(SETTINGS, fill(MEMORY_WORDS))?),
            LoadKind::Io => {
                let file = unnamed_file()?;
                let number = file.as_raw_fd().unsigned_abs();
                workers.push(Worker::start_with(SETTINGS, &[number], write_out(file))?);
            }
            LoadKind::Timer => workers.push(Worker::start(SETTINGS, wake_by_timers())?),
            LoadKind::Switch => workers.extend(pair()?),
        }
    }
    for worker in &workers {
        thread::set_affinity_of(worker.pid(), cpus.iter())?;
    }
    let does = match kind {
        LoadKind::Cpu => "computes",
        LoadKind::Cache => "jumps through 8 MiB and writes there",
        LoadKind::Memory => "writes 64 MiB of memory again and again",
        LoadKind::Io => "writes a file of 64 MiB, 1 MiB at a time, and has it written to the disk",
        LoadKind::Timer => "sleeps for 20 us again and again",
        LoadKind::Switch => "two processes hand a byte to each other",
    };
    Ok((Maker::Own(workers), does.to_owned()))
}

fn next(state: u64) -> u64 {
    state.wrapping_mul(FACTOR).wrapping_add(ADDEND)
}

fn compute() -> impl FnMut() -> bool {
    let mut state = 1u64;
    move || {
        state = (0..STEPS).fold(state, |state, _| black_box(next(state)));
        true
    }
}

fn jump(words: usize) -> impl FnMut() -> bool {
    let mut memory = vec![0u64; words];
    let mut state = 1u64;
    move || {
        for _ in 0..STEPS {
            state = next(state);
            let place = (state >> 32) as usize % words;
            if let Some(word) = memory.get_mut(place) {
                *word = word.wrapping_add(state);
            }
        }
        black_box(&memory);
        true
    }
}

fn fill(words: usize) -> impl FnMut() -> bool {
    let mut memory = vec![0u64; words];
    let mut round = 0u64;
    move || {
        round = round.wrapping_add(1);
        memory.iter_mut().step_by(LINE).for_each(|word| *word = round);
        black_box(&memory);
        true
    }
}

/// A file without a name in the folder for temporary files: nothing of it is left, whatever ends its writer.
fn unnamed_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let open = || OpenOptions::new().write(true).custom_flags(O_TMPFILE).mode(0o600).open(&folder);
    open().map_err(|error| {
        let folder = folder.display();
        io::Error::other(format!("no file can be made in {folder} (TMPDIR): {error}"))
    })
}

/// `O_TMPFILE` with `O_DIRECTORY`, which is in it (`open(2)`).
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "riscv64"))]
const O_TMPFILE: i32 = 0o20_200_000;
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "riscv64")))]
const O_TMPFILE: i32 = 0o20_040_000;

fn write_out(file: File) -> impl FnMut() -> bool {
    let block = vec![0x5au8; BLOCK_BYTES];
    let mut number = 0u64;
    move || {
        let offset = (number % BLOCKS).saturating_mul(BLOCK_BYTES as u64);
        number = number.wrapping_add(1);
        let written = file.write_all_at(&block, offset);
        let done = if number.is_multiple_of(SYNCED) {
            written.and_then(|()| file.sync_data())
        } else {
            written
        };
        done.is_ok()
    }
}

fn wake_by_timers() -> impl FnMut() -> bool {
    let mut is_set_up = false;
    move || {
        if !is_set_up {
            // Otherwise the kernel lets it sleep 50 us longer.
            let _ = thread::set_timer_slack(1);
            is_set_up = true;
        }
        std::thread::sleep(TIMER);
        true
    }
}

/// Two processes, of which one waits while the other works; if one ends, so does the other.
fn pair() -> io::Result<[Worker; 2]> {
    let (one, other) = UnixStream::pair()?;
    let start = |mut line: UnixStream, mut begins: bool| {
        let number = line.as_raw_fd().unsigned_abs();
        Worker::start_with(SETTINGS, &[number], move || {
            let mut byte = [0u8];
            let said = if begins { line.write_all(&byte) } else { Ok(()) };
            begins = true;
            said.and_then(|()| line.read_exact(&mut byte)).is_ok()
        })
    };
    Ok([start(one, true)?, start(other, false)?])
}
