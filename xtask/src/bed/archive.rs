//! The guest's first and only file system: a cpio archive in the kernel's `newc` format
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Step;
use super::expectation::{begin_marker, end_marker};
use crate::failure::StepFailure;

/// File types and rights, as in `stat(2)`.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// `/dev/console`: without it the guest's init would have no output.
const CONSOLE: (u32, u32) = (5, 1);

/// Bytes that are kept of each end of longer output: the guest's serial line is slow.
const OUTPUT_HALF: u32 = 128 << 10;

/// Writes the archive: the programs, each under its name, the libraries, each where the guest looks for it (and
/// where it is on this machine), and an init that runs the steps and ends QEMU.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn write(
    path: &Path,
    programs: &[(&str, &Path)],
    libraries: &BTreeMap<PathBuf, PathBuf>,
    steps: &[Step],
) -> Result<(), StepFailure> {
    let read = |path: &Path| fs::read(path).map_err(|e| StepFailure::file(path, &e));
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "tmp"] {
        archive.add(folder, FOLDER, (0, 0), &[]);
    }
    archive.add("dev/console", CHARACTER_DEVICE, CONSOLE, &[]);
    for (name, program) in programs {
        archive.add(&format!("bin/{name}"), PROGRAM, (0, 0), &read(program)?);
    }
    for folder in folders_of(libraries.keys()) {
        archive.add(&inside(folder), FOLDER, (0, 0), &[]);
    }
    for (place, library) in libraries {
        archive.add(&inside(place), PROGRAM, (0, 0), &read(library)?);
    }
    archive.add("init", PROGRAM, (0, 0), init(steps).as_bytes());
    archive.add("TRAILER!!!", 0, (0, 0), &[]);
    fs::write(path, archive.bytes).map_err(|e| StepFailure::file(path, &e))
}

/// Every folder on the way to a file, an outer one before those in it; none twice.
fn folders_of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<&'a Path> {
    let folders = files.flat_map(|file| file.ancestors().skip(1));
    folders.filter(|folder| folder.parent().is_some()).collect()
}

fn inside(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_owned()
}

fn init(steps: &[Step]) -> String {
    let mut script = "\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
cd /tmp
"
    .to_owned();
    for Step { name, command, .. } in steps {
        let (begin, end) = (begin_marker(name), end_marker(name));
        // Written to a file first, so that nothing goes over the serial line while hourglass
        // measures. The output's last line may lack its end.
        script += &format!(
            "echo '{begin}'\n\
             ( {command} ) >/tmp/.output 2>&1 </dev/null\n\
             code=$?\n\
             head -c {OUTPUT_HALF} /tmp/.output\n\
             tail -c +$(({OUTPUT_HALF}+1)) /tmp/.output | tail -c {OUTPUT_HALF}\n\
             printf '\\n{end}%d\\n' $code\n"
        );
    }
    // Waits until the console has all: what is still in its buffer is lost.
    script += "stty -F /dev/console sane\n";
    // QEMU ends on it (`-no-reboot`), even where the machine has slept meanwhile, and then does not power off.
    script += "reboot -f\n";
    script
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    /// Files so far, which serves as the inode number.
    files: usize,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.files += 1;
        let mode = u64::from(mode);
        let (major, minor) = (u64::from(device.0), u64::from(device.1));
        let name_size = name.len() as u64 + 1;
        let (inode, size) = (self.files as u64, content.len() as u64);
        // inode, mode, uid, gid, links, mtime, size, device of the file system (2), device (2),
        // name size, checksum (unused)
        let fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Names and contents begin at multiples of four bytes.
    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_header_name_and_padded_content() {
        let mut archive = Archive::default();
        archive.add("ab", PROGRAM, (0, 0), b"hello");
        // 110 bytes of header, 3 of name, padded to 116; 5 of content, padded to 124.
        assert_eq!(archive.bytes.len(), 124);
        assert_eq!(&archive.bytes[..14], b"07070100000001");
        assert_eq!(&archive.bytes[110..113], b"ab\0");
        assert_eq!(&archive.bytes[116..121], b"hello");
    }

    #[test]
    fn folders_come_before_what_is_in_them() {
        let files = ["/lib64/ld.so", "/lib/x86/libc.so", "/lib/x86/libm.so"].map(PathBuf::from);
        let folders: Vec<String> = folders_of(files.iter()).into_iter().map(inside).collect();
        assert_eq!(folders, ["lib", "lib/x86", "lib64"]);
    }

    #[test]
    fn init_marks_every_step_and_ends() {
        let steps = [Step { name: "clock", command: "hourglass clocks", expect: &[] }];
        let script = init(&steps);
        assert!(script.contains("echo 'BED-BEGIN clock'\n( hourglass clocks )"));
        assert!(script.contains("BED-END clock rc=%d"));
        assert!(script.ends_with("reboot -f\n"));
    }
}
