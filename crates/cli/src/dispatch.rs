//! Which command is meant. `run` may be left out, so a line that begins with an option of
//! Appendix A is a `run`, as in the paper.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::FromArgMatches;
use hourglass_terminal::usage;

use crate::cli::{self, Cli, Command};
use crate::commands;
use crate::compat;
use crate::exit::{self, Stop};
use crate::lab::give_up_capabilities;
use crate::settings::Colour;

/// Options by which clap, and not `run`, is asked something.
const ASKING: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// A command with the letters of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerTool {
    Latency,
    Noise,
}

/// What a command line is about.
#[derive(Debug, PartialEq, Eq)]
enum Invocation {
    /// Nothing is asked.
    Nothing,
    /// `run`, with these words.
    Run(Vec<String>),
    /// `latency` or `noise`, which have their own letters, with these words.
    Peer(PeerTool, Vec<String>),
    /// `paper`, which is a program of its own, with these words.
    Paper(Vec<String>),
    /// A file without `run` before it.
    File(String),
    /// Another command.
    Other,
}

/// Does what the words ask.
///
/// # Errors
/// Whatever keeps it from being done.
pub(crate) fn dispatch(words: &[String]) -> Result<ExitCode> {
    Colour::asked_in(words).choose();
    match meant(words) {
        Invocation::Run(words) => commands::run::run(&words),
        Invocation::Peer(PeerTool::Latency, words) => compat::latency::latency(&words),
        Invocation::Peer(PeerTool::Noise, words) => compat::noise::noise(&words),
        Invocation::Paper(words) => commands::paper::paper(&words),
        Invocation::File(file) => Err(Stop::usage(format!(
            "unknown command '{file}'; did you mean hourglass run {file}?"
        ))
        .into()),
        Invocation::Nothing => {
            anstream::eprint!("{}", cli::FIRST_STEPS);
            Ok(ExitCode::from(exit::USAGE))
        }
        Invocation::Other => other(words),
    }
}

fn meant(words: &[String]) -> Invocation {
    let (global, rest) = words.split_at(global_words(words));
    match rest.first().map(String::as_str) {
        None => Invocation::Nothing,
        Some("run") => Invocation::Run([global, &rest[1..]].concat()),
        Some("latency") => Invocation::Peer(PeerTool::Latency, [global, &rest[1..]].concat()),
        Some("noise") => Invocation::Peer(PeerTool::Noise, [global, &rest[1..]].concat()),
        Some("paper") => Invocation::Paper([global, &rest[1..]].concat()),
        Some("help") if rest.get(1).is_some_and(|word| word == "paper") => {
            Invocation::Paper(vec!["--help".to_owned()])
        }
        Some(word) if ASKING.contains(&word) => Invocation::Other,
        Some(word) if word.starts_with('-') => Invocation::Run(words.to_vec()),
        Some(word) if word.ends_with(".toml") => Invocation::File(word.to_owned()),
        Some(_) => Invocation::Other,
    }
}

/// How many words in front are options that every command has.
fn global_words(words: &[String]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count) {
        count += match word.as_str() {
            "--json" | "-q" | "--quiet" => 1,
            "--color" => 2,
            word if word.starts_with("--color=") => 1,
            _ => break,
        };
    }
    count.min(words.len())
}

fn other(words: &[String]) -> Result<ExitCode> {
    let program = std::iter::once("hourglass").chain(words.iter().map(String::as_str));
    let matches = match cli::with_groups().try_get_matches_from(program) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => {
            error.print().context("cannot write to stdout")?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(usage(&error, words).into()),
    };
    let parsed = Cli::from_arg_matches(&matches);
    let Cli { settings, command } = parsed.map_err(|error| usage(&error, words))?;
    if needs_no_privilege(&command) {
        // What is refused is kept, and not needed.
        let _ = give_up_capabilities();
    }
    match command {
        // `meant` finds these four before clap does.
        Command::Run(_) => commands::run::run(words),
        Command::Latency(_) => compat::latency::latency(words),
        Command::Noise(_) => compat::noise::noise(words),
        Command::Paper(_) => commands::paper::paper(words),
        Command::Show(show) => commands::show::show(&show, settings),
        Command::Render(render) => commands::render::render(&render, settings),
        Command::Report(report) => commands::report::report(&report, settings),
        Command::Export(export) => commands::export::export(&export, settings),
        Command::Diff(diff) => commands::diff::diff(&diff, settings),
        Command::Clocks(clocks) => commands::clocks::show(&clocks, settings),
        Command::Doctor(doctor) => commands::doctor::examine(&doctor, settings),
        Command::Check(check) => commands::check::check(&check, settings),
        Command::Simulate(simulate) => commands::simulate::simulate(&simulate, settings),
        Command::Model(model) => commands::model::model(&model, settings),
        Command::Predict(predict) => commands::predict::predict(&predict, settings),
        Command::Sweep(sweep) => commands::sweep::sweep(&sweep, settings),
        Command::Merge(merge) => commands::merge::merge(&merge, settings),
        Command::Reserve(reserve) => commands::reserve::reserve(&reserve, words, settings),
        Command::CacheCost(asked) => commands::cache_cost::measure(&asked, settings),
        Command::Watch(watch) => commands::watch::watch(&watch, words, settings),
        Command::Example(asked) => commands::example::example(&asked, settings),
        Command::Completions(completions) => {
            commands::completions::print(&completions, cli::command(), settings)
        }
        Command::Man(man) => commands::man::man(&man, cli::command(), settings),
    }
}

