//! `reserve`: a command, process or thread under a reservation; or whether it would be granted.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::document::Warning;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_report::text;
use hourglass_time::Span;

use self::from::ProposalOptions;
use crate::exit::{self, Stop};
use crate::lab::ReservedFolder;
use crate::lab::reserve::{
    self, Backend, ChangeFailure, CoRunnerSettings, ProgressFrom, ProgressRate, Selection,
    SessionFailure, SessionRequest, SessionTarget, SharingLevel, SiblingPolicy, Stopper,
    TargetSelector, arguments,
};
use crate::messages;
use crate::output;
use crate::progress::ReserveProgress;
use crate::settings::Settings;

mod bounds;
mod from;
mod upper_bounds;

/// Guarantee a CPU budget to a program, also on cores with hyper-threads
#[derive(Args, Debug)]
#[command(override_usage = "hourglass reserve [OPTIONS] <BUDGET/PERIOD> [COMMAND]...
       hourglass reserve --change <PID> <BUDGET/PERIOD>
       hourglass reserve --from <DIR|FILE> [--pid <PID>]
       hourglass reserve --list
       hourglass reserve --clean")]
#[command(after_help = "Examples:
  hourglass reserve 3.1ms/8ms -- player song.flac
  hourglass reserve 30% -- encoder                 3ms of each 10ms
  hourglass reserve 3.1ms/8ms --soft --cpu 1 -- make
  hourglass reserve 25ms/33.3ms --thread audio     a running thread
  hourglass reserve 3ms/8ms --check                would it be granted?
  hourglass reserve 55ms/70ms --cpu 0 --smt monitor --stop 4711 -- encoder
  hourglass reserve 6ms/20ms --also 5ms/40ms=4711 --cpu 0 -- player
  hourglass reserve 3.1ms/8ms --json -- ./job > supply.json
  hourglass reserve 30% -o encoder -- encoder      stored for show and report
  hourglass reserve --list                         what is reserved on this machine
  hourglass reserve --from run1                    what should its threads reserve?
  hourglass reserve --from player.toml --pid 4711  reserve that for its threads
  hourglass reserve --change 4711 4ms/8ms          while it runs; PID from --list
  hourglass reserve --clean                        after a crash or an OOM kill

