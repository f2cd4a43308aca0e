//! What the programs contain of others: each crate with its licence, its copyright lines and the licence's text.
//!
//! Texts come from the packages as Cargo unpacked them; each is printed once. Where a crate may be taken under MIT
//! among others, that text is.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// What is linked into every program beside crates.
const STANDARD_LIBRARY: &str = "Rust's standard library: MIT OR Apache-2.0";

const ITS_COPYRIGHT: &str = "Copyright (c) The Rust Project Contributors";

const INTRODUCTION: &str = "\
The programs and libraries of Hourglass contain the crates below. Each line names a crate, its version and the licences
that it may be taken under; then follow its copyright notices and the numbers of the texts at the end of this file.
";

/// A crate that is linked in, or the standard library.
struct Contained {
    /// As in `serde v1.0.2: MIT OR Apache-2.0`.
    line: String,
    /// The texts of its licence files.
    files: Vec<String>,
}

/// The notices for what these packages are linked with.
///
/// # Errors
/// `Broken` if cargo does not say what that is, or a crate brings no licence.
pub(super) fn of<'a>(
    workspace: &Workspace,
    packages: impl Iterator<Item = &'a str>,
) -> Result<String, StepFailure> {
    let mut cargo =
        workspace.cargo(&["tree", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    cargo.args(packages.flat_map(|package| ["--package", package]));
    cargo.args(["--locked", "--format", "{p}: {l}"]);
    let output = cargo.output().map_err(|e| StepFailure::start("cargo", &e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(StepFailure::Broken(format!("cargo tree: {}", said.trim())));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let mit = workspace.root.join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).map_err(|e| StepFailure::file(&mit, &e))?;
    let own = mit.lines().filter(|line| !is_copyright(line)).collect::<Vec<_>>().join("\n");
    let mut contained = vec![Contained {
        line: STANDARD_LIBRARY.to_owned(),
        files: vec![format!("{ITS_COPYRIGHT}\n{own}")],
    }];
    for line in foreign(&tree) {
        contained.push(Contained { files: licence_files(line)?, line: line.to_owned() });
    }
    Ok(text(&contained))
}

/// Where Cargo keeps what it fetched.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Each line of `cargo tree` once, in order, without our own, which have a path behind their version.
fn foreign(tree: &str) -> BTreeSet<&str> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty() && !line.contains("(/")).collect()
}

/// The texts of the licence files of a crate, which is named by its line of `cargo tree`.
fn licence_files(line: &str) -> Result<Vec<String>, StepFailure> {
    let broken = |what: &str| {
        StepFailure::Broken(format!("{line}: {what}; cargo fetch, or look what it is"))
    };
    let (package, _) = line.split_once(": ").ok_or_else(|| broken("no licence"))?;
    let (name, version) = package.split_once(" v").ok_or_else(|| broken("no version"))?;
    let sources = cargo_home().join("registry/src");
    let registries = fs::read_dir(&sources).map_err(|e| StepFailure::file(&sources, &e))?;
    let mut folders =
        registries.flatten().map(|entry| entry.path().join(format!("{name}-{version}")));
    let folder =
        folders.find(|folder| folder.is_dir()).ok_or_else(|| broken("its sources are missing"))?;
    let entries = fs::read_dir(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let chosen = chosen(names.collect());
    if chosen.is_empty() {
        return Err(broken("it brings no licence file"));
    }
    let read = |name: &String| read(&folder.join(name));
    chosen.iter().map(read).collect()
}

fn read(path: &Path) -> Result<String, StepFailure> {
    let bytes = fs::read(path).map_err(|e| StepFailure::file(path, &e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files of a package that are to be printed: of several licences MIT where there is one, and notices.
fn chosen(names: Vec<String>) -> Vec<String> {
    const BEGINNINGS: [&str; 6] =
        ["license", "licence", "copying", "copyright", "notice", "unlicense"];
    let mut found: Vec<String> = names
        .into_iter()
        .filter(|name| {
            BEGINNINGS.iter().any(|beginning| name.to_lowercase().starts_with(beginning))
        })
        .collect();
    found.sort();
    let is_mit = |name: &String| name.to_lowercase().starts_with("license-mit");
    if found.iter().any(is_mit) {
        found.retain(|name| is_mit(name) || name.to_lowercase().starts_with("notice"));
    }
    found
}

/// Not the sentences of the Apache license about copyright, nor its points (c).
fn is_copyright(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    let year = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    ["copyright (c)", "copyright ©"].iter().any(|beginning| line.starts_with(beginning))
        || ["copyright", "(c)", "©"].iter().any(|word| line.strip_prefix(word).is_some_and(year))
}

/// Titles say nothing that the text does not, and keep alike ones apart.
fn is_title(line: &str) -> bool {
    let line = line.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    ["the mit license (mit", "the mit license", "mit license", "mit license (mit"]
        .contains(&line.as_str())
}

/// A licence file's copyright lines, and the rest.
fn taken_apart(file: &str) -> (Vec<&str>, String) {
    let (copyright, body): (Vec<&str>, Vec<&str>) =
        file.lines().map(str::trim_end).partition(|line| is_copyright(line));
    let body: Vec<&str> = body.into_iter().filter(|line| !is_title(line)).collect();
    (copyright.into_iter().map(str::trim).collect(), body.join("\n").trim_matches('\n').to_owned())
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn text(contained: &[Contained]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut out = INTRODUCTION.to_owned();
    for Contained { line, files } in contained {
        let mut numbers = BTreeSet::new();
        let mut notices = Vec::new();
        for file in files {
            let (copyright, body) = taken_apart(file);
            notices.extend(copyright);
            let known = texts.iter().position(|known| words(known) == words(&body));
            numbers.insert(known.map_or(texts.len(), |at| at) + 1);
            if known.is_none() {
                texts.push(body);
            }
        }
        notices.dedup();
        let _ = writeln!(out, "\n{line}");
        for notice in notices {
            let _ = writeln!(out, "    {notice}");
        }
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "    Text {}", numbers.join(", "));
    }
    for (at, body) in texts.iter().enumerate() {
        let _ = writeln!(out, "\n\n==== Text {} ====\n\n{body}", at + 1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_crates_are_no_dependencies() {
        let tree = "hourglass v0.1.0 (/a/crates/cli): MIT\nserde v1.0.2: MIT OR Apache-2.0\n\
                    clap v4.6.0: MIT\nserde v1.0.2: MIT OR Apache-2.0 (*)\n";
        let wanted = ["clap v4.6.0: MIT", "serde v1.0.2: MIT OR Apache-2.0"];
        assert!(foreign(tree).into_iter().eq(wanted));
    }

    #[test]
    fn of_several_licences_mit_is_taken() {
        let of = |names: &[&str]| chosen(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            of(&["LICENSE-APACHE", "src", "LICENSE-MIT", "UNLICENSE"]),
            ["LICENSE-MIT"],
            "and no other"
        );
        assert_eq!(of(&["NOTICE.txt", "LICENSE.txt"]), ["LICENSE.txt", "NOTICE.txt"]);
        assert!(of(&["README.md", "Cargo.toml"]).is_empty());
    }

    #[test]
    fn a_text_is_printed_once_with_every_copyright() {
        let mit = |who: &str, rest: &str| format!("The MIT License (MIT)\n\n{who}\n\n{rest}");
        let one = |line: &str, file: String| Contained { line: line.into(), files: vec![file] };
        let said = text(&[
            one("a v1: MIT", mit("Copyright (c) 2020 Ann", "Permission is\nhereby granted")),
            one("b v2: MIT", mit("Copyright 2021 Bo", "Permission is hereby\n  granted\n")),
            one("c v3: Zlib", "(c) 2022 Cy\nAs is:\n  (c) You must retain.".into()),
        ]);
        assert_eq!(said.matches("hereby").count(), 1, "{said}");
        for line in [
            "a v1: MIT\n    Copyright (c) 2020 Ann\n    Text 1\n",
            "b v2: MIT\n    Copyright 2021 Bo\n    Text 1\n",
            "c v3: Zlib\n    (c) 2022 Cy\n    Text 2\n",
            "==== Text 2 ====\n\nAs is:\n  (c) You must retain.\n",
        ] {
            assert!(said.contains(line), "{line}\n{said}");
        }
    }
}
