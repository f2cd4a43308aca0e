//! Every mistake in a file of tasks gets one line that names place, key, culprit and remedy.

use hourglass_tasks::{TaskSet, TaskSetError};

fn refusal(set: Result<TaskSet, TaskSetError>, text: &str) -> String {
    let message = set.expect_err(text).to_string();
    assert!(!message.contains('\n'), "{message:?}");
    message
}

/// A row of `data/refused.txt`, which says how they are written.
pub(crate) struct Row {
    name: &'static str,
    /// `accepted`, `rt-app`, or another beginning of the file.
    pub(crate) kind: &'static str,
    pub(crate) file: String,
    pub(crate) message: &'static str,
}

pub(crate) fn rows() -> Vec<Row> {
    let row = |row: &'static str| {
        let (name, row) = row.split_once('\n').unwrap();
        let (lines, message) = row.split_once("\n---").unwrap();
        let kind = name.rsplit_once(", ").unwrap().1;
        let name_alone = "[[task]]\nname = \"video\"\n";
        let beginning = match kind {
            "file" | "rt-app" => String::new(),
            "name" => name_alone.to_owned(),
            _ => format!("{name_alone}wcet = \"17ms\"\nperiod = \"33ms\"\n"),
        };
        Row { name, kind, file: beginning + lines, message: message.trim() }
    };
    include_str!("../data/refused.txt").split("\n=== ").skip(1).map(row).collect()
}

#[test]
fn mistakes_are_named_and_doubts_are_warnings() {
    for Row { name, kind, file, message } in rows() {
        let found = match kind {
            "accepted" => warnings(&file).join("\n"),
            "rt-app" => refusal(TaskSet::from_rt_app(&file).map(|imported| imported.set), &file),
            _ => refusal(TaskSet::from_toml(&file), &file),
        };
        assert_eq!(found, message, "{name}: {file}");
    }
}

#[test]
fn broken_syntax_has_a_line_and_a_column() {
    let toml = "[[task]]\nname = ";
    assert_eq!(
        refusal(TaskSet::from_toml(toml), toml),
        "line 2, column 8: string values must be quoted, expected literal string"
    );
    for (json, expected) in [
        ("{\n \"task\": [,]}", "line 2, column 11: expected value"),
        (
            r#"{"task": [{"name": "a", "wcet": "1ms", "wcet": "2ms"}]}"#,
            "task 'a': duplicate key wcet; keep one of them",
        ),
        (
            r#"{"unit": "1ns", "task": [{"name": "a", "wcet": 18446744073709551615}]}"#,
            "task 'a': wcet = 18446744073709551615: longer than 292 years",
        ),
    ] {
        assert_eq!(refusal(TaskSet::from_json(json), json), expected);
    }
}

/// Accepted: the analysis, not the file, says that it is infeasible or that it cannot be run.
fn warnings(toml: &str) -> Vec<String> {
    TaskSet::from_toml(toml).unwrap().warnings().iter().map(ToString::to_string).collect()
}

