//! Every mistake in a file of tasks gets one line that names place, key, culprit and remedy.

use hourglass_tasks::TaskSet;

fn refusal(toml: &str) -> String {
    let message = TaskSet::from_toml(toml).expect_err(toml).to_string();
    assert!(!message.contains('\n'), "{message:?}");
    message
}

/// A good task, and more lines for it.
fn with(lines: &str) -> String {
    refusal(&format!("[[task]]\nname = \"video\"\nwcet = \"17ms\"\nperiod = \"33ms\"\n{lines}"))
}

/// A task with these lines alone.
fn only(lines: &str) -> String {
    refusal(&format!("[[task]]\nname = \"video\"\n{lines}"))
}

fn two(a: &str, b: &str) -> String {
    let task = |name, lines| {
        format!("[[task]]\nname = \"{name}\"\nwcet = \"1ms\"\nperiod = \"9ms\"\n{lines}\n")
    };
    refusal(&format!("{}{}", task("a", a), task("b", b)))
}

#[test]
fn broken_syntax_has_a_line_and_a_column() {
    assert_eq!(
        refusal("[[task]]\nname = "),
        "line 2, column 8: string values must be quoted, expected literal string"
    );
    let json = TaskSet::from_json("{\n \"task\": [,]}").unwrap_err().to_string();
    assert_eq!(json, "line 2, column 11: expected value");
    let twice = r#"{"task": [{"name": "a", "wcet": "1ms", "wcet": "2ms"}]}"#;
    let twice = TaskSet::from_json(twice).unwrap_err().to_string();
    assert_eq!(twice, "task 'a': duplicate key wcet; keep one of them");
}

#[test]
fn unknown_keys() {
    assert_eq!(
        with("dedline = \"9ms\""),
        "task 'video': unknown key 'dedline'; did you mean 'deadline'?"
    );
    assert_eq!(only("cost = \"9ms\""), "task 'video': unknown key 'cost'; did you mean 'wcet'?");
    assert_eq!(
        with("critical_sections = [{ resource = \"r\", lenght = \"1ms\" }]"),
        "task 'video', critical section 1: unknown key 'lenght'; did you mean 'length'?"
    );
    assert_eq!(
        with("[machine]\ncolour = 1"),
        "machine: unknown key 'colour'; use cpus, cores or overheads"
    );
    assert_eq!(
        with("[machine.overheads]\ncontext_swich = \"1us\""),
        "machine.overheads: unknown key 'context_swich'; did you mean 'context_switch'?"
    );
    assert_eq!(refusal("tasks = []"), "the file: unknown key 'tasks'; did you mean 'task'?");
    assert_eq!(
        refusal("schema = \"hourglass.tasks/9\""),
        "the file: schema = \"hourglass.tasks/9\": another format; this version reads \
         hourglass.tasks/1"
    );
}

#[test]
fn missing_keys() {
    assert_eq!(refusal(""), "no tasks; add a table [[task]] for each");
    assert_eq!(
        refusal("[[task]]\nwcet = \"1ms\"\nperiod = \"2ms\""),
        "task number 1: name is missing; give it one, as in name = \"video\""
    );
    assert_eq!(
        only("period = \"33ms\""),
        "task 'video': wcet is missing; give the longest execution time of a job, for example \
         wcet = \"3ms\""
    );
    assert_eq!(
        only("period = \"33ms\"\nexecution_time = \"exponential:3ms\""),
        "task 'video': wcet is missing; the execution_time has no upper limit; give wcet as well"
    );
    assert_eq!(
        only("wcet = \"3ms\""),
        "task 'video': period is missing; give the shortest time between two jobs, for example \
         period = \"8ms\""
    );
    assert_eq!(
        with("last_section = \"1ms\""),
        "task 'video': longest_section is missing; it belongs to last_section"
    );
    assert_eq!(
        with("[[server]]\nname = \"s\"\nkind = \"polling\"\nperiod = \"9ms\""),
        "server 's': budget is missing; give the processor time per period"
    );
    assert_eq!(
        two("priority = 5", ""),
        "task 'b': priority is missing; other tasks have one; give it to all, or to none to have \
         them assigned"
    );
    assert_eq!(
        with("[[interference]]\ntask = \"video\""),
        "interference number 1: rate is missing; give the progress per unit of time, for example \
         \"3/5\""
    );
}

