//! The commands and their options, for parsing, help, completions and man pages. Those of `run`, `latency` and `noise`
//! come from their tables, which `options` reads.

use clap::builder::Styles;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use hourglass_terminal::paper::PaperArgs;

use crate::args::help;
use crate::args::options;
use crate::commands::cache_cost::CacheCost;
use crate::commands::check::Check;
use crate::commands::clocks::Clocks;
use crate::commands::completions::Completions;
use crate::commands::diff::Diff;
use crate::commands::doctor::Doctor;
use crate::commands::example::Example;
use crate::commands::export::Export;
use crate::commands::man::ManArgs;
use crate::commands::merge::Merge;
use crate::commands::model::Model;
use crate::commands::predict::Predict;
use crate::commands::render::Render;
use crate::commands::report::Report;
use crate::commands::reserve::Reserve;
use crate::commands::show::ShowArgs;
use crate::commands::simulate::Simulate;
use crate::commands::sweep::Sweep;
use crate::commands::watch::WatchArgs;
use crate::compat::help::HelpTexts;
use crate::compat::{self, latency, noise};
use crate::options::Groups;
use crate::options::help::{completed, row_at};
use crate::settings::Settings;

/// Shows where the CPU time of your threads goes: when each of them ran, for how long it was
/// interrupted, and whether it met its deadlines.
#[derive(Debug, Parser)]
#[command(name = "hourglass", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
`run` may be left out: a line that begins with one of its options is a run.

Exit codes:
  0    done, and the answer is yes
  1    done, and the answer is no (a limit is broken; doctor: a check fails;
       check: not feasible, or unknown; simulate, predict: a deadline missed;
       diff, run --against: worse; reserve --check: refused; --clean: some not undone)
  2    wrong usage or bad input
  3    the machine lacks a privilege or a device
  4    done, and no verdict (diff, run --against, run --control; a premise of a
       measurement broke)
  130  ended by Ctrl-C; what was measured is printed and stored
  reserve and watch -- COMMAND end as their command does, or with 125 to 127

Examples:
  hourglass -n 1 -d 2s                     what interrupts a busy thread?
  hourglass -n 2 -d 5s -t 0 -p LOW         how is a low priority honoured?
  hourglass example audio                  write a workload file, audio.toml
  hourglass run audio.toml -o monday       run it, and store the result
  hourglass show monday                    print it again
  hourglass render monday -o monday.svg    draw when each thread ran
  hourglass report monday -o monday.html   all of it as one page
  hourglass export monday --csv monday.csv the records for other tools
  sudo hourglass latency -mSqp80 -D10      cyclictest, with percentiles
  hourglass noise -D10                     oslat, without root
  hourglass watch --comm data-loop.0       why does another program wait?
  hourglass diff monday tuesday            what got better or worse?
  hourglass clocks                         which clock can be trusted?
  hourglass doctor                         what disturbs real-time work here?
  hourglass example tasks                  write a file of tasks, tasks.toml
  hourglass check tasks.toml               will every deadline hold?
  hourglass model monday                   which tasks are a program's threads?
  hourglass simulate tasks.toml            what happens on virtual time?
  hourglass predict tasks.toml             will deadlines hold, and do they?
  hourglass sweep -o tuesday               how many task sets does a test accept?
  hourglass reserve 3.1ms/8ms -- player    promise a program processor time
  hourglass cache-cost                     what do cold caches add to a switch?
  hourglass paper --list                   which papers' tables can be measured?";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunWords),
    Latency(LatencyWords),
    Noise(NoiseWords),
    Watch(WatchArgs),
    Show(ShowArgs),
    Render(Render),
    Report(Report),
    Export(Export),
    Diff(Diff),
    Clocks(Clocks),
    Doctor(Doctor),
    Model(Model),
    Check(Check),
    Simulate(Simulate),
    Predict(Predict),
    Sweep(Box<Sweep>),
    Merge(Merge),
    Reserve(Box<Reserve>),
    CacheCost(CacheCost),
    Paper(PaperArgs),
    Example(Example),
    Completions(Completions),
    Man(ManArgs),
}

/// Describes commands for the help. `options` reads their words.
macro_rules! described {
    ($name:ident, $words:literal, $describe:expr) => {
        #[doc = $words]
        #[derive(Debug)]
        pub(crate) struct $name;

        impl FromArgMatches for $name {
            fn from_arg_matches(_: &ArgMatches) -> Result<$name, clap::Error> {
                Ok($name)
            }

            fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
                Ok(())
            }
        }

        impl Args for $name {
            fn augment_args(command: clap::Command) -> clap::Command {
                $describe(command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                $describe(command)
            }
        }
    };
}