/// Whether a command only reads files, which may be a stranger's, and computes; or looks at other processes as
/// everybody may.
fn needs_no_privilege(command: &Command) -> bool {
    match command {
        Command::Show(_)
        | Command::Render(_)
        | Command::Report(_)
        | Command::Export(_)
        | Command::Diff(_)
        | Command::Check(_)
        | Command::Model(_)
        | Command::Simulate(_)
        | Command::Sweep(_)
        | Command::Merge(_)
        | Command::Watch(_)
        | Command::Example(_)
        | Command::Completions(_)
        | Command::Man(_) => true,
        Command::Run(_)
        | Command::Latency(_)
        | Command::Noise(_)
        | Command::Clocks(_)
        | Command::Doctor(_)
        | Command::Predict(_)
        | Command::Reserve(_)
        | Command::CacheCost(_)
        | Command::Paper(_) => false,
    }
}

/// clap's message in one line.
fn usage(error: &clap::Error, words: &[String]) -> Stop {
    let mut all = cli::command();
    all.build();
    let asked = words.get(global_words(words)).and_then(|name| all.find_subcommand(name));
    usage::one_line(error, &all, asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn is_run(line: &str, with: &str) {
        assert_eq!(meant(&words(line)), Invocation::Run(words(with)), "{line}");
    }

    /// The paper's commands have no `run` in them.
    #[test]
    fn run_may_be_left_out() {
        is_run("-n 1 -d 5s", "-n 1 -d 5s");
        is_run("run -n 1", "-n 1");
        is_run("run audio.toml", "audio.toml");
        is_run("run --help", "--help");
        is_run("run", "");
        is_run("-x", "-x");
    }

    #[test]
    fn options_of_every_command_may_stand_in_front() {
        is_run("--json run -n 1", "--json -n 1");
        is_run("-q --color never run -n 1", "-q --color never -n 1");
        is_run("--color=never -n 1", "--color=never -n 1");
        assert_eq!(meant(&words("--json show d")), Invocation::Other);
        assert_eq!(meant(&words("--json --help")), Invocation::Other);
    }

    /// Their letters are not clap's: -h is a histogram, --json takes a file.
    #[test]
    fn peers_read_their_own_letters() {
        let peer = |line: &str| meant(&words(line));
        let wanted = words("-mSqp80 -h 400");
        assert_eq!(peer("latency -mSqp80 -h 400"), Invocation::Peer(PeerTool::Latency, wanted));
        let wanted = words("--json -c 1");
        assert_eq!(peer("--json noise -c 1"), Invocation::Peer(PeerTool::Noise, wanted));
    }

    #[test]
    fn paper_is_a_program_that_gets_its_words() {
        for (line, wanted) in [
            ("paper --list", "--list"),
            ("--json paper x -q", "--json x -q"),
            ("--color never paper", "--color never"),
            ("help paper", "--help"),
        ] {
            assert_eq!(meant(&words(line)), Invocation::Paper(words(wanted)), "{line}");
        }
        assert_eq!(meant(&words("help papers")), Invocation::Other);
    }

    #[test]
    fn the_rest_is_not_run() {
        assert_eq!(meant(&[]), Invocation::Nothing);
        assert_eq!(meant(&words("--json")), Invocation::Nothing);
        assert_eq!(meant(&words("--color")), Invocation::Nothing);
        assert_eq!(meant(&words("show d")), Invocation::Other);
        assert_eq!(meant(&words("--version")), Invocation::Other);
        assert_eq!(meant(&words("audio.toml")), Invocation::File("audio.toml".into()));
    }

    #[test]
    fn claps_messages_become_one_line() {
        for (line, wanted) in [
            ("sho d", "unknown command 'sho'; did you mean 'show'?"),
            ("lat", "unknown command 'lat'; did you mean 'latency'?"),
            ("xyzzy", "unknown command 'xyzzy'; hourglass --help lists them"),
            ("diff a b --margn 5", "--margn: unknown option; did you mean --margin?"),
            (
                "diff a b --frequency 5",
                "--frequency: unknown option; hourglass diff --help lists them",
            ),
            ("diff a b --fail-on wrse", "--fail-on: unknown word 'wrse'; did you mean 'worse'?"),
            (
                "diff a b --fail-on x",
                "--fail-on: unknown word 'x'; use one of worse, unknown, doubt",
            ),
            ("show", "the following required arguments were not provided: <DIR>...; see --help"),
            ("render d --to 5x -o a.svg", "invalid value '5x' for '--to <TIME>': unknown unit"),
        ] {
            let stop = other(&words(line)).unwrap_err();
            let text = stop.to_string();
            assert!(text.starts_with(wanted), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }
}
