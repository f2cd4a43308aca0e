//! `man`: the manual pages, made from the same definitions as the help.

use std::io::{self, Write};
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
  hourglass man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Command to print the page of [default: hourglass itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Existing folder to write all pages to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Prints or writes pages.
///
/// # Errors
/// There is no such command, or writing fails.
pub(crate) fn man(man: &ManArgs, command: clap::Command, settings: Settings) -> Result<ExitCode> {
    super::no_json("man", "a manual page", settings)?;
    let pages = pages(command);
    if let Some(dir) = &man.dir {
        for (command, page) in pages {
            let path = dir.join(clap_mangen::Man::new(command).get_filename());
            atomic_file::keep("--dir", &path, &page)?;
            messages::wrote(&path, settings.quiet);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = man.command.as_deref().unwrap_or("hourglass");
    let known: Vec<String> =
        pages.iter().map(|(command, _)| command.get_name().to_owned()).collect();
    let unknown = || spelling::unknown("manual page", wanted, known.iter().map(String::as_str));
    match pages.into_iter().find(|(command, _)| command.get_name() == wanted) {
        Some((_, page)) => output::text(&String::from_utf8_lossy(&page))?,
        None => return Err(Stop::usage(unknown()).into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Every command with its page.
fn pages(all: clap::Command) -> Vec<(clap::Command, Vec<u8>)> {
    let mut all = all.disable_help_subcommand(true);
    all.build();
    let commands: Vec<clap::Command> =
        std::iter::once(&all).chain(all.get_subcommands()).cloned().collect();
    let page = |command: &clap::Command| {
        let man = clap_mangen::Man::new(command.clone());
        let mut page = Vec::new();
        let written = match command.get_name() {
            "run" => run_page(&man, &mut page),
            "latency" => peer_page(&man, &latency::TEXTS, &latency::GROUPS, &mut page),
            "noise" => peer_page(&man, &noise::TEXTS, &noise::GROUPS, &mut page),
            _ => man.render(&mut page),
        };
        // Writing into memory does not fail.
        written.map(|()| page).unwrap_or_default()
    };
    commands.into_iter().map(|command| (command.clone(), page(&command))).collect()
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
        let (_, page) =
            pages(crate::cli::command()).into_iter().find(|(c, _)| c.get_name() == name).unwrap();
        String::from_utf8(page).unwrap()
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

    #[test]
    fn every_command_has_a_page() {
        let names: Vec<String> =
            pages(crate::cli::command()).iter().map(|(c, _)| c.get_name().to_owned()).collect();
        let known = "hourglass run latency noise watch show render report export diff clocks doctor \
                     check simulate predict sweep merge reserve cache-cost paper example \
                     completions man";
        assert_eq!(names.join(" "), known.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(page("render").contains("pixels"));
        assert!(page("latency").replace("\\-", "-").contains("-b, --breaktrace USEC"));
    }
}
