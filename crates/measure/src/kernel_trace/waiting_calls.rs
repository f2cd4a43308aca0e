//! System calls in which the followed threads may wait: what their waits are for.
//!
//! Owns: which calls of which threads are recorded, and what one says. Must not: record those of other threads.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_sys::tracefs::{
    ABSOLUTE, CallFamily, Field, FutexWaiting, Instance, TraceFileError, waiting_calls,
};
use hourglass_trace::WaitCall;

pub(super) const SYSTEM: &str = "raw_syscalls";
pub(super) const EVENT: &str = "sys_enter";

/// Ranges of threads' numbers in the kernel's condition, which has room for a page.
const RANGES: usize = 64;

/// Where an entry of the event has the number of the call and its first two arguments.
#[derive(Clone, Debug)]
pub(super) struct CallDecoding {
    number: Field,
    arguments: [Field; 2],
    families: BTreeMap<u64, CallFamily>,
}

impl CallDecoding {
    /// `None` where the arguments are no numbers of 64 bits.
    pub(super) fn of(number: Field, arguments: Field) -> Option<CallDecoding> {
        let argument = |index| arguments.element(index, 8);
        let arguments = [argument(0)?, argument(1)?];
        Some(CallDecoding { number, arguments, families: waiting_calls().into_iter().collect() })
    }

    /// The call, and what it waits for; `None` for one that does not wait.
    pub(super) fn read(&self, entry: &[u8]) -> Option<(WaitCall, u64)> {
        let number = self.number.read(entry)?;
        let [first, second] = [self.arguments[0].read(entry)?, self.arguments[1].read(entry)?];
        Some(match self.families.get(&number)? {
            CallFamily::ClockNanosleep if second & ABSOLUTE != 0 => (WaitCall::SleepUntil, 0),
            CallFamily::ClockNanosleep | CallFamily::Nanosleep => (WaitCall::Sleep, 0),
            CallFamily::Futex => match FutexWaiting::of(second) {
                FutexWaiting::Wait => (WaitCall::Futex, first),
                FutexWaiting::Lock => (WaitCall::Lock, first),
                FutexWaiting::Never => return None,
            },
            CallFamily::FutexWait => (WaitCall::Futex, first),
            CallFamily::Descriptor => (WaitCall::Descriptor, first),
            CallFamily::Several => (WaitCall::Several, 0),
            CallFamily::Other => (WaitCall::Other, number),
        })
    }
}

/// Has the calls of these threads recorded, and of no others but those with numbers between.
///
/// # Errors
/// The kernel does not have the event, or refuses.
pub(super) fn want(instance: &Instance, tids: &BTreeSet<u32>) -> Result<(), TraceFileError> {
    instance.filter(SYSTEM, EVENT, &condition(tids))
}

fn condition(tids: &BTreeSet<u32>) -> String {
    let any = |parts: Vec<String>| parts.join(" || ");
    let of_thread = ranges(tids).into_iter().map(|(from, to)| match from == to {
        true => format!("common_pid == {from}"),
        false => format!("(common_pid >= {from} && common_pid <= {to})"),
    });
    let of_call = waiting_calls().into_iter().map(|(number, _)| format!("id == {number}"));
    format!("({}) && ({})", any(of_thread.collect()), any(of_call.collect()))
}

/// Ranges that hold these numbers, with the widest distances left out; of none that of no thread.
fn ranges(tids: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let all: Vec<u32> = tids.iter().copied().collect();
    let mut breaks: Vec<usize> = (1..all.len()).collect();
    breaks.sort_by_key(|at| std::cmp::Reverse(all[*at] - all[*at - 1]));
    breaks.truncate(RANGES - 1);
    breaks.sort_unstable();
    let starts = std::iter::once(0).chain(breaks.iter().copied());
    let ends = breaks.iter().copied().chain([all.len()]);
    let of =
        |(start, end): (usize, usize)| Some((*all.get(start)?, *all.get(end.checked_sub(1)?)?));
    let found: Vec<(u32, u32)> = starts.zip(ends).filter_map(of).collect();
    if found.is_empty() { vec![(0, 0)] } else { found }
}

#[cfg(test)]
mod tests {
    use hourglass_sys::tracefs::Format;

    use super::*;

    /// The kernel takes a page at most.
    #[test]
    fn the_condition_fits_into_a_page() {
        // Ranges take more room than single numbers.
        let pairs = (0..1_000).flat_map(|number| [4_000_000 + number * 7, 4_000_001 + number * 7]);
        let condition = condition(&pairs.collect());
        assert!(condition.len() < 4_096, "{}", condition.len());
        assert!(condition.starts_with("((common_pid >= 4000000 && common_pid <= 4000001) || "));
    }

    /// The form that Linux 6.18 gives.
    #[test]
    fn a_call_is_read_from_its_number_and_arguments() {
        let format = Format::parse(
            "ID: 443\nfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
             field:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
        );
        let format = format.unwrap();
        let [number, arguments] = ["id", "args"].map(|name| format.field(name).unwrap());
        let decoding = CallDecoding::of(number, arguments).unwrap();
        let read = |family: CallFamily, first: u64, second: u64| {
            let (number, _) = waiting_calls().into_iter().find(|(_, of)| *of == family).unwrap();
            let words = [0, number, first, second, 0, 0, 0, 0];
            decoding.read(&words.map(u64::to_ne_bytes).concat())
        };
        assert_eq!(read(CallFamily::ClockNanosleep, 1, 1), Some((WaitCall::SleepUntil, 0)));
        assert_eq!(read(CallFamily::ClockNanosleep, 1, 0), Some((WaitCall::Sleep, 0)));
        // FUTEX_WAIT and FUTEX_WAKE, both private.
        assert_eq!(read(CallFamily::Futex, 0x1000, 128), Some((WaitCall::Futex, 0x1000)));
        assert_eq!(read(CallFamily::Futex, 0x1000, 129), None);
        assert_eq!(read(CallFamily::Descriptor, 5, 0), Some((WaitCall::Descriptor, 5)));
        assert_eq!(decoding.read(&[0; 24]), None);
    }

    #[test]
    fn ranges_hold_each_thread_and_leave_out_the_widest_distances() {
        let two: BTreeSet<u32> = [5, 900].into();
        assert_eq!(ranges(&two), [(5, 5), (900, 900)]);
        let crowd: BTreeSet<u32> = (0..200).chain([9_000]).collect();
        let found = ranges(&crowd);
        assert_eq!((found.len(), found.last()), (RANGES, Some(&(9_000, 9_000))));
        assert!(crowd.iter().all(|tid| found.iter().any(|(from, to)| (from..=to).contains(&tid))));
        assert_eq!(ranges(&BTreeSet::new()), [(0, 0)]);
    }
}
