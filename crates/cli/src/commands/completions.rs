//! `completions`: what makes a shell complete this command.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use hourglass_documents::policy::PRIORITY_NAMES;
use hourglass_tasks::generate::UtilisationMethod;

use super::{clocks, example};
use crate::args::help;
use crate::cli;
use crate::lab::reserve::{Backend, SiblingPolicy, Stopper};
use crate::lab::task_input::Source;
use crate::lab::{doctor, models, sweep, theory, wake};
use crate::output;
use crate::settings::Settings;

/// Print a script that makes a shell complete hourglass
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  source <(hourglass completions bash)
  hourglass completions fish > ~/.config/fish/completions/hourglass.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// An option, or an argument, with the words that it takes: command, its name in clap, words.
type ClosedList = (&'static str, &'static str, fn() -> Vec<PossibleValue>);

/// Those whose words clap does not know, since they have parsers of their own. Words that only begin a value
/// (`forced:CLOCK`) are left out.
const CLOSED_LISTS: &[ClosedList] = &[
    ("run", "-w", || described(models::ALL.iter().map(|model| (model.name, model.about)))),
    ("run", "-i", timers),
    ("run", "-p", priorities),
    ("run", "--fail-on", || words(["worse", "unknown", "doubt"])),
    ("latency", "--timer", timers),
    ("latency", "-y", || words(["other", "normal", "batch", "idle", "fifo", "rr"])),
    ("noise", "-w", || words(["no", "memmove"])),
    ("clocks", "policy", || words(clocks::RULES.into_iter().filter(|rule| !rule.contains(':')))),
    ("doctor", "check", || words(doctor::check_ids())),
    ("check", "format", || words(Source::ALL.map(|(name, _)| name))),
    ("check", "analysis", || {
        described(theory::check::ANALYSES.iter().map(|analysis| (analysis.name, analysis.about)))
    }),
    ("check", "partition", || words(["first-fit", "best-fit", "worst-fit"])),
    ("sweep", "generator", || words(UtilisationMethod::NAMES)),
    ("sweep", "analyses", || {
        described(sweep::ANALYSES.iter().map(|analysis| (analysis.name, analysis.about)))
    }),
    ("reserve", "backend", || words(["auto"].into_iter().chain(Backend::NAMES))),
    ("reserve", "smt", || words(SiblingPolicy::NAMES)),
    ("reserve", "interferes", || words(["siblings", "llc", "membw"])),
    ("reserve", "stopper", || words(["auto"].into_iter().chain(Stopper::NAMES))),
    ("reserve", "progress", || words(["auto", "word", "instructions", "cpu-time"])),
    ("example", "name", || described(example::names())),
    ("man", "command", || words(cli::command_names().chain(["tasks"]))),
];

fn words(names: impl IntoIterator<Item = &'static str>) -> Vec<PossibleValue> {
    names.into_iter().map(PossibleValue::new).collect()
}

