//! Frequency and idle states. CPUs with equal settings share an entry.

use hourglass_documents::CpuSet;
use hourglass_documents::host::{
    FrequencyFacts, FrequencyPolicy, IdleFacts, IdlePolicy, IdleState,
};

use super::files::{CPUS, Files};

/// Bytes that `/dev/cpu_dma_latency` gives: a number in the machine's byte order.
const LATENCY_BYTES: usize = 4;

/// Idle states looked at per CPU; machines have up to ten (`CPUIDLE_STATE_MAX`).
const MOST_STATES: usize = 10;

pub(super) fn frequency(files: &Files) -> FrequencyFacts {
    let mut policies: Vec<FrequencyPolicy> = Vec::new();
    for cpu in files.cpu_folders().iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let file = |name: &str| format!("{folder}/{name}");
        let mut policy = FrequencyPolicy {
            cpus: CpuSet::default(),
            governor: files.line(&file("scaling_governor")),
            driver: files.line(&file("scaling_driver")),
            preference: files.line(&file("energy_performance_preference")),
            min_khz: files.number(&file("scaling_min_freq")),
            max_khz: files.number(&file("scaling_max_freq")),
        };
        if policy == FrequencyPolicy::default() {
            continue;
        }
        let known = policies.iter_mut().find(|known| {
            policy.cpus.clone_from(&known.cpus);
            **known == policy
        });
        match known {
            Some(known) => known.cpus.insert(cpu),
            None => {
                policy.cpus = CpuSet::from_iter([cpu]);
                policies.push(policy);
            }
        }
    }
    let without_turbo = files.flag(&format!("{CPUS}/intel_pstate/no_turbo"));
    FrequencyFacts {
        turbo: without_turbo
            .map(|off| !off)
            .or_else(|| files.flag(&format!("{CPUS}/cpufreq/boost"))),
        policies,
    }
}

pub(super) fn idle(files: &Files) -> IdleFacts {
    let mut policies: Vec<IdlePolicy> = Vec::new();
    for cpu in files.cpu_folders().iter() {
        let states = idle_states(files, cpu);
        if states.is_empty() {
            continue;
        }
        match policies.iter_mut().find(|policy| policy.states == states) {
            Some(policy) => policy.cpus.insert(cpu),
            None => policies.push(IdlePolicy { cpus: CpuSet::from_iter([cpu]), states }),
        }
    }
    IdleFacts {
        driver: files.line(&format!("{CPUS}/cpuidle/current_driver")),
        governor: files
            .line(&format!("{CPUS}/cpuidle/current_governor"))
            .or_else(|| files.line(&format!("{CPUS}/cpuidle/current_governor_ro"))),
        latency_limit_us: latency_limit_us(files),
        policies,
    }
}

/// The idle states of one CPU, shallow to deep.
fn idle_states(files: &Files, cpu: u32) -> Vec<IdleState> {
    (0..MOST_STATES)
        .map_while(|number| {
            let state = |name: &str| format!("{CPUS}/cpu{cpu}/cpuidle/state{number}/{name}");
            Some(IdleState {
                name: files.line(&state("name"))?,
                latency_us: files.number(&state("latency")),
                enabled: files.flag(&state("disable")) != Some(true),
            })
        })
        .collect()
}

/// The exit latency to which idle processors are held.
fn latency_limit_us(files: &Files) -> Option<u32> {
    let content = files.bytes("dev/cpu_dma_latency")?;
    let number: [u8; LATENCY_BYTES] = content.try_into().ok()?;
    u32::try_from(i32::from_ne_bytes(number)).ok()
}