#[test]
fn times() {
    assert_eq!(
        with("deadline = \"0ms\""),
        "task 'video': deadline = 0s: it must be above zero; leave it out if it is the period"
    );
    assert_eq!(
        only("wcet = \"1ms\"\nperiod = \"0s\""),
        "task 'video': period = 0s: it must be above zero; give the shortest time between two jobs"
    );
    assert_eq!(
        only("wcet = \"-1ms\"\nperiod = \"9ms\""),
        "task 'video': wcet = -1ms: it must be above zero; give the longest execution time of a job"
    );
    assert_eq!(with("jitter = \"-8ms\""), "task 'video': jitter = -8ms: it must not be negative");
    assert_eq!(
        with("jitter = 8"),
        "task 'video': jitter = 8: the unit is missing; write a text such as \"3ms\", or say once \
         for the file what a number counts, as in unit = \"1ms\""
    );
    assert_eq!(
        with("jitter = \"8\""),
        "task 'video': jitter = \"8\": the unit is missing; add one of ns, us, ms, s, m, h, d"
    );
    assert_eq!(
        with("jitter = 0.5"),
        "task 'video': jitter = 0.5: expected a time such as \"3ms\", found a decimal number"
    );
    assert_eq!(with("bcet = \"18ms\""), "task 'video': bcet = 18ms: longer than the wcet of 17ms");
    assert_eq!(refusal("unit = \"0s\""), "the file: unit = \"0s\": it must be above zero");
}

#[test]
fn times_that_64_bits_do_not_hold() {
    assert_eq!(
        with("deadline = \"300y\""),
        "task 'video': deadline = \"300y\": unknown unit; use one of ns, us, ms, s, m, h, d"
    );
    assert_eq!(
        with("deadline = \"9223372036854775808ns\""),
        "task 'video': deadline = \"9223372036854775808ns\": longer than 292 years, which is all \
         that 64 bits of nanoseconds hold"
    );
    assert_eq!(
        refusal("unit = \"1d\"\n[[task]]\nname = \"a\"\nwcet = 106752\nperiod = 1"),
        "task 'a': wcet = 106752: longer than 292 years"
    );
    let json = r#"{"unit": "1ns", "task": [{"name": "a", "wcet": 18446744073709551615}]}"#;
    assert_eq!(
        TaskSet::from_json(json).unwrap_err().to_string(),
        "task 'a': wcet = 18446744073709551615: longer than 292 years"
    );
}

#[test]
fn names() {
    let twice = refusal(
        "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"9ms\"\n\
         [[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"9ms\"",
    );
    assert_eq!(twice, "two tasks are called 'a'; give each a name of its own");
    assert_eq!(
        refusal("[[task]]\nname = \" \""),
        "task ' ': name = \" \": a name has letters and no line breaks"
    );
    assert_eq!(
        refusal("[[resource]]\nname = \"a\\nb\""),
        "resource 'a\\nb': name = \"a\\nb\": a name has letters and no line breaks"
    );
    assert_eq!(
        with("after = [\"vido\"]"),
        "task 'video': after names 'vido', but there is no such task; did you mean 'video'?"
    );
    assert_eq!(
        with("critical_sections = [{ resource = \"bus\", length = \"1ms\" }]"),
        "task 'video': critical_sections names 'bus', but there is no such resource; there is none \
         at all"
    );
    assert_eq!(
        with(
            "[[server]]\nname = \"s\"\nkind = \"polling\"\nbudget = \"1ms\"\nperiod = \"9ms\"\n\
              tasks = [\"audio\"]"
        ),
        "server 's': tasks names 'audio', but there is no such task; use video"
    );
}

#[test]
fn circles_name_their_tasks() {
    assert_eq!(
        two("after = [\"b\"]", "after = [\"a\"]"),
        "tasks wait for each other: a after b after a; take one name out of an 'after'"
    );
    assert_eq!(
        with("after = [\"video\"]"),
        "tasks wait for each other: video after video; take one name out of an 'after'"
    );
    let four = ["after = [\"b\"]", "after = [\"c\"]", "after = [\"d\"]", "after = [\"b\"]"];
    let names = ["a", "b", "c", "d"];
    let text: String = names
        .iter()
        .zip(four)
        .map(|(name, after)| format!("[[task]]\nname = \"{name}\"\nwcet = \"1ms\"\n{after}\n"))
        .collect();
    assert_eq!(
        refusal(&text),
        "tasks wait for each other: b after c after d after b; take one name out of an 'after'"
    );
}

#[test]
fn chains_have_one_period() {
    let text = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"9ms\"\n\
                [[task]]\nname = \"b\"\nwcet = \"1ms\"\nperiod = \"18ms\"\nafter = \"a\"";
    assert_eq!(
        refusal(text),
        "task 'b': period = 18ms: 'a', which it is after, has 9ms; leave the period out or make \
         them equal"
    );
}

