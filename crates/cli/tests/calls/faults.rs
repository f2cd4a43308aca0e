//! Faults of system calls ([`hourglass_sys::call_faults`]): which are tried.

use std::fmt;

use hourglass_dice::Dice;
use hourglass_sys::call_faults::{BegunCall, CallFault, ERRORS, FIRST_OF_RUNTIME};

/// What `HOURGLASS_FAULTS` asks for: `all` of the faults, or of each `n` that follow one another the `k`-th (`k/n`),
/// where one after another takes too long. `None` for a sample.
fn asked_part() -> Option<(usize, usize)> {
    let asked = std::env::var("HOURGLASS_FAULTS").ok()?;
    if asked == "all" {
        return Some((1, 1));
    }
    let part = asked.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    assert!(
        part.is_some_and(|(k, n)| 1 <= k && k <= n),
        "HOURGLASS_FAULTS is `all` or k/n: {asked}"
    );
    part
}

/// `count` of these, by chance; or what is asked for.
pub(crate) fn sample<T>(dice: &mut Dice, mut from: Vec<T>, count: usize) -> Vec<T> {
    let possible = from.len();
    match asked_part() {
        Some((k, n)) => from = from.into_iter().skip(k - 1).step_by(n).collect(),
        None => {
            while from.len() > count {
                from.swap_remove(dice.below(from.len() as u64) as usize);
            }
        }
    }
    println!("{} of {possible} faults", from.len());
    from
}

/// A call that fails, as it is named in a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingCall {
    pub(crate) name: &'static str,
    pub(crate) number: i64,
    pub(crate) nth: usize,
    pub(crate) errno: i32,
}

impl FailingCall {
    pub(crate) fn fault(self) -> CallFault {
        let FailingCall { number, nth, errno, .. } = self;
        CallFault::Fails { number, nth, errno }
    }

    /// Whether it leaves the allocator without memory.
    pub(crate) fn is_of_memory(self) -> bool {
        self.name == "mmap"
    }
}

impl fmt::Display for FailingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{} number {}: {error}", self.name, self.nth)
    }
}

/// Each error of each call that a program made, once the loader has done its part.
pub(crate) fn of_calls(calls: &[BegunCall]) -> Vec<FailingCall> {
    let mut faults = Vec::new();
    // The first call of Rust's runtime.
    let loaded = calls.iter().position(|call| call.number == FIRST_OF_RUNTIME).unwrap_or(0);
    let (loading, _) = calls.split_at(loaded);
    for (number, name, errors) in ERRORS {
        let count =
            |calls: &[BegunCall]| calls.iter().filter(|call| call.number == *number).count();
        for nth in count(loading)..count(calls) {
            let failing = |errno: &i32| FailingCall { name, number: *number, nth, errno: *errno };
            faults.extend(errors.iter().map(failing));
        }
    }
    faults
}

/// Whether a program was ended by what no program can do anything about: the loader's files, memory for what Rust's
/// runtime or its allocator needs.
pub(crate) fn is_of_the_runtime(stderr: &str) -> bool {
    [
        "error while loading shared libraries",
        "stack_overflow.rs",
        "memory allocation of",
        "alternative stack",
    ]
    .into_iter()
    .any(|text| stderr.contains(text))
}
