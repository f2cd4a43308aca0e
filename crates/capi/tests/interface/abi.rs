//! Header and library say the same: every function with its types, every struct with its sizes and
//! offsets, every symbol, every number of a kind. The compiler is the judge: what is read out of the
//! sources is written down as C and compiled with the header.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::mem::{align_of, offset_of, size_of};
use std::process::Command;

use hourglass_skip::{Requirement, skip};

use crate::support::{Link, bench, compile, compilers, libraries, package, run};

/// All sources of the library.
fn sources() -> String {
    let files = fs::read_dir(package().join("src")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let rust = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>().join("\n")
}

pub(crate) fn header() -> String {
    fs::read_to_string(package().join("include/hourglass.h")).unwrap()
}

/// A function of the library, in Rust's words.
#[derive(Debug)]
struct Function {
    name: String,
    arguments: Vec<String>,
    result: String,
}

/// Every function that is exported.
fn functions(source: &str) -> Vec<Function> {
    source.split("#[unsafe(no_mangle)]\n").skip(1).filter_map(function).collect()
}

fn function(text: &str) -> Option<Function> {
    let head = text.split_once('{')?.0;
    let rest = head.split_once("extern \"C\" fn ")?.1;
    let (name, rest) = rest.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(')')?;
    let types = arguments.split(',').filter_map(|argument| argument.split_once(':'));
    let arguments = types.map(|(_, kind)| kind.trim().to_owned()).collect();
    let result = result.trim().trim_start_matches("->").trim().to_owned();
    Some(Function { name: name.to_owned(), arguments, result })
}

/// A type as C has it.
fn in_c(kind: &str) -> String {
    if let Some(pointed) = kind.strip_prefix("*const ") {
        return format!("const {} *", in_c(pointed));
    }
    if let Some(pointed) = kind.strip_prefix("*mut ") {
        return format!("{} *", in_c(pointed));
    }
    match kind {
        "" => "void",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "usize" => "size_t",
        "c_char" => "char",
        "c_void" => "void",
        other => other,
    }
    .to_owned()
}

pub(crate) fn without_comments(header: &str) -> String {
    header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, rest)| rest)).collect()
}

/// Functions that the header declares, and does not define itself.
pub(crate) fn declared(header: &str) -> BTreeSet<String> {
    // What stands in no comment, on no line for the preprocessor, and in no braces.
    let text = without_comments(header);
    let lines = text.lines().filter(|line| !line.starts_with('#') && *line != "extern \"C\" {");
    let (mut depth, mut code) = (0, String::new());
    for letter in lines.flat_map(|line| line.chars().chain(['\n'])) {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                code.push(';');
            }
            other if depth == 0 => code.push(other),
            _ => {}
        }
    }
    let heads = code.split(';').filter(|statement| {
        !["typedef", "static", "="].iter().any(|word| statement.contains(word))
    });
    let heads = heads.filter_map(|statement| statement.split_once('('));
    let names = heads.filter_map(|(head, _)| head.split_whitespace().next_back());
    names.map(|name| name.trim_start_matches('*').to_owned()).collect()
}

#[test]
fn every_function_is_declared_as_it_is() {
    let functions = functions(&sources());
    assert!(functions.len() > 90, "{}", functions.len());
    let ours: BTreeSet<String> = functions.iter().map(|f| f.name.clone()).collect();
    assert_eq!(declared(&header()), ours);

    let mut program = String::from(HEAD);
    for function in &functions {
        let arguments: Vec<String> = function.arguments.iter().map(|kind| in_c(kind)).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        // Declared twice, with types that differ, is an error.
        writeln!(program, "{} {}({arguments});", in_c(&function.result), function.name).unwrap();
    }
    program.push_str(TAIL);
    // Taking the address links it.
    writeln!(program, "int main(void) {{ void (*all[])(void) = {{").unwrap();
    for function in &functions {
        writeln!(program, "(void (*)(void)){},", function.name).unwrap();
    }
    writeln!(program, "}};\nunsigned at;\nfor (at = 0; at < sizeof all / sizeof *all; at++)")
        .unwrap();
    writeln!(program, "{{ if (!all[at]) {{ return 1; }} }}\nreturn !hg_clock_page_v1; }}").unwrap();
    everywhere("functions", &program);
}

