//! Lines that change a machine, for the user who asks and the machine as it is: what follows a
//! `#` is for people, and a shell takes the whole line.

use std::fmt::Write;

use hourglass_documents::CpuSet;
use hourglass_documents::doctor::CpuSelection;
use hourglass_documents::tuning::BootLoader;

use super::input::DoctorInput;

/// A setting of the kernel that `command` changes; `command` is written with `sudo`.
pub(super) fn kernel(e: &DoctorInput, command: &str) -> String {
    if e.is_contained() { format!("on the container's host: {command}") } else { own(e, command) }
}

/// A command that concerns this process and its user; root needs no `sudo`.
pub(super) fn own(e: &DoctorInput, command: &str) -> String {
    if !e.is_root() {
        return command.to_owned();
    }
    // A shell does not redirect into several files.
    let tee = if command.contains('*') { "| tee /" } else { "> /" };
    command.replace("| sudo tee /", tee).replace("sudo ", "")
}

/// `into` for the end of `echo VALUE`.
fn into(e: &DoctorInput, file: &str) -> String {
    if e.is_root() && !e.is_contained() {
        format!("> {file}")
    } else {
        format!("| sudo tee {file}")
    }
}

pub(super) fn write(e: &DoctorInput, value: &str, file: &str) -> String {
    kernel(e, &format!("echo {value} {}", into(e, file)))
}

/// Writes `value` into every file that `pattern` matches; `pattern` may hold `$c`, the number of
/// one of `cpus`.
pub(super) fn write_each(e: &DoctorInput, value: &str, pattern: &str, cpus: &CpuSet) -> String {
    let write = format!("echo {value} {}", into(e, "$f"));
    kernel(e, &format!("for c in {}; do for f in {pattern}; do {write}; done; done", words(cpus)))
}

pub(super) fn sysctl(e: &DoctorInput, settings: &str) -> String {
    kernel(e, &format!("sudo sysctl {settings}"))
}

/// Adds `words` to the kernel's command line.
pub(super) fn boot(e: &DoctorInput, words: &str) -> String {
    const REBOOT: &str = " # then reboot";
    let grub = |update: &str| {
        let edit = format!("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
        format!("{edit} && sudo {update}{REBOOT}")
    };
    let append = |file: &str| format!("sudo sed -i '1s/$/ {words}/' {file}");
    if e.is_contained() {
        return format!(
            "on the container's host, add to the kernel's command line and reboot: {words}"
        );
    }
    let line = match e.tuning.boot_loader {
        Some(BootLoader::Grubby) => {
            format!("sudo grubby --update-kernel=ALL --args=\"{words}\"{REBOOT}")
        }
        Some(BootLoader::UpdateGrub) => grub("update-grub"),
        Some(BootLoader::Grub2Mkconfig) => grub("grub2-mkconfig -o /boot/grub2/grub.cfg"),
        Some(BootLoader::GrubMkconfig) => grub("grub-mkconfig -o /boot/grub/grub.cfg"),
        Some(BootLoader::Firmware) => append("/boot/firmware/cmdline.txt") + REBOOT,
        Some(BootLoader::BootFolder) => append("/boot/cmdline.txt") + REBOOT,
        Some(BootLoader::KernelInstall) => {
            let install = "sudo kernel-install add $(uname -r) /lib/modules/$(uname -r)/vmlinuz";
            format!("{} && {install}{REBOOT}", append("/etc/kernel/cmdline"))
        }
        None if e.is_guest() => {
            format!(
                "add to the kernel's command line (boot loader, or the host's definition of this \
                 guest) and reboot: {words}"
            )
        }
        None => format!("add to the kernel's command line (boot loader) and reboot: {words}"),
    };
    own(e, &line)
}

/// What is said where there is no CPU to which the rest of the system could go.
pub(super) fn no_room(e: &DoctorInput) -> String {
    match e.judged().1 {
        CpuSelection::Asked => {
            "name fewer CPUs with --cpus: one must be left to the rest of the system"
        }
        _ => "take a machine with a second CPU: on a single one nothing can be moved away",
    }
    .to_owned()
}

/// CPUs as the words of a shell's loop: `2 3`, or `$(seq 2 63)`.
pub(super) fn words(cpus: &CpuSet) -> String {
    /// A longer range is written as a sequence.
    const LONGEST_LIST: u32 = 4;
    let mut words = String::new();
    for range in cpus.to_string().split(',') {
        let blank = if words.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = match range.split_once('-').map(|(first, last)| (first.parse(), last.parse())) {
            Some((Ok(first), Ok(last))) if last - first < LONGEST_LIST => {
                let all: Vec<String> = (first..=last).map(|cpu: u32| cpu.to_string()).collect();
                write!(words, "{blank}{}", all.join(" "))
            }
            Some((Ok(first), Ok(last))) => write!(words, "{blank}$(seq {first} {last})"),
            _ => write!(words, "{blank}{range}"),
        };
    }
    words
}

/// CPUs as the kernel reads them in hexadecimal, 32 in each group: `c`, `ff,ffffffff`.
pub(super) fn mask(cpus: &CpuSet) -> String {
    const BITS: u32 = 32;
    let groups = cpus.iter().last().map_or(0, |last| last / BITS) + 1;
    let group = |number: u32| {
        let inside = cpus.iter().filter(|cpu| cpu / BITS == number);
        inside.fold(0_u32, |bits, cpu| bits | 1 << (cpu % BITS))
    };
    let mut mask = format!("{:x}", group(groups - 1));
    for number in (0..groups - 1).rev() {
        // Writing to a string cannot fail.
        let _ = write!(mask, ",{:08x}", group(number));
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_for_shell_and_kernel() {
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        assert_eq!(words(&cpus("1,3-5")), "1 3 4 5");
        assert_eq!(words(&cpus("0,2-63")), "0 $(seq 2 63)");
        assert_eq!(mask(&cpus("2-3")), "c");
        assert_eq!(mask(&cpus("0,31-33,64")), "1,00000003,80000001");
        assert_eq!(mask(&CpuSet::default()), "0");
    }
}
