//! What a workload file says, and where its mistakes stand.

use super::*;

fn two_cpus() -> CpuSet {
    [0, 1].into_iter().collect()
}

fn read(text: &str) -> Result<WorkloadFile, String> {
    parse("audio.toml", text, Some(&two_cpus())).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    match read(text) {
        Ok(file) => panic!("taken: {file:?}"),
        Err(message) => message,
    }
}

/// Every key, in the words of the paper's section 5.5.
#[test]
fn every_key_is_read() {
    let file = read(
        r#"
        duration = "5s"
        records = 1000
        ring = true
        warm_up = "10ms"
        seed = "0x5eed"
        gap = "450ns"
        dma_latency_us = 0
        best_effort = true
        trace = true

        [[thread]]
        name = "modem"
        workload = "PERIODIC 3ms 8ms"
        priority = "RTMED"
        timer = "HR"
        cpu = "0-1"
        start = "1s"
        finish = "4s"
        gap = "1us"

        [[thread]]
        count = 2
        workload = "PERIODIC 17ms 33ms"
        policy = "DEADLINE"
        reserve = { amount = "17.1ms", period = "33ms", soft = true }
        cpu = 1
        "#,
    )
    .unwrap();
    assert_eq!(file.duration, Some(Span::from_secs(5)));
    assert_eq!(file.records, Some(1000));
    assert_eq!(file.ring, Some(true));
    assert_eq!(file.warm_up, Some(Span::from_millis(10)));
    assert_eq!(file.seed, Some(0x5eed));
    assert_eq!(file.dma_latency_us, Some(0));
    assert_eq!((file.best_effort, file.trace), (Some(true), Some(true)));
    assert_eq!(file.threads.len(), 3);
    let modem = &file.threads[0];
    assert_eq!(modem.name.as_deref(), Some("modem"));
    assert_eq!(modem.model.to_string(), "PERIODIC 3ms 8ms");
    assert_eq!((modem.policy, modem.policy_is_named), (Policy::Fifo(40), true));
    assert_eq!(modem.wake.to_string(), "HR");
    assert_eq!(modem.cpus, Some(two_cpus()));
    assert_eq!(modem.start, Span::from_secs(1));
    assert_eq!(modem.finish, Some(Span::from_secs(4)));
    assert_eq!(modem.gap, Some(Span::from_micros(1)));
    assert_eq!(file.place(0), "audio.toml:12:9 (modem)");
    for video in &file.threads[1..] {
        assert_eq!(video.name, None);
        assert_eq!((video.policy, video.policy_is_named), (Policy::Deadline, false));
        assert_eq!(video.reservation.unwrap().to_string(), "DEADLINE:17.1ms/33ms+");
        assert_eq!(video.cpus, Some([1].into_iter().collect()));
        assert_eq!(video.gap, Some(Span::from_nanos(450)), "the run's gap");
    }
    assert_eq!(file.place(2), "audio.toml:22:9");
    assert_eq!(file.place(3), "");
}

#[test]
fn what_is_not_said_has_the_papers_defaults() {
    let file = read("[[thread]]\n").unwrap();
    assert_eq!(file.duration, None);
    assert_eq!(file.threads[0].model.to_string(), "CPU");
    assert_eq!(file.threads[0].policy, Policy::Other(0));
    assert_eq!(read("seed = 42\n[[thread]]").unwrap().seed, Some(42));
}

#[test]
fn malformed_toml_says_where() {
    let message = refused("duration = \"5s\"\n[[thread\n");
    assert!(message.starts_with("audio.toml:2:9: "), "{message}");
    assert!(!message.contains('\n'), "{message}");
    let message = refused("duration = 5\n[[thread]]");
    assert!(message.starts_with("audio.toml:1:12: "), "{message}");
}

/// A file of tasks is sent to the right command; one of rt-app is run as it is.
#[test]
fn files_of_tasks_are_understood() {
    let message = refused("[[task]]\nname = \"a\"\n");
    assert!(message.starts_with("audio.toml:1:3: this is a file of tasks, "), "{message}");
    assert!(message.contains("hourglass predict"), "{message}");
    let message = refused("{\"tasks\": {}}");
    assert_eq!(message, "audio.toml: tasks: no thread runs; give one an instance, or fork it");
    let text = r#"/* rt-app */ {"tasks": {"a": {"loop": 1, "run": 5}, "b": {"suspend": "c", "run": 1}},
                  "global": {"duration": 3}}"#;
    let file = super::parse("a.json", text, None).unwrap();
    let names: Vec<_> = file.threads.iter().filter_map(|thread| thread.name.as_deref()).collect();
    assert_eq!((names, file.duration), (vec!["a", "b"], Some(Span::from_secs(3))));
    assert_eq!(file.place(1), "a.json, thread 'b'");
}

