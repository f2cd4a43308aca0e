//! The life of a reservation: made, watched, undone.

use std::os::fd::AsRawFd;

use hourglass_documents::live::ReserveMoment;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_sys::signal_file;

use super::additional::{self, AdditionalReservations};
use super::backend_selection::BackendQuery;
use super::co_runners::{self, Protection};
use super::kept::KeptReservation;
use super::moment::Moments;
use super::priority_boost::PriorityBoost;
use super::{SessionFailure, SessionOutcome, SessionRequest, SessionTarget, change, document};
use crate::backend::{ActiveReservation, BackendRequest};
use crate::command::{
    AttachedTarget, Child, ExitStatus, Gated, Launch, PASSED, SignalFile, Wait, WaitEnd,
    reserved_by_this_process, until_end,
};
use crate::guardian::{Guardian, TaskIdentity};
use crate::progress::page::{PATH_VARIABLE, PageError, ProgressPage, VARIABLE};
use crate::target::Target;

/// Added to the number of a signal, as shells do.
const SIGNALLED: i32 = 128;

/// Makes the reservation, waits for the end of its target, undoes everything and reports what was delivered. Signals
/// that come meanwhile are passed on to a command; for an attached target, those that ask for an end end the
/// reservation.
///
/// A command begins only when it has its reservation and the monitor of siblings has proved that it
/// runs. A guardian undoes everything if this process is killed.
///
/// To be called while the process has no other threads: they would take the signals.
///
/// # Errors
/// [`SessionFailure`]: nothing was started, and everything is as it was.
pub fn run(request: &SessionRequest) -> Result<SessionOutcome, SessionFailure> {
    run_watched(request, &mut |_| {})
}

/// As [`run`]; `watch` is called about once a second with the state.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    request: &SessionRequest,
    watch: &mut dyn FnMut(&ReserveMoment),
) -> Result<SessionOutcome, SessionFailure> {
    additional::goes_together(request)?;
    let mut read = PASSED.to_vec();
    // A reservation that shares its time with others cannot be changed.
    if request.siblings.is_none() && request.additional.is_empty() {
        read.push(signal_file::change());
    }
    let signals =
        SignalFile::block(&read).map_err(SessionFailure::system("signals cannot be watched"))?;
    let urgent = PriorityBoost::begin();
    let page = co_runners::page(request)?;
    let begun = PendingSession::find(request, page.as_ref())?;
    let mut others = AdditionalReservations::find(request)?;
    let guardian =
        Guardian::start().map_err(SessionFailure::system("no guardian process can be started"))?;
    let mut document = document::requested_document(request);
    begun.describe(&mut document);
    let handed = begun.handed();
    let subject = begun.start(&urgent)?;
    let target = subject.target();
    let targets: Vec<Target> = std::iter::once(target.clone()).chain(others.targets()).collect();
    let sharing =
        urgent.paused(|| co_runners::sharing(request, &targets, &guardian, &mut document))?;
    let reservation = co_runners::covering(request.reservation, sharing.as_ref());
    let query = BackendQuery {
        kind: request.backend_for_all(),
        program: matches!(request.subject, SessionTarget::Command(_)),
        target: &target,
        request: &BackendRequest { reservation, cpu: request.cpu },
        within: false,
        planned: &[],
    };
    let confirm = |reserved: &mut dyn ActiveReservation| subject.confirm(reserved);
    let mut kept = KeptReservation::reserve(document, &query, &guardian, confirm)?;
    others.reserve(request, sharing.as_ref(), &guardian)?;
    let first_ns = kept.picked.reserved.first_ns();
    let protect = |sharing| co_runners::protect(sharing, &target, page, first_ns, &others);
    let mut protection = sharing.map(protect).transpose()?;
    let going = subject.go()?;
    drop(urgent);
    let look =
        || protection.iter_mut().for_each(|protection| protection.check_pages(&target, handed));
    let mut moments = Moments::begin(&kept.document, !request.additional.is_empty());
    let mut refused = Vec::new();
    let watch = |asked: Option<u64>| {
        refused.extend(asked.and_then(|number| change::asked(&mut kept.picked, number)));
        others.look_with(&mut kept.picked);
        moments.look(&mut kept.picked, watch);
    };
    let ended = until_end(&going.wait()?, &signals, look, watch)
        .map_err(SessionFailure::system("the end cannot be waited for"))?;
    kept.document.warnings.extend(refused);
    finish(conclude(kept, protection, others, &guardian), &going, ended)
}

fn conclude(
    mut kept: KeptReservation,
    protection: Option<Protection>,
    others: AdditionalReservations,
    guardian: &Guardian,
) -> ReserveDocument {
    let (smt, warnings, counts) = match protection.map(Protection::end) {
        Some((smt, warnings, counts)) => (Some(smt), warnings, counts),
        None => (None, co_runners::of_the_guardian(guardian), Vec::new()),
    };
    kept.document.warnings.extend(warnings);
    let several = others.is_several(smt.as_ref());
    let mut document = kept.end(several, counts.first().zip(smt.as_ref()));
    document.also = others.end(several, smt.as_ref(), counts.get(1..).unwrap_or_default());
    document
}

