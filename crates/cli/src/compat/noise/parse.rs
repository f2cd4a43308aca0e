//! From the letters to a run.

use std::path::PathBuf;

use hourglass_documents::{CpuSet, Policy, spelling};
use hourglass_time::Span;

use super::options::LANGUAGE;
use crate::compat::{HostCpus, ParsedCommand, check, top};
use crate::exit::Stop;
use crate::lab::{RunOptions, RunSpec, Steps, ThreadSpec, models};
use crate::options::shared::{LoadDraft, Measuring, PeerMeasuring};
use crate::options::{Applied, OptionValues};
use crate::result_files::ResultFiles;
use crate::settings::Settings;

/// oslat's rows, and the numbers of them that it takes.
const ROWS: usize = 32;
pub(super) const MOST_ROWS: usize = 1_024;
pub(super) const LEAST_ROWS: usize = 4;

/// Frequency and caches settle in the first second, which oslat does not count either.
const WARM_UP: Span = Span::from_secs(1);

/// What leaves a CPU for `--top`.
const ELSEWHERE: &str =
    "leave one out of -c, or name one for the main thread (-C CPU), also a measured one";

const DURATION: Span = Span::from_secs(10);

/// What `noise` is asked to do.
#[derive(Debug)]
pub(super) struct Noise {
    pub(super) request: RunOptions,
    /// Whether it is shown while it goes on.
    pub(super) top: bool,
    /// A CPU that is not measured although no option excludes it: real-time threads must not take all CPUs.
    pub(super) left_out: Option<u32>,
    pub(super) view: View,
    pub(super) settings: Settings,
}

/// How the result is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) width_ns: u64,
    pub(super) zero_omit: bool,
    pub(super) json_file: Option<PathBuf>,
    pub(super) files: ResultFiles,
}

/// What was given, before it is put on threads.
#[derive(Debug)]
pub(crate) struct NoiseDraft {
    pub(super) run: Noise,
    pub(super) machine: HostCpus,
    pub(super) cpus: Option<CpuSet>,
    pub(super) main: Option<u32>,
    pub(super) priority: Option<u8>,
    pub(super) rows: usize,
    pub(super) moves: bool,
    pub(super) move_size: String,
    pub(super) threshold: Option<Span>,
    pub(super) load: LoadDraft,
}

impl Measuring for NoiseDraft {
    const LIMIT_UNIT: &str = "us";

    fn request(&mut self) -> &mut RunOptions {
        &mut self.run.request
    }

    fn settings(&mut self) -> &mut Settings {
        &mut self.run.settings
    }

    fn files(&mut self) -> &mut ResultFiles {
        &mut self.run.view.files
    }
}

impl PeerMeasuring for NoiseDraft {
    fn json_file(&mut self) -> &mut Option<PathBuf> {
        &mut self.run.view.json_file
    }

    fn machine(&self) -> &HostCpus {
        &self.machine
    }

    fn load(&mut self) -> &mut LoadDraft {
        &mut self.load
    }
}

/// Reads the words behind `noise`.
///
/// # Errors
/// The first thing that is wrong, in one line that names the option.
pub(super) fn parse(words: &[String], machine: &HostCpus) -> Result<ParsedCommand<Noise>, Stop> {
    if LANGUAGE.asks_for_help(words) {
        return Ok(ParsedCommand::Help);
    }
    let tokens = LANGUAGE.lex(words)?;
    let spec = RunSpec {
        duration: DURATION,
        warm_up: WARM_UP,
        snapshots: true,
        ..RunSpec::new(Vec::new())
    };
    let mut draft = NoiseDraft {
        run: Noise {
            request: RunOptions::new(spec),
            top: false,
            left_out: None,
            view: View { width_ns: 1_000, ..View::default() },
            settings: Settings::default(),
        },
        machine: machine.clone(),
        cpus: None,
        main: None,
        priority: None,
        rows: ROWS,
        moves: false,
        move_size: "4".to_owned(),
        threshold: None,
        load: LoadDraft::default(),
    };
    tokens.options.iter().try_for_each(|token| token.apply(&mut draft))?;
    for (_, word) in &tokens.words {
        take_threshold(&mut draft, word)?;
    }
    finish(draft).map(|run| ParsedCommand::Run(Box::new(run)))
}

