//! `--against`: the other way to run, from the words within its quotes.

use super::options::{COMPARING, LANGUAGE, OUTPUT, RUN, RunDraft};
use super::{BaselineRun, HostDefaults, RunArguments, apply, file_of};
use crate::exit::Stop;
use crate::lab::RunOptions;
use crate::options::{Token, Tokens};

const AGAINST: &str = "--against";

/// Puts what `--against`, `--rounds` and `--control` ask for into the run, if they stand together.
pub(super) fn compare(
    run: &mut RunArguments,
    tokens: &Tokens<'_, RunDraft>,
    around: &HostDefaults,
) -> Result<(), Stop> {
    let given = tokens.last(AGAINST);
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
    if let Some(option) = run.files.asked() {
        return Err(Stop::usage(format!("{option}: it holds one run; leave {AGAINST} out")));
    }
    if run.records {
        return Err(Stop::usage(
            "--against: it prints a comparison; remove -c and --records, and store the runs with -o",
        ));
    }
    run.against = Some(Box::new(other_way(tokens, given.text(), around)?));
    Ok(())
}

fn other_way(
    tokens: &Tokens<'_, RunDraft>,
    quoted: &str,
    around: &HostDefaults,
) -> Result<BaselineRun, Stop> {
    let within = shlex::split(quoted).ok_or_else(|| {
        Stop::usage(format!("{AGAINST}: a quote within it is not closed: {quoted}"))
    })?;
    let inside = |stop: Stop| Stop::usage(format!("{AGAINST}: {stop}"));
    let other = LANGUAGE.lex(&within).map_err(inside)?;
    let other_file = file_of(&other).map_err(inside)?;
    let misplaced = other.options.iter().find(|token| !describes_run(token));
    if let Some(misplaced) = misplaced {
        return Err(Stop::usage(format!(
            "{AGAINST}: {} is for both runs; give it outside the quotes",
            misplaced.given.name
        )));
    }
    let own_words = words(file_of(tokens)?, tokens, describes_run);
    let stands_alone = other_file.is_some() || other.has("-n");
    let mut words = match stands_alone {
        // How long, with how many records: that holds for both unless it is said again.
        true => {
            words(other_file, tokens, |token| token.group == RUN && !token.option.is_called("-n"))
        }
        false => own_words.clone(),
    };
    if !stands_alone && !other.options.is_empty() {
        // A `-t` of the run does not reach into the quotes.
        words.push("-a".to_owned());
    }
    words.extend(other.options.iter().flat_map(|token| token.given.written()));
    words.retain(|word| !word.is_empty());
    let run = LANGUAGE.lex(&words).and_then(|tokens| apply(&tokens, around)).map_err(inside)?;
    let RunOptions { spec, gates, dma_latency_us, .. } = run.request;
    Ok(BaselineRun { spec, gates, dma_latency_us, own_words, words })
}

/// Whether the option is part of what is run, not of how it is compared or shown.
fn describes_run(token: &Token<'_, RunDraft>) -> bool {
    ![COMPARING, OUTPUT].contains(&token.group)
}

/// A file and the options that are `wanted`, as they were written.
fn words(
    file: Option<&str>,
    tokens: &Tokens<'_, RunDraft>,
    wanted: impl Fn(&Token<'_, RunDraft>) -> bool,
) -> Vec<String> {
    let options = tokens.options.iter().filter(|token| wanted(token));
    let file = file.map(str::to_owned).into_iter();
    file.chain(options.flat_map(|token| token.given.written())).collect()
}