#[test]
fn words() {
    assert_eq!(
        refusal("scheduler = \"fixed_priority\""),
        "the file: scheduler = \"fixed_priority\": unknown word; did you mean 'fixed-priority'?"
    );
    assert_eq!(
        with("activation = \"often\""),
        "task 'video': activation = \"often\": unknown word; use periodic or sporadic"
    );
    assert_eq!(
        with("policy = \"FIFO:100\""),
        "task 'video': policy = \"FIFO:100\": 'FIFO:100' needs a priority from 1 (lowest) to 99, \
         for example FIFO:80"
    );
    assert_eq!(
        with("priority = -1"),
        "task 'video': priority = -1: give a number from 0 to 2^32-1"
    );
    assert_eq!(
        with("timer = \"TICK:0\""),
        "task 'video': timer = \"TICK:0\": a tick has a frequency in hertz, as in TICK:100"
    );
    assert_eq!(
        with("execution_time = \"gamma:3ms\""),
        "task 'video': execution_time = \"gamma:3ms\": unknown distribution 'gamma'; use \
         one of uniform:A,B, normal:MEAN,SD, lognormal:MEAN,SD, exponential:MEAN, \
         bimodal:A,B,SHARE, table:FILE.csv"
    );
    assert_eq!(
        with("phases = [{ steps = [\"run 3ms\"] }, { steps = [\"walk\"] }]"),
        "task 'video', phase 2: steps = \"walk\": not a step; write run TIME, run_for TIME, sleep \
         TIME, timer NAME TIME [absolute], lock NAME, unlock NAME, wait CONDITION MUTEX, signal \
         NAME, broadcast NAME, barrier NAME, suspend NAME, resume NAME, \
         post NAME, take NAME, yield, memory BYTES, read BYTES BUFFER, write BYTES BUFFER, chase HOPS BUFFER STRIDE \
         [sequential], io BYTES, fork NAME, forked NAME NUMBER or start_after TIME"
    );
}

#[test]
fn sections() {
    assert_eq!(
        with("longest_section = \"18ms\""),
        "task 'video': longest_section = 18ms: longer than the wcet of 17ms"
    );
    assert_eq!(
        with("longest_section = \"2ms\"\nlast_section = \"3ms\""),
        "task 'video': last_section = 3ms: longer than the longest_section of 2ms"
    );
    // A section of 16 ms and another one of 2 ms are more than the job has.
    assert_eq!(
        with("longest_section = \"16ms\"\nlast_section = \"2ms\""),
        "task 'video': last_section = 2ms: with the longest_section of 16ms, longer than the wcet of \
         17ms"
    );
    assert_eq!(
        with("preemptive = false\nfloating_section = \"3ms\""),
        "task 'video': preemptive, preemption_threshold, longest_section and floating_section \
         exclude each other; keep one of them"
    );
    assert_eq!(
        with("priority = 5\npreemption_threshold = 4"),
        "task 'video': preemption_threshold = 4: below the task's own priority 5"
    );
    assert_eq!(
        with("preemption_threshold = 4"),
        "task 'video': preemption_threshold = 4: it is compared with priorities, which must be \
         given, not assigned"
    );
    assert_eq!(
        with("arrivals = [\"5ms\", \"4ms\"]"),
        "task 'video': arrivals = 4ms: 3 arrivals cannot be closer together than 2, which take 5ms"
    );
    assert_eq!(
        with("activation = \"sporadic\"\noffset = \"1ms\""),
        "task 'video': a sporadic task has no offset, because its jobs may come later; drop one of \
         the two"
    );
}

#[test]
fn priorities() {
    assert_eq!(
        with("priority = 5\npolicy = \"FIFO:6\""),
        "task 'video': priority 5 and policy FIFO:6 both say how it is scheduled; keep one of them"
    );
    let assigned = "priorities = \"rate-monotonic\"\n[[task]]\nname = \"a\"\nwcet = \"1ms\"\n\
                    period = \"9ms\"\npriority = 5";
    assert_eq!(
        refusal(assigned),
        "task 'a': priority 5 contradicts the file's priorities, which are assigned; drop one of \
         them"
    );
}