/// sysjitter's only argument.
fn take_threshold(to: &mut NoiseDraft, word: &str) -> Applied {
    let given = OptionValues { name: "THRESHOLD_NS", values: vec![word] };
    if to.threshold.is_some() {
        return Err(Stop::usage(format!("'{word}' is one threshold too many")));
    }
    to.threshold = Some(given.above_zero("ns")?);
    Ok(())
}

pub(super) fn work(to: &mut NoiseDraft, given: &OptionValues<'_>) -> Applied {
    to.moves = match given.text() {
        "no" | "none" => false,
        "memmove" => true,
        other => return Err(given.wrong(spelling::unknown("workload", other, ["no", "memmove"]))),
    };
    Ok(())
}

/// A size as oslat takes it (`4K`, `1M`, bytes), in the words of `CPU_MOVE`, which counts in KB.
pub(super) fn size(given: &OptionValues<'_>) -> Result<String, Stop> {
    let text = given.text();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || given.wrong(format!("bad size '{text}': write for example 4K or 1M"));
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let bytes = match &text[digits.len()..] {
        "" => Some(number),
        "K" | "k" => number.checked_mul(1 << 10),
        "M" | "m" => number.checked_mul(1 << 20),
        _ => None,
    };
    match bytes {
        Some(bytes) if bytes > 0 => Ok(bytes.div_ceil(1 << 10).to_string()),
        _ => Err(wrong()),
    }
}

/// Puts it together.
fn finish(mut draft: NoiseDraft) -> Result<Noise, Stop> {
    let cpus = choose(&mut draft)?;
    let model = match draft.moves {
        true => models::parse(&["CPU_MOVE", &draft.move_size])
            .map_err(|error| Stop::usage(format!("-m: {error}")))?,
        false => models::default_model(),
    };
    let steps = Steps { width_ns: draft.run.view.width_ns, count: draft.rows };
    let thread = |cpu: u32| ThreadSpec {
        model: model.clone(),
        policy: draft.priority.map_or(Policy::Other(0), Policy::Fifo),
        policy_is_named: draft.priority.is_none(),
        cpus: Some([cpu].into_iter().collect()),
        gap: draft.threshold,
        steps: Some(steps),
        ..ThreadSpec::default()
    };
    let mut run = draft.run;
    run.request.load = draft.load.finish()?;
    let spec = &mut run.request.spec;
    spec.records = spec.records.max(cpus.len() as u64);
    spec.threads = cpus.iter().map(thread).collect();
    check(&run.request)?;
    if run.top {
        top::check(&run.request.spec, &run.settings, &draft.machine, ELSEWHERE)?;
    }
    Ok(run)
}

