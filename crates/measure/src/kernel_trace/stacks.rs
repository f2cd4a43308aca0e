//! Stacks of the kernel at switches of the run's threads.
//!
//! Owns: which switches have one, reading it out of the ring, its functions' names. Must not: say which of them matter.
//!
//! A trigger of the instance (`stacktrace`, with a filter) has the kernel walk the stack of the thread that leaves the
//! CPU: where it is a thread of the run that does not sleep, and where another thread gives the CPU to one of the run.
//! A thread that sleeps, and a CPU that was idle, tell nothing and cost nothing. So a stack is walked once or twice in
//! each gap that is a switch; each takes some microseconds of that gap.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use hourglass_sys::tracefs::{Field, Instance, TraceFileError, Tracefs};

/// A filter names no more threads than this: the kernel takes about a page of text.
const MOST_THREADS: usize = 32;
const MOST_DIFFERENT: usize = 1 << 14;
const MOST: usize = 1 << 20;
/// A sleep that a signal may end, in `prev_state`.
const SLEEPS: u32 = 1;

#[derive(Clone, Copy, Debug)]
struct Shape {
    id: u16,
    pid: Field,
    callers: Field,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackSample {
    pub(super) time: u64,
    pub(super) cpu: u32,
    pub(super) tid: u32,
    /// Which, by [`Stacks::names`].
    pub(super) stack: u32,
}

#[derive(Debug, Default)]
pub(super) struct Stacks {
    shape: Option<Shape>,
    known: HashMap<Box<[u64]>, u32>,
    pub(super) seen: Vec<StackSample>,
}

impl Stacks {
    pub(super) fn of(tracefs: &Tracefs) -> Stacks {
        let shape = tracefs.format("ftrace", "kernel_stack").and_then(|format| {
            let pid = format.field("common_pid")?;
            Some(Shape { id: format.id, pid, callers: format.field("caller")? })
        });
        Stacks { shape, ..Stacks::default() }
    }

    pub(super) fn take(&mut self, id: u64, time: u64, cpu: u32, data: &[u8]) {
        let Some(shape) = self.shape.filter(|shape| u64::from(shape.id) == id) else { return };
        let Some(tid) = shape.pid.read(data) else { return };
        let words = shape.callers.rest(data).unwrap_or_default().chunks_exact(size_of::<u64>());
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
        // The room behind the last caller holds nothing.
        let callers: Box<[u64]> =
            words.filter_map(word).take_while(|at| *at != 0 && *at != u64::MAX).collect();
        let next = self.known.len();
        if callers.is_empty() || self.seen.len() >= MOST {
            return;
        }
        let stack = match self.known.get(&callers) {
            Some(known) => *known,
            None if next >= MOST_DIFFERENT => return,
            None => {
                let number = next as u32;
                self.known.insert(callers, number);
                number
            }
        };
        self.seen.push(StackSample { time, cpu, tid: tid as u32, stack });
    }