#[test]
fn resources() {
    let uses = |length: &str, count: u32, resource: &str| {
        with(&format!(
            "priority = 9\ncritical_sections = [{{ resource = \"r\", length = \"{length}\", count = \
             {count} }}]\n[[resource]]\nname = \"r\"\n{resource}"
        ))
    };
    assert_eq!(
        uses("18ms", 1, ""),
        "task 'video': length = 18ms: longer than the wcet of 17ms, which contains the critical \
         sections"
    );
    assert_eq!(
        uses("0ms", 1, ""),
        "task 'video': length = 0s: it must be above zero; or leave the section out"
    );
    assert_eq!(
        uses("1ms", 0, ""),
        "task 'video': count = 0: it must be at least 1; or leave the section out"
    );
    assert_eq!(
        uses("1ms", 1, "protocol = \"plain\"\nceiling = 9"),
        "resource 'r': ceiling belongs to the protocol 'ceiling'; drop one of them"
    );
    assert_eq!(
        uses("1ms", 1, "ceiling = 8"),
        "resource 'r': ceiling = 8: below the priority 9 of task 'video', which uses it; leave it \
         out for the highest of its users"
    );
    assert_eq!(
        uses("1ms", 1, "protocol = \"spinlock\""),
        "resource 'r': protocol = \"spinlock\": unknown word; use ceiling, inheritance, spin or plain"
    );
}

#[test]
fn servers() {
    let server =
        |lines: &str| with(&format!("[[server]]\nname = \"s\"\nkind = \"deferrable\"\n{lines}"));
    assert_eq!(
        server("budget = \"10ms\"\nperiod = \"9ms\""),
        "server 's': budget = 10ms: there is no room for it in a period of 9ms"
    );
    assert_eq!(
        server("budget = \"0ms\"\nperiod = \"9ms\""),
        "server 's': budget = 0s: it must be above zero; give the processor time per period"
    );
    assert_eq!(
        server("budget = \"1ms\"\nperiod = \"9ms\"\ndeadline = \"8ms\""),
        "server 's': deadline 8ms differs from the period 9ms, which only the kinds \
         'explicit-deadline' and 'cbs-hard' may; change the kind or leave the deadline out"
    );
    let soon = "[[server]]\nname = \"s\"\nkind = \"explicit-deadline\"\nbudget = \"2ms\"\n";
    assert_eq!(
        with(&format!("{soon}period = \"9ms\"\ndeadline = \"1ms\"")),
        "server 's': budget = 2ms: there is no room for it within a deadline of 1ms"
    );
    assert_eq!(
        with(&format!("{soon}period = \"9ms\"\ndeadline = \"10ms\"")),
        "server 's': deadline = 10ms: longer than the period of 9ms"
    );
    let in_two = "budget = \"1ms\"\nperiod = \"9ms\"\ntasks = [\"video\"]\n[[server]]\nname = \"t\"\n\
                  kind = \"polling\"\nbudget = \"1ms\"\nperiod = \"9ms\"\ntasks = [\"video\"]";
    assert_eq!(
        server(in_two),
        "server 't': task 'video' is in server 's' already; a task runs in one server"
    );
    assert_eq!(
        with("[[server]]\nname = \"s\"\nkind = \"poling\""),
        "server 's': kind = \"poling\": unknown word; did you mean 'polling'?"
    );
}

#[test]
fn the_machine() {
    assert_eq!(
        with("cpu = 0\ncpus = 1"),
        "task 'video': cpu and cpus are the same; give one of them"
    );
    assert_eq!(
        with("cpus = \"1-x\""),
        "task 'video': cpus = \"1-x\": '1-x' is not a list of CPUs; write for example 0, 0-3 or 0,2-3"
    );
    assert_eq!(
        with("cpus = [0, 99999]"),
        "task 'video': cpus = [...]: '0,99999' is not a list of CPUs; write for example 0, 0-3 or \
         0,2-3"
    );
    assert_eq!(
        with("cpus = [0, 4, 5]\n[machine]\ncpus = \"0-3\""),
        "task 'video': cpus = \"0,4-5\": the machine has no CPU 4-5; its CPUs are 0-3, as \
         machine.cpus says"
    );
    assert_eq!(
        with("[machine]\ncores = [[0, 1], [1, 2]]"),
        "machine: cores = CPU 1: a CPU belongs to one core only"
    );
    for twice in ["[3, 3]", "\"3,3\"", "\"2-3,3\"", "\"3,2-3\""] {
        assert_eq!(
            with(&format!("[machine]\ncpus = \"0-3\"\ncores = [[0, 1], {twice}]")),
            "machine: cores = CPU 3: it is there twice in a core; name it once"
        );
    }
    assert_eq!(
        with("[machine.overheads]\ntick_cost = \"4ms\"\ntick_period = \"4ms\""),
        "machine.overheads: tick_cost = 4ms: no time is left between ticks, which come every 4ms"
    );
    assert_eq!(
        with("[machine.overheads]\ntick_cost = \"4us\""),
        "machine.overheads: tick_period is missing; say how often a tick costs that, for example \
         tick_period = \"4ms\""
    );
    assert_eq!(
        with("machine = 4"),
        "task 'video': unknown key 'machine'; use name, activation, period, wcet, bcet, \
         execution_time, deadline, jitter, offset, blocking, suspension, preemptive, \
         preemption_threshold, longest_section, last_section, floating_section, priority, policy, \
         cpus, cpu, arrivals, after, critical_sections, timer, ..."
    );
    assert_eq!(refusal("machine = 4"), "machine: a whole number is not a table");
}

