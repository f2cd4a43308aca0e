//! `example`: writes a file to begin with.
//!
//! Owns: which examples there are, and the command that reads each. Must not: change them; they are the files of
//! `examples/`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::spelling;
use hourglass_tasks::language;

use crate::atomic_file;
use crate::exit::Stop;
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// Write a workload, a set of tasks or an experiment to begin with
#[derive(Args, Debug)]
#[command(after_help = "\
A file that exists is left as it is. Editors that use Taplo complete and check
files of tasks whose first line is #:schema ./hourglass-tasks.schema.json.

Examples:
  hourglass example --list
  hourglass example audio && hourglass run audio.toml
  hourglass example tasks && hourglass check tasks.toml
  hourglass example smt -o mine.toml
  hourglass example audio -o -               print it
  hourglass example --schema -o hourglass-tasks.schema.json")]
pub(crate) struct Example {
    /// Name of the example
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "schema"])]
    name: Option<String>,
    /// List the examples, and a command for each
    #[arg(long, conflicts_with_all = ["name", "output"])]
    list: bool,
    /// Print the JSON Schema of files of tasks, for editors; with -o, write it
    #[arg(long, conflicts_with_all = ["name", "list"])]
    schema: bool,
    /// File to write, - for stdout [default: the example's own name, in this folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// An example.
struct ExampleFile {
    name: &'static str,
    /// The file that help texts name.
    file: &'static str,
    text: &'static str,
    about: &'static str,
    /// What to do with it, without `hourglass` and the file.
    command: &'static str,
}

macro_rules! entry {
    ($name:literal, $file:literal, $command:literal, $about:literal) => {
        ExampleFile {
            name: $name,
            file: $file,
            text: include_str!(concat!("../../examples/", $file)),
            about: $about,
            command: $command,
        }
    };
}

/// What there is.
const EXAMPLES: [ExampleFile; 8] = [
    entry!("audio", "audio.toml", "run", "a workload: an audio engine and a video player"),
    entry!(
        "section-5-5",
        "section-5-5.toml",
        "run",
        "a workload: two threads that should meet deadlines (paper, 5.5)"
    ),
    entry!("tasks", "tasks.toml", "check", "a set of tasks: the same two, for the theory"),
    entry!(
        "audio-video",
        "audio-video.toml",
        "predict --no-run",
        "a set of tasks: the same, woken by high-resolution timers"
    ),
    entry!("video", "video.json", "check", "a set of tasks: the same, as rt-app's JSON"),
    entry!(
        "smt",
        "smt.toml",
        "simulate --smt monitor",
        "a set of tasks: a reservation on a core of two hardware threads"
    ),
    entry!(
        "deadline-class",
        "deadline-class.toml",
        "check",
        "a set of tasks: two reservations of the kernel's deadline class"
    ),
    entry!("experiment", "experiment.toml", "sweep", "an experiment: random sets of tasks"),
];

/// The names and what they are, for completions.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().map(|entry| (entry.name, entry.about))
}

/// Writes or lists.
///
/// # Errors
/// There is no such example, or a file of its name is there already.
pub(crate) fn example(asked: &Example, settings: Settings) -> Result<ExitCode> {
    super::no_json("example", "a file", settings)?;
    if asked.schema {
        return schema(asked.output.as_deref(), settings);
    }
    let Some(name) = &asked.name else {
        output::unless_closed(output::text(&list()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let found = EXAMPLES.iter().find(|entry| entry.name == name || entry.file == name);
    let Some(entry) = found else {
        let names = EXAMPLES.iter().map(|entry| entry.name);
        return Err(Stop::usage(spelling::unknown("example", name, names)).into());
    };
    if asked.output.as_deref() == Some(Path::new("-")) {
        output::unless_closed(output::text(entry.text))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = asked.output.as_deref().unwrap_or(Path::new(entry.file));
    write_new(path, entry.text)?;
    if !settings.quiet {
        messages::say(&format!("wrote {}; try {}", path.display(), entry.line(path)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the JSON Schema of files of tasks, or writes it.
fn schema(file: Option<&Path>, settings: Settings) -> Result<ExitCode> {
    let text = language::json_schema();
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        output::unless_closed(output::text(&text))?;
        return Ok(ExitCode::SUCCESS);
    };
    write_new(path, &text)?;
    if !settings.quiet {
        let shown = path.display();
        let from = if path.is_absolute() { "" } else { "./" };
        messages::say(&format!("wrote {shown}; begin files of tasks with #:schema {from}{shown}"));
    }
    Ok(ExitCode::SUCCESS)
}

impl ExampleFile {
    /// The command that reads it from `path`.
    fn line(&self, path: &Path) -> String {
        let (command, options) = self.command.split_once(' ').unwrap_or((self.command, ""));
        format!("hourglass {command} {} {options}", path.display()).trim_end().to_owned()
    }
}

fn list() -> String {
    let widest = EXAMPLES.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = |entry: &ExampleFile| {
        let ExampleFile { name, about, .. } = entry;
        format!("{name:<widest$}  {about}\n{:widest$}  {}\n", "", entry.line(Path::new(entry.file)))
    };
    EXAMPLES.iter().map(lines).collect()
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<(), Stop> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Stop::usage(format!(
            "{} exists already and is left as it is; name another file with -o",
            path.display()
        )),
        _ => atomic_file::refused("-o", path, &error),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // What is half-written is of no use.
        let _ = std::fs::remove_file(path);
        atomic_file::refused("-o", path, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each file of `examples/` is offered, once, under its own name.
    #[test]
    fn every_example_is_offered() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut offered: Vec<&str> = EXAMPLES.iter().map(|entry| entry.file).collect();
        there.sort_unstable();
        offered.sort_unstable();
        assert_eq!(there, offered);
        assert!(list().lines().all(|line| line.chars().count() <= 80), "{}", list());
        for entry in EXAMPLES {
            assert_eq!(entry.file.split('.').next(), Some(entry.name));
        }
    }
}