enum PendingSession {
    /// With the number of the descriptor that leads it to its page of progress.
    Command(Launch, Option<u32>),
    There(AttachedTarget),
}

impl PendingSession {
    fn find(
        request: &SessionRequest,
        page: Option<&ProgressPage>,
    ) -> Result<PendingSession, SessionFailure> {
        Ok(match &request.subject {
            SessionTarget::Command(words) => {
                let failed = |error: PageError| SessionFailure::Siblings(error.to_string());
                let handed = page.map(ProgressPage::to_hand_down).transpose().map_err(failed)?;
                let number = handed.as_ref().map(|handed| handed.as_raw_fd().unsigned_abs());
                let mut variables = vec![reserved_by_this_process()];
                if let Some((page, number)) = page.zip(number) {
                    variables.push((VARIABLE.into(), number.to_string().into()));
                    variables.push((PATH_VARIABLE.into(), page.path().into_os_string()));
                }
                let launch = Launch::find(words, &variables)?;
                let launch = handed.into_iter().fold(launch, Launch::handing_down);
                let launch = if request.aside { launch.printing_aside() } else { launch };
                PendingSession::Command(launch, number)
            }
            SessionTarget::Adopted(whom) => PendingSession::There(AttachedTarget::find(whom)?),
            SessionTarget::CheckOnly => {
                return Err(SessionFailure::Words(
                    "no process or thread to reserve for".to_owned(),
                ));
            }
        })
    }

    fn handed(&self) -> Option<u32> {
        match self {
            PendingSession::Command(_, handed) => *handed,
            PendingSession::There(_) => None,
        }
    }

    fn describe(&self, document: &mut ReserveDocument) {
        if let PendingSession::There(adopted) = self {
            document.target = document::adopted(adopted);
        }
    }

    fn start(self, urgent: &PriorityBoost) -> Result<PreparedSession, SessionFailure> {
        Ok(match self {
            PendingSession::Command(launch, _) => {
                let gated = launch.start()?;
                urgent
                    .restore_in_child(gated.pid())
                    .map_err(SessionFailure::system("the command's priority cannot be set"))?;
                PreparedSession::Waiting(launch, gated)
            }
            PendingSession::There(adopted) => PreparedSession::There(adopted),
        })
    }
}

enum PreparedSession {
    Waiting(Launch, Gated),
    There(AttachedTarget),
}

impl PreparedSession {
    fn target(&self) -> Target {
        match self {
            PreparedSession::Waiting(_, gated) => Target::Process(gated.pid()),
            PreparedSession::There(adopted) => adopted.target().clone(),
        }
    }

    /// Whether the reservation is for the intended target; else it is undone.
    fn confirm(&self, reserved: &mut dyn ActiveReservation) -> Result<(), SessionFailure> {
        match self {
            // Its number is its own until it is waited for.
            PreparedSession::Waiting(..) => Ok(()),
            PreparedSession::There(adopted) => Ok(adopted.confirm(reserved)?),
        }
    }

    fn go(self) -> Result<ActiveSession, SessionFailure> {
        Ok(match self {
            PreparedSession::Waiting(launch, gated) => ActiveSession::Command(launch.open(gated)?),
            PreparedSession::There(adopted) => ActiveSession::There(adopted),
        })
    }
}

enum ActiveSession {
    Command(Child),
    There(AttachedTarget),
}

impl ActiveSession {
    fn wait(&self) -> Result<Wait<'_>, SessionFailure> {
        let (file, life) = match self {
            // Its number is its own until it is waited for.
            ActiveSession::Command(child) => {
                (Some(child.file()), TaskIdentity { id: child.pid(), started: 0 })
            }
            ActiveSession::There(adopted) => (adopted.file(), adopted.life()),
        };
        let pass_on = matches!(self, ActiveSession::Command(_));
        Ok(Wait { file, life, pass_on })
    }
}

fn finish(
    mut document: ReserveDocument,
    going: &ActiveSession,
    ended: WaitEnd,
) -> Result<SessionOutcome, SessionFailure> {
    let signal = match ended {
        WaitEnd::Gone(signal) => signal,
        WaitEnd::Asked(signal) => Some(signal),
    };
    document.interrupted = signal.is_some();
    let code = match (going, ended) {
        (ActiveSession::Command(child), _) => {
            let ending =
                child.wait().map_err(SessionFailure::system("the command cannot be waited for"))?;
            let code = match ending {
                ExitStatus::Exited(code) => code,
                ExitStatus::Killed(signal) => SIGNALLED + signal,
            };
            document.exit_code = Some(code);
            code
        }
        (ActiveSession::There(_), WaitEnd::Asked(signal)) => SIGNALLED + signal,
        (ActiveSession::There(_), WaitEnd::Gone(_)) => 0,
    };
    Ok(SessionOutcome { document, exit_code: u8::try_from(code).unwrap_or(u8::MAX) })
}
