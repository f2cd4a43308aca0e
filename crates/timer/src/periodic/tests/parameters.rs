use super::*;

fn ms(ms: i64) -> Span {
    Span::from_millis(ms)
}

fn refused(parameters: Parameters) -> ParameterError {
    let error = parameters.check().unwrap_err();
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error
}

/// The "Bad input": a zero or negative period, a deadline of 0, a budget above the period,
/// a phase out of range.
#[test]
fn what_makes_no_task_is_refused() {
    let every = Parameters::every(ms(10));
    for span in [Span::ZERO, Span::from_nanos(-1), Span::MIN] {
        let period = refused(Parameters::every(span));
        assert_eq!(period, ParameterError::Period(BadPeriod::NotPositive(span)));
        assert_eq!(refused(every.with_deadline(span)), ParameterError::Deadline(span));
        assert_eq!(refused(every.with_budget(span)), ParameterError::Budget(span));
    }
    assert!(matches!(refused(Parameters::hertz(0)), ParameterError::Period(_)));
    let period = Period::from_span(ms(10)).unwrap();
    for phase in [Span::from_nanos(-1), ms(10), Span::MAX] {
        assert_eq!(refused(every.with_phase(phase)), ParameterError::Phase { phase, period });
    }
    let budget = Span::from_nanos(10_000_001);
    let above = ParameterError::BudgetAbovePeriod { budget, period };
    assert_eq!(refused(every.with_budget(budget)), above);
    let (budget, deadline) = (ms(6), ms(5));
    let above = ParameterError::BudgetAboveDeadline { budget, deadline };
    assert_eq!(refused(every.with_deadline(deadline).with_budget(budget)), above);
}

#[test]
fn the_ends_of_the_ranges_are_tasks() {
    let every = Parameters::every(ms(10));
    let phase = Span::from_nanos(9_999_999);
    assert!(every.with_phase(phase).with_budget(ms(10)).check().is_ok());
    assert!(every.with_deadline(Span::NANOSECOND).check().is_ok());
    assert!(every.with_deadline(Span::MAX).check().is_ok());
    assert!(Parameters::every(Span::NANOSECOND).check().is_ok());
    assert!(Parameters::every(Span::MAX).check().is_ok());
    // A third of a second and a bit is within the period of 3 Hz, a nanosecond more is not.
    let third = Parameters::hertz(3);
    assert!(third.with_phase(Span::from_nanos(333_333_333)).check().is_ok());
    assert!(third.with_phase(Span::from_nanos(333_333_334)).check().is_err());
    let checked = every.check().unwrap();
    assert_eq!((checked.deadline_ns(), checked.budget_ns()), (10_000_000, None));
}
