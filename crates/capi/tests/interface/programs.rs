//! The programs of `tests/programs` and `examples`, compiled with every compiler that is there, with the
//! shared and the static library, and under the sanitizers where these work; and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::sched::Attributes;

use crate::support::{Link, bench, compile, compilers, package, run};

/// The programs of a folder in a language.
fn programs(folder: &str, end: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(package().join(folder)).unwrap().map(|file| file.unwrap().path());
    let mut found: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == end)).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder}: {end}");
    found
}

/// Languages, and how their files end.
const LANGUAGES: [(&str, &str); 2] = [("c", "c"), ("c++", "cpp")];
/// The oldest standards of programs, and newer ones: a program is compiled by either in some of its forms.
const OLD: [&str; 2] = ["-std=c11", "-std=c++17"];
const NEW: [&str; 2] = ["-std=c17", "-std=c++20"];

/// Whether a program made with a sanitizer runs here at all: some kernels lay memory out in a way that
/// they do not bear.
fn works(compiler: &str, folder: &Path, flag: &str) -> bool {
    let source = folder.join("empty.c");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = folder.join("empty");
    let made = Command::new(compiler)
        .args([flag, "-x", "c"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let runs = || Command::new(&program).output().is_ok_and(|said| said.status.success());
    made.is_ok_and(|said| said.status.success()) && runs()
}

/// Compiles programs with a compiler, and runs each while the next is compiled: they sleep most of the time.
fn each(
    compiler: &str,
    sources: &[PathBuf],
    flags: &[&str],
    link: Link,
    environment: &[(&str, &str)],
) {
    let bench = bench();
    std::thread::scope(|scope| {
        for source in sources {
            let program = compile(compiler, bench.path(), source, flags, link);
            scope.spawn(move || run(&program, environment));
        }
    });
}

/// Compiles and runs programs with every compiler of their language.
fn build_and_run(sources: &[PathBuf], language: usize, flags: &[&str], link: Link) {
    for compiler in compilers(LANGUAGES[language].0) {
        each(compiler, sources, flags, link, &[]);
    }
}

/// Optimised, with the shared library.
fn build_and_run_shared(folder: &str, language: usize) {
    let sources = programs(folder, LANGUAGES[language].1);
    build_and_run(&sources, language, &[OLD[language], "-O2"], Link::Shared);
}

/// Compiles for a sanitizer and runs the programs of a language. They have lines for its reports and nothing
/// more for a debugger, which takes as long again as the rest.
fn sanitized(language: usize, flags: &[&str], options: (&str, &str)) {
    let bench = bench();
    let (name, end) = LANGUAGES[language];
    let flags = [&["-g1", "-fno-omit-frame-pointer"], flags].concat();
    let sanitizer = flags.iter().find(|flag| flag.starts_with("-fsanitize")).unwrap();
    for compiler in compilers(name) {
        if !works(compiler, bench.path(), sanitizer) {
            let check = format!(
                "file=$(mktemp) && echo 'int main(){{return 0;}}' | {compiler} {sanitizer} -x {name} - -o $file && \
                 $file; code=$?; rm -f $file; exit $code"
            );
            skip(
                Requirement::runs(sanitizer, check),
                format_args!("programs made with {compiler} {sanitizer} do not run here"),
            );
            continue;
        }
        each(compiler, &programs("tests/programs", end), &flags, Link::Shared, &[options]);
    }
}

#[test]
fn c_programs_run() {
    build_and_run_shared("tests/programs", 0);
}

/// While the kernel's clock was made 100 ppm faster for 1.2 s, one inline bounded read in nine was outside
/// its bounds. Once, since it is this machine's clock that is slewed; elsewhere the program slews nothing.
#[test]
fn bounds_hold_while_the_kernel_slews() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let bench = bench();
    let source = package().join("tests/programs/slewed.c");
    let program = compile(compiler, bench.path(), &source, &["-std=c11", "-O2"], Link::Shared);
    let said = run(&program, &[("SLEW", "1")]);
    if let Some(why) = said.lines().find(|line| line.starts_with("not slewed")) {
        skip(Requirement::SET_CLOCK, why);
    }
}

#[test]
fn cpp_programs_run() {
    build_and_run_shared("tests/programs", 1);
}

#[test]
fn examples_run() {
    build_and_run_shared("examples", 0);
    build_and_run_shared("examples", 1);
}

/// One program of each language: that the archive has all is said by `nm` (`abi.rs`), and linking with it
/// takes a second or two each time.
#[test]
fn examples_run_with_the_static_library() {
    for (language, name) in ["own_loop.c", "audio.cpp"].into_iter().enumerate() {
        let source = package().join("examples").join(name);
        build_and_run(&[source], language, &[NEW[language], "-O0"], Link::Static);
    }
}

/// What stands between fences of a language, in the order of the page.
fn shown<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    page.split(&open).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

/// The programs that README and guide show are whole, have no warning even where one is strict, and run.
#[test]
fn programs_of_the_pages_run() {
    let read = |path: &str| fs::read_to_string(package().join(path)).unwrap();
    let pages = [("readme", read("README.md")), ("guide", read("../../docs/src/guide/c.md"))];
    let bench = bench();
    for ((language, end), standard) in LANGUAGES.into_iter().zip(OLD) {
        let page = pages.iter().flat_map(|(page, text)| {
            let fence = if language == "c" { "c" } else { "cpp" };
            shown(text, fence).into_iter().enumerate().map(move |at| (page, at))
        });
        let sources: Vec<PathBuf> = page
            .map(|(page, (number, text))| {
                let path = bench.path().join(format!("{page}{number}.{end}"));
                fs::write(&path, text).unwrap();
                path
            })
            .collect();
        assert!(!sources.is_empty(), "{language}");
        for compiler in compilers(language) {
            each(compiler, &sources, &[standard, "-Wconversion", "-Wshadow"], Link::Shared, &[]);
        }
    }
}

/// An older compiler gets one clear message, not the first error that it meets in the header.
#[test]
fn cpp_before_17_is_rejected() {
    let bench = bench();
    let source = bench.path().join("old.cpp");
    let program = "#include <hourglass.hpp>\nint main() { hourglass::sleeper sleeper; }\n";
    fs::write(&source, program).unwrap();
    for compiler in compilers("c++") {
        let said = Command::new(compiler)
            .args(["-std=c++14", "-fsyntax-only", "-I"])
            .arg(package().join("include"))
            .arg(&source)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        let first = text.lines().find(|line| line.contains("error:")).unwrap_or_default();
        assert!(!said.status.success() && first.contains("-std=c++17"), "{text}");
    }
}

/// Fedotova 2012, section 5.1: the thesis' library and its programs are compiled with `-std=c++0x`.
#[test]
fn the_thesis_class_takes_the_thesis_flags() {
    let sources = ["tests/programs/thesis.cpp", "examples/high_per_timer.cpp"];
    let sources = sources.map(|source| package().join(source));
    build_and_run(&sources, 1, &["-std=c++0x", "-O2"], Link::Shared);
}

/// What C kept is a run as any other: it is read with its periods, its intervals and its causes.
#[test]
fn a_loop_that_was_kept_is_a_run() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let bench = bench();
    let source = package().join("examples/recorder.c");
    let program = compile(compiler, bench.path(), &source, &["-std=c11"], Link::Shared);
    let folder = bench.path().join("kept");
    let keep = || Command::new(&program).arg(&folder).output().unwrap();
    let said = keep();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let run = hourglass_runs::open_run(&folder).unwrap();
    let threads = &run.document.result.threads;
    assert_eq!(threads.len(), 1);
    assert_eq!(threads[0].name.as_deref(), Some("blocks"));
    assert_eq!(threads[0].deadlines.map(|periods| periods.completed), Some(10));
    assert_eq!(run.intervals().unwrap().count() as u64, threads[0].intervals);
    run.explanation().unwrap();
    // A second run does not write over the first.
    let again = keep();
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
}

