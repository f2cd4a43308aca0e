//! A kernel that grants time-slice extensions (`CONFIG_RSEQ_SLICE_EXTENSION`, Linux 7.0), an option that Debian leaves
//! out: a sleeper enables one, and its sleeps are on time. How many preemptions that spares cannot be measured here:
//! an emulated interrupt takes longer than the microseconds that are asked for.

use super::debian::Package;
use super::expectation::Expectation::{ExitCode, Says, Shows};
use super::{Kernel, TestBed, step};

const REMEDY: &str = "take linux-source-7.3 of Debian's trixie-backports, `make tinyconfig`, add \
                      xtask/src/bed/slice.config by scripts/kconfig/merge_config.sh, `make olddefconfig bzImage`";

pub(super) const BED: TestBed = TestBed {
    name: "slice",
    purpose: "a kernel with time-slice extensions: sleepers enable them",
    kernel: Kernel::Given { variable: "HOURGLASS_BED_SLICE_KERNEL", remedy: REMEDY },
    libc: Some(Package { name: "libc6", suite: Some("trixie") }),
    tests: &["ordinary"],
    steps: &[
        step(
            "root",
            "for f in bin dev proc sys tmp; do \
                      mkdir -p /libc/$f && mount --rbind /$f /libc/$f || exit 1; done; uname -sr",
            &[ExitCode(0), Shows("Linux ")],
        ),
        step(
            "time-slice",
            "chroot /libc /bin/sh -c 'ordinary time_slice:: --nocapture --test-threads 1'",
            &[ExitCode(0), Shows("time-slice extension: enabled"), Says("1 passed; 0 failed")],
        ),
    ],
    ..TestBed::PLAIN
};
