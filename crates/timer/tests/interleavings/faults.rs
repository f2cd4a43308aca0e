//! The gate of timing faults in every order in which its two sides can meet (loom), and with a signal
//! at every step of the thread's own course.
//!
//! A gate that was a flag lost a resume (resumed, and late again before
//! the old waiter ran), and hung. Waits are modelled as futexes: a wake-up that is missed is a
//! deadlock, which loom reports.

use hourglass_sys::stop::{
    AtomicFamily, AtomicWord, DisarmOutcome, ExpectedDeadline, FaultResponse, GatePlatform,
    LateThread, OVERDUE_NS, StopAction, StopGate,
};

/// A word around one of another kind of atomic, with `before` each of its operations.
macro_rules! word {
    ($word:ty, $atomic:ty, $value:ty, $make:expr, $before:expr) => {
        impl AtomicWord<$value> for $word {
            fn new(value: $value) -> Self {
                $make(<$atomic>::new(value))
            }
            fn load(&self) -> $value {
                $before();
                self.0.load(Ordering::SeqCst)
            }
            fn store(&self, value: $value) {
                $before();
                self.0.store(value, Ordering::SeqCst);
            }
            fn swap(&self, value: $value) -> $value {
                $before();
                self.0.swap(value, Ordering::SeqCst)
            }
            fn replace(&self, current: $value, value: $value) -> bool {
                $before();
                let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                self.0.compare_exchange(current, value, success, failure).is_ok()
            }
            fn set_bits(&self, bits: $value) -> $value {
                $before();
                self.0.fetch_or(bits, Ordering::SeqCst)
            }
            fn add(&self, value: $value) -> $value {
                $before();
                self.0.fetch_add(value, Ordering::SeqCst)
            }
        }
    };
}

mod in_every_order {
    use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use loom::sync::{Arc, Condvar, Mutex};

    use super::*;

    struct Modelled;

    impl AtomicFamily for Modelled {
        type U32 = L32;
        type U64 = L64;
    }

    /// With those who wait for it to change.
    struct L32(AtomicU32, Condvar);
    struct L64(AtomicU64);

    word!(L32, AtomicU32, u32, |word| L32(word, Condvar::new()), || {});
    word!(L64, AtomicU64, u64, L64, || {});

    /// The kernel's lock: a futex is compared and its waiter queued in one step.
    type Kernel = Mutex<()>;

    /// At 1 us, or at a time that a test sets.
    struct World(Arc<Kernel>, Option<Arc<AtomicU64>>);

    impl GatePlatform<Modelled> for World {
        fn now_ns(&self) -> u64 {
            self.1.as_ref().map_or(1_000, |now_ns| now_ns.load(Ordering::SeqCst))
        }
        fn set_timer(&self, _at_ns: u64) -> bool {
            true
        }
        fn stop_timer(&self) {}
        fn wait(&self, word: &L32, expected: u32, until_ns: u64) {
            if until_ns <= self.now_ns() {
                return;
            }
            let held = self.0.lock().unwrap();
            if word.load() == expected {
                drop(word.1.wait(held).unwrap());
            }
        }
        fn wake(&self, word: &L32) {
            let _held = self.0.lock().unwrap();
            word.1.notify_all();
        }
        fn is_child(&self) -> bool {
            false
        }
    }

