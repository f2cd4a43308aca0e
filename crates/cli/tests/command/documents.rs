//! README and handbook: every command that they show is one that works, and the reference is what the
//! command says itself.
//!
//! A command gets a second and a half; then Ctrl-C, which every command must obey. So this shows
//! that options exist and files are found, not that a run of an hour ends well.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{iter, thread};

use crate::processes::send;
use crate::programs::with_paper;
use hourglass_skip::{Requirement, skip};

const PATIENCE: Duration = Duration::from_millis(1500);
/// After Ctrl-C; a machine that others use may be slow.
const GRACE: Duration = Duration::from_secs(60);
/// Commands mostly wait.
const PAGES_AT_ONCE: usize = 4;

static RESERVING: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where a command that is shown is found, and the example files beside it.
fn workplace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, place.path().join(name)).unwrap();
    };
    link(&root().join("examples"), "examples");
    // The page's own names for a file of tasks.
    link(&root().join("examples/tasks.toml"), "tasks.toml");
    fs::create_dir(place.path().join("bin")).unwrap();
    link(Path::new(env!("CARGO_BIN_EXE_hourglass")), "bin/hourglass");
    place
}

/// Lines of the blocks without a language, or of a shell, that call `hourglass`; continued ones joined.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut inside, mut shell, mut session) = (false, false, false);
    let mut begun = String::new();
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            shell = !inside && matches!(language, "" | "sh");
            session = false;
            inside = !inside;
            continue;
        }
        if !inside || !shell {
            continue;
        }
        // Behind a prompt is a command, what follows is what it printed.
        session |= line.starts_with("$ ");
        let line = match line.strip_prefix("$ ") {
            Some(typed) => typed,
            None if session => continue,
            None => line,
        };
        let line = line
            .strip_prefix("cargo run --release -- ")
            .map_or(line.to_owned(), |rest| format!("hourglass {rest}"));
        begun.push_str(line.strip_prefix("sudo ").unwrap_or(&line));
        if begun.ends_with('\\') {
            begun.pop();
            continue;
        }
        let command = std::mem::take(&mut begun);
        if command.starts_with("hourglass ") {
            found.push(command);
        }
    }
    found
}

/// What a command needed by what it said when it could not: the privilege or device whose lack it names. Whether the
/// machine lacks that is checked by who runs the tests, not by what the command said.
fn need_of(said: &str) -> Option<Requirement> {
    let words = [
        ("tracefs", Requirement::TRACEFS),
        ("deadline class", Requirement::DEADLINE_CLASS),
        ("CAP_SYS_NICE", Requirement::REAL_TIME),
        ("RLIMIT_RTPRIO", Requirement::REAL_TIME),
        ("real-time", Requirement::REAL_TIME),
        ("performance counters", Requirement::COUNTERS),
        ("siblings", Requirement::SIBLINGS),
        ("only one CPU", Requirement::SECOND_CPU),
        ("CPU 1", Requirement::SECOND_CPU),
        ("cgroup", Requirement::CONTROL_GROUP),
    ];
    words.into_iter().find(|(word, _)| said.contains(word)).map(|(_, need)| need)
}

/// The words of a command that name what it makes.
fn made_by(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let made =
        words.windows(2).filter(|pair| matches!(pair[0], "-o" | "--output")).map(|pair| pair[1]);
    made.collect()
}

/// Whether a command reserves: two pages would refuse each other what both ask for.
fn reserves(command: &str) -> bool {
    command.split_whitespace().any(|word| word == "reserve" || word.starts_with("-r"))
}

