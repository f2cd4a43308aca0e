//! The manual pages of section 3: every function of the header on one page, and pages that groff takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hourglass_skip::{Requirement, skip};

use crate::abi::{declared, header, without_comments};
use crate::support::{has, package};

fn make(header: &Path, folder: &Path) -> Output {
    let folder = format!("folder={}", folder.display());
    let mut awk = Command::new("awk");
    awk.args(["-v", &folder, "-v", "version=0", "-f"]).arg(package().join("package/manual.awk"));
    awk.arg(header).output().unwrap()
}

/// All pages, with aliases, as files of `man3` in a folder.
fn pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let man3 = folder.path().join("man3");
    fs::create_dir(&man3).unwrap();
    let made = make(&package().join("include/hourglass.h"), &man3);
    assert!(made.status.success() && made.stderr.is_empty(), "{made:?}");
    folder
}

/// The files and their text: those of pages, then those of functions.
fn read(folder: &Path) -> [Vec<(String, String)>; 2] {
    let files = fs::read_dir(folder.join("man3")).unwrap();
    let read = files.map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    let (pages, aliases) = read.partition(|(name, _)| name.starts_with("hourglass"));
    [pages, aliases]
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The functions that programs may call, also those that the header defines.
fn functions(code: &str) -> BTreeSet<String> {
    let heads = code.lines().filter_map(|line| line.strip_prefix("static inline "));
    let names = heads.filter_map(|head| head.split_once('(')?.0.split(' ').next_back());
    let inline: Vec<String> = names.map(|name| name.trim_start_matches('*').to_owned()).collect();
    assert!(inline.iter().any(|name| name == "hg_now"), "{inline:?}");
    let own = |name: &String| !name.ends_with('_');
    declared(&header()).into_iter().chain(inline).filter(own).collect()
}

/// A function as the header has it. What is called in it was declared before.
fn prototype(code: &str, name: &str) -> String {
    let call = format!("{name}(");
    let head = |line: &&str| {
        line.split_once(&call).is_some_and(|(before, _)| before.ends_with([' ', '*']))
    };
    let line = code.lines().find(head).unwrap();
    let at = code.find(line).unwrap();
    let text = code[at..].split_once(')').unwrap().0;
    squeezed(text.strip_prefix("static inline ").unwrap_or(text)) + ");"
}

#[test]
fn every_function_is_on_one_page_with_its_prototype() {
    let folder = pages();
    let [pages, aliases] = read(folder.path());
    let code = without_comments(&header());
    let functions = functions(&code);
    assert!(functions.len() > 150, "{}", functions.len());
    let headings: Vec<&str> = pages
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter_map(|line| line.strip_prefix(".SS "))
        .flat_map(|line| line.split(", "))
        .collect();
    for name in &functions {
        let prototype = prototype(&code, name);
        let on: Vec<&str> = pages
            .iter()
            .filter(|(_, text)| squeezed(text).contains(&prototype))
            .map(|(file, _)| file.as_str())
            .collect();
        assert_eq!(on.len(), 1, "{prototype}: {on:?}");
        let described = headings.iter().filter(|heading| **heading == format!("{name}()"));
        assert_eq!(described.count(), 1, "{name}");
        let alias = aliases.iter().find(|(file, _)| *file == format!("{name}.3")).unwrap();
        assert_eq!(alias.1, format!(".so man3/{}\n", on[0]));
    }
    assert_eq!(aliases.len(), functions.len());
}

#[test]
fn groff_has_no_warning() {
    if !has("groff") {
        skip(Requirement::program("groff"), "there is no groff (apt-get install groff)");
        return;
    }
    let folder = pages();
    let [pages, _] = read(folder.path());
    // An alias as well, from where man(1) reads it.
    for name in pages.iter().map(|(name, _)| name.as_str()).chain(["hg_sleep_until.3"]) {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-ww", "-Tascii"]).arg(format!("man3/{name}"));
        let shown = groff.current_dir(folder.path()).output().unwrap();
        let warnings = String::from_utf8_lossy(&shown.stderr);
        assert!(shown.status.success() && warnings.is_empty(), "{name}: {warnings}");
        let text = squeezed(&String::from_utf8_lossy(&shown.stdout));
        assert!(text.contains("#include <hourglass.h>"), "{name}: {text}");
    }
}

/// A heading of the header is a page, and a function has a text; or no page is made.
#[test]
fn what_has_no_page_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (man3, changed) = (folder.path().join("man3"), folder.path().join("hourglass.h"));
    fs::create_dir(&man3).unwrap();
    for (more, wanted) in [
        ("\n/* ---- News ---- */\n", "no page for the heading News"),
        ("\nint hg_novel(void);\n", "hg_novel has no comment"),
    ] {
        fs::write(&changed, header() + more).unwrap();
        let made = make(&changed, &man3);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(said.contains(wanted), "{said}");
        assert_eq!(made.status.code(), Some(1));
        assert_eq!(fs::read_dir(&man3).unwrap().count(), 0);
    }
}
