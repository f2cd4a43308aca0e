//! Which CPUs share with a reserved one: hardware threads of its core, a cache, a way to memory.
//!
//! Owns: reading the kernel's topology files below a root, which tests replace by a tree of their own. Must not: decide
//! what to stop, or claim a sharing that no file shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hourglass_documents::cpus::CpuSet;
use thiserror::Error;

/// The resource that CPUs must have in common with the reserved one to count as sharing with it.
///
/// The paper's is the first (Inoue et al., section 3.1); the others widen its idea to caches and
/// memory bandwidth, where neighbours slow each other down as well, by less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharingLevel {
    /// The hardware threads of its core.
    Siblings,
    /// The largest cache that more than one CPU can have.
    Llc,
    /// The way to memory: its NUMA node, or its package where the kernel knows no nodes.
    Membw,
    /// These, whatever the kernel says.
    Cpus(CpuSet),
}

/// A word that is no kind of interference.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{0}' is neither siblings, llc nor membw, nor a list of CPUs such as 1 or 2-3")]
pub struct ParseInterferenceError(String);

impl FromStr for SharingLevel {
    type Err = ParseInterferenceError;

    fn from_str(text: &str) -> Result<SharingLevel, ParseInterferenceError> {
        match text {
            "siblings" => Ok(SharingLevel::Siblings),
            "llc" => Ok(SharingLevel::Llc),
            "membw" => Ok(SharingLevel::Membw),
            list => match list.parse() {
                Ok(cpus) => Ok(SharingLevel::Cpus(cpus)),
                Err(_) => Err(ParseInterferenceError(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for SharingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharingLevel::Siblings => f.write_str("siblings"),
            SharingLevel::Llc => f.write_str("llc"),
            SharingLevel::Membw => f.write_str("membw"),
            SharingLevel::Cpus(cpus) => cpus.fmt(f),
        }
    }
}

/// The CPUs that share with a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingCpus {
    /// The reserved CPU.
    pub cpu: u32,
    /// The other CPUs that share, online ones only; empty where no CPU shares, and then nothing is protected.
    pub cpus: CpuSet,
    /// The source: a file of the kernel, or that the user named them.
    pub source: String,
}

impl SharingCpus {
    /// Whether any CPU shares.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !self.cpus.is_empty()
    }
}

/// Why it is not known who shares with a CPU.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TopologyError {
    /// The CPU is not there, or offline.
    #[error("CPU {cpu} is not online; online are {online}")]
    Offline {
        /// The CPU asked for.
        cpu: u32,
        /// Those there are.
        online: CpuSet,
    },
    /// A named CPU is the reserved one.
    #[error("CPU {0} is the reserved one; name only CPUs that share with it")]
    Itself(u32),
    /// The kernel does not tell.
    #[error("{} does not say which CPUs share {what} with CPU {cpu}; name them as a list of CPUs", file.display())]
    Unknown {
        /// The CPU asked for.
        cpu: u32,
        /// The shared resource.
        what: &'static str,
        /// The file that is missing or not a list.
        file: PathBuf,
    },
}

/// The kernel's description of the processors.
#[derive(Clone, Debug)]
pub struct Topology {
    root: PathBuf,
}

impl Default for Topology {
    fn default() -> Topology {
        Topology { root: PathBuf::from("/") }
    }
}

impl Topology {
    /// The topology from files below another folder than `/`.
    #[must_use]
    pub fn under(root: impl Into<PathBuf>) -> Topology {
        Topology { root: root.into() }
    }