    fn explore(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// A thread that passes these deadlines, one after the other, and leaves.
    fn offender(
        gate: &Arc<StopGate<Modelled>>,
        kernel: &Arc<Kernel>,
        deadlines: std::ops::RangeInclusive<u64>,
    ) -> loom::thread::JoinHandle<()> {
        let (gate, world) = (Arc::clone(gate), World(Arc::clone(kernel), None));
        loom::thread::spawn(move || {
            let depth = L32::new(0);
            let own = LateThread { gate: &*gate, depth: &depth, machine: &world };
            for at_ns in deadlines {
                assert!(own.arm(at_ns));
            }
            gate.leave_for_good(&world);
        })
    }

    /// `faults` deadlines that are past, one after the other, against a handler that answers
    /// `answers` of them and then closes the gate.
    fn meet(strength: StopAction, faults: u64, answers: u64) {
        explore(move || {
            let gate = Arc::new(StopGate::<Modelled>::new());
            gate.set_strength(strength);
            assert!(gate.open());
            let kernel = Arc::new(Kernel::new(()));
            let offender = offender(&gate, &kernel, 1..=faults);
            let world = World(kernel, None);
            let (mut reported, mut expected) = (0, ExpectedDeadline::NOTHING);
            while reported < answers {
                let is_last = gate.is_gone();
                while let Some(mail) = gate.take(&world) {
                    // Whole, and in order.
                    assert!(mail.number > reported && mail.deadline_ns == mail.number);
                    reported = mail.number;
                    if mail.strength == StopAction::Hold {
                        gate.release(mail.number, &world);
                    }
                    gate.answer(&mail, FaultResponse::GO_ON, &world);
                    gate.finish();
                    if reported >= answers {
                        break;
                    }
                }
                if is_last {
                    break;
                }
                if reported < answers {
                    gate.wait_for_mail(&mut expected, &world);
                }
            }
            gate.close(&world);
            gate.vacate(&world);
            offender.join().unwrap();
            assert_eq!(gate.faults(), faults);
            if strength == StopAction::Suspend {
                assert!(
                    reported == answers,
                    "a suspended thread is answered for each of its faults"
                );
            }
        });
    }

    #[test]
    fn a_caller_in_between_loses_no_message() {
        explore(|| {
            let gate = Arc::new(StopGate::<Modelled>::new());
            gate.set_strength(StopAction::Suspend);
            let kernel = Arc::new(Kernel::new(()));
            let offender = offender(&gate, &kernel, 1..=1);
            let world = World(kernel, None);
            assert!(gate.open());
            let (mut reported, mut expected) = (0, ExpectedDeadline::NOTHING);
            loop {
                let is_last = gate.is_gone();
                if let Some(mail) = gate.take(&world) {
                    reported += 1;
                    gate.answer(&mail, FaultResponse::GO_ON, &world);
                    gate.finish();
                }
                if is_last {
                    break;
                }
                gate.wait_for_mail(&mut expected, &world);
            }
            offender.join().unwrap();
            assert_eq!(reported + gate.undelivered(), 1);
        });
    }

    #[test]
    fn an_overdue_deadline_is_reported_once() {
        for (strength, signal) in
            [StopAction::Notify, StopAction::Hold].map(|s| [(s, true), (s, false)]).concat()
        {
            explore(move || {
                let gate = Arc::new(StopGate::<Modelled>::new());
                gate.set_strength(strength);
                assert!(gate.open());
                let kernel = Arc::new(Kernel::new(()));
                let now_ns = Arc::new(AtomicU64::new(0));
                let world = || World(Arc::clone(&kernel), Some(Arc::clone(&now_ns)));
                let own = world();
                let depth = L32::new(0);
                assert!(LateThread { gate: &*gate, depth: &depth, machine: &own }.arm(1_000));
                now_ns.store(1_000 + OVERDUE_NS, Ordering::SeqCst);
                let offender = {
                    let gate = Arc::clone(&gate);
                    loom::thread::spawn(move || {
                        let own = LateThread { gate: &*gate, depth: &depth, machine: &own };
                        if signal {
                            own.expired();
                        } else {
                            let _ = own.disarm();
                        }
                        gate.leave_for_good(own.machine);
                    })
                };
                let world = world();
                let (mut reported, mut expected) = (0, ExpectedDeadline::NOTHING);
                loop {
                    let is_last = gate.is_gone();
                    while let Some(mail) =
                        gate.take(&world).or_else(|| gate.take_overdue(|| false, &world))
                    {
                        assert_eq!((mail.number, mail.deadline_ns), (1, 1_000));
                        reported += 1;
                        gate.release(mail.number, &world);
                        gate.answer(&mail, FaultResponse::GO_ON, &world);
                        gate.finish();
                    }
                    if is_last {
                        break;
                    }
                    gate.wait_for_mail(&mut expected, &world);
                }
                offender.join().unwrap();
                assert_eq!((reported, gate.faults(), gate.undelivered()), (1, 1, 0));
            });
        }
    }

    #[test]
    fn a_suspended_thread_always_goes_on() {
        meet(StopAction::Suspend, 2, 2);
    }

    #[test]
    fn a_handler_may_leave_at_any_time() {
        meet(StopAction::Suspend, 2, 1);
        meet(StopAction::Suspend, 1, 0);
    }

    #[test]
    fn a_held_thread_and_one_that_is_only_notified_go_on_too() {
        meet(StopAction::Hold, 2, 2);
        meet(StopAction::Notify, 2, 2);
    }
}

mod at_every_step {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::*;

