use super::*;
use crate::periodic::Parameters;
use hourglass_time::Span;

const EPERM: i32 = 1;
const EBUSY: i32 = 16;

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max nice priority         0                    30                   
Max realtime priority     0                    50                   
Max realtime timeout      unlimited            unlimited            us        
";

/// What grants a policy is the exact line: the limit where the hard one is high enough, else the
/// capability.
#[test]
fn a_refusal_names_the_line_that_grants_it() {
    let remedy = |scheduling: Scheduling, errno| scheduling.remedy(errno, LIMITS, "/opt/pump");
    let line = "ulimit -r 50 # in the shell that starts it";
    assert_eq!(remedy(Scheduling::Fifo(50), EPERM), line);
    assert_eq!(remedy(Scheduling::RoundRobin(50), EPERM), line);
    let setcap = "sudo setcap cap_sys_nice+ep /opt/pump ";
    assert!(remedy(Scheduling::Fifo(51), EPERM).starts_with(setcap));
    assert_eq!(remedy(Scheduling::Other(-10), EPERM), "ulimit -e 30 # in the shell that starts it");
    assert!(remedy(Scheduling::Other(-11), EPERM).starts_with(setcap));
    let deadline = Scheduling::Deadline { reclaim: false };
    assert!(remedy(deadline, EPERM).starts_with(setcap));
    assert!(remedy(deadline, EBUSY).contains("smaller budget"));
    assert!(Scheduling::Fifo(1).remedy(EPERM, "", "x").starts_with("sudo setcap"));
    for scheduling in [Scheduling::Fifo(9), Scheduling::Other(-3), deadline] {
        for errno in 0..140 {
            assert_eq!(remedy(scheduling, errno).lines().count(), 1, "{scheduling} {errno}");
        }
    }
}

#[test]
fn policies_that_a_thread_cannot_have_are_refused() {
    let parameters = Parameters::every(Span::from_millis(10));
    let check = |scheduling: Scheduling, parameters: Parameters| {
        scheduling.check(&parameters.check().unwrap())
    };
    for priority in [0, 100, 255] {
        let error = Err(SchedulingError::Priority(priority));
        assert_eq!(check(Scheduling::Fifo(priority), parameters), error);
        assert_eq!(check(Scheduling::RoundRobin(priority), parameters), error);
    }
    for nice in [-128, -21, 20] {
        let error = Err(SchedulingError::Nice(nice));
        assert_eq!(check(Scheduling::Other(nice), parameters), error);
    }
    let deadline = Scheduling::Deadline { reclaim: true };
    assert_eq!(check(deadline, parameters), Err(SchedulingError::NoBudget));
    let budget = parameters.with_budget(Span::from_millis(1));
    assert_eq!(check(deadline, budget), Ok(()));
    let beyond = budget.with_deadline(Span::from_nanos(10_000_001));
    let error = SchedulingError::DeadlineAbovePeriod { period_ns: 10_000_000 };
    assert_eq!(check(deadline, beyond), Err(error));
}