    /// The CPUs that are online; empty if the kernel does not tell.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        self.list("sys/devices/system/cpu/online").unwrap_or_default()
    }

    /// The hardware threads of the core of `cpu`, itself among them; alone where nothing is known.
    #[must_use]
    pub fn core(&self, cpu: u32) -> CpuSet {
        let found = self.siblings(cpu).map(|(cpus, _)| cpus).unwrap_or_default();
        found.union(&[cpu].into_iter().collect())
    }

    /// The CPUs that share with `cpu` in the way of `by`.
    ///
    /// # Errors
    /// See [`TopologyError`]. A CPU that is alone is no error: [`SharingCpus::cpus`] is empty.
    pub fn shares(&self, cpu: u32, by: &SharingLevel) -> Result<SharingCpus, TopologyError> {
        let online = self.online();
        if !online.contains(cpu) {
            return Err(TopologyError::Offline { cpu, online });
        }
        let (found, source) = match by {
            SharingLevel::Siblings => self.siblings(cpu)?,
            SharingLevel::Llc => self.last_cache(cpu)?,
            SharingLevel::Membw => self.memory(cpu)?,
            SharingLevel::Cpus(named) => return self.named(cpu, named, online),
        };
        let others = found.intersection(&online).difference(&[cpu].into_iter().collect());
        Ok(SharingCpus { cpu, cpus: others, source: format!("/{}", source.display()) })
    }

    fn named(
        &self,
        cpu: u32,
        named: &CpuSet,
        online: CpuSet,
    ) -> Result<SharingCpus, TopologyError> {
        if named.contains(cpu) {
            return Err(TopologyError::Itself(cpu));
        }
        match named.difference(&online).iter().next() {
            Some(cpu) => Err(TopologyError::Offline { cpu, online }),
            None => {
                Ok(SharingCpus { cpu, cpus: named.clone(), source: "named by the user".to_owned() })
            }
        }
    }

    fn siblings(&self, cpu: u32) -> Result<(CpuSet, PathBuf), TopologyError> {
        let folder = cpu_folder(cpu).join("topology");
        self.first(
            cpu,
            "a core",
            [folder.join("core_cpus_list"), folder.join("thread_siblings_list")],
        )
    }

    /// The highest level wins; of two caches of a level, such as those of code and data, the wider.
    fn last_cache(&self, cpu: u32) -> Result<(CpuSet, PathBuf), TopologyError> {
        let folder = cpu_folder(cpu).join("cache");
        let caches = std::fs::read_dir(self.root.join(&folder));
        let mut best: Option<(u32, CpuSet, PathBuf)> = None;
        for entry in caches.into_iter().flatten().flatten() {
            let cache = folder.join(entry.file_name());
            let file = cache.join("shared_cpu_list");
            let level = self.text(&cache.join("level")).and_then(|text| text.parse().ok());
            let (Some(level), Some(cpus)) = (level, self.list(&file)) else { continue };
            if best.as_ref().is_none_or(|(l, c, _)| (level, cpus.len()) > (*l, c.len())) {
                best = Some((level, cpus, file));
            }
        }
        match best {
            Some((_, cpus, file)) => Ok((cpus, file)),
            None => Err(TopologyError::Unknown { cpu, what: "a cache", file: absolute(&folder) }),
        }
    }

    fn memory(&self, cpu: u32) -> Result<(CpuSet, PathBuf), TopologyError> {
        let nodes = Path::new("sys/devices/system/node");
        let folders = std::fs::read_dir(self.root.join(nodes));
        for entry in folders.into_iter().flatten().flatten() {
            let file = nodes.join(entry.file_name()).join("cpulist");
            match self.list(&file) {
                Some(cpus) if cpus.contains(cpu) => return Ok((cpus, file)),
                _ => {}
            }
        }
        let folder = cpu_folder(cpu).join("topology");
        let files = [folder.join("package_cpus_list"), folder.join("core_siblings_list")];
        self.first(cpu, "memory", files)
    }

    /// The first of `files` that is a list with `cpu` in it.
    fn first(
        &self,
        cpu: u32,
        what: &'static str,
        files: [PathBuf; 2],
    ) -> Result<(CpuSet, PathBuf), TopologyError> {
        let unknown = TopologyError::Unknown { cpu, what, file: absolute(&files[0]) };
        for file in files {
            match self.list(&file) {
                Some(cpus) if cpus.contains(cpu) => return Ok((cpus, file)),
                _ => {}
            }
        }
        Err(unknown)
    }

    fn list(&self, file: impl AsRef<Path>) -> Option<CpuSet> {
        self.text(file.as_ref())?.parse().ok()
    }

    fn text(&self, file: &Path) -> Option<String> {
        Some(std::fs::read_to_string(self.root.join(file)).ok()?.trim().to_owned())
    }
}

fn cpu_folder(cpu: u32) -> PathBuf {
    PathBuf::from(format!("sys/devices/system/cpu/cpu{cpu}"))
}

fn absolute(file: &Path) -> PathBuf {
    Path::new("/").join(file)
}

#[cfg(test)]
#[path = "topology/tests.rs"]
mod tests;
