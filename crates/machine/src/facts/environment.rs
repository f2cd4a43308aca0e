//! What is below the kernel and around the process: hypervisor and container, by their signs.

use hourglass_documents::host::{Container, VirtualMachine};

use super::cpu::all_flags;
use super::files::{Files, clean};

/// Words in a clock source's name or in the firmware's names, and the hypervisor they stand for.
/// The clock sources come first: they are the hypervisor's own word.
const HYPERVISORS: [(&str, &str); 12] = [
    ("kvm-clock", "kvm"),
    ("hyperv", "hyper-v"),
    ("xen", "xen"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("virtual machine", "hyper-v"),
    ("parallels", "parallels"),
    ("bhyve", "bhyve"),
    ("kvm", "kvm"),
    ("qemu", "qemu"),
    ("bochs", "qemu"),
];

/// Words in the path of a control group or of a root file system, and the container they stand
/// for. Orchestrators come first: their paths also name the runtime below them.
const CONTAINERS: [(&str, &str); 9] = [
    ("kubepods", "kubernetes"),
    ("kubelet", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containers/storage", "podman"),
    ("lxc", "lxc"),
    ("machine.slice", "systemd-nspawn"),
    ("containerd", "unknown"),
    ("garden", "unknown"),
];

/// Files that docker puts into every container by a mount of their own.
const DOCKER_BINDS: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// The hypervisor below, if there is one.
pub(super) fn virtual_machine(files: &Files) -> VirtualMachine {
    let cpuinfo = files.text("proc/cpuinfo").unwrap_or_default();
    let vendor = files.line("sys/class/dmi/id/sys_vendor");
    let product = files.line("sys/class/dmi/id/product_name");
    let sources = files
        .line("sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    let hypervisor = files
        .line("sys/hypervisor/type")
        .or_else(|| files.line("proc/device-tree/hypervisor/compatible"));

    let signs = format!(
        "{} {sources} {} {}",
        hypervisor.as_deref().unwrap_or_default(),
        vendor.as_deref().unwrap_or_default(),
        product.as_deref().unwrap_or_default()
    )
    .to_lowercase();
    let kind = HYPERVISORS
        .iter()
        .find(|(word, _)| signs.contains(word))
        .map(|(_, kind)| (*kind).to_owned());

    // x86 has a flag that every hypervisor sets; the names count only where there is no such flag
    // (a bare machine of a cloud bears the same names as its virtual ones).
    let x86_flags = all_flags(&cpuinfo).filter(|flags| has_word(flags, "tsc"));
    let present = match x86_flags {
        Some(flags) => Some(has_word(flags, "hypervisor") || hypervisor.is_some()),
        None => (hypervisor.is_some() || kind.is_some()).then_some(true),
    };
    VirtualMachine { kind: kind.filter(|_| present != Some(false)), present, vendor, product }
}

/// Whether `word` is one of `words`.
pub(super) fn has_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|each| each == word)
}

/// The container around the process, if there are signs of one.
pub(super) fn container(files: &Files) -> Option<Container> {
    let found = |kind: &str, evidence: String| Some(Container { kind: kind.to_owned(), evidence });
    let of_path = |path: &str| {
        let (_, kind) = CONTAINERS.iter().find(|(word, _)| path.contains(word))?;
        Some(*kind)
    };
    let groups = files.text("proc/self/cgroup").unwrap_or_default();
    for path in groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        if let Some(kind) = of_path(path) {
            return found(kind, format!("/proc/self/cgroup: {}", clean(path)?));
        }
    }
    if files.exists("var/run/secrets/kubernetes.io") {
        return found("kubernetes", "/var/run/secrets/kubernetes.io".to_owned());
    }
    if files.exists("run/.containerenv") {
        return found("podman", "/run/.containerenv".to_owned());
    }
    let mounts = files.text("proc/self/mountinfo").unwrap_or_default();
    let point = |line: &&str| line.split(' ').nth(4).unwrap_or_default().to_owned();
    let overlay = mounts.lines().find(|line| point(line) == "/" && line.contains(" - overlay "));
    // The file alone also lies on the disk of a virtual machine that was made from an image.
    let bound = mounts.lines().any(|line| DOCKER_BINDS.contains(&point(&line).as_str()));
    if files.exists(".dockerenv") && (bound || overlay.is_some() || mounts.is_empty()) {
        return found("docker", "/.dockerenv".to_owned());
    }
    if let Some(kind) = files.line("run/systemd/container") {
        return found(&kind, "/run/systemd/container".to_owned());
    }
    found(of_path(overlay?)?, "/proc/self/mountinfo: overlay on /".to_owned())
}