/// The CPUs to look at: never all of them at a real-time priority. If they are all with which this program was
/// started, it moves to another one.
fn choose(asked: &mut NoiseDraft) -> Result<CpuSet, Stop> {
    let machine = &asked.machine;
    let main: CpuSet = asked.main.into_iter().collect();
    let cpus = match &asked.cpus {
        Some(cpus) => cpus.clone(),
        None => machine.cpus.difference(&main),
    };
    let Some(priority) = asked.priority else {
        return match cpus.is_empty() {
            true => Err(Stop::usage("-C: that is the only CPU; without -C it is measured")),
            false => Ok(cpus),
        };
    };
    if machine.permitted.len() < 2 {
        return Err(Stop::usage(
            "-f: with one CPU nothing else would run; leave -f out, or allow more CPUs",
        ));
    }
    let rest = machine.permitted.difference(&cpus);
    if rest.is_empty() && asked.cpus.is_some() {
        return Err(Stop::usage(format!(
            "-f {priority} on every CPU ({cpus}) would stop the machine; leave one out of -c"
        )));
    }
    if rest.is_empty() {
        asked.run.left_out = cpus.iter().next();
        return Ok(cpus.difference(&asked.run.left_out.into_iter().collect()));
    }
    if machine.cpus.difference(&cpus).is_empty() && asked.run.request.spec.watch_on.is_none() {
        asked.run.request.spec.watch_on = Some(rest);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: u32) -> HostCpus {
        HostCpus { cpus: (0..cpus).collect(), permitted: (0..cpus).collect(), holds_latency: true }
    }

    fn read(line: &str, cpus: u32) -> Result<Noise, String> {
        read_on(line, &machine(cpus))
    }

    fn read_on(line: &str, machine: &HostCpus) -> Result<Noise, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&words, machine) {
            Ok(ParsedCommand::Run(run)) => Ok(*run),
            Ok(ParsedCommand::Help) => Err("help".to_owned()),
            Err(stop) => Err(stop.to_string()),
        }
    }

    fn cpus(run: &Noise) -> String {
        let cpus: CpuSet = run
            .request
            .spec
            .threads
            .iter()
            .filter_map(|t| t.cpus.clone())
            .flat_map(|c| c.iter().collect::<Vec<_>>())
            .collect();
        cpus.to_string()
    }

    #[test]
    fn oslats_line_is_understood() {
        let run = read("-c 1,3 -C 0 -D 20m -f 80 -T 50 -b 8 -z -q -w memmove -m 16K", 4).unwrap();
        assert_eq!(cpus(&run), "1,3");
        assert_eq!(run.request.spec.duration, Span::from_secs(1_200));
        assert_eq!(run.request.spec.guard.stop_on_gap, Some(Span::from_micros(50)));
        assert_eq!(run.request.spec.threads[0].policy, Policy::Fifo(80));
        assert_eq!(run.request.spec.threads[0].model.to_string(), "CPU_MOVE 16");
        assert_eq!(run.request.spec.threads[0].steps, Some(Steps { width_ns: 1_000, count: 8 }));
        assert!(run.view.zero_omit && run.settings.quiet);
    }

    #[test]
    fn sysjitters_line_is_understood() {
        let run = read("--runtime 5 300", 2).unwrap();
        assert_eq!(run.request.spec.threads[0].gap, Some(Span::from_nanos(300)));
        assert_eq!(run.request.spec.duration, Span::from_secs(5));
        assert_eq!(read("300 400", 2).unwrap_err(), "'400' is one threshold too many");
    }

    /// A machine whose CPUs all spin at a real-time priority does not respond any more.
    #[test]
    fn one_cpu_is_always_left_to_the_others() {
        let run = read("-f 80", 4).unwrap();
        assert_eq!((cpus(&run).as_str(), run.left_out), ("1-3", Some(0)));
        let run = read("-f 80 -C 2", 4).unwrap();
        assert_eq!((cpus(&run).as_str(), run.left_out), ("0-1,3", None));
        assert!(read("-f 80 -c 0-3", 4).unwrap_err().starts_with("-f 80 on every CPU (0-3)"));
        assert!(read("-f 80", 1).unwrap_err().starts_with("-f: with one CPU"));
        let run = read("", 4).unwrap();
        assert_eq!((cpus(&run).as_str(), run.left_out), ("0-3", None));
    }

    /// Isolated CPUs are what one looks at, and no program is started on them: `-c 3` was refused under
    /// `taskset -c 0` and on a machine with `isolcpus=2-3`.
    #[test]
    fn cpus_outside_of_the_affinity_may_be_looked_at() {
        let machine = HostCpus { cpus: (0..2).collect(), ..machine(4) };
        let run = read_on("-c 2-3 -f 80", &machine).unwrap();
        assert_eq!((cpus(&run).as_str(), run.request.spec.watch_on), ("2-3", None));
        // Where nothing is said, the affinity counts; and this program goes where it can run.
        assert_eq!(cpus(&read_on("", &machine).unwrap()), "0-1");
        let run = read_on("-f 80", &machine).unwrap();
        assert_eq!((cpus(&run).as_str(), run.left_out), ("0-1", None));
        assert_eq!(run.request.spec.watch_on, "2-3".parse().ok());
        let run = read_on("-f 80 -c 0-2 -C 3", &machine).unwrap();
        assert_eq!(run.request.spec.watch_on, "3".parse().ok());
        assert!(read_on("-f 80 -c 0-3", &machine).unwrap_err().starts_with("-f 80 on every CPU"));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, wanted) in [
            ("-b 3", "-b: bad number of rows '3': give one from 4 to 1024"),
            ("-w idle", "-w: unknown workload 'idle'; use one of no, memmove"),
            ("-m 4X", "-m: bad size '4X': write for example 4K or 1M"),
            (
                "-c 9",
                "-c: CPU 9 is not online, or not in the cpuset of this process; use some of 0-1",
            ),
            ("-f 0", "-f: bad priority '0': give one from 1 to 99"),
            ("-B", "-B: nothing to subtract"),
            ("--on-hit true", "--on-hit: nothing ends this run"),
            ("--top", "--top: every CPU is measured"),
            ("-h", "help"),
        ] {
            let found = read(line, 2).unwrap_err();
            assert!(found.starts_with(wanted), "{line}: {found}");
        }
    }
}
