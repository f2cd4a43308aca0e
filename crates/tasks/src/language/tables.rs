//! The tables of a file and their keys.

use super::{KeyDef, Presence, TableDef, ValueKind};
use crate::keywords::{self, names};
use ValueKind::{
    Boolean, Cpus, Fraction, ListOfCpus, Loops, Names, Steps, Table, Tables, Text, Time, TimeText,
    Times, Whole, Words,
};

/// All tables, in the order in which they are described.
pub const TABLES: [&TableDef; 10] = [
    &FILE,
    &TASK,
    &CRITICAL_SECTION,
    &RESOURCE,
    &SERVER,
    &MACHINE,
    &OVERHEADS,
    &INTERFERENCE,
    &PHASE,
    &BACKGROUND,
];

const fn key(
    name: &'static str,
    kind: ValueKind,
    example: &'static str,
    about: &'static str,
) -> KeyDef {
    let presence = Presence::Optional;
    KeyDef { name, kind, example, about, presence, default: "", is_frequent: false }
}

impl KeyDef {
    const fn without(self, default: &'static str) -> KeyDef {
        KeyDef { default, ..self }
    }

    const fn required(self) -> KeyDef {
        KeyDef { presence: Presence::Required, ..self }
    }

    const fn required_unless(self, other: &'static str, default: &'static str) -> KeyDef {
        KeyDef { presence: Presence::RequiredUnless(other), default, ..self }
    }

    const fn frequent(self) -> KeyDef {
        KeyDef { is_frequent: true, ..self }
    }
}

const SCHEDULERS: ValueKind = Words(&names(&keywords::SCHEDULERS));