#[test]
fn rates() {
    let rate = |rate: &str| with(&format!("[[interference]]\nrate = {rate}"));
    assert_eq!(
        rate("0.6"),
        "interference number 1: rate = 0.6: write it as a text, which is exact: rate = \"0.6\""
    );
    assert_eq!(
        rate("\"3/0\""),
        "interference number 1: rate = \"3/0\": the denominator is 0; write for example 3/5"
    );
    assert_eq!(
        rate("\"5/3\""),
        "interference number 1: rate = 5/3: nothing runs faster for running beside another; give 0 \
         to 1"
    );
    assert_eq!(
        with("[[interference]]\nrate = \"1/2\"\n[[interference]]\nrate = \"1/3\""),
        "interference number 2: interference number 1 is about the same two; keep one of them"
    );
}

/// Accepted: the analysis, not the file, says that it is infeasible or that it cannot be run.
#[test]
fn warnings() {
    let warnings = |lines: &str| {
        let head = "[[task]]\nname = \"video\"\nwcet = \"17ms\"\nperiod = \"33ms\"\n";
        let set = TaskSet::from_toml(&format!("{head}{lines}")).unwrap();
        set.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("deadline = \"16ms\""),
        ["task 'video': the execution time of 17ms is longer than the deadline of 16ms; it is \
          infeasible on any processor of this speed"]
    );
    assert_eq!(
        warnings("priority = 100"),
        [
            "task 'video': priority 100 is outside the kernel's 1 to 99; the set can be analysed and \
          simulated, but not run"
        ]
    );
    assert_eq!(
        warnings("execution_time = \"normal:15ms,1ms\""),
        ["task 'video': execution times drawn from normal:15ms,1ms may exceed the wcet of 17ms; \
          bounds do not hold for such jobs"]
    );
    let server = "[[server]]\nname = \"s\"\nkind = \"polling\"\nperiod = \"33ms\"\n";
    assert_eq!(
        warnings(&format!("{server}budget = \"16ms\"\ntasks = \"video\"")),
        ["server 's': its tasks need more processor time than 16ms every 33ms; no deadline in it \
          can be kept for long"]
    );
    assert_eq!(warnings(&format!("{server}budget = \"17ms\"\ntasks = \"video\"")), [""; 0]);
    assert_eq!(
        warnings(&format!("{server}budget = \"17ms\"")),
        ["server 's': no task runs in it; name some with tasks = [...]"]
    );
    assert_eq!(warnings("[[resource]]\nname = \"r\""), ["resource 'r': no task uses it"]);
    assert_eq!(
        warnings("[[interference]]\nrate = \"1/2\""),
        ["interference is described, but no core has two CPUs; give machine.cores, for example \
          [[0, 1]]"]
    );
}

/// One warning for all tasks; where priorities do not count, none.
#[test]
fn priorities_beyond_the_kernel_are_one_warning() {
    let task = |number: u32| {
        format!("[[task]]\nname = \"t{number}\"\nwcet = \"1us\"\nperiod = \"{}ms\"\n", number + 1)
    };
    let tasks: String = (0..103).map(task).collect();
    let warnings = |scheduler: &str| {
        let set = TaskSet::from_toml(&format!("scheduler = \"{scheduler}\"\n{tasks}")).unwrap();
        set.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // Assigned priorities count down from 103: those of t0 to t3 are above 99.
    assert_eq!(
        warnings("fixed-priority"),
        ["task 't0': priority 103 is outside the kernel's 1 to 99, and so are those of 3 other \
          tasks; the set can be analysed and simulated, but not run"]
    );
    for scheduler in ["edf", "fifo", "fair"] {
        assert_eq!(warnings(scheduler), [""; 0], "{scheduler}");
    }
}