/// One warning for all tasks; where priorities do not count, none.
#[test]
fn priorities_beyond_the_kernel_are_one_warning() {
    let task = |number: u32| {
        format!("[[task]]\nname = \"t{number}\"\nwcet = \"1us\"\nperiod = \"{}ms\"\n", number + 1)
    };
    let tasks: String = (0..103).map(task).collect();
    let warnings = |scheduler: &str| warnings(&format!("scheduler = \"{scheduler}\"\n{tasks}"));
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

/// `__sched_setscheduler`: the class has all CPUs of its root domain, or refuses. Nothing said so of a server, and a thread of it,
/// on one CPU of two.
#[test]
fn a_server_that_the_class_would_have_to_pin_is_a_warning() {
    let set = |kind: &str, cpus: &str, own: &str, more: &str| {
        let text = format!(
            "machine.cpus = \"{cpus}\"\n[[task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n{own}\n[[server]]\n\
             name = \"s\"\nkind = \"{kind}\"\nbudget = \"2ms\"\nperiod = \"10ms\"\ntasks = [\"t\"]\n{more}\n"
        );
        warnings(&text)
    };
    let is_said = |said: &[String]| said.iter().any(|text| text.contains("EPERM"));
    for kind in ["cbs-hard", "cbs-soft", "cbs-reclaim"] {
        let said = set(kind, "0-1", "", "cpus = \"1\"");
        assert!(
            is_said(&said) && said[0].starts_with("server 's': the kernel's deadline"),
            "{said:?}"
        );
        assert!(is_said(&set(kind, "0-1", "cpus = \"1\"", "")), "{kind}");
        for (cpus, more) in [("0-1", ""), ("0-1", "cpus = \"0-1\""), ("1", "cpus = \"1\"")] {
            assert!(!is_said(&set(kind, cpus, "", more)), "{kind} {cpus} {more}");
        }
    }
    // No server of the deadline class.
    assert!(!is_said(&set("deferrable", "0-1", "", "cpus = \"1\"")));
    let other = "cpus = \"1\"\n[[server]]\nname = \"o\"\nkind = \"cbs-hard\"\nbudget = \"1ms\"\nperiod = \"10ms\"\ncpus = \"0\"";
    let said = set("cbs-hard", "0-1", "", other);
    assert!(said.iter().any(|text| text.contains("as those of 1 other server,")), "{said:?}");
}

/// `Documentation/scheduler/sched-deadline.rst`, section 4, and `__checkparam_dl`: what the kernel's deadline class refuses.
#[test]
fn what_the_deadline_class_does_not_admit_is_a_warning() {
    let server = |name: &str, kind: &str, times: &str, cpu: &str| {
        format!(
            "[[task]]\nname = \"of-{name}\"\nwcet = \"1us\"\nperiod = 100\n[[server]]\nname = \"{name}\"\n\
             kind = \"{kind}\"\n{times}\n{cpu}\ntasks = [\"of-{name}\"]\n"
        )
    };
    let two = |kind: &str, second: u32, pins: [&str; 2]| {
        let times = |budget: u32| format!("budget = {budget}\nperiod = 100");
        "unit = \"1ms\"\nmachine.cpus = \"0-1\"\n".to_owned()
            + &server("a", kind, &times(60), pins[0])
            + &server("b", kind, &times(second), pins[1])
    };
    let admitted = |text: &str| warnings(text).iter().all(|text| !text.contains("95 %"));
    for kind in ["cbs-hard", "cbs-soft", "cbs-reclaim"] {
        assert!(admitted(&two(kind, 100, ["", ""])), "160 % of two CPUs");
        assert!(admitted(&two(kind, 35, ["cpu = 1", "cpu = 1"])), "95 % of one");
        assert!(!admitted(&two(kind, 36, ["cpu = 1", "cpu = 1"])), "96 % of one");
        assert!(admitted(&two(kind, 36, ["cpu = 1", "cpu = 0"])));
    }
    assert!(admitted(&two("deferrable", 36, ["cpu = 1", "cpu = 1"])));
    let three =
        two("cbs-hard", 90, ["", ""]) + &server("c", "cbs-hard", "budget = 50\nperiod = 100", "");
    assert!(warnings(&three)[0].contains("95 % of 2 CPUs"), "{:?}", warnings(&three));
    for (times, is_refused) in [
        ("budget = \"1023ns\"\nperiod = 1", true),
        ("budget = \"1024ns\"\nperiod = 1", false),
        ("budget = \"50us\"\nperiod = \"99us\"", true),
        ("budget = 5\nperiod = \"4194304us\"", false),
        ("budget = 5\nperiod = \"4194305us\"", true),
    ] {
        let text = "unit = \"1ms\"\n".to_owned() + &server("a", "cbs-hard", times, "");
        let found = warnings(&text);
        assert_eq!(
            found.iter().any(|text| text.contains("100us to 4.194304s")),
            is_refused,
            "{times}: {found:?}"
        );
    }
}
