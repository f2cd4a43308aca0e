//! What `install.sh` lays out, found by pkg-config and by CMake.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hourglass_skip::{Requirement, skip};

use crate::support::{compilers, has, libraries, package};

fn install(arguments: &[&str]) -> Output {
    Command::new(package().join("install.sh")).args(arguments).output().unwrap()
}

fn installed(prefix: &Path, more: &[&str]) {
    let from = libraries()[0].parent().unwrap().to_owned();
    let words = ["--prefix", prefix.to_str().unwrap(), "--from", from.to_str().unwrap()];
    let said = install(&[&words, more].concat());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

fn ran(command: &mut Command) -> String {
    let said = command.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{command:?}\n{text}{}", String::from_utf8_lossy(&said.stderr));
    text
}

#[test]
fn pkg_config_finds_it() {
    let Some(compiler) = compilers("c").first().copied().filter(|_| has("pkg-config")) else {
        skip(
            Requirement::program("pkg-config"),
            "there is no compiler or no pkg-config (apt-get install gcc pkg-config)",
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path(), &[]);
    let ask = |what: &[&str]| {
        let path = folder.path().join("lib/pkgconfig");
        let said = ran(Command::new("pkg-config")
            .env("PKG_CONFIG_PATH", path)
            .args(what)
            .arg("hourglass"));
        said.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ask(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    let program = folder.path().join("clock");
    let source = package().join("examples/clock.c");
    ran(Command::new(compiler)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(ask(&["--cflags", "--libs"])));
    let lib = folder.path().join("lib");
    assert!(ran(Command::new(&program).env("LD_LIBRARY_PATH", &lib)).contains("since 1970"));
    // Statically: the private libraries as well.
    fs::remove_file(lib.join("libhourglass.so")).unwrap();
    ran(Command::new(compiler)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(ask(&["--static", "--cflags", "--libs"])));
    ran(&mut Command::new(&program));
    // A program has of the library what it calls, and not all of it.
    let whole = fs::metadata(lib.join("libhourglass.a")).unwrap().len();
    let program = fs::metadata(&program).unwrap().len();
    assert!(program * 4 < whole, "{program} of {whole}");
}

#[test]
fn cmake_finds_it() {
    // CMake writes files for make, unless it is asked for others.
    let tools = ["cmake", "make"];
    if compilers("c++").is_empty() {
        return;
    }
    if let Some(missing) = tools.into_iter().find(|tool| !has(tool)) {
        skip(
            Requirement::program(missing),
            format_args!("there is no {missing} (apt-get install {missing})"),
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    // As Debian has it: libraries in a folder of the architecture.
    installed(&prefix, &["--libdir", "lib/of-debian"]);
    let project = folder.path().join("project");
    fs::create_dir(&project).unwrap();
    let source = package().join("examples/timers.cpp");
    let text = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
         find_package(hourglass {} REQUIRED)\n\
         add_executable(shared {source})\ntarget_link_libraries(shared hourglass::hourglass)\n\
         add_executable(static {source})\ntarget_link_libraries(static hourglass::static)\n",
        env!("CARGO_PKG_VERSION"),
        source = source.display(),
    );
    fs::write(project.join("CMakeLists.txt"), text).unwrap();
    let build = folder.path().join("build");
    ran(Command::new("cmake")
        .arg(format!("-Dhourglass_DIR={}/lib/of-debian/cmake/hourglass", prefix.display()))
        .arg("-S")
        .arg(&project)
        .arg("-B")
        .arg(&build));
    ran(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared", "static"] {
        assert!(ran(&mut Command::new(build.join(program))).contains("message 42"));
    }
}

/// The bug: `sh install.sh` ended with "Illegal option -o pipefail" where sh is dash, and `--help` was an unknown word.
#[test]
fn a_plain_shell_runs_it() {
    let script = package().join("install.sh");
    let help = ran(Command::new("sh").arg(&script).arg("--help"));
    for option in ["--prefix", "--libdir", "--destdir", "--from"] {
        assert!(help.lines().any(|line| line.starts_with(option)), "{help}");
    }
    assert!(!help.contains('#') && !help.contains("set -"), "{help}");
    let folder = tempfile::tempdir().unwrap();
    let from = libraries()[0].parent().unwrap().to_owned();
    ran(Command::new("sh").arg(&script).arg("--prefix").arg(folder.path()).arg("--from").arg(from));
    for file in ["lib/pkgconfig/hourglass.pc", "share/man/man3/hg_sleep_until.3"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}

#[test]
fn bad_words_are_reported() {
    for (words, expected) in [
        (&["--prefix"][..], "needs a folder"),
        (&["--sprefix", "x"], "--sprefix"),
        (&["--prefix", "here"], "not absolute"),
        (&["--libdir", "../lib"], "below the prefix"),
        (&["--prefix", "/nowhere", "--from", "/nowhere"], "/nowhere/libhourglass.so"),
    ] {
        let said = install(words);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{text}");
        assert!(text.contains(expected) && text.lines().count() == 1, "{text}");
    }
}

/// Cargo tells its version only to itself: what Debian's files say by hand is the same.
#[test]
fn debian_packages_are_of_this_version() {
    let version = concat!(env!("CARGO_PKG_VERSION"), "-1");
    let manifest = fs::read_to_string(package().join("Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("libhourglass1 (= {version})")), "{version}");
    let changelog = package().join("../../packaging/debian/changelog");
    let text = fs::read_to_string(changelog).unwrap();
    assert!(text.starts_with(&format!("hourglass ({version}) ")), "{text}");
    let shlibs = package().join("../../packaging/debian/libhourglass1.shlibs");
    let text = fs::read_to_string(shlibs).unwrap();
    let least = concat!("libhourglass1 (>= ", env!("CARGO_PKG_VERSION"), ")\n");
    assert!(text.starts_with("libhourglass 1 ") && text.ends_with(least), "{text}");
}
