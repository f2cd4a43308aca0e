//! Runs the targets, each in a process of its own, and says with which inputs something was wrong.
//!
//! Owns: processes, limits of time and memory, what is kept of a finding. Must not: change inputs.

#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use hourglass_fuzz::{TARGETS, Target, target, worker};

const HELP: &str = "\
Usage: hourglass-fuzz [--seconds N] [--seed N] [--folder PATH] [TARGET...]
       hourglass-fuzz --list
       hourglass-fuzz --try TARGET FILE

Tries each target (all, if none is named) for N seconds (10) with inputs changed at random, and keeps what was wrong in
PATH (target/fuzz).

Exit codes: 0 nothing found, 1 something found, 2 usage.
";

/// Memory that a worker may map, KiB. Reading takes at most 512 MiB (`runs::store`).
const MOST_MEMORY_KIB: u64 = 2 << 20;

/// CPU time for one input; beyond, it hangs.
const MOST_TIME: Duration = Duration::from_secs(5);

/// Time for one input, waits and a busy machine included.
const MOST_WAIT: Duration = Duration::from_secs(120);

/// A target that was wrong so often is left alone.
const MOST_FINDINGS: usize = 3;

struct FuzzArgs {
    time: Duration,
    seed: u64,
    folder: PathBuf,
    targets: Vec<&'static Target>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(text) => {
            eprintln!("hourglass-fuzz: {text}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(words: &[&str]) -> Result<ExitCode, String> {
    match words {
        ["--help" | "-h"] => print!("{HELP}"),
        ["--list"] => {
            TARGETS.iter().for_each(|target| println!("{:14} {}", target.name, target.purpose))
        }
        ["--try", name, file] => {
            let input = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            (known(name)?.start)()(&input);
            println!("{name}: nothing wrong with {file}");
        }
        ["--worker", name, seed, seconds, file] => {
            let time = Duration::from_secs(number(seconds)?);
            let done = worker::work(known(name)?, number(seed)?, time, Path::new(file));
            done.map_err(|error| error.to_string())?;
        }
        _ => return Ok(run(&wish(words)?)),
    }
    Ok(ExitCode::SUCCESS)
}

fn wish(mut words: &[&str]) -> Result<FuzzArgs, String> {
    let folder = PathBuf::from("target/fuzz");
    let mut wish = FuzzArgs { time: Duration::from_secs(10), seed: 1, folder, targets: Vec::new() };
    loop {
        words = match words {
            [] => break,
            ["--seconds", seconds, rest @ ..] => {
                wish.time = Duration::from_secs(number(seconds)?);
                rest
            }
            ["--seed", seed, rest @ ..] => {
                wish.seed = number(seed)?;
                rest
            }
            ["--folder", folder, rest @ ..] => {
                wish.folder = PathBuf::from(folder);
                rest
            }
            [name, rest @ ..] => {
                wish.targets.push(known(name)?);
                rest
            }
        };
    }
    if wish.targets.is_empty() {
        wish.targets = TARGETS.iter().collect();
    }
    Ok(wish)
}

fn known(name: &str) -> Result<&'static Target, String> {
    target(name).ok_or_else(|| format!("no target '{name}'; --list names them\n\n{HELP}"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no number\n\n{HELP}"))
}

fn run(wish: &FuzzArgs) -> ExitCode {
    if let Err(error) = fs::create_dir_all(&wish.folder) {
        eprintln!("hourglass-fuzz: {}: {error}", wish.folder.display());
        return ExitCode::from(2);
    }
    let rest = Mutex::new(wish.targets.iter());
    let found = Mutex::new(0);
    let next = || rest.lock().ok().and_then(|mut rest| rest.next().copied());
    let count = |more: usize| found.lock().map_or((), |mut found| *found += more);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while let Some(target) = next() {
                    count(try_target(wish, target));
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or(1);
    println!("{} targets, seed {}: {found} findings", wish.targets.len(), wish.seed);
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs workers of a target until its time is over; how often something was wrong.
fn try_target(wish: &FuzzArgs, target: &Target) -> usize {
    let begin = Instant::now();
    let (mut tried, mut found) = (0, 0);
    while found < MOST_FINDINGS {
        let left = wish.time.saturating_sub(begin.elapsed());
        if found > 0 && left < Duration::from_secs(1) {
            break;
        }
        let current = wish.folder.join(format!("{}.current", target.name));
        let seed = wish.seed.wrapping_add(found as u64);
        let ended = start(target, seed, left, &current).and_then(|child| follow(child, &current));
        tried += worker::current(&current).map_or(0, |(tried, _)| tried);
        match ended {
            Ok(None) => break,
            Ok(Some(why)) => {
                found += 1;
                tell(wish, target, seed, &current, &why);
            }
            Err(error) => {
                found += 1;
                println!("{}: cannot be run: {error}", target.name);
                break;
            }
        }
    }
    let _ = fs::remove_file(wish.folder.join(format!("{}.current", target.name)));
    let rate = tried as f64 / begin.elapsed().as_secs_f64().max(0.001);
    println!("{:14} {tried:9} inputs, {rate:8.0} a second, {found} findings", target.name);
    found
}

fn tell(wish: &FuzzArgs, target: &Target, seed: u64, current: &Path, why: &str) {
    let name = target.name;
    let kept = wish.folder.join(format!("{name}-{seed}.input"));
    let saved = worker::current(current).and_then(|(_, input)| fs::write(&kept, input));
    match saved {
        Ok(()) => println!(
            "{name}: {why} (seed {seed}); again: cargo run -p hourglass-fuzz -- --try {name} {}",
            kept.display()
        ),
        Err(error) => println!("{name}: {why} (seed {seed}); the input is lost: {error}"),
    }
}

fn start(target: &Target, seed: u64, time: Duration, current: &Path) -> io::Result<Child> {
    // The shell's `ulimit` is the one way to a limit of memory that needs no unsafe code.
    let script = format!("ulimit -v {MOST_MEMORY_KIB} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe()?);
    command.args(["--worker", target.name, &seed.to_string(), &time.as_secs().max(1).to_string()]);
    command.arg(current).stdin(Stdio::null()).spawn()
}

fn follow(mut child: Child, current: &Path) -> io::Result<Option<String>> {
    const LOOK: Duration = Duration::from_millis(200);
    let mut since = (u64::MAX, Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| format!("a worker ended with {status}")));
        }
        thread::sleep(LOOK);
        let tried = worker::current(current).map_or(0, |(tried, _)| tried);
        let used = cpu_time(child.id()).unwrap_or(Duration::ZERO);
        if tried != since.0 {
            since = (tried, Instant::now(), used);
        }
        if used.saturating_sub(since.2) > MOST_TIME || since.1.elapsed() > MOST_WAIT {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("an input takes more than {} s", MOST_TIME.as_secs())));
        }
    }
}

/// CPU time of a process, from `/proc/PID/stat` (proc_pid_stat(5)), in its hundredths.
fn cpu_time(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have blanks; user and system time are fields 14 and 15.
    let (_, behind) = text.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}
