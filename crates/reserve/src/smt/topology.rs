//! Which CPUs share with a reserved one: hardware threads of its core, a cache, a way to memory.
//!
//! Owns: reading the kernel's topology files below a root, which tests replace by a tree of their own. Must not: decide
//! what to stop, or claim a sharing that no file shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hourglass_documents::cpus::CpuSet;
use thiserror::Error;

use crate::admission::facts::Files;

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
    files: Files,
}

impl Default for Topology {
    fn default() -> Topology {
        Topology::under("/")
    }
}

impl Topology {
    /// The topology from files below another folder than `/`.
    #[must_use]
    pub fn under(root: impl Into<PathBuf>) -> Topology {
        Topology { files: Files::under_root(&root.into()) }
    }

    /// The CPUs that are online; empty if the kernel does not tell.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        self.files.cpus("sys/devices/system/cpu/online").unwrap_or_default()
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
        Ok(SharingCpus { cpu, cpus: others, source: format!("/{source}") })
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

    fn siblings(&self, cpu: u32) -> Result<(CpuSet, String), TopologyError> {
        self.first(cpu, "a core", ["core_cpus_list", "thread_siblings_list"])
    }

    /// The highest level wins; of two caches of a level, such as those of code and data, the wider.
    fn last_cache(&self, cpu: u32) -> Result<(CpuSet, String), TopologyError> {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let cache = |name: String| {
            let level: u32 = self.files.number(&format!("{folder}/{name}/level"))?;
            let file = format!("{folder}/{name}/shared_cpu_list");
            Some((level, self.files.cpus(&file)?, file))
        };
        let caches = self.files.names(&folder).into_iter().filter_map(cache);
        match caches.max_by_key(|(level, cpus, _)| (*level, cpus.len())) {
            Some((_, cpus, file)) => Ok((cpus, file)),
            None => Err(TopologyError::Unknown { cpu, what: "a cache", file: absolute(&folder) }),
        }
    }

    fn memory(&self, cpu: u32) -> Result<(CpuSet, String), TopologyError> {
        let nodes = "sys/devices/system/node";
        let files = self.files.names(nodes).into_iter();
        let found = files.map(|name| format!("{nodes}/{name}/cpulist"));
        let found = found.filter_map(|file| self.list_with(cpu, file)).next();
        let packages = || self.first(cpu, "memory", ["package_cpus_list", "core_siblings_list"]);
        found.map_or_else(packages, Ok)
    }

    /// The first of these files of the CPU that is a list with it.
    fn first(
        &self,
        cpu: u32,
        what: &'static str,
        names: [&str; 2],
    ) -> Result<(CpuSet, String), TopologyError> {
        let files = names.map(|name| format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}"));
        let unknown = TopologyError::Unknown { cpu, what, file: absolute(&files[0]) };
        files.into_iter().find_map(|file| self.list_with(cpu, file)).ok_or(unknown)
    }

    fn list_with(&self, cpu: u32, file: String) -> Option<(CpuSet, String)> {
        let cpus = self.files.cpus(&file).filter(|cpus| cpus.contains(cpu))?;
        Some((cpus, file))
    }
}

fn absolute(file: &str) -> PathBuf {
    Path::new("/").join(file)
}

#[cfg(test)]
#[path = "topology/tests.rs"]
mod tests;
