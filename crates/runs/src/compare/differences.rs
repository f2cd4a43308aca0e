//! In what two sides differ besides what was measured, and what makes a comparison doubtful.

use hourglass_documents::diff::Difference;
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{Manifest, ThreadFacts};

use super::side::ComparedRun;

/// Runs whose lengths differ by more have maxima that cannot be compared.
const MOST_LONGER: (u128, u128) = (11, 10);

const IN_TURN: &str =
    "measure both in turn: hourglass run OPTIONS --against 'OTHER OPTIONS' --rounds 10";

/// What a reader must know before believing the numbers.
pub(super) fn warnings(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: Option<String>, remedy: &str| {
        warnings.extend(text.map(|text| Warning {
            id: id.to_owned(),
            text,
            remedy: remedy.to_owned(),
        }));
    };
    warn("sequential", one_after_the_other(a, b), IN_TURN);
    if let (Some(first), Some(second)) = (a.first(), b.first()) {
        let (first, second) = (&first.manifest, &second.manifest);
        warn("other-workload", named("workloads", workloads(first), workloads(second)), IN_TURN);
        warn("other-machine", machine(first, second), "compare runs of one machine");
        warn(
            "other-counter",
            named("counters", first.clock.source.clone(), second.clock.source.clone()),
            "run `hourglass clocks` to see why the counter was not the same",
        );
        warn(
            "other-version",
            named("versions of Hourglass", first.hourglass.clone(), second.hourglass.clone()),
            "measure both with one version",
        );
        warn("other-duration", duration(first, second), "give both the same -d");
    }
    let all = || a.iter().chain(b);
    let count = |is_so: &dyn Fn(&ComparedRun) -> bool| {
        let names: Vec<String> = all().filter(|run| is_so(run)).map(ComparedRun::name).collect();
        (!names.is_empty()).then(|| shortened(&names))
    };
    let incomplete = count(&|run| run.dropped > 0);
    warn(
        "trace-incomplete",
        incomplete.map(|names| {
            format!("more was measured than stored, which is what is compared: {names}")
        }),
        "give -e RECORDS as many as the run needs",
    );
    let cut = count(&|run| run.interrupted);
    warn(
        "interrupted",
        cut.map(|names| format!("ended early by a signal: {names}")),
        "measure again",
    );
    let rounded = count(&|run| run.without_order);
    warn(
        "latency-without-order",
        rounded.map(|names| {
            format!("latencies are kept as a histogram, without their order in time: {names}")
        }),
        "measure again with this version, which keeps latency.parquet",
    );
    warnings
}

/// Two names at most, and how many there are besides.
fn shortened(names: &[String]) -> String {
    match names {
        [first, second, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}

/// `None` where the two are equal.
fn named(what: &str, a: String, b: String) -> Option<String> {
    (a != b).then(|| format!("the two have different {what}: {a} against {b}"))
}

/// Whether all runs of one side were over before any of the other began.
fn one_after_the_other(a: &[ComparedRun], b: &[ComparedRun]) -> Option<String> {
    let begin = |run: &ComparedRun| run.manifest.epoch.realtime_ns;
    let simulated = |run: &ComparedRun| run.manifest.simulation.is_some();
    if a.iter().chain(b).any(simulated) {
        return None;
    }
    let ends =
        |runs: &[ComparedRun]| Some((runs.iter().map(begin).min()?, runs.iter().map(begin).max()?));
    let ((first_a, last_a), (first_b, last_b)) = (ends(a)?, ends(b)?);
    let text = match (a.len(), last_a < first_b || last_b < first_a) {
        (1, _) => {
            "one run each, made one after the other: on a shared machine what changes from one \
             minute to the next counts as a difference, and these intervals do not show it"
        }
        (_, true) => {
            "all runs of one side were made before those of the other, so that what changes on the \
             machine counts as a difference"
        }
        (_, false) => return None,
    };
    Some(text.to_owned())
}

fn workloads(manifest: &Manifest) -> String {
    let mut words: Vec<(String, u32)> = Vec::new();
    for thread in &manifest.threads {
        match words.last_mut() {
            Some((last, count)) if *last == thread.workload => *count += 1,
            _ => words.push((thread.workload.clone(), 1)),
        }
    }
    let times = |(word, count): (String, u32)| match count {
        1 => word,
        _ => format!("{count} x {word}"),
    };
    let words: Vec<String> = words.into_iter().map(times).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" + ") }
}

