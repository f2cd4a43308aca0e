//! The commands of the paper, who is meant by an option, and what is refused.

use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;

use super::*;
use crate::lab::ThreadSpec;

const SEED: u64 = 42;

fn parsed(words: &[&str]) -> Result<ParsedCommand<RunArguments>, Stop> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let online: CpuSet = [0, 1].into_iter().collect();
    parse(&words, &HostDefaults { online: Some(online), seed: SEED })
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Reads a command as the paper prints it, without `hourglass` and line-wrapping backslashes.
fn run(line: &str) -> RunArguments {
    match parsed(&words(line)) {
        Ok(ParsedCommand::Run(run)) => *run,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> String {
    let stop = parsed(&words(line)).expect_err(line);
    assert_eq!(stop.exit_code(), std::process::ExitCode::from(2), "{line}");
    let [text] = stop.lines() else { panic!("{line}: {stop:?}") };
    assert!(!text.contains('\n'), "{text}");
    text.clone()
}

/// Workload, policy and timer, as they are written.
fn shown(thread: &ThreadSpec) -> [String; 3] {
    [thread.model.to_string(), thread.policy.to_string(), thread.wake.to_string()]
}

fn reservation(thread: &ThreadSpec) -> String {
    thread.reservation.map_or_else(String::new, |reservation| reservation.to_string())
}

mod the_papers_commands {
    use super::*;

    /// Section 3.1, Figure 3.
    #[test]
    fn three_priorities() {
        let run = run("-n 3 -d 5s -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH");
        assert_eq!(run.request.spec.duration, Span::from_secs(5));
        let threads = run.request.spec.threads;
        let policies: Vec<Policy> = threads.iter().map(|thread| thread.policy).collect();
        assert_eq!(policies, [Policy::Other(5), Policy::Other(0), Policy::Other(-5)]);
        assert!(threads.iter().all(|thread| thread.policy_is_named));
    }

    /// Section 5.1: both ways to measure the direct cost of a context switch.
    #[test]
    fn ten_threads_with_and_without_yielding() {
        for (line, workload) in [
            ("-d 60s -n 10 -a -p NORMAL -w CPU", "CPU"),
            ("-d 60s -n 10 -a -p NORMAL -w CPU_YIELD 0.9ms", "CPU_YIELD 900us"),
        ] {
            let run = run(line);
            assert_eq!(run.request.spec.duration, Span::from_secs(60));
            assert_eq!(run.request.spec.threads.len(), 10);
            for thread in &run.request.spec.threads {
                assert_eq!(shown(thread), [workload, "OTHER:0", "NATIVE"]);
            }
        }
    }

    /// Section 5.3.
    #[test]
    fn dispatch_latency() {
        let run = run("-d 6m -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC");
        assert_eq!(run.request.spec.duration, Span::from_secs(360));
        assert_eq!(shown(&run.request.spec.threads[0]), ["LAT 5.3ms", "FIFO:80", "RTC"]);
    }

    /// Section 5.4.
    #[test]
    fn deadlines_during_receive_processing() {
        let run = run("-d 20s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i RTC");
        assert_eq!(shown(&run.request.spec.threads[0]), ["PERIODIC 4ms 5ms", "FIFO:80", "RTC"]);
    }

    /// Section 5.5: three times two tasks, which differ in Task 1.
    #[test]
    fn two_tasks() {
        for (amount, timer) in [("17ms", "NATIVE"), ("17ms", "HR"), ("12ms", "NATIVE")] {
            let run = run(&format!(
                "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR \
                 -t 1 -p RTLOW -w PERIODIC {amount} 33ms -i {timer}"
            ));
            let RunSpec { duration, threads, .. } = run.request.spec;
            assert_eq!(duration, Span::from_secs(10), "Appendix A: default is 10s");
            let [first, second] = &threads[..] else { panic!("two threads") };
            assert_eq!(shown(first), ["PERIODIC 3ms 8ms", "FIFO:40", "HR"]);
            let workload = format!("PERIODIC {amount} 33ms");
            assert_eq!(shown(second), [workload.as_str(), "FIFO:20", timer]);
        }
    }

    /// Section 5.6: exactly the reservation that is needed, and a little more.
    #[test]
    fn reservations() {
        for (first, second) in [("3ms", "17ms"), ("3.1ms", "17.1ms")] {
            let run = run(&format!(
                "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh {first} 8ms \
                 -t 1 -w PERIODIC 17ms 33ms -rh {second} 33ms"
            ));
            let reserved: Vec<String> = run.request.spec.threads.iter().map(reservation).collect();
            let wanted = [format!("DEADLINE:{first}/8ms"), format!("DEADLINE:{second}/33ms")];
            assert_eq!(reserved, wanted);
        }
    }

    /// Appendix A: every option, and every workload.
    #[test]
    fn every_option_of_the_appendix() {
        let run =
            run("-n 2 -d 3m -c -e 1000 -a -p IDLE -rs 1ms 2ms -w CPU_SCAN 32 -i NATIVE -s 87.0us \
             -f 1020ms");
        assert_eq!(run.request.spec.duration, Span::from_secs(180));
        assert!(run.cycles && run.records);
        assert_eq!(run.request.spec.records, 1000);
        for thread in &run.request.spec.threads {
            assert_eq!((thread.policy, thread.policy_is_named), (Policy::Idle, true));
            assert_eq!(reservation(thread), "DEADLINE:1ms/2ms+");
            assert_eq!(thread.start, Span::from_micros(87));
            assert_eq!(thread.finish, Some(Span::from_millis(1020)));
        }
        let workloads = "CPU, CPU_SCAN 32, CPU_YIELD 1ms, CPU_SCAN_YIELD 32 1ms, PERIODIC 1ms 2ms, \
                         CPU_PERIODIC 10ms 50ms, LAT 5ms";
        for workload in workloads.split(", ") {
            let run = super::run(&format!("-n 1 -w {workload} -p NORMAL"));
            let shown = run.request.spec.threads[0].model.to_string();
            assert_eq!(shown.split(' ').next(), workload.split(' ').next());
        }
    }

    #[test]
    fn defaults_of_the_appendix() {
        let run = run("-n 1");
        let spec = &run.request.spec;
        assert_eq!((spec.duration, spec.records), (Span::from_secs(10), 300_000));
        assert_eq!(shown(&spec.threads[0]), ["CPU", "OTHER:0", "NATIVE"]);
        assert!(!run.records && !run.cycles);
    }
}

mod who_is_meant {
    use super::*;

    fn policies(line: &str) -> Vec<String> {
        run(line).request.spec.threads.iter().map(|thread| thread.policy.to_string()).collect()
    }

    #[test]
    fn all_before_the_first_t() {
        assert_eq!(policies("-n 2 -p LOW"), ["OTHER:5", "OTHER:5"]);
        assert_eq!(policies("-p LOW -t 1 -p HIGH -n 2"), ["OTHER:5", "OTHER:-5"]);
    }

    /// Appendix A: `-a` remains in effect until the next `-t`.
    #[test]
    fn a_until_the_next_t() {
        assert_eq!(
            policies("-n 3 -t 0 -p LOW -a -p HIGH -t 1 -p IDLE"),
            ["OTHER:-5", "IDLE", "OTHER:-5"]
        );
    }

    #[test]
    fn a_overwrites_only_what_is_given_after_it() {
        let run = run("-n 2 -t 0 -p LOW -w LAT 5ms -a -w CPU_YIELD 1ms");
        assert_eq!(shown(&run.request.spec.threads[0]), ["CPU_YIELD 1ms", "OTHER:5", "NATIVE"]);
        assert_eq!(shown(&run.request.spec.threads[1]), ["CPU_YIELD 1ms", "OTHER:0", "NATIVE"]);
    }

    #[test]
    fn the_last_one_counts() {
        assert_eq!(policies("-n 1 -p LOW -p HIGH"), ["OTHER:-5"]);
        assert_eq!(run("-n 1 -n 3 -d 1s -d 2s").request.spec.threads.len(), 3);
        assert_eq!(run("-n 1 -d 1s -d 2s").request.spec.duration, Span::from_secs(2));
        assert_eq!(
            reservation(&run("-n 1 -rs 1ms 2ms -rh 3ms 8ms").request.spec.threads[0]),
            "DEADLINE:3ms/8ms"
        );
    }

    #[test]
    fn n_may_stand_anywhere() {
        assert_eq!(policies("-t 1 -p LOW -d 5s -n 2"), ["OTHER:0", "OTHER:5"]);
    }

    #[test]
    fn names_and_explicit_policies_are_distinguished() {
        for (line, policy, is_named) in [
            ("-n 1 -p RTHIGH", Policy::Fifo(80), true),
            ("-n 1 -p FIFO:80", Policy::Fifo(80), false),
            ("-n 1 --policy OTHER:-5", Policy::Other(-5), false),
            ("-n 1 --policy=BATCH", Policy::Batch, false),
            ("-n 1 -p NORMAL", Policy::Other(0), true),
        ] {
            let thread = &run(line).request.spec.threads[0];
            assert_eq!((thread.policy, thread.policy_is_named), (policy, is_named), "{line}");
        }
    }
}

mod options_beside_the_papers {
    use super::*;

    #[test]
    fn of_the_run() {
        let run = run(
            "-n 1 --ring --warm-up 10ms --seed 0x5eed --dma-latency 0 --best-effort --trace -o new \
             --records --json -q",
        );
        let RunOptions { spec, trace, dma_latency_us, folder, .. } = run.request;
        assert!(spec.ring && spec.best_effort && run.records && trace);
        assert_eq!(spec.warm_up, Span::from_millis(10));
        assert_eq!((spec.seed, run.seed_is_made_up), (0x5eed, false));
        assert_eq!((dma_latency_us, folder), (Some(0), Some("new".into())));
        assert!(run.settings.json && run.settings.quiet);
    }

    #[test]
    fn of_a_thread() {
        let run = run("-n 2 -t 1 --cpu 0-1 --gap=450ns -i TICK:100");
        assert_eq!(run.request.spec.threads[0].cpus, None);
        let thread = &run.request.spec.threads[1];
        assert_eq!(thread.cpus, Some([0, 1].into_iter().collect()));
        assert_eq!(thread.gap, Some(Span::from_nanos(450)));
        assert_eq!(thread.wake.to_string(), "TICK:100");
    }

    #[test]
    fn a_seed_is_made_up_if_none_is_given() {
        let run = run("-n 1");
        assert_eq!((run.request.spec.seed, run.seed_is_made_up), (SEED, true));
    }

    #[test]
    fn values_may_be_attached_to_long_options() {
        let run = run("-n 1 --output=new --color=never --seed=7");
        assert_eq!(run.request.folder, Some("new".into()));
        assert_eq!(run.request.spec.seed, 7);
        assert_eq!(run.settings.color, crate::settings::Colour::Never);
    }

    #[test]
    fn who_asks_for_help_gets_it() {
        for line in ["--help", "-h", "-n 0 --help", "--nonsense -h"] {
            assert!(matches!(parsed(&words(line)), Ok(ParsedCommand::Help)), "{line}");
        }
    }
}

mod files {
    use super::*;

    const AUDIO: &str = r#"
        duration = "5s"
        seed = 7
        [[thread]]
        name = "modem"
        workload = "PERIODIC 3ms 8ms"
        priority = "RTMED"
        [[thread]]
        start = "3s"
    "#;

    fn with_file(options: &str) -> Result<RunArguments, Stop> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audio.toml");
        std::fs::write(&path, AUDIO).unwrap();
        let path = path.display().to_string();
        let mut line = vec![path.as_str()];
        line.extend(words(options));
        parsed(&line).map(|parsed| match parsed {
            ParsedCommand::Run(run) => *run,
            ParsedCommand::Help => panic!("no help is asked for"),
        })
    }

    #[test]
    fn a_file_says_it_all() {
        let run = with_file("").unwrap();
        assert_eq!(run.request.spec.duration, Span::from_secs(5));
        assert_eq!((run.request.spec.seed, run.seed_is_made_up), (7, false));
        assert_eq!(shown(&run.request.spec.threads[0]), ["PERIODIC 3ms 8ms", "FIFO:40", "NATIVE"]);
    }

    #[test]
    fn options_override_it() {
        let run = with_file("-d 9s -e 5000 --seed 8 -t 0 -i HR -p LOW").unwrap();
        assert_eq!(run.request.spec.duration, Span::from_secs(9));
        assert_eq!((run.request.spec.records, run.request.spec.seed), (5000, 8));
        assert_eq!(shown(&run.request.spec.threads[0]), ["PERIODIC 3ms 8ms", "OTHER:5", "HR"]);
        assert_eq!(shown(&run.request.spec.threads[1]), ["CPU", "OTHER:0", "NATIVE"]);
    }

    #[test]
    fn n_beside_a_file_is_refused() {
        let text = with_file("-n 2").unwrap_err().to_string();
        assert!(text.starts_with("-n: ") && text.contains("audio.toml says how many"), "{text}");
    }

    #[test]
    fn a_contradiction_with_an_option_names_the_place() {
        let text = with_file("-d 2s").unwrap_err().to_string();
        let wanted = "audio.toml:8:9: -s: thread 1 would start (3s) when the run (-d 2s) is over";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn a_file_may_stand_behind_options_if_it_looks_like_one() {
        let text = refused("-d 5s /nonexistent/a.toml");
        assert!(text.starts_with("/nonexistent/a.toml: "), "{text}");
        let text = refused("a.toml b.toml");
        assert!(text.contains("'b.toml' is a second file after"), "{text}");
    }
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_the_option() {
    for (line, wanted) in [
        ("-n 0", "-n: bad number of threads '0': give one from 1 to 4096"),
        ("-n x", "-n: bad number of threads 'x'"),
        ("-n 4097", "-n: bad number of threads '4097'"),
        ("-n", "-n: COUNT is missing; use -n COUNT"),
        ("-d -n 1", "-d: TIME is missing; use -d TIME"),
        ("-n 1 -d 5x", "-d: bad time '5x': unknown unit; use one of ns, us, ms, s, m, h, d"),
        ("-n 1 -d 5", "-d: bad time '5': the unit is missing"),
        ("-n 1 -d 0s", "-d: bad time '0s': it must be above zero"),
        ("-n 1 -d -5s", "-d: bad time '-5s': it must be above zero"),
        ("-n 1 -s -5ms", "-s: bad time '-5ms': it must not be negative"),
        ("-n 1 -e many", "-e: bad number of records 'many'"),
        ("-n 3 -e 2", "-e 2 leaves no record for each of 3 threads"),
        ("-n 3 -t 3", "-t: there is no thread 3; 3 threads are numbered 0 to 2"),
        ("-n 1 -t 1", "-t: there is no thread 1; the only thread is 0"),
        ("-n 1 -t -1", "-t: bad thread number '-1'"),
        ("-n 1 -p high", "-p: unknown priority 'high'; did you mean 'HIGH'?"),
        ("-n 1 -p FIFO:0", "-p: 'FIFO:0' needs a priority from 1"),
        ("-n 1 -w SLEEP 1ms", "-w: unknown workload 'SLEEP'; use one of CPU"),
        ("-n 1 -w", "-w: the workload is missing; use one of CPU"),
        ("-n 1 -w PERIODIC 3ms", "-w: PERIODIC AMOUNT PERIOD: PERIOD is missing"),
        ("-n 1 -w PERIODIC 3ms -rh 1ms 2ms", "-w: PERIODIC AMOUNT PERIOD: PERIOD is missing"),
        ("-n 1 -w PERIODIC 3ms 0ms", "-w: PERIODIC AMOUNT PERIOD: bad PERIOD '0ms'"),
        ("-n 1 -w PERIODIC 9ms 8ms", "-w: PERIODIC AMOUNT PERIOD: AMOUNT 9ms is longer"),
        ("-n 1 -w CPU_PERIODIC 9ms 8ms", "-w: CPU_PERIODIC AMOUNT PERIOD: AMOUNT 9ms is longer"),
        ("-n 1 -w LAT 0s", "-w: LAT PERIOD: bad PERIOD '0s'"),
        ("-n 1 -w CPU 5ms", "-w: '5ms' is one word too many after '-w CPU'"),
        ("-n 1 -rh 9ms 8ms", "-rh: the reserved amount is longer than its period: 9ms in every"),
        ("-n 1 -rs 1ms 0ms", "-rs: bad time '0ms': it must be above zero"),
        ("-n 1 -rh 1ms", "-rh: PERIOD is missing; use -rh AMOUNT PERIOD"),
        ("-n 1 -rh 1ms 2ms -p RTHIGH", "thread 0: -p FIFO:80 contradicts its reservation"),
        ("-n 1 -p OTHER:3 -rs 1ms 2ms", "thread 0: -p OTHER:3 contradicts its reservation"),
        ("-n 1 -p DEADLINE", "thread 0: -p DEADLINE needs times"),
        ("-n 1 -i MM", "-i: timer MM is Windows only"),
        ("-n 1 -i SUNDIAL", "-i: unknown timer 'SUNDIAL'; use one of NATIVE"),
        ("-n 1 --cpu 0-3", "--cpu: CPU 2-3 does not exist or is offline; online: 0-1"),
        ("-n 1 --cpu x", "--cpu: 'x' is not a list of CPUs"),
        ("-n 1 --gap 0ns", "--gap: bad time '0ns': it must be above zero"),
        ("-n 1 --seed one", "--seed: bad seed 'one': give a number"),
        ("-n 1 --dma-latency 5us", "--dma-latency: bad number of microseconds '5us'"),
        ("-n 1 --color red", "--color: unknown word 'red'; use one of auto, always, never"),
        ("-n 1 --ring=yes", "--ring: takes no value"),
        ("-n 1 -d 1s -s 2s", "-s: thread 0 would start (2s) when the run (-d 1s) is over"),
        ("-n 1 -s 2s -f 1s", "-f: thread 0 would finish (1s) before it starts (-s 2s)"),
        ("-n 1 --cpus 0", "--cpus: unknown option; did you mean --cpu?"),
        ("-n3", "-n3: unknown option; did you mean -n 3?"),
        ("-n 1 -p=LOW", "-p=LOW: unknown option; did you mean -p?"),
        ("-n 1 -x", "-x: unknown option; hourglass run --help lists them"),
        ("-n 1 stray", "-n: 'stray' is one word too many after '-n 1'"),
        ("-n 1 -o", "-o: DIR is missing; use -o, --output DIR"),
    ] {
        let text = refused(line);
        assert!(text.starts_with(wanted), "{line}\n  {text}\n  {wanted}");
    }
}

mod limits {
    use super::*;
    use crate::lab::Limit;

    #[test]
    fn are_kept_in_their_order_and_the_last_of_a_name_counts() {
        let run =
            run("-n 1 -w GRID 1ms --max-latency 1ms --percentile p99=1ms --percentile=p99.9=2ms \
             --max-misses 3 --max-latency 100us --stop-on-gap 1ms --on-hit true");
        let shown: Vec<String> = run.request.gates.limits.iter().map(Limit::to_string).collect();
        assert_eq!(shown, ["percentile p99", "percentile p99.9", "max-misses", "max-latency"]);
        assert!(run.request.gates.limits.contains(&Limit::MaxLatency(Span::from_micros(100))));
        assert_eq!(run.request.spec.guard.stop_on_gap, Some(Span::from_millis(1)));
        assert_eq!(run.request.gates.on_hit.as_deref(), Some("true"));
    }

    #[test]
    fn that_mean_nothing_are_refused() {
        for (line, wanted) in [
            ("-n 1 --max-latency 1ms", "--max-latency: no thread of this run measures wake-ups"),
            ("-n 1 --max-misses 0", "--max-misses: no thread of this run has periods"),
            ("-n 1 --on-hit true", "--on-hit: nothing ends this run"),
            ("-n 1 --max-gap -1ms", "--max-gap: bad time '-1ms': it must not be negative"),
            ("-n 1 --percentile p99", "--percentile: bad limit 'p99': the time that is allowed"),
            ("-n 1 --max-misses x", "--max-misses: bad number of periods 'x'"),
        ] {
            assert!(refused(line).starts_with(wanted), "{line}: {}", refused(line));
        }
    }
}

/// The other run is the run with more options, or, with threads of its own, another one.
#[test]
fn against_describes_the_other_run() {
    let line = ["-n", "2", "-d", "2s", "-t", "1", "-p", "LOW", "--against"];
    let parsed = |quoted: &str| {
        let words = line.into_iter().chain([quoted, "--json", "--rounds", "7"]);
        let words: Vec<String> = words.map(str::to_owned).collect();
        match super::parse(&words, &HostDefaults::default()) {
            Ok(ParsedCommand::Run(run)) => Ok(*run),
            Ok(ParsedCommand::Help) => panic!("help"),
            Err(stop) => Err(stop.to_string()),
        }
    };
    let run = parsed("-p IDLE").unwrap();
    let other = run.against.unwrap();
    assert_eq!((run.rounds, run.settings.json), (Some(7), true));
    assert_eq!(other.own_words.join(" "), "-n 2 -d 2s -t 1 -p LOW");
    assert_eq!(other.words.join(" "), "-n 2 -d 2s -t 1 -p LOW -a -p IDLE");
    let policies: Vec<String> = other.spec.threads.iter().map(|t| t.policy.to_string()).collect();
    assert_eq!(policies, ["IDLE", "IDLE"], "not only thread 1");
    let equal = parsed("").unwrap().against.unwrap();
    assert_eq!(equal.words, equal.own_words);
    let anew = parsed("-n 1 -w 'LAT' \"5ms\"").unwrap().against.unwrap();
    assert_eq!(anew.words.join(" "), "-d 2s -n 1 -w LAT 5ms");
    assert_eq!(anew.spec.duration, Span::from_secs(2), "the run's own");
    assert_eq!(parsed("-a").unwrap().against.unwrap().spec.threads.len(), 2, "not a missing value");
    for (quoted, said) in [
        ("-o x", "--against: -o is for both runs; give it outside the quotes"),
        ("--control", "--against: --control is for both runs"),
        ("-p 'LOW", "--against: a quote within it is not closed"),
        ("-p SOON", "--against: -p: "),
        ("--frequency", "--against: --frequency: unknown option"),
        ("-t 9", "--against: -t: there is no thread 9"),
    ] {
        let error = parsed(quoted).unwrap_err();
        assert!(error.starts_with(said), "{quoted}: {error}");
    }
}

#[test]
fn comparing_options_need_each_other() {
    for (line, said) in [
        ("-n 1 --rounds 5", "--rounds: rounds of what?"),
        ("-n 1 --fail-on worse", "--fail-on: it judges a comparison"),
        (
            "-n 1 --against -a --fail-on now",
            "--fail-on: unknown word 'now'; use one of worse, unknown, doubt",
        ),
        (
            "-n 1 --against -a --rounds 0",
            "--rounds: bad number of rounds '0': give one from 1 to 1000",
        ),
        ("-n 1 --against -a --rounds x", "--rounds: bad number of rounds 'x'"),
        ("-n 1 --against -a --control", "--control: it is a comparison by itself"),
        ("-n 1 --against -a -c", "--against: it prints a comparison"),
        ("-n 1 --against", "--against: OPTIONS is missing"),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = super::parse(&words, &HostDefaults::default()).unwrap_err().to_string();
        assert!(error.starts_with(said), "{line}: {error}");
    }
}
