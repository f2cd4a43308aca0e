//! What C programs do with the header and the library, in a process of their own: an input goes in, an answer comes out.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;

use hourglass_clock::timekeeping::SourceId;
use hourglass_sys::memfd::SharedWords;

use super::pages;
use crate::{Answer, Body, Target};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// With `hourglass_capi` cargo builds the library beside this program, and the C program calls it.
const _: extern "C" fn() -> u32 = hourglass::version::hg_abi_version;

struct CProgram {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl CProgram {
    fn start(name: &str, links: bool, words: &[String]) -> CProgram {
        let folder = tempfile::tempdir().expect("a folder for a program");
        let program = compile(name, links, folder.path());
        let mut command = Command::new(&program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program was just made");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut program = CProgram {
            child,
            input: input.expect("it is a pipe"),
            output: output.expect("it is a pipe"),
        };
        // It runs by now, and its file may go.
        program.send(&[]);
        program.answer();
        program
    }

    fn send(&mut self, bytes: &[u8]) {
        let sent = (self.input.write_all(&(bytes.len() as u32).to_ne_bytes()))
            .and_then(|()| self.input.write_all(bytes));
        self.unless_ended(sent);
    }

    fn answer(&mut self) -> Answer {
        let mut word = [0; 8];
        let read = self.output.read_exact(&mut word);
        self.unless_ended(read);
        Answer::from_ne_bytes(word)
    }

    fn unless_ended(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            let status = self.child.wait();
            panic!("the C program ended: {status:?} ({error})");
        }
    }
}

impl Drop for CProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compile(name: &str, links: bool, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let source = format!("{CRATE}/src/c/{name}.c");
    let headers = format!("-I{CRATE}/../crates/capi/include");
    // Where cargo puts the library that this program depends on.
    let own = std::env::current_exe().expect("this program has a file");
    let near = own.parent().expect("a file is in a folder");
    let built = if near.ends_with("deps") { near.to_owned() } else { near.join("deps") };
    let library = built.join("libhourglass.so");
    symlink(&library, folder.join("libhourglass.so.1")).expect("the folder is new");
    // Undefined behaviour of what the header compiles in, where the compiler has the sanitizer.
    for sanitizer in ["-fsanitize=undefined", "-g"] {
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-pthread",
            "-fno-sanitize-recover=all",
            sanitizer,
        ]);
        compiler.arg(&headers).arg(&source).arg("-o").arg(&program);
        if links {
            compiler.arg(&library).arg(format!("-Wl,-rpath,{}", folder.display()));
        }
        if compiler.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return program;
        }
    }
    panic!("cc does not compile {source} with {}", library.display());
}

pub(super) const CALLS: Target = Target {
    name: "c-calls",
    purpose: "calls of the C interface, which and with what an input says",
    examples: || {
        let stepping = |step: u8| (0..96_u8).map(|byte| byte.wrapping_mul(step)).collect();
        [1, 3, 7, 13, 31, 57, 101, 163].map(stepping).to_vec()
    },
    start: || {
        let mut program = CProgram::start("calls", true, &[]);
        Box::new(move |bytes| {
            program.send(bytes);
            program.answer()
        })
    },
};

const TURN: usize = 8;
const GUARD: usize = 9;
const FIRST_SLOT: usize = 16;
const SLOT_WORDS: usize = 24;

/// Guards that the reader has to find: no generation of it makes this one.
const NO_GUARD: u64 = 1;

/// The words of a slot that belong to a number; `page.c` computes them anew. Odd ones ask for a guard that is never
/// there. Eight words as the module `calibration_page` of `hourglass-clock` lays them out: meta, base and validity of
/// the counter, mult, base, bound, growth, hold.
fn slot_of(number: u32) -> [u64; 8] {
    let status = u64::from((number ^ number >> 8) & 0xff);
    let base_ns = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2;
    let asks = 2 * u64::from(number & 1);
    let source =
        u64::from(if cfg!(target_arch = "aarch64") { SourceId::CNTVCT } else { SourceId::TSC }.0);
    [source | status << 24, 0, u64::MAX, 0, base_ns, u64::from(number), 0, asks]
}

/// Switches as `calibration_page::Page::switch` does to a shared page; each byte says how long the writer is kept
/// between two words.
fn switch(words: &[AtomicU64], number: u32, pause: &mut dyn FnMut()) {
    let before = words[TURN].load(Ordering::Relaxed);
    words[TURN].store(before | 1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let next = ((before >> 2).wrapping_add(1) << 2) | ((before ^ 2) & 2);
    let slot = FIRST_SLOT + ((next >> 1) & 1) as usize * SLOT_WORDS;
    for (index, word) in slot_of(number).into_iter().enumerate() {
        words[slot + index].store(word, Ordering::Relaxed);
        pause();
    }
    words[GUARD].store(NO_GUARD, Ordering::Relaxed);
    pause();
    words[TURN].store(next, Ordering::Release);
}

fn page() -> Body {
    let words = SharedWords::create(c"fuzz", pages::CLOCK_WORDS).expect("the kernel shares memory");
    let place = format!("/proc/{}/fd/{}", std::process::id(), words.as_fd().as_raw_fd());
    let mut program = CProgram::start("page", false, &[place]);
    Box::new(move |bytes| {
        let whole = bytes.first() == Some(&b't');
        let page = words.words();
        if !whole {
            for (word, chunk) in page.iter().zip(pages::padded(bytes).chunks_exact(8)) {
                let chunk = chunk.try_into().unwrap_or_default();
                word.store(u64::from_le_bytes(chunk), Ordering::Relaxed);
            }
            program.send(bytes);
            return program.answer();
        }
        // Two switches, so that no slot holds what was there before.
        page.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        (0..2).for_each(|number| switch(page, number, &mut || ()));
        let done = AtomicBool::new(false);
        let answer = thread::scope(|scope| {
            scope.spawn(|| write_until(page, bytes, &done));
            let mut ask = || {
                program.send(bytes);
                program.answer()
            };
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut ask));
            done.store(true, Ordering::Relaxed);
            answer
        });
        match answer {
            // How many were accepted is chance.
            Ok(accepted) => 1 + u64::from(accepted > 0),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn write_until(page: &[AtomicU64], bytes: &[u8], done: &AtomicBool) {
    let mut paces = bytes.iter().cycle();
    let mut number = 2_u32;
    while !done.load(Ordering::Relaxed) {
        let step = u32::from(paces.next().copied().unwrap_or(0));
        number = number.wrapping_add(1 + step);
        switch(page, number, &mut || match paces.next() {
            Some(pace @ 0..128) => (0..*pace).for_each(|_| std::hint::spin_loop()),
            Some(128..136) => thread::yield_now(),
            _ => {}
        });
    }
}

pub(super) const PAGE: Target = Target {
    name: "c-page",
    purpose: "the page of a clock while it is written, read by the header's inline functions",
    examples: || {
        let paces = [&b"t"[..], b"t\x00\x01\x07", b"t\x85\x00\x85", b"t\x7f\x40\x83\xff\xff\xff"];
        paces.map(<[u8]>::to_vec).into_iter().chain([pages::clock_page()]).collect()
    },
    start: page,
};