/// Takes a CPU from all below FIFO 20 for 12 ms of each 112, until it is over.
fn hog(cpu: u32, over: &AtomicBool) {
    hourglass_sys::thread::set_affinity([cpu]).unwrap();
    hourglass_sys::sched::set(Attributes::Fifo(20)).unwrap();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let until = Instant::now() + Duration::from_millis(12);
        while Instant::now() < until {}
    }
}

/// Issue 33, 2: the guide's promise, in C and in C++: the lateness of each begin, and the gap before it with its cause.
#[test]
fn a_starved_loop_says_why() {
    let cpu = *hourglass_sys::thread::affinity().unwrap().last().unwrap();
    let may = std::thread::spawn(|| hourglass_sys::sched::set(Attributes::Fifo(1)));
    if let Err(error) = may.join().unwrap() {
        return skip(Requirement::REAL_TIME, error);
    }
    for (language, flags) in [("c", ["-std=c11"].as_slice()), ("c++", &["-std=c++17", "-xc++"])] {
        let Some(compiler) = compilers(language).first().copied() else { continue };
        let bench = bench();
        let source = package().join("tests/data/starved.c");
        let program = compile(compiler, bench.path(), &source, flags, Link::Shared);
        let folder = bench.path().join("kept");
        let over = AtomicBool::new(false);
        let said = std::thread::scope(|scope| {
            scope.spawn(|| hog(cpu, &over));
            let said = Command::new(&program).arg(&folder).arg(cpu.to_string()).output();
            over.store(true, Ordering::Relaxed);
            said.unwrap()
        });
        assert!(said.status.success(), "{language}: {said:?}");
        let run = hourglass_runs::open_run(&folder).unwrap();
        let thread = &run.document.result.threads[0];
        assert_eq!((&*thread.policy, &thread.cpus[..]), ("FIFO:10", &[cpu][..]));
        let latency = thread.latency.as_ref().unwrap();
        assert!(latency.count == 400 && latency.max_ns >= 8_000_000, "{language}: {latency:?}");
        let causes = &run.document.result.causes;
        let taken = causes.iter().find(|cause| cause.cause == "context_switch_involuntary");
        assert!(taken.is_some_and(|cause| cause.max_ns >= 8_000_000), "{language}: {causes:?}");
    }
}

/// Leaks are looked for as well: whatever C makes, C can free.
const ADDRESS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1");

/// Not optimised, so that nothing is left out that is wrong.
fn under_the_address_sanitizer(language: usize) {
    sanitized(language, &[NEW[language], "-O0", "-fsanitize=address,undefined"], ADDRESS);
}

#[test]
fn c_programs_run_under_the_address_sanitizer() {
    under_the_address_sanitizer(0);
}

#[test]
fn cpp_programs_run_under_the_address_sanitizer() {
    under_the_address_sanitizer(1);
}

fn under_the_thread_sanitizer(language: usize) {
    let suppressions = package().join("package/thread-sanitizer.supp");
    let options = format!("halt_on_error=1:suppressions={}", suppressions.display());
    let flags = [OLD[language], "-O1", "-fsanitize=thread"];
    sanitized(language, &flags, ("TSAN_OPTIONS", &options));
}

#[test]
fn c_programs_run_under_the_thread_sanitizer() {
    under_the_thread_sanitizer(0);
}

#[test]
fn cpp_programs_run_under_the_thread_sanitizer() {
    under_the_thread_sanitizer(1);
}