/// The beginning of a program in both languages.
const HEAD: &str = "#include \"hourglass.h\"\n#ifdef __cplusplus\n#define _Static_assert static_assert\nextern \"C\" {\n#endif\n";
/// The end of its declarations.
const TAIL: &str = "#ifdef __cplusplus\n}\n#endif\n";

/// Compiles and runs a program with every compiler, as C and as C++.
fn everywhere(name: &str, program: &str) {
    let folder = bench();
    for (language, end, standard) in [("c", "c", "-std=c11"), ("c++", "cpp", "-std=c++11")] {
        let source = folder.path().join(format!("{name}.{end}"));
        fs::write(&source, program).unwrap();
        for compiler in compilers(language) {
            let made = compile(compiler, folder.path(), &source, &[standard], Link::Shared);
            run(&made, &[]);
        }
    }
}

/// A struct of the library.
struct Layout {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<(&'static str, usize)>,
}

macro_rules! layouts {
    ($($module:ident :: $name:ident { $($field:ident),* })*) => {
        vec![$({
            use hourglass::$module::$name;
            Layout {
                name: stringify!($name),
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                fields: vec![$((stringify!($field), offset_of!($name, $field))),*],
            }
        }),*]
    };
}

fn layouts() -> Vec<Layout> {
    [of_clock(), of_faults_and_timers(), of_work()].into_iter().flatten().collect()
}

fn of_clock() -> Vec<Layout> {
    layouts! {
        error::hg_error { kind, os_errno, text }
        clock::hg_bounds { earliest_ns, latest_ns, status, reserved }
        clock::hg_ticks { count, epoch, reserved }
        clock::hg_elapsed { ns, error_ns }
        clock::hg_scale_time { ns, error_ns, status, reserved }
        clock::hg_wall_time { ns, error_ns, status, reserved }
        utc::hg_utc { earliest_ns, latest_ns, status, reserved }
        utc::hg_utc_wait { waited_ns, ahead_ns, error_ns, last }
        utc::hg_utc_keeper { handle }
        utc::hg_utc_source { name, error_ns, growth_ppb, at_ns }
        clock::hg_wall_reference { monotonic_ns, wall_ns, error_ns }
        clock::hg_maintained { next_ns, drawn, reserved }
        clock::hg_trust { trusted, reserved, reason }
        clock::hg_clock_event { at_ns, kind, reserved, text }
        hardware::hg_hardware {
            rdtscp, constant_tsc, invariant_tsc, hypervisor, hpet, brand, hpet_reason
        }
        page::hg_page { words, handle, counter, guard }
        page::hg_page_writer { pid, heartbeat_ns, events, expired, reserved }
        interrupt::hg_interrupt { word }
        sleep::hg_slept {
            deadline_ns, woke_ns, kernel_ns, spin_ns, margin_ns, longest_step_ns, delay,
            interrupted, reserved
        }
        sleep::hg_sleep_settings {
            policy, hz, per_sleep_ns, share_ppm, quantile_ppm, of_wait_ppm, reserved,
            longest_margin_ns, seed_ns, sample_every, ends_when
        }
        sleeper::hg_sleeper { handle }
        scheduling::hg_scheduling {
            policy, priority, runtime_ns, deadline_ns, period_ns, reclaim, reserved
        }
    }
}

fn of_faults_and_timers() -> Vec<Layout> {
    layouts! {
        fault::hg_watched { handle }
        fault::hg_handler { handle }
        fault::hg_watch_settings { strength, signal, longest_stop_ns }
        fault::hg_handler_settings { scheduling, demoted, pinned, reserved, cpu }
        fault::hg_fault {
            count, untold, deadline_ns, stopped_ns, handled_ns, thread, strength, deferred,
            over_budget, reserved
        }
        fault::hg_verdict { kind, changes, scheduling, deadline_ns, cpu, reserved }
        fault::hg_handled { faults, refused }
        watch::hg_ending {
            number, deadline_ns, finished_ns, next_deadline_ns, missed, was_job, reserved
        }
        watch::hg_watch_state { deadline_ns, faults, untold, overstayed }
        service::hg_service { handle }
        service::hg_owner { handle }
        service::hg_class { handle }
        service::hg_port { handle }
        threads::hg_thread { handle }
        service::hg_service_settings {
            engines, device, scheduling, pinned, reserved, cpu, tick_ns
        }
        service::hg_service_statistics {
            created, fired, overruns, lost_races, long_actions, longest_action_ns, latest_ns,
            turns, ticks_skipped, without_room, timers, precise, reserved
        }
        clock_device::hg_clock_device { handle }
        clock_device::hg_device_timer { handle }
        clock_device::hg_device_expiry { timer, tag, expiry_ns, tick_ns, overruns }
        service::hg_class_statistics { ran, longest_ns, without_room, raised, raise_refused }
        service::hg_class_settings { scheduling, room, raise, reserved }
        service::hg_message { tag, expiration }
        timer::hg_timer { handle }
        service::hg_expiration { expiry_ns, now_ns, overruns, base, clock_set, reserved }
        timer::hg_action {
            kind, reserved, tag, port, thread, class_, watched, call, user, release
        }
        timer::hg_timer_settings {
            base, expire_on_set, on_engine, reserved, engine, reserved_too
        }
        timer::hg_arm {
            expiry_ns, period_ns, slack_ns, relative, has_priority, priority, reserved
        }
        timer::hg_timer_status { next_ns, fired, overruns, armed, busy, terminated, reserved }
    }
}

fn of_work() -> Vec<Layout> {
    layouts! {
        periodic::hg_periodic { handle }
        job::hg_completed {
            number, release_ns, started_ns, deadline_ns, completed_ns, cost_ns, lost, moved_ns,
            late, overrun, missed, cost_overrun, reserved
        }
        job::hg_job {
            number, release_ns, started_ns, deadline_ns, lost_before, late, has_previous, reserved,
            previous, inner
        }
        job::hg_standing { until_deadline_ns, budget_left_ns }
        periodic::hg_periodic_settings {
            name, period_ns, hertz, on_overrun, deadline_ns, phase_ns, budget_ns, epoch_ns,
            scheduling, cpus, cpu_count, waiting, stop_on, on_miss, on_cost_overrun, on_fault,
            watch, handler, watch_budget, reserved
        }
        periodic::hg_distribution { count, min_ns, mean_ns, p50_ns, p99_ns, p999_ns, max_ns }
        periodic::hg_periodic_statistics {
            releases, jobs, misses, overruns, late, lost, drift_ns, cost_overruns, cpu_ns, latency,
            response
        }
        recorder::hg_loop { handle }
        recorder::hg_recording { handle }
        recorder::hg_loop_spec {
            name, period_ns, deadline_ns, gap_ns, records, jobs, ring, reserved, folder
        }
        recorder::hg_deadlines { hit, missed, lost, completed }
        recorder::hg_recording_summary {
            received_ns, wall_ns, epoch_ns, intervals, dropped, gaps, gap_total_ns, gap_p50_ns,
            gap_p99_ns, gap_p999_ns, gap_max_ns, migrations, deadlines, rate_error_ppb
        }
        recorder::hg_interval { start_ns, end_ns, cpu, onset }
        reserve::hg_request {
            budget_ns, period_ns, deadline_ns, soft, pinned, reserved, cpu
        }
        reserve::hg_reservation { handle }
        reserve::hg_supply {
            periods, missed, overruns, delivered_min_ns, delivered_p50_ns, throttled_ns
        }
        progress::hg_progress_page { words, job, handle, over, reserved }
        witness::hg_witness_view { named, name, sums }
        witness::hg_span { generation, sums, begun, cpu, busy, travelling, unknown, reserved }
        witness::hg_loss {
            length_ns, off_cpu_least_ns, off_cpu_most_ns, waited_ns, voluntary, involuntary, faults,
            cause, confidence_ppm, cpu_before, cpu_after, who
        }
    }
}

/// Every struct that C sees, with its fields, as the sources have them; handles made by the macro of
/// `table.rs` are found by their functions.
fn structs(source: &str) -> Vec<(String, Vec<String>)> {
    let parts = source.split("#[repr(C").skip(1);
    let found = parts.filter_map(|part| {
        let (head, rest) = part.split_once("pub struct ")?;
        let name = rest.split_once(" {")?.0;
        let body = rest.split_once('{')?.1.split_once("\n}")?.0;
        let fields = body.lines().filter_map(|line| line.trim().strip_prefix("pub "));
        let fields = fields.filter_map(|field| Some(field.split_once(':')?.0.to_owned()));
        (head.len() < 120 && name.starts_with("hg_")).then(|| (name.to_owned(), fields.collect()))
    });
    found.collect()
}

#[test]
fn every_struct_lies_as_it_does() {
    let layouts = layouts();
    for (name, fields) in structs(&sources()) {
        let layout = layouts.iter().find(|layout| layout.name == name);
        let layout = layout.unwrap_or_else(|| panic!("{name} is not in the list of this test"));
        let listed: Vec<&str> = layout.fields.iter().map(|(field, _)| *field).collect();
        assert_eq!(fields, listed, "{name}");
    }
    // The constants.
    let mut program = String::from(HEAD);
    let mut holds =
        |what: String| writeln!(program, "_Static_assert({what}, \"{what}\");").unwrap();
    for layout in &layouts {
        holds(format!("sizeof({}) == {}", layout.name, layout.size));
        holds(format!("__alignof__({}) == {}", layout.name, layout.align));
        for (field, offset) in &layout.fields {
            holds(format!("offsetof({}, {field}) == {offset}", layout.name));
        }
    }
    for (name, number, _) in hourglass::error::KINDS {
        holds(format!("{name} == {number}"));
    }
    holds(format!("HG_TEXT == {}", hourglass::error::TEXT));
    holds(format!("HG_ABI_VERSION == {}", hourglass::version::HG_ABI_VERSION));
    holds(format!("HG_VERSION_MAJOR == {}", env!("CARGO_PKG_VERSION_MAJOR")));
    holds(format!("HG_VERSION_MINOR == {}", env!("CARGO_PKG_VERSION_MINOR")));
    holds(format!("HG_VERSION_PATCH == {}", env!("CARGO_PKG_VERSION_PATCH")));
    holds("HG_VERSION >= HG_VERSION_OF(0, 1, 0) && HG_VERSION < HG_VERSION_OF(99, 0, 0)".into());
    program.push_str(TAIL);
    writeln!(program, "int main(void) {{ return 0; }}").unwrap();
    everywhere("layouts", &program);
}

/// A function whose body begins at `text`, and nothing behind it.
fn body(text: &str) -> &str {
    text.split_once("\n}\n").map_or(text, |(body, _)| body)
}

/// Behind the border `errno` is kept and no thread is cancelled. Only functions that return a constant need no border.
#[test]
fn every_function_is_behind_the_border() {
    const CONSTANT: [&str; 7] = [
        "hg_status_name",
        "hg_abi_version",
        "hg_version",
        "hg_source_name",
        "hg_sleep_defaults",
        "hg_sleep_frugal",
        "hg_sleep_precise",
    ];
    // The border, and what calls nothing else.
    const BORDER: [&str; 9] = [
        "reading(",
        "guard(",
        "answer(",
        "give(",
        "mark(",
        "refer(",
        "own_sleep(",
        "kept_sleep(",
        "launch(",
    ];
    let sources = sources();
    let mut count = 0;
    for text in sources.split("#[unsafe(no_mangle)]\n").skip(1) {
        let Some(Function { name, .. }) = function(text) else { continue };
        count += 1;
        let (_, within) = body(text).split_once('{').unwrap();
        let is_behind = BORDER.iter().any(|border| within.contains(border));
        assert!(is_behind || CONSTANT.contains(&name.as_str()), "{name}");
    }
    assert_eq!(count, functions(&sources).len());
}

/// The functions of the header that are not its own affair, each with the comment before it. What stands
/// together without an empty line shares one.
fn documented(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in header.split("/*").skip(1) {
        let Some((comment, code)) = part.split_once("*/\n") else { continue };
        let (code, _) = code.split_once("\n\n").unwrap_or((code, ""));
        for line in code.lines().filter(|line| !line.starts_with([' ', '{', '}', '#'])) {
            let Some((head, _)) = line.split_once('(') else { continue };
            let Some(name) = head.split([' ', '*']).next_back() else { continue };
            if name.starts_with("hg_") && !name.ends_with('_') && !head.contains('=') {
                found.push((name.to_owned(), comment.to_owned()));
            }
        }
    }
    found
}

/// Issue 8: each function says its thread and signal safety, who frees what, and its errors.
#[test]
fn every_function_says_threads_signals_errors_and_who_frees() {
    let header = header();
    let found = documented(&header);
    let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), found.len(), "each once");
    for name in declared(&header) {
        assert!(names.contains(name.as_str()), "{name} has no comment");
    }
    let kinds: BTreeSet<&str> = hourglass::error::KINDS.iter().map(|(name, _, _)| *name).collect();
    for (name, comment) in &found {
        let words = comment.replace("\n *", " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, rest) = words.split_once("Threads: ").unwrap_or_else(|| panic!("{name}: Threads"));
        let (_, rest) = rest.split_once(". Signals: ").unwrap_or_else(|| panic!("{name}: Signals"));
        let (signals, rest) =
            rest.split_once(". Errors: ").unwrap_or_else(|| panic!("{name}: Errors"));
        let (errors, free) = rest.split_once(" Free: ").unwrap_or_else(|| panic!("{name}: Free"));
        assert!(["safe", "no"].contains(&signals), "{name}: {signals}");
        let text = errors.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        let named: Vec<&str> = text.filter(|word| word.starts_with("HG_")).collect();
        assert!(named.iter().all(|kind| kinds.contains(kind)), "{name}: {errors}");
        assert_eq!(named.is_empty(), errors == "none.", "{name}: {errors}");
        // What makes something names what frees it, and that is there.
        let freed = free.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let frees = freed.filter(|word| word.starts_with("hg_")).all(|word| names.contains(word));
        assert!(free.ends_with(". ") || free.trim_end().ends_with('.'), "{name}: {free}");
        assert!(frees, "{name}: {free}");
        let makes = [
            "_new",
            "_start",
            "_start_with",
            "_install",
            "_open",
            "_current",
            "_finish",
            "_thread",
        ];
        let makes = makes.iter().any(|end| name.ends_with(end)) || name == "hg_clock_share";
        assert_eq!(makes, free.contains(" with "), "{name}: {free}");
    }
}

