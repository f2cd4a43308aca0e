//! Compilers, and the library as they want it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hourglass_skip::{Requirement, skip};

pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where this test's library is: cargo makes it beside the test.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// A folder for programs, with `lib/` as an installation has it.
pub(crate) fn bench() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("lib");
    fs::create_dir(&lib).unwrap();
    let shared = built().join("libhourglass.so");
    assert!(shared.exists(), "{} is not there", shared.display());
    symlink(&shared, lib.join("libhourglass.so.1")).unwrap();
    symlink(&shared, lib.join("libhourglass.so")).unwrap();
    symlink(built().join("libhourglass.a"), lib.join("libhourglass.a")).unwrap();
    folder
}

/// The shared and the static library.
pub(crate) fn libraries() -> [PathBuf; 2] {
    ["libhourglass.so", "libhourglass.a"].map(|name| built().join(name))
}

/// Whether a program is there.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// Compilers of a language that are there: `c` or `c++`.
pub(crate) fn compilers(language: &str) -> Vec<&'static str> {
    let all: [&str; 2] = if language == "c" { ["gcc", "clang"] } else { ["g++", "clang++"] };
    let found: Vec<&str> = all.into_iter().filter(|program| has(program)).collect();
    for missing in all.iter().filter(|program| !found.contains(program)) {
        let package = missing.trim_matches('+');
        skip(
            Requirement::program(missing),
            format_args!("there is no {missing} (apt-get install {package})"),
        );
    }
    found
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Shared,
    Static,
}

/// Compiles a program.
pub(crate) fn compile(
    compiler: &str,
    folder: &Path,
    source: &Path,
    flags: &[&str],
    link: Link,
) -> PathBuf {
    let name = source.file_stem().unwrap().to_str().unwrap();
    let extra: String = flags.concat().chars().filter(char::is_ascii_alphanumeric).collect();
    let program = folder.join(format!("{name}-{compiler}-{extra}-{link:?}"));
    let lib = folder.join("lib");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"]).args(flags);
    command.arg("-I").arg(package().join("include")).arg(source).arg("-o").arg(&program);
    match link {
        Link::Shared => command
            .arg("-L")
            .arg(&lib)
            .arg("-lhourglass")
            .arg(format!("-Wl,-rpath,{}", lib.display())),
        Link::Static => command.arg(lib.join("libhourglass.a")).args(["-lm", "-ldl"]),
    };
    let said = command.output().unwrap();
    assert!(said.status.success(), "{command:?}\n{}", text(&said));
    program
}

/// How long a program may take, s: they take one, and a sanitizer on a slow machine some times that.
const LONGEST_S: &str = "300";

/// Runs a program that must end well, and in time.
pub(crate) fn run(program: &Path, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LONGEST_S]).arg(program).envs(environment.iter().copied());
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}: {}\n{}", program.display(), said.status, text(&said));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

fn text(said: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
}
