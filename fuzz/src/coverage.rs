//! The targets under libFuzzer, which keeps what reaches code that nothing reached before.
//!
//! Owns: the choice of the target, its examples as files, and our changes among libFuzzer's. Must not: be built but by
//! `cargo xtask fuzz --coverage`, with the compiler's options for that.

#![no_main]

use std::cell::RefCell;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use hourglass_fuzz::{Body, Mutator, TARGETS, Target, target, worker};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static CHOSEN: LazyLock<&Target> = LazyLock::new(|| {
    let name = env::var("HOURGLASS_FUZZ_TARGET").unwrap_or_default();
    if name.is_empty() {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        std::process::exit(0);
    }
    target(&name).expect("a target of this name")
});

thread_local!(static BODY: RefCell<Option<Body>> = const { RefCell::new(None) });

/// The inputs of the corpus as files for libFuzzer, or the files that it chose into the corpus.
fn exchange_inputs() {
    if let Some(folder) = env::var_os("HOURGLASS_FUZZ_KEEP").map(PathBuf::from) {
        let kept = worker::keep(&CHOSEN, &folder).expect("files can be read and written");
        println!("{}: {kept} texts", CHOSEN.name);
        std::process::exit(0);
    }
    let Some(folder) = env::var_os("HOURGLASS_FUZZ_EXAMPLES").map(PathBuf::from) else { return };
    let inputs = worker::inputs(&CHOSEN).expect("the corpus can be read");
    for (number, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("example-{number}")), input).expect("the folder is there");
    }
}

fuzz_target!(init: exchange_inputs(), |bytes: &[u8]| {
    BODY.with_borrow_mut(|body| body.get_or_insert_with(|| (CHOSEN.start)())(bytes));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let changed = Mutator::new(u64::from(seed), CHOSEN.name).changed(&data[..size], &[]);
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
});