/// What C has, C++ has: by a class, or where that is no more than a name, by the function itself.
#[test]
fn every_function_is_within_reach_of_cpp() {
    let text = fs::read_to_string(package().join("include/hourglass.hpp")).unwrap();
    let words: BTreeSet<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    // What the inline reads fall back to, and what `check_abi` asks.
    let inner = |name: &str| name.ends_with("_call") || name.starts_with("hg_abi_version");
    for (name, _) in documented(&header()) {
        let reached = words.contains(name.as_str()) || name == "hg_check_abi_of";
        assert!(reached || inner(&name), "{name}");
    }
}

#[test]
fn every_kind_of_the_header_is_one_of_the_librarys() {
    let header = header();
    let (_, rest) = header.split_once("    HG_OK = 0,").unwrap();
    let list = rest.split_once("};").unwrap().0;
    let words = list.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("HG_")).collect();
    let ours: BTreeSet<&str> = hourglass::error::KINDS
        .iter()
        .map(|(name, _, _)| *name)
        .filter(|n| *n != "HG_OK")
        .collect();
    assert_eq!(named, ours);
}

/// Nothing else of ours is exported, and nothing is missing; `nm` belongs to the compiler.
#[test]
fn the_libraries_export_what_the_header_declares() {
    if !crate::support::has("nm") {
        skip(Requirement::program("nm"), "there is no nm (apt-get install binutils)");
        return;
    }
    let [shared, archive] = libraries();
    let mut wanted = declared(&header());
    wanted.extend(["hg_clock_page_v1", "hg_clock_utc_v1", "hg_page_guards_v1"].map(str::to_owned));
    for (file, flags) in [(shared, "-D"), (archive, "-g")] {
        let said = Command::new("nm").args([flags, "--defined-only"]).arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
        let found: BTreeSet<String> =
            names.filter(|name| name.starts_with("hg_")).map(str::to_owned).collect();
        assert_eq!(found, wanted, "{}", file.display());
    }
    let said = Command::new("readelf").arg("-d").arg(&libraries()[0]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("soname: [libhourglass.so.1]"), "{said}");
}