fn machine(a: &Manifest, b: &Manifest) -> Option<String> {
    let simulated = |manifest: &Manifest| match manifest.simulation {
        Some(_) => "simulated".to_owned(),
        None => "measured".to_owned(),
    };
    if a.simulation.is_some() != b.simulation.is_some() {
        return named("origins", simulated(a), simulated(b));
    }
    let parts: Vec<String> = facts(&a.host)
        .into_iter()
        .zip(facts(&b.host))
        .filter(|((_, a), (_, b))| a != b)
        .map(|((what, a), (_, b))| format!("{what} {a} against {b}"))
        .collect();
    (!parts.is_empty()).then(|| format!("the two machines differ: {}", parts.join("; ")))
}

fn facts(host: &Host) -> [(&'static str, String); 5] {
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "(unknown)".to_owned());
    let cpus = host.cpu.online.as_ref().map(ToString::to_string);
    [
        ("kernel", host.kernel.clone()),
        ("processor", or_unknown(host.cpu.model.clone())),
        ("CPUs", or_unknown(cpus)),
        ("hypervisor", or_unknown(host.virtual_machine.kind.clone())),
        ("container", host.container.as_ref().map_or("none".to_owned(), |c| c.kind.clone())),
    ]
}

fn duration(a: &Manifest, b: &Manifest) -> Option<String> {
    let (short, long) = (a.elapsed_ns.min(b.elapsed_ns), a.elapsed_ns.max(b.elapsed_ns));
    let differ = u128::from(long) * MOST_LONGER.1 > u128::from(short) * MOST_LONGER.0;
    let seconds = |ns: u64| format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000);
    differ.then(|| {
        format!(
            "one ran for {} and the other for {}: of a longer run the maximum is longer",
            seconds(a.elapsed_ns),
            seconds(b.elapsed_ns)
        )
    })
}

/// In what the first runs of the two sides were asked for, or set up, differently.
pub(super) fn differences(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<Difference> {
    let (Some(a), Some(b)) = (a.first(), b.first()) else { return Vec::new() };
    let (a, b) = (&a.manifest, &b.manifest);
    let mut differences = Vec::new();
    let mut add = |what: String, a: String, b: String| {
        if a != b {
            differences.push(Difference { what, a, b });
        }
    };
    add("threads".to_owned(), a.threads.len().to_string(), b.threads.len().to_string());
    for (one, other) in a.threads.iter().zip(&b.threads) {
        for ((what, a), (_, b)) in set_up(one).into_iter().zip(set_up(other)) {
            add(format!("thread {}: {what}", one.id), a, b);
        }
    }
    let held = |manifest: &Manifest| match manifest.dma_latency_us {
        Some(us) => format!("{us} us"),
        None => "not held".to_owned(),
    };
    add("/dev/cpu_dma_latency".to_owned(), held(a), held(b));
    let meant = |manifest: &Manifest| format!("{} ms", manifest.duration_ns / 1_000_000);
    add("duration".to_owned(), meant(a), meant(b));
    differences
}

fn set_up(thread: &ThreadFacts) -> [(&'static str, String); 5] {
    [
        ("workload", thread.workload.clone()),
        ("policy", thread.policy.clone()),
        ("timer", thread.wake_up.clone()),
        ("reservation", thread.reservation.clone().unwrap_or_else(|| "none".to_owned())),
        ("CPUs", thread.cpus.clone()),
    ]
}