A command ends with its own code: 128+n if signal n ended it, 127 if there is no
such program, 126 if it cannot be executed, 125 if it could not be given its
reservation and was not started, or hourglass itself failed. Options that make
no sense end with 2, before anything is started. --check ends with 0 for yes
and 1 for no, and so do --change and --from (1 also where only an upper bound on
a task's wcet is refused: unknown); --clean with 0 if all is undone, 1 if not,
and 3 if the records cannot be read.
What was delivered goes to stderr; with --json it goes to stdout, and what the
command prints to stderr.")]
pub(crate) struct Reserve {
    /// CPU time in each period, such as 3.1ms/8ms; or a share of a CPU, such as 30%: of
    /// each 10 ms, and below 5% of as many of them as give half a millisecond
    #[arg(value_name = "BUDGET/PERIOD", value_parser = amount, required_unless_present_any = ["clean", "list", "from"])]
    amount: Option<BudgetPeriodArg>,
    /// Let it continue at time-sharing priority when the budget is used up
    #[arg(long)]
    soft: bool,
    /// Deadline of the budget within the period [default: the period]
    #[arg(long, value_name = "TIME")]
    deadline: Option<Span>,
    /// CPU to which the work is bound
    #[arg(long, value_name = "N", value_parser = arguments::cpu, allow_hyphen_values = true)]
    cpu: Option<u32>,
    /// What enforces it: auto, deadline (kernel, one thread), user (a group of
    /// threads) or quota (a limit only)
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = backend)]
    backend: Choice<Backend>,
    /// Only test whether it would be granted, or say what to change; nothing is started
    #[arg(long)]
    check: bool,
    /// List the reservations of this machine: those of hourglass from user space, and
    /// threads of the deadline class
    #[arg(long, conflicts_with_all = ["amount", "check", "clean", "pid", "thread", "command", "cpu", "smt", "soft", "deadline", "also"])]
    list: bool,
    /// Give the reservation of process PID of --list another budget, from its next period on: the one that
    /// it enforces from user space, or its thread in the deadline class. Admission is as at the
    /// start; its user and root may do it
    #[arg(long, value_name = "PID", value_parser = arguments::process, requires = "amount")]
    #[arg(conflicts_with_all = ["check", "list", "clean", "pid", "thread", "command", "cpu", "smt", "soft", "deadline", "also"])]
    change: Option<u32>,
    /// Say what to reserve for each periodic thread of a run folder, or each task of a file (as check reads
    /// them): the longest execution time and a margin, in the longest period that keeps its deadline; and
    /// which would be granted, each together with those before it. With --pid (and without --check) the
    /// threads of that process that have the names of the tasks get it, all of them or none
    #[arg(long, value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    #[arg(conflicts_with_all = ["amount", "list", "clean", "thread", "command", "smt", "deadline", "also"])]
    from: Option<PathBuf>,
    /// Undo stale changes of killed reservations: threads raised or pinned, processes
    /// stopped, control groups. Reservations in force are not touched
    #[arg(long, conflicts_with_all = ["amount", "check", "pid", "thread", "command", "cpu", "smt", "soft", "deadline", "also"])]
    clean: bool,
    /// Reserve for this running process
    #[arg(long, value_name = "PID", conflicts_with_all = ["thread", "command"], value_parser = arguments::process)]
    pid: Option<u32>,
    /// Reserve for this running thread
    #[arg(long, value_name = "NAME|TID", conflicts_with = "command")]
    thread: Option<String>,
    /// A further reservation, for a running process, such as 2ms/20ms=4711; may be
    /// repeated. The backend user enforces them all; a COMMAND or --pid is needed. It ends with that process, or with the first reservation
    #[arg(long, value_name = "BUDGET/PERIOD=PID", value_parser = also)]
    also: Vec<AlsoArg>,
    /// Co-runners on the same core: monitor (they run while there is slack), disable
    /// (they never run while the work does), ignore (only observe)
    #[arg(long, value_name = "POLICY", value_parser = arguments::policy, help_heading = SHARING)]
    smt: Option<SiblingPolicy>,
    /// What is shared: siblings, llc (cache), membw (memory bandwidth) or a list of CPUs
    #[arg(long, value_name = "WHAT", default_value = "siblings", value_parser = str::parse::<SharingLevel>)]
    #[arg(requires = "smt", help_heading = SHARING)]
    interferes: SharingLevel,
    /// Co-runners that may be stopped: a process with its descendants (1234), a control
    /// group (/sys/fs/cgroup/batch) or a session (session:1234); may be repeated
    #[arg(long, value_name = "SELECTION", value_parser = str::parse::<Selection>, requires = "smt", help_heading = SHARING)]
    stop: Vec<Selection>,
    /// How they are stopped: auto (the fastest, measured), cgroup2_freeze, sigstop, cgroup1_freezer
    /// or core_cookie
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = stopper)]
    #[arg(requires = "smt", help_heading = SHARING)]
    stopper: Choice<Stopper>,
    /// Slow them down before they are stopped
    #[arg(long, requires = "smt", help_heading = SHARING)]
    slow_first: bool,
    /// Proven lower bound on the rate of progress while they run, from 0 to below 1
    #[arg(long, value_name = "FRACTION", default_value = "0", value_parser = arguments::rate)]
    #[arg(requires = "smt", help_heading = SHARING)]
    alpha: ProgressRate,
    /// Check the slack at this interval, such as 1ms, instead of when it can be used up
    #[arg(long, value_name = "TIME", value_parser = arguments::interval)]
    #[arg(requires = "smt", help_heading = SHARING)]
    interval: Option<Span>,
    /// Stop co-runners when no more slack than this remains, instead of the margin that is
    /// measured before the run; it grows if stopping takes longer
    #[arg(long, value_name = "TIME", value_parser = arguments::interval)]
    #[arg(requires = "smt", help_heading = SHARING)]
    margin: Option<Span>,
    /// Source of progress: auto, word (the program reports it), instructions (counted by
    /// the processor) or cpu-time
    #[arg(long, value_name = "SOURCE", default_value = "auto", value_parser = progress)]
    #[arg(requires = "smt", help_heading = SHARING)]
    progress: Choice<ProgressFrom>,
    /// Keep what came of it in this folder, which show and report read
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["check", "change", "list", "from", "clean"])]
    output: Option<PathBuf>,
    /// Program and its arguments; put -- before it if it begins with a dash
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Where help lists the options about sharing.
const SHARING: &str = "Options about co-runners on the CPU";

/// A budget and its period.
#[derive(Clone, Copy, Debug)]
struct BudgetPeriodArg {
    budget: Span,
    period: Span,
}

/// A further reservation.
#[derive(Clone, Copy, Debug)]
struct AlsoArg {
    budget: Span,
    period: Span,
    pid: u32,
}

