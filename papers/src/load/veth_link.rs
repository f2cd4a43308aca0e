//! Two network namespaces and the wire between them.
//!
//! Owns: the devices, their addresses, and which CPU does the receive processing. Must not: move data.
//! Nothing here needs to be undone: devices vanish with the namespaces, and these with their threads.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use hourglass_sys::netns::enter_own_network;

const RECEIVING: &str = "hg-in";
const SENDING: &str = "hg-out";

/// Addresses of the two ends, from the range that is set apart for benchmarks (RFC 2544).
pub(super) const RECEIVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// CPUs in a word of a mask in `/sys`.
const WORD: u32 = 32;

pub(super) fn enter() -> Result<(), String> {
    enter_own_network().map_err(|error| format!("a network namespace is refused: {error}"))
}

/// In the receiver's thread: lays the wire to the namespace of thread `sender`, and lets `cpu` process
/// what comes in.
///
/// # Errors
/// One line that says why not.
pub(super) fn lay(sender: u32, cpu: u32) -> Result<(), String> {
    let sender = sender.to_string();
    let end = ["link", "add", RECEIVING, "type", "veth"];
    ip(&[&end[..], &["peer", "name", SENDING, "netns", &sender]].concat())?;
    rise(RECEIVING, RECEIVER)?;
    // The kernel would process a packet on the CPU that sent it.
    let path = format!("/sys/class/net/{RECEIVING}/queues/rx-0/rps_cpus");
    fs::write(&path, mask(cpu)).map_err(|error| format!("{path}: {error}"))
}

pub(super) fn take_end() -> Result<(), String> {
    rise(SENDING, SENDER)
}

fn rise(device: &str, address: Ipv4Addr) -> Result<(), String> {
    ip(&["addr", "add", &format!("{address}/30"), "dev", device])?;
    ip(&["link", "set", device, "up"])
}

/// Runs iproute2's command, in the namespace of the calling thread.
fn ip(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("ip");
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("ip (of iproute2) cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {}", words.join(" "), said.lines().next().unwrap_or("it failed")))
}

/// A mask with one CPU in it: words of 32 CPUs in hexadecimal, the highest first.
fn mask(cpu: u32) -> String {
    let zeros = ",00000000".repeat((cpu / WORD) as usize);
    format!("{:x}{zeros}", 1u32 << (cpu % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_as_sysfs_has_them() {
        assert_eq!([mask(0), mask(5), mask(31)], ["1", "20", "80000000"]);
        assert_eq!([mask(32), mask(65)], ["1,00000000", "2,00000000,00000000"]);
    }
}
