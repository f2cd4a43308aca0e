//! Topologies of made-up machines, and the one at hand.

use tempfile::TempDir;

use super::*;

struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Machine {
        let machine = Machine(TempDir::new().unwrap());
        for (file, text) in files {
            let path = machine.0.path().join("sys/devices/system").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        machine
    }

    fn topology(&self) -> Topology {
        Topology::under(self.0.path())
    }

    fn shares(&self, cpu: u32, by: &str) -> Result<SharingCpus, TopologyError> {
        self.topology().shares(cpu, &by.parse().unwrap())
    }

    fn others(&self, cpu: u32, by: &str) -> String {
        self.shares(cpu, by).unwrap().cpus.to_string()
    }
}

/// Two packages of two cores of two threads; siblings are four apart, as on many servers.
const SERVER: &[(&str, &str)] = &[
    ("cpu/online", "0-7"),
    ("cpu/cpu1/topology/core_cpus_list", "1,5"),
    ("cpu/cpu1/cache/index0/level", "1"),
    ("cpu/cpu1/cache/index0/shared_cpu_list", "1,5"),
    ("cpu/cpu1/cache/index2/level", "2"),
    ("cpu/cpu1/cache/index2/shared_cpu_list", "1,5"),
    ("cpu/cpu1/cache/index3/level", "3"),
    ("cpu/cpu1/cache/index3/shared_cpu_list", "0-1,4-5"),
    ("cpu/cpu3/topology/thread_siblings_list", "3,7"),
    ("node/node0/cpulist", "0-1,4-5"),
    ("node/node1/cpulist", "2-3,6-7"),
    ("node/possible", "0-1"),
];

#[test]
fn a_server_shares_cores_caches_and_memory() {
    let server = Machine::new(SERVER);
    assert_eq!(server.others(1, "siblings"), "5");
    // Kernels before 5.0 have the older name only.
    assert_eq!(server.others(3, "siblings"), "7");
    assert_eq!(server.others(1, "llc"), "0,4-5");
    assert_eq!(server.others(3, "membw"), "2,6-7");
    let source = server.shares(1, "llc").unwrap().source;
    assert_eq!(source, "/sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list");
    assert_eq!(server.topology().core(1).to_string(), "1,5");
    assert_eq!(server.topology().core(2).to_string(), "2");
}

#[test]
fn siblings_that_are_offline_do_not_count() {
    let files = [("cpu/online", "0-2"), ("cpu/cpu0/topology/core_cpus_list", "0,3")];
    let machine = Machine::new(&files);
    let shares = machine.shares(0, "siblings").unwrap();
    assert!(!shares.is_shared(), "{shares:?}");
    let asked = machine.shares(3, "siblings").unwrap_err();
    assert_eq!(asked.to_string(), "CPU 3 is not online; online are 0-2");
}

/// A virtual machine that tells of no cache and no node.
#[test]
fn what_the_kernel_does_not_tell_is_asked_for() {
    let files = [("cpu/online", "0-1"), ("cpu/cpu0/topology/package_cpus_list", "0-1")];
    let machine = Machine::new(&files);
    assert_eq!(machine.others(0, "membw"), "1");
    let unknown = machine.shares(0, "llc").unwrap_err().to_string();
    assert!(unknown.contains("cpu0/cache") && unknown.contains("name them"), "{unknown}");
    assert!(matches!(machine.shares(0, "siblings"), Err(TopologyError::Unknown { .. })));
}

#[test]
fn named_cpus_are_checked() {
    let machine = Machine::new(&[("cpu/online", "0-3")]);
    let shares = machine.shares(0, "2-3").unwrap();
    assert_eq!(
        (shares.cpus.to_string().as_str(), shares.source.as_str()),
        ("2-3", "named by the user")
    );
    assert_eq!(machine.shares(0, "0-1").unwrap_err(), TopologyError::Itself(0));
    assert!(matches!(machine.shares(0, "7"), Err(TopologyError::Offline { cpu: 7, .. })));
}

#[test]
fn words_are_read_as_they_are_written() {
    for word in ["siblings", "llc", "membw", "1,3-4"] {
        assert_eq!(word.parse::<SharingLevel>().unwrap().to_string(), word);
    }
    let wrong = "l2".parse::<SharingLevel>().unwrap_err().to_string();
    assert!(wrong.starts_with("'l2' is neither siblings"), "{wrong}");
}

/// Whatever this machine is, its own files are read without contradiction.
#[test]
fn this_machine() {
    let topology = Topology::default();
    for cpu in topology.online().iter() {
        let core = topology.core(cpu);
        assert!(core.contains(cpu));
        for other in core.iter().filter(|other| topology.online().contains(*other)) {
            assert_eq!(topology.core(other), core);
        }
    }
}
