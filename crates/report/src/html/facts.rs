//! What explains the numbers: the manifest, in short and in full.

use std::fmt::Write;

use hourglass_documents::document::RunDocument;
use hourglass_documents::host::Host;
use hourglass_documents::manifest::Manifest;

use super::table::{begin_section, grouped};
use crate::clean::for_xml;
use crate::units::rounded;

/// Writes the section.
pub(super) fn write(out: &mut String, document: &RunDocument) {
    let manifest = &document.manifest;
    begin_section(out, "manifest", "Manifest");
    out.push_str("<dl class=\"facts\">\n");
    let facts = run_facts(manifest).into_iter().chain(host_facts(&manifest.host));
    for (name, value) in facts.filter(|(_, value)| !value.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", for_xml(&value));
    }
    out.push_str("</dl>\n<details>\n<summary>Everything that was recorded</summary>\n<pre>");
    let full = serde_json::to_string_pretty(manifest).unwrap_or_default();
    // Line by line: the breaks are ours, whatever is within a line is not.
    for line in full.lines() {
        out.push_str(&for_xml(line));
        out.push('\n');
    }
    out.push_str("</pre>\n</details>\n</section>\n");
}

fn run_facts(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let clock = &manifest.clock;
    let calibration = &clock.calibration_end;
    let trust = if clock.trusted { "trusted" } else { "not trusted" };
    let memory = if manifest.memory.all_locked { "all locked" } else { "not all locked" };
    let latency = manifest.dma_latency_us.map(|us| format!("held at {us} us"));
    vec![
        ("command", manifest.command_line.join(" ")),
        ("Hourglass", manifest.hourglass.clone()),
        ("meant to last", rounded(manifest.duration_ns)),
        ("lasted", rounded(manifest.elapsed_ns)),
        ("clock", format!("{}, {trust}: {}", clock.source, clock.reason)),
        (
            "clock's error",
            format!(
                "rate within {} ppb, each reading within {} ns",
                grouped(calibration.rate_error_ppb),
                grouped(calibration.bracket_ns)
            ),
        ),
        ("counter", format!("{:.6} MHz", clock.frequency_hz / 1e6)),
        ("memory", memory.to_owned()),
        ("CPU wake-up latency", latency.unwrap_or_default()),
        ("beside", manifest.load.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("room for records", grouped(manifest.records_capacity)),
        ("seed", manifest.seed.to_string()),
    ]
}

fn host_facts(host: &Host) -> Vec<(&'static str, String)> {
    let virtual_machine = match (host.virtual_machine.present, &host.virtual_machine.kind) {
        (Some(true), Some(kind)) => kind.clone(),
        (Some(true), None) => "yes".to_owned(),
        (Some(false), _) => "no".to_owned(),
        (None, _) => String::new(),
    };
    let throttling = match (host.scheduler.rt_runtime_us, host.scheduler.rt_period_us) {
        (Some(-1), _) => "off".to_owned(),
        (Some(runtime), Some(period)) => format!("{runtime} us in every {period} us"),
        _ => String::new(),
    };
    let cpus = |set: &Option<hourglass_documents::CpuSet>| {
        set.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let governors: Vec<&str> =
        host.frequency.policies.iter().filter_map(|policy| policy.governor.as_deref()).collect();
    vec![
        ("kernel", format!("{} {}", host.kernel, host.kernel_build).trim().to_owned()),
        ("preemption", host.preemption.clone().unwrap_or_default()),
        ("preemption mode", host.preemption_mode.clone().unwrap_or_default()),
        ("tick", host.tick_hz.map(|hz| format!("{hz} Hz")).unwrap_or_default()),
        ("boot options", host.boot_options.join(" ")),
        ("processor", host.cpu.model.clone().unwrap_or_default()),
        ("CPUs online", cpus(&host.cpu.online)),
        ("CPUs isolated", cpus(&host.cpu.isolated)),
        ("CPUs without tick", cpus(&host.cpu.nohz_full)),
        ("frequency governors", governors.join(", ")),
        ("real-time throttling", throttling),
        ("virtual machine", virtual_machine),
        ("container", host.container.as_ref().map(|c| c.kind.clone()).unwrap_or_default()),
    ]
}
