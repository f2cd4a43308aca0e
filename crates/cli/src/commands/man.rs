//! `man`: the manual pages, made from the same definitions as the help.

use std::io::{self, Write};
use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use clap_mangen::roff::{Roff, bold, roman};
use hourglass_documents::policy::PRIORITY_NAMES;
use hourglass_documents::spelling;

use crate::args::help;
use crate::args::options::GROUPS;
use crate::atomic_file;
use crate::commands::task_file;
use crate::compat::help::HelpTexts;
use crate::compat::{self, latency, noise};
use crate::exit::Stop;
use crate::lab::{models, wake};
use crate::messages;
use crate::options::Groups;
use crate::options::help::{entry, section, sections};
use crate::output;
use crate::settings::Settings;

/// Print a manual page, or write them all
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass man run | man -l -
  hourglass man tasks | man -l -             the keys of a file of tasks
  hourglass man --dir ~/.local/share/man/man1
  hourglass man tasks > ~/.local/share/man/man5/hourglass-tasks.5")]
pub(crate) struct ManArgs {
    /// Command to print the page of, or tasks: the keys of a file of tasks [default: hourglass
    /// itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Existing folder to write all pages to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

struct Page {
    name: String,
    file: String,
    text: Vec<u8>,
}

/// Prints or writes pages.
///
/// # Errors
/// There is no such command, or writing fails.
pub(crate) fn man(man: &ManArgs, command: clap::Command, settings: Settings) -> Result<ExitCode> {
    super::no_json("man", "a manual page", settings)?;
    let pages = pages(command);
    if let Some(dir) = &man.dir {
        for page in pages {
            let path = dir.join(page.file);
            atomic_file::keep("--dir", &path, &page.text)?;
            messages::wrote(&path, settings.quiet);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let asked = man.command.as_deref().unwrap_or("hourglass");
    // Its file's name, hourglass-run.1, is what man takes.
    let wanted = asked.strip_prefix("hourglass-").unwrap_or(asked);
    let unknown =
        || spelling::unknown("manual page", wanted, pages.iter().map(|page| page.name.as_str()));
    match pages.iter().find(|page| page.name == wanted) {
        Some(page) => output::text(&String::from_utf8_lossy(&page.text))?,
        None => return Err(Stop::usage(unknown()).into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// A page of every command, and that of the keys of a file of tasks.
fn pages(all: clap::Command) -> Vec<Page> {
    let mut all = all.disable_help_subcommand(true);
    all.build();
    let page = |command: &clap::Command| {
        let man = clap_mangen::Man::new(command.clone());
        let mut text = Vec::new();
        let written = match command.get_name() {
            "run" => run_page(&man, &mut text),
            "latency" => peer_page(&man, &latency::TEXTS, &latency::GROUPS, &mut text),
            "noise" => peer_page(&man, &noise::TEXTS, &noise::GROUPS, &mut text),
            _ => page_of(&man, command, &mut text),
        };
        // Writing into memory does not fail.
        let text = written.map(|()| text).unwrap_or_default();
        Page { name: command.get_name().to_owned(), file: man.get_filename(), text }
    };
    let mut pages: Vec<Page> = iter::once(&all).chain(all.get_subcommands()).map(page).collect();
    let (name, file) = task_file::PAGE;
    pages.push(Page { name: name.to_owned(), file: file.to_owned(), text: task_file::page() });
    pages
}

/// The page of a command that clap knows. What stands behind its options keeps its lines, since it has tables.
fn page_of(man: &clap_mangen::Man, command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let mut out = out;
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    let Some(text) = command.get_after_help().map(ToString::to_string) else { return Ok(()) };
    let mut page = Roff::new();
    if !text.split_once('\n').is_some_and(|(first, _)| first.ends_with(':')) {
        section(&mut page, "NOTES");
    }
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let lines = match first.strip_suffix(':').filter(|_| rest.starts_with("  ")) {
            Some("Exit codes") => {
                section(&mut page, "EXIT STATUS");
                rest
            }
            Some(heading) => {
                section(&mut page, heading);
                rest
            }
            None => {
                page.control("PP", []);
                paragraph
            }
        };
        let is_table = lines.lines().any(|line| line.starts_with("  "));
        if is_table {
            page.control("nf", []);
        }
        lines.lines().for_each(|line| {
            page.text([roman(line)]);
        });
        if is_table {
            page.control("fi", []);
        }
    }
    page.to_writer(&mut out)
}

/// The page of `run`, whose options clap knows only in part.
fn run_page(man: &clap_mangen::Man, mut out: &mut dyn Write) -> io::Result<()> {
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    let mut page = Roff::new();
    section(&mut page, "SYNOPSIS");
    for form in help::USAGE {
        page.text([bold(form)]).control("br", []);
    }
    section(&mut page, "DESCRIPTION");
    page.text([roman(help::ORDER)]);
    sections(&mut page, &GROUPS);
    section(&mut page, "Workloads");
    models::ALL.iter().for_each(|model| entry(&mut page, model.synopsis, model.about));
    page.control("PP", []).text([roman(help::AMOUNTS)]);
    section(&mut page, "Timers");
    wake::ALL.iter().for_each(|method| entry(&mut page, &help::names_of(method), method.about));
    section(&mut page, "Priorities");
    for (name, policy) in PRIORITY_NAMES {
        entry(&mut page, name, &help::meaning(policy));
    }
    page.control("PP", []).text([roman(help::PRIVILEGES)]);
    section(&mut page, "Workload file");
    page.control("nf", []);
    help::FILE.lines().for_each(|line| {
        page.text([roman(line)]);
    });
    page.control("fi", []);
    section(&mut page, "What is printed");
    page.text([roman(help::PRINTED)]);
    help::LINES.iter().for_each(|(line, meaning)| entry(&mut page, line, meaning));
    section(&mut page, "Exit status");
    help::EXIT_CODES.iter().for_each(|(code, meaning)| entry(&mut page, code, meaning));
    section(&mut page, "Examples");
    help::EXAMPLES.iter().for_each(|(command, meaning)| entry(&mut page, command, meaning));
    page.to_writer(&mut out)
}

/// The page of a command with the letters of another tool.
fn peer_page<T>(
    man: &clap_mangen::Man,
    texts: &HelpTexts,
    groups: &Groups<T>,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    compat::help::page(texts, groups, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let pages = pages(crate::cli::command());
        let page = pages.into_iter().find(|page| page.name == name).unwrap();
        String::from_utf8(page.text).unwrap()
    }

    #[test]
    fn the_page_of_run_has_every_option_and_model() {
        let page = page("run").replace("\\-", "-");
        for option in GROUPS.iter().flat_map(|(_, options)| *options) {
            assert!(page.contains(option.synopsis), "{}", option.synopsis);
        }
        for model in models::ALL {
            assert!(page.contains(model.synopsis), "{}", model.synopsis);
        }
    }

    /// They were filled: a table or an example became a paragraph.
    #[test]
    fn what_is_behind_the_options_keeps_its_lines() {
        let page = page("check").replace("\\-", "-");
        let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        let line =
            "  hourglass check tasks.toml --explain        what was understood, and the proof\n";
        assert!(examples.contains(line), "{examples}");
        assert!(!page.contains(".SH EXTRA"), "{page}");
    }

    #[test]
    fn the_page_of_task_files_has_every_key() {
        let page = page("tasks").replace("\\-", "-");
        for table in hourglass_tasks::language::TABLES {
            let heading = table.heading.replace("The file", "\"The file\"");
            assert!(page.contains(&format!(".SH {heading}\n")), "{heading}");
            for key in table.keys {
                assert!(page.contains(&format!(".TP\n\\fB{}\\fR\n", key.name)), "{}", key.name);
            }
        }
        for missing in ["`", "**", "](", "scheduler = edf"] {
            assert!(!page.contains(missing), "{missing}: {page}");
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let pages = pages(crate::cli::command());
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        let known = "hourglass run latency noise watch show render report export diff clocks doctor \
                     model check simulate predict sweep merge reserve cache-cost paper example \
                     completions man tasks";
        assert_eq!(names.join(" "), known.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(page("render").contains("pixels"));
        assert!(page("latency").replace("\\-", "-").contains("-b, --breaktrace USEC"));
    }
}
