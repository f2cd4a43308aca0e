//! The programs of `tests/programs` and `examples`, compiled with every compiler that is there, with the
//! shared and the static library, and under the sanitizers where these work; and run.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Link, bench, compile, compilers, package, run};

/// The programs of a folder in a language.
fn programs(folder: &str, end: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(package().join(folder)).unwrap().map(|file| file.unwrap().path());
    let mut found: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == end)).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder}: {end}");
    found
}

const LANGUAGES: [(&str, &str, &str); 2] = [("c", "c", "-std=c11"), ("c++", "cpp", "-std=c++17")];

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

fn build_and_run(folder: &str, language: usize, ways: &[(Link, &str)]) {
    let (language, end, standard) = LANGUAGES[language];
    let bench = bench();
    for source in programs(folder, end) {
        for compiler in compilers(language) {
            for (link, level) in ways {
                run(&compile(compiler, bench.path(), &source, &[standard, level], *link), &[]);
            }
        }
    }
}

fn sanitized(folder: &str, flag: &str, options: (&str, &str)) {
    let bench = bench();
    for (language, end, standard) in LANGUAGES {
        for compiler in compilers(language) {
            if !works(compiler, bench.path(), flag) {
                println!("skipped: programs made with {compiler} {flag} do not run here");
                continue;
            }
            for source in programs(folder, end) {
                let flags = [standard, "-O1", "-g", "-fno-omit-frame-pointer", flag];
                run(&compile(compiler, bench.path(), &source, &flags, Link::Shared), &[options]);
            }
        }
    }
}

#[test]
fn c_programs_run() {
    build_and_run("tests/programs", 0, &[(Link::Shared, "-O2")]);
}

#[test]
fn cpp_programs_run() {
    build_and_run("tests/programs", 1, &[(Link::Shared, "-O2")]);
}

#[test]
fn examples_run() {
    let ways = [(Link::Shared, "-O2"), (Link::Static, "-O0")];
    build_and_run("examples", 0, &ways);
    build_and_run("examples", 1, &ways);
}

/// The program that the README shows.
#[test]
fn the_program_of_the_readme_runs() {
    let readme = fs::read_to_string(package().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```c\n").unwrap();
    let bench = bench();
    let source = bench.path().join("readme.c");
    fs::write(&source, rest.split_once("```").unwrap().0).unwrap();
    for compiler in compilers("c") {
        let program = compile(compiler, bench.path(), &source, &["-std=c11"], Link::Shared);
        assert!(run(&program, &[]).starts_with("between "));
    }
}

/// Leaks are looked for as well: whatever C makes, C can free.
#[test]
fn programs_run_under_the_address_sanitizer() {
    let options = ("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1");
    sanitized("tests/programs", "-fsanitize=address,undefined", options);
}

#[test]
fn programs_run_under_the_thread_sanitizer() {
    let suppressions = package().join("package/thread-sanitizer.supp");
    let options = format!("halt_on_error=1:suppressions={}", suppressions.display());
    sanitized("tests/programs", "-fsanitize=thread", ("TSAN_OPTIONS", &options));
}
