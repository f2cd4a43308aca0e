//! `--against`: the other way to run, from the words within its quotes.

use super::apply::apply;
use super::lexer::{self, ParsedOption, RunTokens};
use super::options::{self, Group, OptionKey};
use super::{BaselineRun, HostDefaults, RunArguments};
use crate::exit::Stop;

const AGAINST: &str = "--against";

/// Puts what `--against`, `--rounds` and `--control` ask for into the run, if they stand together.
pub(super) fn compare(
    run: &mut RunArguments,
    lexed: &RunTokens<'_>,
    around: &HostDefaults,
) -> Result<(), Stop> {
    let given = lexed.last(OptionKey::Against);
    if given.is_some() && run.control {
        return Err(Stop::usage(
            "--control: it is a comparison by itself; leave --against out, or --control",
        ));
    }
    if run.rounds.is_some() && given.is_none() && !run.control {
        return Err(Stop::usage(
            "--rounds: rounds of what? give the other options: --against 'OPTIONS'",
        ));
    }
    if run.fail_on.is_some() && given.is_none() {
        return Err(Stop::usage("--fail-on: it judges a comparison; give --against 'OPTIONS'"));
    }
    let Some(given) = given else { return Ok(()) };
    if run.records {
        return Err(Stop::usage(
            "--against: it prints a comparison; leave -c and --records out, and keep the runs with -o",
        ));
    }
    run.against = Some(Box::new(other_way(lexed, given.value(), around)?));
    Ok(())
}

fn other_way(
    lexed: &RunTokens<'_>,
    quoted: &str,
    around: &HostDefaults,
) -> Result<BaselineRun, Stop> {
    let within = shlex::split(quoted).ok_or_else(|| {
        Stop::usage(format!("{AGAINST}: a quote within it is not closed: {quoted}"))
    })?;
    let inside = |stop: Stop| Stop::usage(format!("{AGAINST}: {stop}"));
    let other = lexer::lex(&within).map_err(inside)?;
    let misplaced = other.options.iter().find(|given| !describes_run(given));
    if let Some(misplaced) = misplaced {
        return Err(Stop::usage(format!(
            "{AGAINST}: {} is for both runs; give it outside the quotes",
            misplaced.name
        )));
    }
    let own_words = words(lexed, describes_run);
    let stands_alone = other.file.is_some() || other.has(OptionKey::Threads);
    let mut words = match stands_alone {
        true => {
            // How long, with how many records: that holds for both unless it is said again.
            let of_run = |given: &ParsedOption<'_>| {
                group(given) == Some(Group::Run) && given.key != OptionKey::Threads
            };
            let options = lexed.options.iter().filter(|given| of_run(given));
            let mut words: Vec<String> = other.file.iter().map(|file| (*file).to_owned()).collect();
            options.for_each(|given| words.extend(written(given)));
            other.options.iter().for_each(|given| words.extend(written(given)));
            words
        }
        false if other.options.is_empty() => own_words.clone(),
        false => {
            // A `-t` of the run does not reach into the quotes.
            let mut words = own_words.clone();
            words.push("-a".to_owned());
            other.options.iter().for_each(|given| words.extend(written(given)));
            words
        }
    };
    words.retain(|word| !word.is_empty());
    let run = lexer::lex(&words).and_then(|lexed| apply(&lexed, around)).map_err(inside)?;
    let RunArguments { spec, gates, dma_latency_us, .. } = run;
    Ok(BaselineRun { spec, gates, dma_latency_us, own_words, words })
}

fn group(given: &ParsedOption<'_>) -> Option<Group> {
    options::find(given.name).map(|entry| entry.group)
}

/// Whether the option is part of what is run, not of how it is compared or shown.
fn describes_run(given: &ParsedOption<'_>) -> bool {
    !matches!(group(given), None | Some(Group::Compare | Group::Output))
}

/// The file and the options that are `wanted`, as they were written.
fn words(lexed: &RunTokens<'_>, wanted: impl Fn(&ParsedOption<'_>) -> bool) -> Vec<String> {
    let mut words: Vec<String> = lexed.file.iter().map(|file| (*file).to_owned()).collect();
    let options = lexed.options.iter().filter(|given| wanted(given));
    options.for_each(|given| words.extend(written(given)));
    words
}

fn written(given: &ParsedOption<'_>) -> Vec<String> {
    std::iter::once(given.name).chain(given.values.iter().copied()).map(str::to_owned).collect()
}