#[test]
fn unknown_and_doubled_keys_say_where() {
    let message = refused("[[thread]]\n  workloads = \"CPU\"\n");
    assert!(
        message.starts_with("audio.toml:2:3: unknown key 'workloads'; did you mean 'workload'?"),
        "{message}"
    );
    let message = refused("threads = 3\n");
    assert!(
        message.starts_with("audio.toml:1:1: unknown key 'threads'; did you mean 'thread'?"),
        "{message}"
    );
    let message = refused("[[thread]]\npriority = \"LOW\"\npolicy = \"HIGH\"\n");
    assert!(message.starts_with("audio.toml:3:10: policy and priority are the same"), "{message}");
    let message = refused("[[thread]]\nreserve = { amount = \"1ms\" }\n");
    assert!(message.starts_with("audio.toml:2:11: missing field `period`"), "{message}");
}

/// A mistake inside a value is found there, and its line begins as the editor counts.
#[test]
fn mistakes_inside_values_say_where() {
    for (text, wanted) in [
        ("duration = \"5x\"\n[[thread]]", "1:12: bad time '5x': unknown unit; use one of ns"),
        ("duration = \"5\\nx\"\n[[thread]]", "1:12: bad time '5 x': "),
        ("duration = \"0s\"\n[[thread]]", "1:12: bad time '0s': it must be above zero"),
        ("warm_up = \"-1s\"\n[[thread]]", "1:11: bad time '-1s': it must not be negative"),
        ("seed = -1\n[[thread]]", "1:8: bad seed '-1'"),
        ("[[thread]]\nworkload = \"PERIODIC 3mss 8ms\"", "2:12: "),
        ("[[thread]]\nworkload = \"PERIODIC 9ms 8ms\"", "2:12: "),
        ("[[thread]]\nworkload = \"PERIODIC 3ms 0ms\"", "2:12: "),
        ("[[thread]]\nworkload = \"SLEEP\"", "2:12: unknown workload 'SLEEP'; use one of CPU"),
        ("[[thread]]\npriority = \"low\"", "2:12: unknown priority 'low'"),
        ("[[thread]]\ntimer = \"MM\"", "2:9: timer MM is Windows only"),
        (
            "[[thread]]\n# \u{fc}\ncpu = \"0-3\"",
            "3:7: CPU 2-3 does not exist or is offline; online: 0-1",
        ),
        ("[[thread]]\ncpu = \"x\"", "2:7: 'x' is not a list of CPUs"),
        ("[[thread]]\ncount = 0", "2:9: count must be at least 1"),
        ("[[thread]]\ncount = 5000", "2:9: more than 4096 threads"),
        ("[[thread]]\ncount = 4096\n[[thread]]", "3:1: more than 4096 threads"),
        (
            "[[thread]]\nstart = \"2s\"\nfinish = \"1s\"",
            "3:10: it finishes (1s) before it starts (2s)",
        ),
        (
            "[[thread]]\nreserve = { amount = \"9ms\", period = \"8ms\" }",
            "2:11: the reserved amount is longer than its period",
        ),
        (
            "[[thread]]\nreserve = { amount = \"1ms\", period = \"0ms\" }",
            "2:38: bad time '0ms': it must be above zero",
        ),
        (
            "[[thread]]\npriority = \"FIFO:80\"\nreserve = { amount = \"1ms\", period = \"8ms\" }",
            "2:12: priority FIFO:80 contradicts reserve",
        ),
        ("[[thread]]\npriority = \"DEADLINE\"", "2:12: priority DEADLINE needs times"),
        ("duration = \"1s\"", "1:1: no threads; add a table [[thread]]"),
    ] {
        let message = refused(text);
        assert!(message.starts_with(&format!("audio.toml:{wanted}")), "{text}\n{message}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = super::read(Path::new("/nonexistent/audio.toml")).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/audio.toml: "), "{error}");
}

#[test]
fn unknown_cpus_pass_where_the_machine_does_not_tell() {
    assert_eq!(check_cpus(&[700].into_iter().collect(), None), Ok(()));
}