/// Runs one as a shell would: what it lacked, or what was wrong with it.
fn run(command: &str, place: &Path) -> Result<Option<Requirement>, String> {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", place.join("bin").display());
    let said = fs::File::create(place.join("said")).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(place)
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .process_group(0)
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let mut interrupted = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !interrupted && begin.elapsed() > PATIENCE {
            interrupted = true;
            send("-INT", -i64::from(child.id())).unwrap();
        }
        if begin.elapsed() > PATIENCE + GRACE {
            let _ = send("-KILL", -i64::from(child.id()));
            let _ = child.wait();
            return Err("does not end on Ctrl-C".into());
        }
        thread::sleep(Duration::from_millis(10));
    };
    let said = fs::read_to_string(place.join("said")).unwrap();
    let code = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
    match code {
        0 | 1 | 4 if !said.contains("panicked") => Ok(None),
        130 if interrupted && !said.contains("panicked") => Ok(None),
        // `reserve` has the child's codes for all others.
        3 | 125 => {
            let need = need_of(&said);
            let need =
                need.ok_or_else(|| format!("it names nothing that is missing: {}", said.trim()))?;
            skip(need.clone(), format_args!("{command}: {}", said.trim()));
            Ok(Some(need))
        }
        _ => Err(format!("exit code {code}: {}", said.trim())),
    }
}

/// The number of commands on a page, all of which work.
fn works(page: &str) -> usize {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let commands = commands(&text);
    let place = workplace();
    let mut broken = String::new();
    let mut lacking: Vec<(&str, Requirement)> = Vec::new();
    for command in &commands {
        let used =
            lacking.iter().find(|(made, _)| command.split_whitespace().any(|word| word == *made));
        if let Some((made, need)) = used {
            skip(need.clone(), format_args!("{command}: {made} could not be made"));
            continue;
        }
        let _alone = reserves(command).then(|| RESERVING.lock().unwrap_or_else(|e| e.into_inner()));
        match run(command, place.path()) {
            Ok(None) => {}
            Ok(Some(need)) => {
                lacking.extend(made_by(command).into_iter().map(|made| (made, need.clone())))
            }
            Err(why) => writeln!(broken, "{command}\n    {why}").unwrap(),
        }
    }
    assert!(broken.is_empty(), "{page} shows commands that do not work:\n{broken}");
    commands.len()
}

#[test]
fn commands_of_the_readme_work() {
    with_paper();
    assert!(works("README.md") > 8);
}

#[test]
fn commands_of_the_guide_work() {
    with_paper();
    let mut pages: Vec<_> = fs::read_dir(root().join("docs/src/guide"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = iter::from_fn(|| pages.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|page| works(&format!("docs/src/guide/{page}"))).sum::<usize>()
    };
    let shown: usize = thread::scope(|scope| {
        // A test that is skipped is known by the name of its thread.
        let name = thread::current().name().unwrap_or_default().to_owned();
        let worker = || thread::Builder::new().name(name.clone()).spawn_scoped(scope, work);
        let workers = [(); PAGES_AT_ONCE].map(|()| worker().unwrap());
        workers.map(|worker| worker.join().unwrap()).into_iter().sum()
    });
    assert!(shown > 80, "{shown}");
}

/// Every page that is written by hand for others to read, relative to the root.
fn all_pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            // Files that are built, fetched or of an editor are no pages.
            let foreign = name.starts_with('.') || matches!(&*name, "target" | "node_modules");
            if entry.file_type().unwrap().is_dir() && !foreign {
                folders.push(path);
            } else if name.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The lines of a page that are no code.
fn prose(text: &str) -> String {
    let mut inside = false;
    let kept = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// What headings are called in links, by the rule of GitHub and mdBook.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text);
    let headings = headings.lines().filter_map(|line| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let name = |heading: &str| {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(name).collect()
}

/// Pages of the handbook that `cargo xtask book` makes; the last by `keys.rs`.
const GENERATED: [&str; 3] =
    ["docs/src/reference/commands.md", "docs/src/reference/tasks.md", "docs/src/reference/keys.md"];

/// A link from another folder has `..` in its path.
fn is_generated(target: &Path) -> bool {
    GENERATED.iter().any(|page| target.ends_with(page.trim_start_matches("docs/src/")))
}

/// Links of all pages lead to files that are there, and to headings that are in them; every page of
/// the handbook is in its table of contents.
#[test]
fn links_lead_somewhere() {
    let contents = fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    let (mut broken, mut followed) = (String::new(), 0);
    for page in all_pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let prose = prose(&text);
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&page),
                _ => root().join(page.parent().unwrap()).join(file),
            };
            followed += 1;
            let there = (target.exists() || is_generated(&target))
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).iter().any(|a| a == anchor));
            if !there {
                writeln!(broken, "{}: {link}", page.display()).unwrap();
            }
        }
        if let Ok(name) = page.strip_prefix("docs/src") {
            let name = name.to_str().unwrap();
            assert!(name == "SUMMARY.md" || contents.contains(&format!("({name})")), "{name}");
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{broken}");
    assert!(followed > 30, "{followed}");
}