fn described(names: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<PossibleValue> {
    names.into_iter().map(|(name, about)| PossibleValue::new(name).help(about)).collect()
}

fn timers() -> Vec<PossibleValue> {
    described(wake::ALL.iter().map(|method| (method.name, method.about)))
}

fn priorities() -> Vec<PossibleValue> {
    let named = PRIORITY_NAMES
        .into_iter()
        .map(|(name, policy)| PossibleValue::new(name).help(help::meaning(policy)));
    named.chain(words(["BATCH", "DEADLINE"])).collect()
}

/// Prints the script.
///
/// # Errors
/// Writing fails.
pub(crate) fn print(
    completions: &Completions,
    command: Command,
    settings: Settings,
) -> Result<ExitCode> {
    super::no_json("completions", "a shell script", settings)?;
    output::text(&script(completions.shell, command))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell, command: Command) -> String {
    let mut command = listed(command);
    if shell != Shell::Zsh {
        // zsh would take an option behind another command for this one.
        command = with_run(command);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "hourglass", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script.replacen(FUNCTION, &format!("{FUNCTION}{BASH_RUN}"), 1),
        Shell::Zsh => script.replacen(FUNCTION, &format!("{FUNCTION}{ZSH_RUN}"), 1),
        Shell::Fish => script + &fish_arguments(&command) + FISH_RUN,
        _ => script,
    }
}

/// The commands with the words of closed lists, in their order.
fn listed(command: Command) -> Command {
    command.mut_subcommands(|one| {
        let command = one.get_name().to_owned();
        one.mut_args(|known| {
            let list = CLOSED_LISTS
                .iter()
                .find(|(name, argument, _)| *name == command && known.get_id() == argument);
            match list {
                Some((_, _, list)) => known.value_parser(PossibleValuesParser::new(list())),
                None => known,
            }
        })
    })
}

/// The same with the options of `run` beside the commands.
fn with_run(command: Command) -> Command {
    let run: Vec<Arg> = match command.find_subcommand("run") {
        Some(run) => {
            run.get_arguments().filter(|argument| !argument.is_positional()).cloned().collect()
        }
        None => Vec::new(),
    };
    run.into_iter().fold(command, Command::arg)
}

/// Arguments that are no options, which clap leaves out for fish.
fn fish_arguments(command: &Command) -> String {
    let arguments = command.get_subcommands().flat_map(|one| {
        one.get_positionals().map(|argument| (one.get_name(), argument.get_possible_values()))
    });
    let listed = arguments.filter(|(_, list)| !list.is_empty());
    let lines = listed.map(|(name, list)| {
        let words: Vec<&str> = list.iter().map(PossibleValue::get_name).collect();
        let when = format!("__fish_hourglass_using_subcommand {name}");
        format!("complete -c hourglass -n \"{when}\" -f -a \"{}\"\n", words.join(" "))
    });
    lines.collect()
}

/// How the function of bash and of zsh begins in what clap makes.
const FUNCTION: &str = "_hourglass() {\n";

/// A line of `run` without the word gets the word, once an option of it is complete: what may follow depends on it.
const BASH_RUN: &str = r#"    local -a COMP_WORDS=("${COMP_WORDS[@]}")
    local COMP_CWORD=$COMP_CWORD at=1
    while ((at < COMP_CWORD)); do
        case ${COMP_WORDS[at]} in
            --json | -q | --quiet | --color=*) ((at += 1)) ;;
            --color) if [[ ${COMP_WORDS[at + 1]} == "=" ]]; then ((at += 3)); else ((at += 2)); fi ;;
            -h | --help | -V | --version) break ;;
            -*)
                COMP_WORDS=("${COMP_WORDS[0]}" run "${COMP_WORDS[@]:1}")
                ((COMP_CWORD += 1))
                break
                ;;
            *) break ;;
        esac
    done
"#;

const ZSH_RUN: &str = r#"    local at=2
    while (( at < CURRENT )); do
        case ${words[at]} in
            (--json|-q|--quiet|--color=*) (( at += 1 )) ;;
            (--color) (( at += 2 )) ;;
            (-h|--help|-V|--version) break ;;
            (-*)
                words=("${words[1]}" run "${(@)words[2,-1]}")
                (( CURRENT += 1 ))
                break
                ;;
            (*) break ;;
        esac
    done
    if (( at == CURRENT )) && [[ ${words[at]} == -* ]]; then
        local -a line=("${words[@]}")
        words=("${words[1]}" run "${(@)words[2,-1]}")
        (( CURRENT += 1 ))
        _hourglass "$@"
        words=("${line[@]}")
        (( CURRENT -= 1 ))
    fi
"#;

const FISH_RUN: &str = r#"
# The command of a line; `run` once one of its options is complete.
function __fish_hourglass_needs_command
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --json -q --quiet '--color=*'
                set -e words[1]
            case --color
                set -e words[1]
                set -q words[1]
                and set -e words[1]
            case -h --help -V --version
                return 0
            case '-*'
                echo run
                return 1
            case '*'
                echo $words[1]
                return 1
        end
    end
    return 0
end
"#;

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// A list that says more than the parser knows would complete what is refused.
    #[test]
    fn clap_accepts_every_word_that_is_completed() {
        let mut tried = 0;
        for (name, argument, list) in CLOSED_LISTS {
            let commands = cli::command();
            let command = commands.find_subcommand(name).unwrap();
            let option = command.get_arguments().find(|known| known.get_id() == argument).unwrap();
            let Some(long) = option.get_long().filter(|_| !argument.starts_with('-')) else {
                continue;
            };
            for value in list() {
                let option = format!("--{long}={}", value.get_name());
                let words = ["hourglass", name, &option];
                if let Err(error) = cli::command().try_get_matches_from(words) {
                    let kind = error.kind();
                    let refused =
                        matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation);
                    assert!(!refused, "{words:?}: {error}");
                }
                tried += 1;
            }
        }
        assert!(tried > 50, "{tried}");
    }

    #[test]
    fn the_word_run_is_put_into_each_script() {
        for (shell, mark) in
            [(Shell::Bash, BASH_RUN), (Shell::Zsh, ZSH_RUN), (Shell::Fish, FISH_RUN)]
        {
            let script = script(shell, cli::command());
            assert_eq!(script.matches(mark).count(), 1, "{shell}");
        }
    }
}
