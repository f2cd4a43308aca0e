//! Commands that take the letters of their peers: `latency` those of cyclictest, `noise` those of
//! oslat and sysjitter.
//!
//! Owns: reading those letters into a run, help for them, and printing what the peers' users and
//! parsers expect. Must not: measure, compute a result, or know how a limit is judged.
//!
//! A letter of a peer is honoured, or refused with one line that says what to use instead; none is
//! silently without effect. `-h` belongs to the histogram, so that help is `--help`.

pub(crate) mod help;
pub(crate) mod latency;
pub(crate) mod noise;
mod top;

use std::path::Path;
use std::sync::OnceLock;

use hourglass_documents::CpuSet;
use hourglass_documents::document::{GateReport, RunDocument};
use hourglass_report::text;

use crate::exit::Stop;
use crate::lab::RunOptions;
use crate::lab::host::HostReader;

/// A command line, understood.
#[derive(Debug)]
pub(crate) enum ParsedCommand<T> {
    /// Help is asked for.
    Help,
    Run(Box<T>),
}

/// What the parsers must know of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCpus {
    /// CPUs with which this process was started, and that can run threads: those that are meant where none
    /// is named.
    pub(crate) cpus: CpuSet,
    /// CPUs that may be named: all that the kernel gives this process, isolated ones among them.
    pub(crate) permitted: CpuSet,
    /// Whether `/dev/cpu_dma_latency` may be held.
    pub(crate) holds_latency: bool,
}

impl HostCpus {
    pub(crate) fn for_this_machine() -> &'static HostCpus {
        static HERE: OnceLock<HostCpus> = OnceLock::new();
        HERE.get_or_init(|| {
            let host = HostReader::new(Path::new("/")).read();
            let cpus = crate::lab::usual_cpus(&host);
            let permitted = crate::lab::permitted_cpus(&host).unwrap_or_else(|| cpus.clone());
            let holds_latency = crate::lab::may_hold_idle_latency().is_ok();
            HostCpus { cpus, permitted, holds_latency }
        })
    }
}

/// That a run can be, and what its limits need.
fn check(request: &RunOptions) -> Result<(), Stop> {
    request.spec.check().map_err(Stop::bad_input)?;
    request.gates.check(&request.spec).map_err(Stop::bad_input)
}

/// The text with its comment lines no wider than a terminal of 80 columns, where it goes to one; scripts get whole lines.
fn fitted(text: &str, to_terminal: bool) -> String {
    if !to_terminal {
        return text.to_owned();
    }
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(rest) => {
            let wrapped = text::wrapped_within(text::NARROW - COMMENT.len(), rest, 0, 0);
            format!("# {}\n", wrapped.replace('\n', &format!("\n{COMMENT}")))
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// What begins a comment line that continues one.
const COMMENT: &str = "#   ";

/// A comment line of the load beside the measurement, if there was one.
fn load(document: &RunDocument) -> String {
    document.manifest.load.as_ref().map_or(String::new(), |load| {
        let cpu_time = hourglass_report::rounded(load.cpu_time_ns);
        format!("# Beside {load}; {cpu_time} of processor time on CPU {}\n", load.cpus)
    })
}

/// A comment line for each premise that broke, and for each limit; `counted` is what limits count that are no times.
fn limits(document: &RunDocument, counted: &str) -> String {
    let premises = || text::broken(&document.result);
    let holds = premises().next().is_none();
    let line = |gate: &GateReport| {
        let kept = text::gate_word(gate, holds);
        let (scale, unit) = if gate.unit == "ns" { (1e3, "us") } else { (1.0, counted) };
        let (value, limit) = (gate.value / scale, gate.limit / scale);
        let mut out =
            format!("# Gate {}: {kept}, {value} {unit} found, {limit} {unit} allowed\n", gate.name);
        for sentence in gate.confidence.iter().flat_map(text::confidence) {
            out.push_str(&format!("# Confidence {sentence}\n"));
        }
        out
    };
    let no_verdict = premises().map(|premise| format!("# No verdict: {}\n", premise.text));
    no_verdict.chain(document.result.gates.iter().map(line)).collect()
}

/// Comment lines of the longest gaps and the latest wake-ups: the kernel's stacks where it was traced, else who ran
/// meanwhile by its counts.
fn worst(document: &RunDocument) -> String {
    let mut out = String::new();
    for line in text::stacks(&document.result.stacks) {
        out.push_str(&format!("# Stack {line}\n"));
    }
    let meanwhile = text::meanwhile(&document.result.meanwhile);
    for line in &meanwhile {
        out.push_str(&format!("# Meanwhile {line}\n"));
    }
    if !meanwhile.is_empty() {
        out.push_str(&format!("# Meanwhile {}\n", text::BY_COUNTS));
    }
    out
}

#[cfg(test)]
mod fitting {
    use super::*;

    #[test]
    fn comments_fit_a_terminal_and_stay_whole_for_scripts() {
        let long = format!("# Meanwhile {}\n", "stress (812) 4.50 ms, ".repeat(9));
        let text = format!("T: 0 {}\n{long}# short\n", "x".repeat(90));
        assert_eq!(fitted(&text, false), text);
        let fitted = fitted(&text, true);
        let comments: Vec<&str> = fitted.lines().filter(|line| line.starts_with('#')).collect();
        assert!(comments.len() > 3 && fitted.starts_with("T: 0 xxx"), "{fitted}");
        assert!(comments.iter().all(|line| line.chars().count() <= 80), "{fitted}");
        let words = |text: &str| -> Vec<String> {
            text.split_whitespace().filter(|word| *word != "#").map(str::to_owned).collect()
        };
        assert_eq!(words(&fitted), words(&text));
    }
}