#[test]
fn headings_have_the_names_that_links_use() {
    let text = "# A `run`, kept\n```\n# not this\n```\n## What it's for: all of_it\nno # heading";
    assert_eq!(anchors(text), ["a-run-kept", "what-its-for-all-of_it"]);
}

/// What the stories of the chapter about spans show is in their programs, which have tests of their own.
#[test]
fn stories_show_their_programs() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let programs = [
        "witness/examples/audio_callback.rs",
        "witness/examples/benchmark_that_lies.rs",
        "tracing/examples/tokio_request.rs",
    ];
    let programs =
        programs.map(|path| words(&fs::read_to_string(root().join("crates").join(path)).unwrap()));
    let page = fs::read_to_string(root().join("docs/src/guide/witness.md")).unwrap();
    let (stories, _) = page.split_once("## Spans of tracing").unwrap();
    let shown: Vec<_> =
        stories.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(shown.len(), 3);
    for block in shown {
        assert!(programs.iter().any(|program| program.contains(&words(block))), "{block}");
    }
}

/// Each document that the code names is on the page of documents.
#[test]
fn every_document_is_described() {
    let page = fs::read_to_string(root().join("docs/src/reference/documents.md")).unwrap();
    let mut sources = ["crates", "papers/src", "bench/src"].map(|path| root().join(path)).to_vec();
    let mut schemas = std::collections::BTreeSet::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() && !path.ends_with("tests") {
            sources.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let after = product.split("\"hourglass.").skip(1);
            let names = after.filter_map(|rest| rest.split('"').next());
            schemas.extend(names.filter(|name| name.ends_with("/1")).map(str::to_owned));
        }
    }
    assert!(schemas.len() > 12, "{schemas:?}");
    for schema in schemas {
        assert!(page.contains(&format!("`hourglass.{schema}`")), "hourglass.{schema}");
    }
}

fn help(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hourglass"));
    command.args(words).arg("--help").env_remove("COLUMNS").stdin(Stdio::null());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

fn reference() -> String {
    let overview = help(&[]);
    let mut text = String::from(
        "# Commands\n\nWhat `hourglass --help` and `hourglass COMMAND --help` say. Made from the \
         code by `cargo xtask book`.\n",
    );
    let lists = overview.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let names: Vec<&str> = lists
        .take_while(|line| *line != "Options:" && !line.starts_with("Options of"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 15, "the list of commands was not found in:\n{overview}");
    write!(text, "\n## hourglass\n\n```text\n{}\n```\n", overview.trim_end()).unwrap();
    for name in names {
        write!(text, "\n## hourglass {name}\n\n```text\n{}\n```\n", help(&[name]).trim_end())
            .unwrap();
    }
    text
}

/// `cargo xtask book` lets this write the page.
#[test]
fn the_reference_has_every_command() {
    with_paper();
    let text = reference();
    assert!(text.contains("\n## hourglass check\n"), "{text}");
    if std::env::var_os("HOURGLASS_BOOK").is_some() {
        fs::write(root().join(GENERATED[0]), &text).unwrap();
    }
}

#[test]
fn the_reference_has_the_keys_of_task_files() {
    let text = hourglass_tasks::language::chapter();
    assert!(text.starts_with("# Files of tasks\n") && text.contains("| `wcet` | "), "{text}");
    if std::env::var_os("HOURGLASS_BOOK").is_some() {
        fs::write(root().join(GENERATED[1]), &text).unwrap();
    }
}