    struct Stepped;

    impl AtomicFamily for Stepped {
        type U32 = S32;
        type U64 = S64;
    }

    struct S32(AtomicU32);
    struct S64(AtomicU64);

    word!(S32, AtomicU32, u32, S32, step);
    word!(S64, AtomicU64, u64, S64, step);

    thread_local! {
        static HERE: RefCell<Option<Rc<Thread>>> = const { RefCell::new(None) };
    }

    fn step() {
        let here = HERE.with_borrow(Clone::clone);
        if let Some(thread) = here {
            thread.step();
        }
    }

    /// A thread and its world. Before the step `at` the time jumps on, or does not, and a signal comes.
    struct Thread {
        gate: StopGate<Stepped>,
        depth: S32,
        now_ns: Cell<u64>,
        timer_ns: Cell<Option<u64>>,
        steps: Cell<u64>,
        at: u64,
        then_ns: u64,
        in_signal: Cell<bool>,
        /// Of the script, by what it has called so far.
        in_region: Cell<bool>,
        answers: RefCell<Vec<Option<u64>>>,
        reported: RefCell<Vec<u64>>,
        passed: Cell<Option<u64>>,
    }

    impl Thread {
        fn own(&self) -> LateThread<'_, Thread, Stepped> {
            LateThread { gate: &self.gate, depth: &self.depth, machine: self }
        }

        fn step(&self) {
            if self.in_signal.get() {
                return;
            }
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() == self.at {
                self.now_ns.set(self.then_ns.max(self.now_ns.get()));
                self.in_signal.set(true);
                let in_force = self.gate.deadline_ns();
                self.passed.set(in_force.filter(|at_ns| *at_ns <= self.now_ns.get()));
                self.signal();
            }
        }

        fn signal(&self) {
            self.in_signal.set(true);
            self.own().expired();
            self.in_signal.set(false);
        }

        fn answer(&self) {
            while let Some(mail) = self.gate.take(self) {
                self.reported.borrow_mut().push(mail.deadline_ns);
                let deadline_ns = self.answers.borrow_mut().pop().flatten();
                let answer = FaultResponse { deadline_ns, end: false };
                if self.gate.answer(&mail, answer, self) {
                    // As from another thread: comes when it comes.
                    self.timer_ns.set(Some(self.now_ns.get()));
                }
                self.gate.finish();
            }
        }

        fn settle(&self) {
            while self.timer_ns.get().is_some_and(|at_ns| at_ns <= self.now_ns.get()) {
                self.timer_ns.set(None);
                self.signal();
                self.answer();
            }
        }
    }

    impl GatePlatform<Stepped> for Thread {
        fn now_ns(&self) -> u64 {
            step();
            self.now_ns.get()
        }
        fn set_timer(&self, at_ns: u64) -> bool {
            step();
            self.timer_ns.set(Some(at_ns));
            true
        }
        fn stop_timer(&self) {
            step();
            self.timer_ns.set(None);
        }
        fn wait(&self, _word: &S32, _expected: u32, _until_ns: u64) {
            assert!(!self.in_region.get(), "it stands in a region");
            let was = self.in_signal.replace(true);
            self.answer();
            self.in_signal.set(was);
        }
        fn wake(&self, _word: &S32) {}
        fn is_child(&self) -> bool {
            false
        }
    }

    #[derive(Clone, Copy, Debug)]
    struct Course {
        strength: StopAction,
        region: bool,
        at: u64,
        then_ns: u64,
        answer: Option<u64>,
        /// Whether a thread that does not stand is answered only when it has taken the next deadline.
        late: bool,
    }

