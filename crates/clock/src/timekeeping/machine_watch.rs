//! What the kernel says of the machine while a counter serves: reasons to stop trusting it. Allocates
//! nothing: a reader may be who looks, in a signal handler.

use std::path::Path;

use super::event::ClockEventKind;
use super::inline_string::{self, InlineString};

/// The kernel's clock source.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The CPUs that are online.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The hypervisor's account of the virtual machine's clock (Linux 6.13, `CONFIG_PTP_1588_CLOCK_VMCLOCK`).
const VMCLOCK: &str = "/dev/vmclock0";

/// The state of the machine at one time. What cannot be read is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MachineSnapshot {
    clocksource: Option<InlineString<48>>,
    /// As the kernel lists them; changes behind the first 256 bytes go unnoticed.
    online: Option<InlineString<256>>,
    disruptions: Option<u64>,
}

/// Compares the machine with what it was when a counter was adopted.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    adopted_under: Option<MachineSnapshot>,
    checked_ns: u64,
}

impl Watcher {
    pub(super) const NEW: Watcher = Watcher { adopted_under: None, checked_ns: 0 };

    /// What changed since the first look, if `every_ns` have passed since the last one. A few small
    /// files: about 30 us.
    pub(super) fn check_machine(
        &mut self,
        root: &Path,
        now_ns: u64,
        every_ns: u64,
    ) -> Option<ClockEventKind> {
        if now_ns.saturating_sub(self.checked_ns) < every_ns {
            return None;
        }
        self.checked_ns = now_ns;
        let now = MachineSnapshot::read(root);
        let Some(before) = &self.adopted_under else {
            self.adopted_under = Some(now);
            return None;
        };
        if let Some((from, to)) = changed(before.clocksource, now.clocksource) {
            return Some(ClockEventKind::KernelChangedSource { from, to });
        }
        if changed(before.disruptions, now.disruptions).is_some() {
            return Some(ClockEventKind::VmChanged);
        }
        let (from, to) = changed(before.online, now.online)?;
        Some(ClockEventKind::CpusChanged {
            from: InlineString::new(from.as_str()),
            to: InlineString::new(to.as_str()),
        })
    }
}

/// Both, if both are known and differ.
fn changed<T: Copy + PartialEq>(before: Option<T>, now: Option<T>) -> Option<(T, T)> {
    before.zip(now).filter(|(before, now)| before != now)
}

/// The kernel's clock source.
#[cfg(target_os = "linux")]
pub(super) fn kernel_clocksource(root: &Path) -> Option<InlineString<48>> {
    InlineString::read(root, CLOCKSOURCE)
}

impl MachineSnapshot {
    fn read(root: &Path) -> MachineSnapshot {
        MachineSnapshot {
            clocksource: InlineString::read(root, CLOCKSOURCE),
            online: InlineString::read(root, ONLINE),
            disruptions: disruption_marker(root),
        }
    }
}

/// The number of the last disruption of a virtual machine's clock (live migration), from `/dev/vmclock0` below `root`;
/// `None` without that device, and while the hypervisor writes.
///
/// The marker of `struct vmclock_abi` (linux/vmclock-abi.h): magic `VCLK` at 0, a sequence count at 12 that is odd while
/// the hypervisor writes, the marker at 16, little-endian.
#[must_use]
pub fn disruption_marker(root: &Path) -> Option<u64> {
    use std::io::Read;
    const MAGIC: u32 = 0x4b4c_4356;
    const LENGTH: usize = 24;
    let mut start = [0u8; LENGTH];
    inline_string::open(root, VMCLOCK)?.read_exact(&mut start).ok()?;
    let (head, marker) = start.split_last_chunk::<8>()?;
    let (magic, _) = head.split_first_chunk::<4>()?;
    let (_, sequence) = head.split_last_chunk::<4>()?;
    let settled = u32::from_le_bytes(*sequence) & 1 == 0;
    let whole = u32::from_le_bytes(*magic) == MAGIC && settled;
    whole.then(|| u64::from_le_bytes(*marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, contents: &[u8]) {
        let path = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    fn vmclock(sequence: u32, marker: u64) -> Vec<u8> {
        let mut bytes = b"VCLK".to_vec();
        bytes.extend([0; 8]);
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(marker.to_le_bytes());
        bytes.extend([0; 80]);
        bytes
    }

    #[test]
    fn what_changes_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, CLOCKSOURCE, b"tsc\n");
        put(root, ONLINE, b"0-1\n");
        put(root, VMCLOCK, &vmclock(2, 7));
        let mut watcher = Watcher::NEW;
        assert_eq!(watcher.check_machine(root, 5, 5), None);
        assert_eq!(watcher.check_machine(root, 10, 5), None);
        put(root, ONLINE, b"0\n");
        assert_eq!(watcher.check_machine(root, 12, 5), None, "looked 2 ns ago");
        let cpus = ClockEventKind::CpusChanged { from: "0-1".into(), to: "0".into() };
        assert_eq!(watcher.check_machine(root, 20, 5), Some(cpus));
        put(root, VMCLOCK, &vmclock(3, 8));
        assert_ne!(
            watcher.check_machine(root, 30, 5),
            Some(ClockEventKind::VmChanged),
            "being written"
        );
        put(root, VMCLOCK, &vmclock(4, 8));
        assert_eq!(watcher.check_machine(root, 40, 5), Some(ClockEventKind::VmChanged));
        put(root, CLOCKSOURCE, b"hpet\n");
        let source = ClockEventKind::KernelChangedSource { from: "tsc".into(), to: "hpet".into() };
        assert_eq!(watcher.check_machine(root, 50, 5), Some(source));
    }

    #[test]
    fn what_cannot_be_read_is_no_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::NEW;
        assert_eq!(watcher.check_machine(folder.path(), 5, 5), None);
        put(folder.path(), CLOCKSOURCE, b"tsc\n");
        put(folder.path(), VMCLOCK, b"VCLK");
        assert_eq!(watcher.check_machine(folder.path(), 10, 5), None);
    }
}