/// One by name, or whatever suits.
#[derive(Clone, Copy, Debug)]
enum Choice<T> {
    Auto,
    This(T),
}

impl<T> From<Option<T>> for Choice<T> {
    fn from(named: Option<T>) -> Choice<T> {
        named.map_or(Choice::Auto, Choice::This)
    }
}

impl<T: Copy> Choice<T> {
    fn named(&self) -> Option<T> {
        match self {
            Choice::Auto => None,
            Choice::This(one) => Some(*one),
        }
    }
}

fn amount(text: &str) -> Result<BudgetPeriodArg, String> {
    arguments::amount(text).map(|(budget, period)| BudgetPeriodArg { budget, period })
}

fn backend(text: &str) -> Result<Choice<Backend>, String> {
    arguments::backend(text).map(Choice::from)
}

fn also(text: &str) -> Result<AlsoArg, String> {
    arguments::also(text).map(|(budget, period, pid)| AlsoArg { budget, period, pid })
}

fn progress(text: &str) -> Result<Choice<ProgressFrom>, String> {
    arguments::progress(text).map(Choice::from)
}

fn stopper(text: &str) -> Result<Choice<Stopper>, String> {
    arguments::stopper(text).map(Choice::from)
}

/// Makes the reservation, or says whether it would be granted.
///
/// # Errors
/// The reservation cannot be made, or the words make no sense.
pub(crate) fn reserve(reserve: &Reserve, words: &[String], settings: Settings) -> Result<ExitCode> {
    let Some(amount) = reserve.amount else {
        return match &reserve.from {
            Some(path) => {
                let how = ProposalOptions {
                    path,
                    strength: strength(reserve),
                    cpu: reserve.cpu,
                    backend: reserve.backend.named(),
                };
                let pid = reserve.pid;
                from::from(how, pid.map(|pid| (pid, !reserve.check)), settings)
            }
            None if reserve.list => list(settings),
            None => clean(settings),
        };
    };
    if let Some(pid) = reserve.change {
        return change(pid, amount, settings);
    }
    let request = SessionRequest { aside: settings.json, ..request(reserve, amount)? };
    if reserve.check {
        let document = reserve::check(&request).map_err(|failure| stop(failure, settings))?;
        output::shown(&document, text::reserve_check, settings)?;
        warn(&document, settings);
        let code = if document.backend.is_some() { exit::YES } else { exit::NO };
        return Ok(ExitCode::from(code));
    }
    let program = std::iter::once("hourglass".to_owned());
    let create =
        |path| ReservedFolder::create(path, program.chain(words.iter().cloned()).collect());
    let folder = reserve.output.as_deref().map(create).transpose();
    let folder = folder.map_err(|error| super::run::no_folder(&error))?;
    enforce(&request, folder, Vec::new(), settings)
}

/// Keeps it until its end, and says what came of it, with `warnings` of its own.
fn enforce(
    request: &SessionRequest,
    folder: Option<ReservedFolder>,
    warnings: Vec<Warning>,
    settings: Settings,
) -> Result<ExitCode> {
    let progress = ReserveProgress::new(settings.quiet || settings.json);
    let outcome = reserve::run_watched(request, &mut |moment| progress.show(moment));
    progress.ended();
    let mut outcome = outcome.map_err(|failure| stop(failure, settings))?;
    outcome.document.warnings.extend(warnings);
    let kept = folder.map(|folder| folder.keep(&outcome.document));
    if settings.json {
        output::unless_closed(output::json(&outcome.document))?;
    } else if !settings.quiet {
        output::to_stderr(&text::reserve(&outcome.document, output::style_of_stderr()));
    }
    warn(&outcome.document, settings);
    super::say_kept(kept.as_ref(), "it", settings.quiet)
        .map_err(|stop| Stop::with(exit::OWN, stop.lines().to_vec()))?;
    Ok(ExitCode::from(outcome.exit_code))
}

