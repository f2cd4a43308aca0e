//! What reading the clock and telling progress cost from C, beside Rust, in one run: rounds of each in turn.
//!
//! ```text
//! cargo run --release -p hourglass-capi --example speed
//! ```
//!
//! Compiles `speed/speed.c` with `cc -O2` as a shared library against `libhourglass.so`, and loads it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hourglass_clock::process::clock;
use hourglass_reserve::progress::Progress;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

type Loop = unsafe extern "C" fn(u64) -> u64;

/// Calls in a round, some 2 ms.
const CALLS: u64 = 100_000;
const ROUNDS: usize = 301;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let library = load()?;
    let c = |name: &CStr| find(library, name);
    let (now, ordered, bounded) = (c(c"c_now")?, c(c"c_now_ordered")?, c(c"c_now_bounded")?);
    let (call, tell) = (c(c"c_now_call")?, c(c"c_progress")?);
    let mut progress = Progress::open()?;
    let rust_now = |calls: u64| (0..calls).fold(0u64, |sum, _| sum.wrapping_add(clock().now()));
    let rust_ordered =
        |calls: u64| (0..calls).fold(0u64, |sum, _| sum.wrapping_add(clock().now_ordered()));
    let rust_bounded = |calls: u64| {
        (0..calls).fold(0u64, |sum, _| {
            let bounds = clock().now_bounded();
            sum.wrapping_add(bounds.earliest ^ bounds.latest)
        })
    };
    println!("{:24} {:>8} {:>8} {:>7}", "", "C, ns", "Rust, ns", "ratio");
    pair("now", in_c(now), rust_now);
    pair("now_ordered", in_c(ordered), rust_ordered);
    pair("now_bounded", in_c(bounded), rust_bounded);
    pair("now, by a call", in_c(call), rust_now);
    pair("progress", in_c(tell), move |calls| {
        (1..=calls).for_each(|done| progress.report(done, calls + 1));
        calls
    });
    Ok(())
}

fn in_c(body: Loop) -> impl Fn(u64) -> u64 {
    // SAFETY: the loops of speed.c take any number.
    move |calls| unsafe { body(calls) }
}

/// Nanoseconds a call.
fn time(work: &mut impl FnMut(u64) -> u64) -> f64 {
    let begun = Instant::now();
    std::hint::black_box(work(std::hint::black_box(CALLS)));
    begun.elapsed().as_nanos() as f64 / CALLS as f64
}

/// Both in turn, after a while in which clocks settle; the medians, and the median of the ratios.
fn pair(name: &str, mut in_c: impl FnMut(u64) -> u64, mut in_rust: impl FnMut(u64) -> u64) {
    for _ in 0..20 {
        time(&mut in_c);
        time(&mut in_rust);
    }
    let mut rounds: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (time(&mut in_c), time(&mut in_rust))).collect();
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        rounds.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&rounds[ROUNDS / 2])
    };
    let (c, rust, ratio) = (median(|r| r.0), median(|r| r.1), median(|r| r.0 / r.1));
    println!("{name:24} {c:8.2} {rust:8.2} {ratio:7.3}");
}

fn find(library: *mut c_void, name: &CStr) -> Result<Loop, String> {
    // SAFETY: the library is open and the name is a terminated text.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(format!("speed.c has no {name:?}"));
    }
    // SAFETY: every function of speed.c that this program names is of that type.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Loop>(found) })
}

/// Compiles the loops and loads them.
fn load() -> Result<*mut c_void, Box<dyn std::error::Error>> {
    const RTLD_NOW: c_int = 2;
    let example = std::env::current_exe()?;
    let built = example.parent().and_then(Path::parent).ok_or("no target folder")?.join("deps");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("speed.so");
    // What the library is called by those that were linked with it.
    std::os::unix::fs::symlink(
        built.join("libhourglass.so"),
        folder.path().join("libhourglass.so.1"),
    )?;
    let compiled = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-std=c11"])
        .arg("-I")
        .arg(package.join("include"))
        .arg(package.join("examples/speed/speed.c"))
        .arg("-o")
        .arg(&made)
        .arg(built.join("libhourglass.so"))
        .arg(format!("-Wl,-rpath,{}", folder.path().display()))
        .status()?;
    if !compiled.success() {
        return Err("cc failed".into());
    }
    let name = CString::new(made.to_str().ok_or("a path that is no UTF-8")?)?;
    // SAFETY: a terminated text; the library's initialisers are C's own.
    let library = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
    if library.is_null() {
        // SAFETY: after a failure it gives a terminated text.
        return Err(unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy().into_owned().into());
    }
    Ok(library)
}
