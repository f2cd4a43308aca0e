//! Checks of a task by itself.

use hourglass_time::Span;

use super::{CheckResult, above_zero, not_negative};
use crate::error::Location;
use crate::rt_app::jobs::JobTotals;
use crate::{Activation, JobTrigger, Preemption, Task};

pub(super) fn check(task: &Task) -> CheckResult {
    let place = Location::named("task", &task.name);
    above_zero(&place, "period", task.period, "give the shortest time between two jobs")?;
    above_zero(&place, "wcet", task.wcet, "give the longest execution time of a job")?;
    let remedy = "leave it out if it is the period";
    above_zero(&place, "deadline", task.deadline(), remedy)?;
    not_negative(&place, "jitter", task.jitter)?;
    not_negative(&place, "blocking", task.blocking)?;
    not_negative(&place, "suspension", task.suspension)?;
    for (key, time) in [("bcet", task.bcet), ("wcet_at_least", task.wcet_at_least)] {
        let Some(time) = time else { continue };
        above_zero(&place, key, time, "leave it out if it is not known")?;
        if time > task.wcet {
            let reason = format!("longer than the wcet of {}", task.wcet);
            return Err(place.bad(key, time, &reason));
        }
    }
    offset(&place, task)?;
    sections(&place, task)?;
    arrivals(&place, task)?;
    timer(&place, task)?;
    phases(&place, task)
}

/// What the phases do in a job, and how often, is not more than the figures of the task say.
fn phases(place: &Location, task: &Task) -> CheckResult {
    let Some(program) = &task.program else { return Ok(()) };
    let jobs = JobTotals::of(program);
    let over = |key: &str, said: Span, does: Span| {
        let message = format!(
            "{key} is {said}, but its phases come to {does} in a job; give {key} = \"{does}\", or \
             change the phases"
        );
        Err(place.contradiction(message))
    };
    if jobs.execution > task.wcet && jobs.wake_up == JobTrigger::Start {
        let message = format!(
            "its phases never wait, so that no job ends; end them with a step such as timer {} {}",
            task.name, task.period
        );
        return Err(place.contradiction(message));
    }
    if jobs.execution > task.wcet {
        return over("wcet", task.wcet, jobs.execution);
    }
    if jobs.suspension > task.suspension {
        return over("suspension", task.suspension, jobs.suspension);
    }
    for (resource, (length, count)) in
        jobs.sections.iter().filter(|(_, (length, _))| length.is_positive())
    {
        let declared =
            task.critical_sections.iter().filter(|section| section.resource == *resource);
        let longest = declared.clone().map(|section| section.length).max();
        let all = declared.map(|section| section.count).fold(0, u32::saturating_add);
        if longest.is_none_or(|longest| longest < *length) || all < *count {
            let message = format!(
                "critical_sections: its phases lock '{resource}' in a job, {count} x {length} at most; give \
                 {{ resource = \"{resource}\", length = \"{length}\", count = {count} }}, or change the phases"
            );
            return Err(place.contradiction(message));
        }
    }
    match jobs.separation {
        Some(apart) if jobs.wake_up == JobTrigger::Timer && apart < task.period => {
            let message = format!(
                "period is {}, but a timer in its phases releases a job every {apart}; give \
                 period = \"{apart}\", or change the timer",
                task.period
            );
            Err(place.contradiction(message))
        }
        _ => Ok(()),
    }
}

fn offset(place: &Location, task: &Task) -> CheckResult {
    let Some(offset) = task.offset else { return Ok(()) };
    not_negative(place, "offset", offset)?;
    if task.activation == Activation::Sporadic {
        let message = "a sporadic task has no offset, because its jobs may come later; drop one \
                       of the two"
            .to_owned();
        return Err(place.contradiction(message));
    }
    Ok(())
}

fn sections(place: &Location, task: &Task) -> CheckResult {
    let remedy = "leave it out if the task can be preempted anywhere";
    let fits = |key: &str, section: Span| {
        above_zero(place, key, section, remedy)?;
        if section > task.wcet {
            let reason = format!("longer than the wcet of {}", task.wcet);
            return Err(place.bad(key, section, &reason));
        }
        Ok(())
    };
    match task.preemption {
        Preemption::Full | Preemption::None | Preemption::Threshold(_) => Ok(()),
        Preemption::Floating { longest } => fits("floating_section", longest),
        Preemption::Limited { longest, last } => {
            fits("longest_section", longest)?;
            fits("last_section", last)?;
            if last > longest {
                let reason = format!("longer than the longest_section of {longest}");
                return Err(place.bad("last_section", last, &reason));
            }
            // A longest section that is not the last one lies before it.
            let both = longest.checked_add(last);
            if last < longest && both.is_none_or(|both| both > task.wcet) {
                let reason = format!(
                    "with the longest_section of {longest}, longer than the wcet of {}",
                    task.wcet
                );
                return Err(place.bad("last_section", last, &reason));
            }
            Ok(())
        }
    }
}

/// Distances of more arrivals are not shorter.
fn arrivals(place: &Location, task: &Task) -> CheckResult {
    let mut before = Span::ZERO;
    for (position, distance) in task.arrivals.iter().enumerate() {
        not_negative(place, "arrivals", *distance)?;
        if *distance < before {
            let reason = format!(
                "{} arrivals cannot be closer together than {}, which take {before}",
                position + 2,
                position + 1
            );
            return Err(place.bad("arrivals", distance, &reason));
        }
        before = *distance;
    }
    Ok(())
}

/// A tick has a frequency from 1 Hz to 1 GHz; other wake-up methods are for the run to know.
fn timer(place: &Location, task: &Task) -> CheckResult {
    if let Some(timer) = &task.timer
        && timer.starts_with("TICK")
        && task.tick().is_none()
    {
        let reason = "a tick has a frequency in hertz, as in TICK:100";
        return Err(place.bad("timer", format!("{timer:?}"), reason));
    }
    let Some(jitter) = task.tick_jitter else { return Ok(()) };
    not_negative(place, "tick_jitter", jitter)?;
    match task.tick() {
        None => {
            let message = "tick_jitter is what a tick delays, and no tick wakes the task; give it \
                           timer = \"TICK:HZ\", or call the delay jitter"
                .to_owned();
            Err(place.contradiction(message))
        }
        Some(tick) if jitter > tick => {
            let reason = format!("longer than the tick of {tick}; the rest is jitter");
            Err(place.bad("tick_jitter", jitter, &reason))
        }
        Some(_) => Ok(()),
    }
}