/// Gives one that is in force another budget.
fn change(pid: u32, amount: BudgetPeriodArg, settings: Settings) -> Result<ExitCode> {
    let document =
        reserve::change(pid, amount.budget, amount.period).map_err(|failure| match failure {
            ChangeFailure::Words(why) => Stop::usage(why),
            ChangeFailure::Refused(why) => Stop::with(exit::NO, vec![why]),
        })?;
    if settings.json || !settings.quiet {
        output::shown(&document, text::reservations, settings)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is in force.
fn list(settings: Settings) -> Result<ExitCode> {
    let document = reserve::list();
    output::shown(&document, text::reservations, settings)?;
    if !settings.json && !settings.quiet {
        document.warnings.iter().for_each(messages::warn);
    }
    Ok(ExitCode::SUCCESS)
}

/// Undoes what killed ones left.
fn clean(settings: Settings) -> Result<ExitCode> {
    let document = reserve::clean().map_err(|error| {
        Stop::machine(vec![format!("stale changes cannot be searched: {error}")])
    })?;
    if settings.json || !settings.quiet {
        output::shown(&document, text::reserve_clean, settings)?;
    }
    Ok(ExitCode::from(if document.left == 0 { exit::YES } else { exit::NO }))
}

/// Warnings for people; documents have them anyway.
fn warn(document: &ReserveDocument, settings: Settings) {
    if !settings.json && !settings.quiet {
        document.warnings.iter().for_each(messages::warn);
        let of_whom = document.also.iter().flat_map(reserve::warnings_of);
        of_whom.for_each(|warning| messages::warn(&warning));
    }
}

fn request(reserve: &Reserve, amount: BudgetPeriodArg) -> Result<SessionRequest, Stop> {
    let BudgetPeriodArg { budget, period } = amount;
    let strength = strength(reserve);
    let wrong = |error| Stop::usage(format!("{budget}/{period}: {error}"));
    let mut reservation = Reservation::new(budget, period, strength).map_err(wrong)?;
    if let Some(deadline) = reserve.deadline {
        let wrong = |error| Stop::usage(format!("--deadline {deadline}: {error}"));
        reservation = reservation.with_deadline(deadline).map_err(wrong)?;
    }
    let siblings = reserve.smt.map(|policy| CoRunnerSettings {
        policy,
        interference: reserve.interferes.clone(),
        stopped: reserve.stop.clone(),
        stopper: reserve.stopper.named(),
        graded: reserve.slow_first,
        alpha: reserve.alpha,
        interval: reserve.interval,
        margin: reserve.margin,
        progress: reserve.progress.named(),
    });
    if reserve.interval.is_some() && reserve.smt != Some(SiblingPolicy::Monitor) {
        return Err(Stop::usage("--interval: only --smt monitor checks slack"));
    }
    Ok(SessionRequest {
        reservation,
        cpu: reserve.cpu,
        backend: reserve.backend.named(),
        subject: subject(reserve)?,
        siblings,
        additional: reserve
            .also
            .iter()
            .map(|also| further(also, strength))
            .collect::<Result<_, _>>()?,
        aside: false,
    })
}

fn strength(reserve: &Reserve) -> ReservationKind {
    if reserve.soft { ReservationKind::Soft } else { ReservationKind::Hard }
}

/// A further reservation, as strong as the first one.
fn further(
    also: &AlsoArg,
    strength: ReservationKind,
) -> Result<reserve::AdditionalReservation, Stop> {
    let AlsoArg { budget, period, pid } = *also;
    let wrong = |error| Stop::usage(format!("--also {budget}/{period}={pid}: {error}"));
    let reservation = Reservation::new(budget, period, strength).map_err(wrong)?;
    let target = TargetSelector::Process(pid);
    Ok(reserve::AdditionalReservation { reservation, target, cpu: None, backend: None })
}

fn subject(reserve: &Reserve) -> Result<SessionTarget, Stop> {
    Ok(match (&reserve.thread, reserve.pid, &reserve.command[..]) {
        (Some(thread), ..) => SessionTarget::Adopted(TargetSelector::thread(thread)),
        (_, Some(pid), _) => SessionTarget::Adopted(TargetSelector::Process(pid)),
        (_, _, []) if reserve.check => SessionTarget::CheckOnly,
        (_, _, []) => {
            let text = "no target; give a COMMAND, --pid or --thread; --check needs none";
            return Err(Stop::usage(text));
        }
        (_, _, command) => SessionTarget::Command(command.to_vec()),
    })
}

/// Nothing was started: why, and the code that says so.
fn stop(failure: SessionFailure, settings: Settings) -> anyhow::Error {
    let code = match &failure {
        SessionFailure::NotStarted(why) => why.exit_code().unwrap_or(exit::OWN),
        SessionFailure::Words(_) => exit::USAGE,
        _ => exit::OWN,
    };
    let lines = match failure {
        SessionFailure::Refused(document) => {
            if settings.json
                && let Err(error) = output::unless_closed(output::json(&document))
            {
                return error;
            }
            reserve::refusal_lines(&document)
        }
        other => vec![other.to_string()],
    };
    Stop::with(code, lines).into()
}