described!(RunWords, "`run`.", run_described);
described!(LatencyWords, "`latency`.", |command| compat_described(
    command,
    &latency::TEXTS,
    &latency::GROUPS
));
described!(NoiseWords, "`noise`.", |command| compat_described(
    command,
    &noise::TEXTS,
    &noise::GROUPS
));

fn run_described(run: clap::Command) -> clap::Command {
    let file = Arg::new("FILE").value_hint(ValueHint::FilePath).help("Workload file (TOML)");
    let run = run.about(help::ABOUT).override_usage(help::USAGE.join("\n       ")).arg(file);
    completed(&options::GROUPS).fold(run, clap::Command::arg).override_help(help::text())
}

fn compat_described<T>(
    command: clap::Command,
    texts: &HelpTexts,
    groups: &Groups<T>,
) -> clap::Command {
    let command = command
        .about(texts.about)
        .override_usage(texts.usage)
        .disable_help_flag(true)
        .override_help(compat::help::text(texts, groups));
    completed(groups).fold(command, clap::Command::arg)
}

/// The commands as `--help` lists them: by what they are for, each in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["run", "latency", "noise", "watch", "cache-cost", "paper"]),
    ("Read results", &["show", "report", "render", "export", "diff"]),
    ("This machine", &["clocks", "doctor"]),
    ("Theory", &["model", "check", "simulate", "predict", "sweep", "merge"]),
    ("Reserve", &["reserve"]),
    ("Other", &["example", "completions", "man", "help"]),
];

/// Where the right column of the commands begins.
const COLUMN: usize = 15;

/// What `hourglass` alone says: what to type first.
pub(crate) const FIRST_STEPS: &str = "\
hourglass shows where the CPU time of your threads goes. First commands:

  hourglass doctor           what disturbs real-time work on this machine?
  hourglass clocks           which clock can be trusted?
  hourglass run -d 2s        what interrupts a busy thread?
  hourglass example audio    write a workload, audio.toml, to change and to run:
  hourglass run audio.toml

hourglass --help           lists all commands
hourglass COMMAND --help   explains one, with examples
";

/// The names of the commands that are ours.
pub(crate) fn command_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| *names).copied().filter(|name| *name != "help")
}

/// All commands.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// All commands, with the help that lists them in groups. clap knows no groups of commands, so it lists none.
pub(crate) fn with_groups() -> clap::Command {
    let all = command();
    let header = Styles::styled();
    let header = header.get_header();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        list.push_str(&format!("{}{heading}:{}\n", header.render(), header.render_reset()));
        for name in names {
            let about = match all.find_subcommand(name).and_then(clap::Command::get_about) {
                Some(about) => about.to_string(),
                None => HELP.to_owned(),
            };
            row_at(&mut list, name, &about, COLUMN);
        }
        list.push('\n');
    }
    let names: Vec<String> = all.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let hidden = names.iter().fold(all, |all, name| all.mut_subcommand(name, |one| one.hide(true)));
    hidden.override_usage("hourglass [OPTIONS] <COMMAND>").help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{{all-args}}{{after-help}}"
    ))
}

/// What clap's own command does.
const HELP: &str = "Print the help of a command";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        command().debug_assert();
    }

    #[test]
    fn help_of_the_command() {
        let help = with_groups().term_width(80).render_help().to_string();
        insta::assert_snapshot!("hourglass-help", help);
    }

    /// Twenty-one commands in one list were too many to find one in.
    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let commands = command();
        let mut names: Vec<&str> = commands.get_subcommands().map(|one| one.get_name()).collect();
        names.push("help");
        grouped.sort_unstable();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    /// Also holds the tables of models, timers and priorities, which come from their crates.
    #[test]
    fn help_of_run() {
        let help = anstream::adapter::strip_str(&help::text()).to_string();
        insta::assert_snapshot!("run-help", help);
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn help_of_the_peers_commands() {
        for (name, help) in [
            ("latency", compat::help::text(&latency::TEXTS, &latency::GROUPS)),
            ("noise", compat::help::text(&noise::TEXTS, &noise::GROUPS)),
        ] {
            let help = anstream::adapter::strip_str(&help).to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
            insta::assert_snapshot!(format!("{name}-help"), help);
        }
    }

    #[test]
    fn help_of_the_other_commands() {
        let names = "watch show render report export diff clocks doctor model check simulate predict sweep \
                     merge reserve cache-cost example completions man";
        for name in names.split_whitespace() {
            let mut command = command().term_width(80);
            command.build();
            let help = command.find_subcommand_mut(name).unwrap().render_help().to_string();
            insta::assert_snapshot!(format!("{name}-help"), help);
        }
    }
}