    impl Course {
        /// Deadlines at 100, given up at 50 if all goes well, and at 300. Whether the step was reached.
        fn run(self) -> bool {
            let thread = Rc::new(Thread {
                gate: StopGate::new(),
                depth: S32::new(0),
                now_ns: Cell::new(10),
                timer_ns: Cell::new(None),
                steps: Cell::new(0),
                at: self.at,
                then_ns: self.then_ns,
                in_signal: Cell::new(false),
                in_region: Cell::new(false),
                answers: RefCell::new(vec![None, self.answer]),
                reported: RefCell::default(),
                passed: Cell::new(None),
            });
            thread.gate.set_strength(self.strength);
            assert!(thread.gate.open());
            HERE.set(Some(Rc::clone(&thread)));
            self.give_up_the_first(&thread);
            assert!(thread.own().arm(300));
            HERE.set(None);
            thread.answer();
            thread.settle();
            self.check(&thread);
            thread.steps.get() >= self.at
        }

        fn give_up_the_first(self, thread: &Thread) {
            let own = thread.own();
            assert!(own.arm(100));
            self.check_nothing_is_put_off(thread);
            if self.region {
                own.enter();
                thread.in_region.set(true);
            }
            thread.now_ns.set(thread.now_ns.get().max(50));
            let (disarmed, _) = own.disarm();
            if self.region {
                if self.strength != StopAction::Notify && disarmed == DisarmOutcome::Passed {
                    assert_eq!(thread.gate.faults(), 0, "{self:?}: acted upon in a region");
                }
                thread.in_region.set(false);
                own.leave();
            }
            let faults = thread.gate.faults();
            self.check_nothing_is_put_off(thread);
            if self.answer.is_none() {
                assert_eq!(faults == 0, disarmed == DisarmOutcome::Ahead, "{self:?}");
            }
            if !self.late {
                thread.answer();
                thread.settle();
                assert_eq!(thread.gate.deadline_ns(), None, "{self:?}: it was given up");
            }
        }

        fn check_nothing_is_put_off(self, thread: &Thread) {
            let put_off = thread.passed.get().is_some() && thread.gate.faults() == 0;
            assert!(!put_off, "{self:?}: no region puts it off");
        }

        fn check(self, thread: &Thread) {
            let reported = thread.reported.borrow().clone();
            let what = format!("{self:?}: {reported:?}");
            // Each is reported once, and in order but for what answers give.
            let own_ones = reported.iter().filter(|at_ns| [100, 300].contains(*at_ns));
            assert!(own_ones.is_sorted_by(|one, next| one < next), "{what}");
            let known = |at_ns: &u64| [100, 300].contains(at_ns) || Some(*at_ns) == self.answer;
            assert!(reported.iter().all(known), "{what}");
            assert_eq!(
                reported.len() as u64 + thread.gate.undelivered(),
                thread.gate.faults(),
                "{what}"
            );
            if self.strength == StopAction::Suspend {
                assert_eq!(thread.gate.undelivered(), 0, "{what}");
            }
            // The last one is in force and the timer set for it, or it was passed too.
            if thread.now_ns.get() < 300 {
                assert_eq!(thread.gate.deadline_ns(), Some(300), "{what}");
                assert_eq!(thread.timer_ns.get(), Some(300), "{what}");
            } else {
                assert!(reported.contains(&300) || thread.gate.undelivered() > 0, "{what}");
            }
        }
    }

    #[test]
    fn a_signal_may_come_before_any_step() {
        let mut courses = 0;
        for strength in [StopAction::Notify, StopAction::Hold, StopAction::Suspend] {
            for region in [false, true] {
                for then_ns in [20, 120, 400] {
                    for answer in [None, Some(60), Some(150), Some(1_000)] {
                        for late in [false, true] {
                            let course =
                                |at| Course { strength, region, at, then_ns, answer, late };
                            let reached = (1..).take_while(|at| course(*at).run());
                            courses += reached.count();
                        }
                    }
                }
            }
        }
        println!("{courses} courses");
        assert!(courses > 4_000);
    }
}
