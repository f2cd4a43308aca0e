//! Progress that a C program tells, as `hourglass reserve` reads it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Link, bench, compile, compilers, package};
use hourglass_reserve::progress::{ProgressPage, ProgressSource, VARIABLE, WordProgress};

#[test]
fn what_c_tells_is_read() {
    let bench = bench();
    for compiler in compilers("c") {
        let source = package().join("tests/programs/progress.c");
        let program = compile(compiler, bench.path(), &source, &["-std=c11", "-O2"], Link::Shared);
        let page = ProgressPage::create().unwrap();
        let mut word = WordProgress::new(ProgressPage::open(&page.path()).unwrap());
        word.begin(1_000);
        let mut running = Command::new(&program)
            .env(VARIABLE, page.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "told\n");
        assert_eq!(word.done_ns(), 250, "30 of 120");
        drop(running.stdin.take());
        assert!(running.wait().unwrap().success());
        assert_eq!(word.done_ns(), 1_000);
        word.begin(1_000);
        assert_eq!((word.done_ns(), word.errors().backwards), (0, 0));
    }
}