const CPUS: KeyDef = key("cpus", Cpus, r#""0-1""#, "The CPUs on which it may run.").without("any");

const CPU: KeyDef = key("cpu", Cpus, "0", "Another name of `cpus`.");

const POLICY: KeyDef = key(
    "policy",
    Text,
    r#""FIFO:80""#,
    "The kernel's class for a run: `FIFO:80`, `RR:10`, `OTHER:0`, `BATCH`, `IDLE`, `DEADLINE`.",
);

const PHASES: KeyDef =
    key("phases", Tables(&PHASE), "", "The phases of the thread, one after the other.");

const ROUNDS: KeyDef =
    key("loops", Loops, "10", "How often all `phases` are gone through.").without("for ever");

/// The file itself: the keys before the first table.
pub const FILE: TableDef = TableDef {
    name: "file",
    heading: "The file",
    about: "These keys stand at the beginning of the file, before the first table.",
    keys: &[
        key("schema", Words(&[keywords::TASKS_SCHEMA]), r#""hourglass.tasks/1""#, "The name and version of the format.")
            .without("this version"),
        key("name", Text, r#""a car""#, "The name of the set."),
        key("unit", TimeText, r#""1ms""#, "What a bare number of time counts; for examples from books.")
            .without("bare numbers are refused"),
        key(
            "scheduler",
            SCHEDULERS,
            r#""edf""#,
            "The rule that chooses the next job: the highest priority, the earliest deadline (EDF), the job that \
             came first, turns, or equal shares.",
        )
        .without("`fixed-priority`")
        .frequent(),
        key(
            "priorities",
            Words(&names(&keywords::ASSIGNMENTS)),
            r#""rate-monotonic""#,
            "Where priorities come from; `optimal` ones are found by the analysis.",
        )
        .without("`given` if any task has a priority, else `deadline-monotonic`")
        .frequent(),
        key("horizon", TimeText, r#""1s""#, "How long a simulation lasts without `--horizon`.")
            .without("until everything repeats"),
        key("machine", Table(&MACHINE), "", "The CPUs, and what the kernel costs."),
        key("resource", Tables(&RESOURCE), "", "Locks that tasks share."),
        key("server", Tables(&SERVER), "", "Reservations in which tasks run."),
        key("task", Tables(&TASK), "", "The tasks.").required_unless("background", "only `background`"),
        key("interference", Tables(&INTERFERENCE), "", "How hardware threads of a core slow each other."),
        key("background", Tables(&BACKGROUND), "", "Background threads, which are no tasks."),
    ],
    rules: "Assigned priorities are all different: of two tasks with equal periods (or deadlines), the one that \
            stands first is the more urgent. Equal priorities that were given are served first come, first served.",
};

pub(crate) const TASK: TableDef = TableDef {
    name: "task",
    heading: "[[task]]",
    about: "A task releases jobs. Each job needs processor time by its deadline.",
    keys: &[
        key("name", Text, r#""video""#, "Its name, unlike that of any other task.").required().frequent(),
        key("wcet", Time, r#""3ms""#, "The longest execution time of a job, critical sections included.")
            .required_unless("execution_time", "the longest of `execution_time`")
            .frequent(),
        key("period", Time, r#""8ms""#, "The time between two arrivals; the shortest, for a sporadic task.")
            .required_unless("after", "that of the first task in `after`")
            .frequent(),
        key("activation", Words(&names(&keywords::ACTIVATIONS)), r#""sporadic""#, "Whether jobs arrive exactly or at least a period apart.")
            .without("`periodic`"),
        key(
            "deadline",
            Time,
            r#""5ms""#,
            "The deadline from the nominal arrival; it may be longer than the period. In a chain, from the arrival \
             of its first task.",
        )
        .without("the period")
        .frequent(),
        key(
            "wcet_at_least",
            Time,
            r#""2ms""#,
            "Where `wcet` is an upper bound of what is not known: what the longest execution time is at least. If a \
             deadline is missed with `wcet` and not with this, the verdict is unknown.",
        )
        .without("the `wcet`"),
        key("bcet", Time, r#""1ms""#, "The shortest execution time of a job.").without("not known"),
        key(
            "execution_time",
            Text,
            r#""uniform:1ms,3ms""#,
            "What simulations and runs draw execution times from: `3ms`, `uniform:A,B`, `normal:M,SD`, \
             `table:FILE.csv` and others.",
        )
        .without("always the `wcet`")
        .frequent(),
        key(
            "jitter",
            Time,
            r#""200us""#,
            "The longest time from nominal arrival to release; what the tick of a `timer` delays is added.",
        )
        .without("0")
        .frequent(),
        key("offset", Time, r#""2ms""#, "The arrival of the first job, where phases are known.")
            .without("any phase is possible")
            .frequent(),
        key("blocking", Time, r#""50us""#, "Delay by less urgent tasks beyond what the sections below account for.")
            .without("0"),
        key("suspension", Time, r#""1ms""#, "The longest time in all for which a job suspends itself.")
            .without("0")
            .frequent(),
        key("preemptive", Boolean, "false", "`false`: its jobs are not preempted.").without("`true`").frequent(),
        key("preemption_threshold", Whole, "7", "Only priorities above this one preempt it."),
        key("longest_section", Time, r#""1ms""#, "The longest non-preemptive section between fixed preemption points."),
        key("last_section", Time, r#""1ms""#, "The last of these sections.").without("`longest_section`"),
        key("floating_section", Time, r#""1ms""#, "The longest non-preemptive section, wherever it lies."),
        key("priority", Whole, "80", "Its priority; the larger number is more urgent.")
            .without("assigned, as `priorities` says")
            .frequent(),
        KeyDef {
            about: "The kernel's class for a run: `FIFO:80`, `RR:10`, `OTHER:0`, `BATCH`, `IDLE`, `DEADLINE`. It \
                    excludes `priority`.",
            ..POLICY
        }
        .without("FIFO at its priority")
        .frequent(),
        CPUS.frequent(),
        CPU,
        key(
            "arrivals",
            Times,
            r#"["1ms", "2ms"]"#,
            "The shortest times from any arrival to the next, to the one after it, ...: bursts; beyond these, each \
             is a period later.",
        )
        .without("no bursts")
        .frequent(),
        key("after", Names, r#"["brake"]"#, "The tasks that must be finished before a job is released.")
            .without("none")
            .frequent(),
        key(
            "critical_sections",
            Tables(&CRITICAL_SECTION),
            r#"[{ resource = "bus", length = "50us" }]"#,
            "The locks that a job holds, and for how long.",
        )
        .without("none")
        .frequent(),
        key("timer", Text, r#""TICK:250""#, "The wake-up method of a run; `TICK:HZ` also binds simulated wake-ups to ticks.")
            .without("the run's own"),
        key("tick_jitter", Time, r#""1ms""#, "The longest delay of a release by the tick of `timer`, where it is known.")
            .without("a whole tick"),
        ROUNDS,
        PHASES,
    ],
    rules: "Of `preemptive = false`, `preemption_threshold`, `longest_section` and `floating_section`, a task has one \
            at most. An execution time above the deadline is accepted with a warning; the analysis calls it \
            infeasible. A deadline, period or execution time of 0 is refused.",
};

pub(crate) const CRITICAL_SECTION: TableDef = TableDef {
    name: "critical section",
    heading: "critical_sections",
    about: "Each entry of `critical_sections` is a table of its own: a lock that the job takes.",
    keys: &[
        key("resource", Text, r#""bus""#, "The name of a `[[resource]]`.").required(),
        key("length", Time, r#""50us""#, "The longest time for which it is held.").required(),
        key("count", Whole, "2", "How often a job does it.").without("1"),
    ],
    rules: "",
};

pub(crate) const RESOURCE: TableDef = TableDef {
    name: "resource",
    heading: "[[resource]]",
    about: "A lock.",
    keys: &[
        key("name", Text, r#""bus""#, "Its name.").required(),
        key(
            "protocol",
            Words(&names(&keywords::PROTOCOLS)),
            r#""inheritance""#,
            "The protocol of the lock: `ceiling` is `PTHREAD_PRIO_PROTECT`, and for tasks by deadline Baker's stack \
             resource policy, with levels by deadline less jitter; `spin` is first come, first served, without \
             preemption.",
        )
        .without("`ceiling`")
        .frequent(),
        key("ceiling", Whole, "80", "The priority of its holder, for `ceiling`; none for tasks by deadline.")
            .without("the highest priority of the tasks that use it"),
    ],
    rules: "",
};

pub(crate) const SERVER: TableDef = TableDef {
    name: "server",
    heading: "[[server]]",
    about: "A reservation of processor time, in which tasks run.",
    keys: &[
        key("name", Text, r#""comfort""#, "Its name.").required(),
        key(
            "kind",
            Words(&names(&keywords::SERVER_KINDS)),
            r#""cbs-hard""#,
            "How it gives its budget; `cbs-hard` is the kernel's deadline class, `cbs-reclaim` the class with reclaiming.",
        )
        .required()
        .frequent(),
        key("budget", Time, r#""2ms""#, "The processor time per period.").required(),
        key("period", Time, r#""10ms""#, "The time between two replenishments.").required(),
        key(
            "deadline",
            Time,
            r#""5ms""#,
            "The deadline of its budget, which it has room for; it may differ from the period for \
             `explicit-deadline`, `cbs-hard` and `cbs-reclaim`.",
        )
        .without("the period"),
        key(
            "priority",
            Whole,
            "80",
            "Its priority; constant-bandwidth servers use none, since they are before all priorities.",
        )
        .without("before all that have one; where priorities are assigned and no server has one, among them"),
        CPUS,
        CPU,
        key("scheduler", SCHEDULERS, r#""edf""#, "The rule among its tasks.")
            .without("`fixed-priority`"),
        key("tasks", Names, r#"["radio"]"#, "The tasks that run in it.")
            .without("none, with a warning"),
    ],
    rules: "A task runs in one server at most.",
};

pub(crate) const MACHINE: TableDef = TableDef {
    name: "machine",
    heading: "[machine]",
    about: "The processor, and what the kernel costs.",
    keys: &[
        KeyDef { about: "The CPUs that there are.", ..CPUS }
            .without("those that are named anywhere, or CPU 0")
            .frequent(),
        key(
            "cores",
            ListOfCpus,
            "[[0, 1]]",
            "For each core with several hardware threads, their CPUs.",
        )
        .without("each CPU is a core"),
        key(
            "overheads",
            Table(&OVERHEADS),
            r#"{ context_switch = "3us" }"#,
            "What the kernel costs.",
        ),
    ],
    rules: "",
};

pub(crate) const OVERHEADS: TableDef = TableDef {
    name: "overheads",
    heading: "[machine.overheads]",
    about: "What the kernel and the caches cost. What is not there costs nothing.",
    keys: &[
        key("context_switch", Time, r#""3us""#, "The time of a switch between two tasks."),
        key("tick_period", Time, r#""4ms""#, "The time between two ticks."),
        key("tick_cost", Time, r#""2us""#, "The time that a tick takes."),
        key(
            "timer_granularity",
            Time,
            r#""1ms""#,
            "The grid of the kernel's timers, by which a release is late.",
        ),
        key(
            "cache_delay",
            Time,
            r#""20us""#,
            "The time that a preempted job loses by cold caches.",
        ),
    ],
    rules: "",
};

pub(crate) const INTERFERENCE: TableDef = TableDef {
    name: "rate of interference",
    heading: "[[interference]]",
    about: "How much a task is slowed while another runs on a hardware thread of the same core.",
    keys: &[
        key("task", Text, r#""brake""#, "The task that is slowed.").without("any"),
        key("beside", Text, r#""radio""#, "The task on the sibling CPU.").without("any"),
        key(
            "rate",
            Fraction,
            r#""3/5""#,
            "The progress of `task` per unit of time meanwhile, from 0 to 1.",
        )
        .required(),
    ],
    rules: "The entry that names both counts before the one that names the task, and that before the one that names \
            the other. Without an entry the rate is 1.",
};

pub(crate) const PHASE: TableDef = TableDef {
    name: "phase",
    heading: "[[task.phases]]",
    about: "Phases say what a thread does step by step, so that a run replays it. They are those of rt-app.",
    keys: &[
        key("name", Text, r#""decode""#, "Its name."),
        KeyDef { about: "How often its steps are done before the next phase.", ..ROUNDS }
            .without("1"),
        POLICY.without("as before the phase"),
        CPUS.without("those of the thread"),
        key("steps", Steps, r#"["run 3ms", "sleep 5ms"]"#, "What is done, one after the other.")
            .without("nothing"),
    ],
    rules: "The steps are `run TIME`, `run_for TIME`, `sleep TIME`, `timer NAME TIME [absolute]`, `lock NAME`, \
            `unlock NAME`, `wait CONDITION MUTEX`, `signal NAME`, `broadcast NAME`, `barrier NAME`, `suspend NAME`, \
            `resume NAME`, `post NAME` and `take NAME` (a semaphore, 0 in the beginning), `yield`, `memory BYTES`, \
            `read BYTES BUFFER`, `write BYTES BUFFER`, `chase HOPS BUFFER STRIDE [sequential]` (pointers that go \
            round a buffer of so many bytes), `io BYTES` and `fork NAME`. `forked NAME NUMBER` waits for that start \
            by a `fork`, from 0, and `start_after TIME` for a time after the thread's start, each only once.",
};

pub(crate) const BACKGROUND: TableDef = TableDef {
    name: "background thread",
    heading: "[[background]]",
    about: "A background thread. It is no task, because nothing bounds how often it runs.",
    keys: &[
        key("name", Text, r#""logger""#, "Its name.").required(),
        POLICY.without("`OTHER:0`"),
        CPUS,
        CPU,
        ROUNDS,
        PHASES.required(),
    ],
    rules: "",
};
