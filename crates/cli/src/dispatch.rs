//! Which command is meant. `run` may be left out, so a line that begins with an option of
//! Appendix A is a `run`, as in the paper.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use hourglass_model::spelling;

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
        // `meant` finds these three before clap does.
        Command::Run(_) => commands::run::run(words),
        Command::Latency(_) => compat::latency::latency(words),
        Command::Noise(_) => compat::noise::noise(words),
        Command::Show(show) => commands::show::show(&show, settings),
        Command::Render(render) => commands::render::render(&render, settings),
        Command::Report(report) => commands::report::report(&report, settings),
        Command::Export(export) => commands::export::export(&export, settings),
        Command::Diff(diff) => commands::diff::diff(&diff, settings),
        Command::Clocks(clocks) => commands::clocks::show(&clocks, settings),
        Command::Doctor(doctor) => commands::doctor::examine(&doctor, settings),
        Command::Check(check) => commands::check::check(&check, settings),
        Command::Simulate(simulate) => commands::simulate::simulate(&simulate, settings),
        Command::Predict(predict) => commands::predict::predict(&predict, settings),
        Command::Sweep(sweep) => commands::sweep::sweep(&sweep, settings),
        Command::Merge(merge) => commands::merge::merge(&merge, settings),
        Command::Reserve(reserve) => commands::reserve::reserve(&reserve, words, settings),
        Command::CacheCost(asked) => commands::cache_cost::measure(&asked, settings),
        Command::Watch(watch) => commands::watch::watch(&watch, words, settings),
        Command::Paper(paper) => commands::paper::paper(&paper, settings),
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

/// The words that clap says of an error.
fn error_words(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word],
        Some(ContextValue::Strings(words)) => words.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The line about a word that is not known, with those that are near.
fn unknown_word(error: &clap::Error, words: &[String]) -> Option<String> {
    let first = |kind| error_words(error, kind).first().copied();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = first(ContextKind::InvalidSubcommand)?;
            let known = cli::command();
            let names = known.get_subcommands().map(clap::Command::get_name);
            let question = spelling::did_you_mean(word, names);
            let advice = question.unwrap_or_else(|| "hourglass --help lists them".to_owned());
            Some(format!("unknown command '{word}'; {advice}"))
        }
        ErrorKind::UnknownArgument => {
            let word = first(ContextKind::InvalidArg).filter(|word| word.starts_with('-'))?;
            let name = &words.get(global_words(words))?;
            let mut all = cli::command();
            all.build();
            let command = all.find_subcommand(name)?;
            let options: Vec<String> = command
                .get_arguments()
                .flat_map(|one| one.get_long_and_visible_aliases())
                .flatten()
                .map(|long| format!("--{long}"))
                .collect();
            let question = spelling::did_you_mean(word, options.iter().map(String::as_str));
            let advice = question.unwrap_or_else(|| format!("hourglass {name} --help lists them"));
            Some(format!("{word}: unknown option; {advice}"))
        }
        ErrorKind::InvalidValue => {
            let word = first(ContextKind::InvalidValue).filter(|word| !word.is_empty())?;
            let known = error_words(error, ContextKind::ValidValue);
            let option = first(ContextKind::InvalidArg)?.split(' ').next()?;
            (!known.is_empty())
                .then(|| format!("{option}: {}", spelling::unknown("word", word, known)))
        }
        _ => None,
    }
}

/// clap's message in one line; the usage and the advice that it adds are left to `--help`.
fn usage(error: &clap::Error, words: &[String]) -> Stop {
    if let Some(line) = unknown_word(error, words) {
        return Stop::usage(line);
    }
    let text = error.render().to_string();
    let (message, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(stripped) = line.strip_prefix("error: ") {
        line = stripped.to_owned();
    }
    if let Some(tip) = advice.lines().find_map(|line| line.trim().strip_prefix("tip: ")) {
        line = format!("{line}; {tip}");
    } else if error.kind() == ErrorKind::MissingRequiredArgument {
        line.push_str("; see --help");
    }
    Stop::usage(line)
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