    /// The functions of each stack, the innermost first. Empty where the kernel hides its addresses.
    pub(super) fn names(&self) -> BTreeMap<u32, Vec<String>> {
        if self.known.is_empty() {
            return BTreeMap::new();
        }
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let symbols = symbols(&text);
        let named = |callers: &[u64]| -> Vec<String> {
            let names = callers.iter().filter_map(|at| name_of(*at, &symbols));
            names.skip_while(|name| is_of_tracing(name)).map(str::to_owned).collect()
        };
        let all = self.known.iter().map(|(callers, number)| (*number, named(callers)));
        all.filter(|(_, names)| !names.is_empty()).collect()
    }
}

/// Has the kernel walk the stacks at switches of these threads.
///
/// # Errors
/// The kernel has no such trigger.
pub(super) fn want(instance: &Instance, tids: &[u32]) -> Result<(), TraceFileError> {
    match filter(tids) {
        Some(filter) => {
            instance.trigger("sched", "sched_switch", &format!("stacktrace if {filter}"))
        }
        None => Ok(()),
    }
}

fn filter(tids: &[u32]) -> Option<String> {
    let of = |tid: &u32| {
        format!(
            "(prev_pid == {tid} && prev_state != {SLEEPS}) || (next_pid == {tid} && prev_pid != 0)"
        )
    };
    let all: Vec<String> = tids.iter().filter(|tid| **tid > 0).take(MOST_THREADS).map(of).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

/// The functions of the kernel by their addresses. A kernel that hides them gives 0 for all.
fn symbols(text: &str) -> Vec<(u64, &str)> {
    let mut all: Vec<(u64, &str)> = text.lines().filter_map(parse).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Whether a function is not of the switch, but of what records it.
fn is_of_tracing(name: &str) -> bool {
    ["trace_event_", "__traceiter_", "perf_trace_"].iter().any(|start| name.starts_with(start))
}

/// `ffffffff81000000 T _stext`
fn parse(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (at, kind, name) = (words.next()?, words.next()?, words.next()?);
    let at = u64::from_str_radix(at, 16).ok().filter(|at| *at > 0)?;
    matches!(kind, "t" | "T" | "w" | "W").then_some((at, name))
}

/// The function that the code at `at` belongs to; `at` is behind a call, which may be a function's last.
fn name_of<'a>(at: u64, symbols: &[(u64, &'a str)]) -> Option<&'a str> {
    let behind = symbols.partition_point(|(start, _)| *start < at);
    symbols.get(behind.checked_sub(1)?).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use hourglass_sys::tracefs::Format;

    use super::*;

    const FORMAT: &str = "name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[];\toffset:16;\tsize:0;\tsigned:0;\n";

    fn entry(pid: u32, callers: &[u64]) -> Vec<u8> {
        let mut data = vec![4, 0, 0, 0];
        data.extend(pid.to_ne_bytes());
        data.extend((callers.len() as u32).to_ne_bytes());
        data.extend([0; 4]);
        callers.iter().for_each(|at| data.extend(at.to_ne_bytes()));
        data
    }

    /// The format of Linux 6.18; equal stacks are kept once.
    #[test]
    fn stacks_are_read_out_of_the_ring() {
        let format = Format::parse(FORMAT).unwrap();
        let shape = Shape {
            id: format.id,
            pid: format.field("common_pid").unwrap(),
            callers: format.field("caller").unwrap(),
        };
        let mut stacks = Stacks { shape: Some(shape), ..Stacks::default() };
        stacks.take(4, 10, 1, &entry(70, &[100, 200, u64::MAX, 7]));
        stacks.take(4, 20, 1, &entry(812, &[300]));
        stacks.take(4, 30, 0, &entry(71, &[100, 200]));
        stacks.take(5, 40, 0, &entry(71, &[100, 200]));
        stacks.take(4, 50, 0, &entry(71, &[])[..12]);
        let seen = |time, cpu, tid, stack| StackSample { time, cpu, tid, stack };
        assert_eq!(stacks.seen, [seen(10, 1, 70, 0), seen(20, 1, 812, 1), seen(30, 0, 71, 0)]);
        assert_eq!(stacks.known.len(), 2);
    }

    #[test]
    fn functions_are_found_by_their_addresses() {
        let text = "0000000000001000 T first\n0000000000002000 t second\n0000000000001800 d data\n\
                    0000000000003000 T third\t[module]\n";
        let symbols = symbols(text);
        let names = [0x1000, 0x1001, 0x2000, 0x2001, 0x9000].map(|at| name_of(at, &symbols));
        assert_eq!(names, [None, Some("first"), Some("first"), Some("second"), Some("third")]);
        assert!(super::symbols("0000000000000000 T hidden\n").is_empty());
    }

    #[test]
    fn a_filter_names_no_more_threads_than_the_kernel_takes() {
        assert_eq!(filter(&[]), None);
        assert_eq!(filter(&[0]), None);
        let one = "(prev_pid == 7 && prev_state != 1) || (next_pid == 7 && prev_pid != 0)";
        assert_eq!(filter(&[7]).as_deref(), Some(one));
        let all: Vec<u32> = (4_000_000..4_000_200).collect();
        assert!(filter(&all).unwrap().len() < 4_000);
    }
}
