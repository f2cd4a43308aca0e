//! Scripts: what threads do act by act, beside an interpreter that goes on nanosecond by nanosecond.

use hourglass_dice::Dice;
use hourglass_sim::{
    self as sim, Class, Event, JobTrigger, Script, SimLockProtocol, SimPhase, SimSettings, SimStep,
    Sink, Slice, System, Thread,
};

/// What ran on each CPU in each nanosecond, and when which jobs were done, with their responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Execution {
    ran: Vec<Vec<Option<usize>>>,
    done: Vec<Vec<(u64, u64)>>,
}

impl Sink for Execution {
    fn ran(&mut self, slice: Slice) {
        for at in slice.start..slice.end {
            self.ran[slice.cpu as usize][at as usize] = Some(slice.thread);
        }
    }

    fn event(&mut self, at: u64, event: Event) {
        if let Event::Completion { thread, response, .. } = event {
            self.done[thread].push((at, response));
        }
    }

    fn reached(&mut self, _: u64) -> bool {
        true
    }
}

impl Execution {
    fn nothing(system: &System, horizon: u64) -> Execution {
        let ran = vec![vec![None; horizon as usize]; system.cpus as usize];
        Execution { ran, done: vec![Vec::new(); system.threads.len()] }
    }
}

fn simulated(system: &System, horizon: u64) -> Execution {
    let mut seen = Execution::nothing(system, horizon);
    sim::run_to(system, SimSettings::until(horizon), &mut seen).unwrap();
    // What ends at the horizon has ended; the interpreter does not come so far.
    seen.done.iter_mut().for_each(|done| done.retain(|(at, _)| *at < horizon));
    seen
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Asleep(u64),
    Waits,
    Over,
}

/// A thread of the interpreter. Its acts are written out, round after round.
#[derive(Clone, Debug)]
struct One {
    cpu: usize,
    priority: u32,
    acts: Vec<SimStep>,
    for_ever: bool,
    beginning: JobTrigger,
    start: u64,
    at: usize,
    state: State,
    work: u64,
    passes_until: Option<u64>,
    wants: Option<usize>,
    held: Vec<usize>,
    origin: Option<u64>,
    arrival: Option<u64>,
    worked: bool,
    begins: Option<u64>,
    last_arrival: u64,
}

/// The interpreter: plain locks, fixed priorities that differ, each thread on one CPU.
struct Interpreter {
    threads: Vec<One>,
    now: u64,
    seen: Execution,
    holder: Vec<Option<usize>>,
    lock_queue: Vec<Vec<usize>>,
    lock_woken: Vec<Vec<usize>>,
    event_queue: Vec<Vec<usize>>,
    semaphore_queue: Vec<Vec<usize>>,
    left: Vec<u64>,
    barrier_queue: Vec<Vec<usize>>,
    parties: Vec<u32>,
    made: Vec<u64>,
    start_queue: Vec<Vec<(usize, u64)>>,
    timers: Vec<Option<u64>>,
}

/// Numbers of each kind.
const KINDS: usize = 3;

fn interpreted(system: &System, horizon: u64) -> Execution {
    let mut machine = Interpreter::new(system, horizon);
    let mut running: Vec<Option<usize>> = vec![None; system.cpus as usize];
    for now in 0..horizon {
        machine.now = now;
        for thread in running.iter().flatten().copied().collect::<Vec<_>>() {
            machine.act_if_idle(thread);
        }
        machine.expire();
        loop {
            machine.dispatch(&mut running);
            let idle = |thread: &usize| machine.is_idle(*thread);
            let acting: Vec<usize> = running.iter().flatten().copied().filter(idle).collect();
            if acting.is_empty() {
                break;
            }
            acting.into_iter().for_each(|thread| machine.act_if_idle(thread));
        }
        for (cpu, thread) in running.iter().enumerate() {
            machine.seen.ran[cpu][now as usize] = *thread;
            let one = thread.map(|thread| &mut machine.threads[thread]);
            if let Some(one) = one.filter(|one| one.passes_until.is_none()) {
                one.work -= 1;
            }
        }
    }
    machine.seen
}

/// Whether a job of a thread that waits in this way begins with the step.
fn begins(beginning: JobTrigger, act: SimStep) -> bool {
    matches!(
        (beginning, act),
        (JobTrigger::Timer, SimStep::Timer { .. })
            | (JobTrigger::Sleep, SimStep::Sleep(_))
            | (JobTrigger::Event, SimStep::Wait { .. } | SimStep::Suspend(_))
            | (JobTrigger::Event, SimStep::Barrier(_) | SimStep::Take(_))
    )
}

impl Interpreter {
    fn new(system: &System, horizon: u64) -> Interpreter {
        let one = |thread: &Thread| {
            let script = thread.script.as_ref().unwrap();
            let Class::Fifo(priority) = thread.class else { panic!("a class without priority") };
            let mut acts = Vec::new();
            for _ in 0..script.loops.unwrap_or(1) {
                for phase in &script.phases {
                    (0..phase.loops.unwrap()).for_each(|_| acts.extend(phase.acts.clone()));
                }
            }
            One {
                cpu: thread.cpus[0] as usize,
                priority,
                acts,
                for_ever: script.loops.is_none(),
                beginning: script.beginning,
                start: script.start,
                at: 0,
                state: State::Asleep(script.start),
                work: 0,
                passes_until: None,
                wants: None,
                held: Vec::new(),
                origin: None,
                arrival: Some(script.start),
                worked: false,
                begins: None,
                last_arrival: script.start,
            }
        };
        Interpreter {
            threads: system.threads.iter().map(one).collect(),
            now: 0,
            seen: Execution::nothing(system, horizon),
            holder: vec![None; KINDS],
            lock_queue: vec![Vec::new(); KINDS],
            lock_woken: vec![Vec::new(); KINDS],
            event_queue: vec![Vec::new(); KINDS],
            semaphore_queue: vec![Vec::new(); KINDS],
            left: vec![0; KINDS],
            barrier_queue: vec![Vec::new(); KINDS],
            parties: system.barriers.clone(),
            made: vec![0; KINDS],
            start_queue: vec![Vec::new(); KINDS],
            timers: vec![None; KINDS],
        }
    }

    fn is_idle(&self, thread: usize) -> bool {
        let one = &self.threads[thread];
        one.state == State::Ready && one.work == 0 && one.passes_until.is_none()
    }

    fn dispatch(&self, running: &mut [Option<usize>]) {
        for (cpu, place) in running.iter_mut().enumerate() {
            let here = |(_, one): &(usize, &One)| one.cpu == cpu && one.state == State::Ready;
            let all = self.threads.iter().enumerate().filter(here);
            *place = all.max_by_key(|(_, one)| one.priority).map(|(thread, _)| thread);
        }
    }

    fn expire(&mut self) {
        for thread in 0..self.threads.len() {
            let one = &mut self.threads[thread];
            if one.passes_until == Some(self.now) {
                (one.passes_until, one.work) = (None, 0);
            }
            if one.state == State::Asleep(self.now) {
                if let Some(arrival) = one.begins.take() {
                    (one.arrival, one.last_arrival, one.worked) = (Some(arrival), arrival, false);
                }
                one.state = State::Ready;
            }
        }
    }

    fn wake(&mut self, thread: usize, arrival: u64) {
        let now = self.now;
        let one = &mut self.threads[thread];
        if one.begins.take().is_some() {
            let arrival = if arrival > one.last_arrival && arrival <= now { arrival } else { now };
            (one.arrival, one.last_arrival, one.worked) = (Some(arrival), arrival, false);
        }
        one.state = State::Ready;
    }

    fn most_urgent(&self, queue: &[usize]) -> Option<usize> {
        (0..queue.len()).max_by_key(|place| self.threads[queue[*place]].priority)
    }

    /// Whether the thread had the lock.
    fn release(&mut self, thread: usize, lock: usize) -> bool {
        let held = &mut self.threads[thread].held;
        let Some(place) = held.iter().position(|held| *held == lock) else { return false };
        held.remove(place);
        self.holder[lock] = None;
        if !self.lock_queue[lock].is_empty() && self.lock_woken[lock].is_empty() {
            let next = self.lock_queue[lock].remove(0);
            self.lock_woken[lock].push(next);
            self.threads[next].state = State::Ready;
        }
        true
    }

    fn act_if_idle(&mut self, thread: usize) {
        while self.is_idle(thread) {
            if let Some(lock) = self.threads[thread].wants {
                if !self.threads[thread].held.contains(&lock) {
                    self.lock_woken[lock].retain(|woken| *woken != thread);
                    if self.holder[lock].is_some() {
                        self.lock_queue[lock].push(thread);
                        self.threads[thread].state = State::Waits;
                        return;
                    }
                    self.holder[lock] = Some(thread);
                    self.threads[thread].held.push(lock);
                }
                self.threads[thread].wants = None;
            }
            let one = &mut self.threads[thread];
            if one.at == one.acts.len() {
                if one.for_ever && !one.acts.is_empty() {
                    one.at = 0;
                    continue;
                }
                self.finish(thread);
                while let Some(lock) = self.threads[thread].held.last().copied() {
                    self.release(thread, lock);
                }
                self.threads[thread].state = State::Over;
                return;
            }
            one.at += 1;
            let act = one.acts[one.at - 1];
            if self.perform(thread, act) {
                return;
            }
        }
    }

    fn finish(&mut self, thread: usize) {
        let one = &mut self.threads[thread];
        if std::mem::take(&mut one.worked) {
            let arrival = one.arrival.take().unwrap();
            self.seen.done[thread].push((self.now, self.now - arrival));
        }
    }

    /// Whether others are to be looked at before the thread goes on.
    fn perform(&mut self, thread: usize, act: SimStep) -> bool {
        let now = self.now;
        let begins = begins(self.threads[thread].beginning, act);
        if begins {
            self.finish(thread);
        }
        self.threads[thread].begins = begins.then_some(0);
        let arrival = self.threads[thread].arrival.unwrap_or(now);
        let one = &mut self.threads[thread];
        match act {
            SimStep::Run(time) => {
                (one.worked, one.work) = (true, time);
                one.arrival.get_or_insert(now);
            }
            SimStep::RunFor(time) => {
                (one.worked, one.passes_until) = (true, Some(now + time));
                one.arrival.get_or_insert(now);
            }
            SimStep::Sleep(time) => {
                one.state = State::Asleep(now + time);
                one.begins = begins.then_some(now + time);
            }
            SimStep::Timer { timer, period, absolute } => {
                let due = self.timers[timer].unwrap_or(one.origin.unwrap_or(one.start)) + period;
                self.timers[timer] = Some(due);
                one.begins = begins.then_some(due);
                if now < due {
                    one.state = State::Asleep(due);
                } else {
                    if !absolute {
                        self.timers[timer] = Some(now);
                    }
                    self.passed(thread, due);
                }
            }
            SimStep::Lock(lock) => one.wants = Some(lock),
            SimStep::Unlock(lock) => {
                let waited_for = !self.lock_queue[lock].is_empty();
                return self.release(thread, lock) && waited_for;
            }
            SimStep::Wait { event, lock } => {
                self.release(thread, lock);
                self.threads[thread].wants = Some(lock);
                self.threads[thread].state = State::Waits;
                self.event_queue[event].push(thread);
            }
            SimStep::Suspend(event) => {
                one.state = State::Waits;
                self.event_queue[event].push(thread);
            }
            SimStep::Signal(event) => {
                if let Some(place) = self.most_urgent(&self.event_queue[event]) {
                    let next = self.event_queue[event].remove(place);
                    self.wake(next, arrival);
                    return true;
                }
            }
            SimStep::Broadcast(event) => {
                let all = std::mem::take(&mut self.event_queue[event]);
                let wakes = !all.is_empty();
                all.into_iter().for_each(|next| self.wake(next, arrival));
                return wakes;
            }
            _ => return self.meet(thread, act, arrival),
        }
        false
    }

    fn meet(&mut self, thread: usize, act: SimStep, arrival: u64) -> bool {
        let now = self.now;
        match act {
            SimStep::Barrier(barrier) => {
                if self.barrier_queue[barrier].len() as u32 + 1 < self.parties[barrier] {
                    self.barrier_queue[barrier].push(thread);
                    self.threads[thread].state = State::Waits;
                    return false;
                }
                self.passed(thread, now);
                let all = std::mem::take(&mut self.barrier_queue[barrier]);
                let wakes = !all.is_empty();
                all.into_iter().for_each(|next| self.wake(next, now));
                wakes
            }
            SimStep::Take(semaphore) if self.left[semaphore] > 0 => {
                self.left[semaphore] -= 1;
                self.passed(thread, now);
                false
            }
            SimStep::Take(semaphore) => {
                self.semaphore_queue[semaphore].push(thread);
                self.threads[thread].state = State::Waits;
                false
            }
            SimStep::Post(semaphore) => match self.most_urgent(&self.semaphore_queue[semaphore]) {
                Some(place) => {
                    let next = self.semaphore_queue[semaphore].remove(place);
                    self.wake(next, arrival);
                    true
                }
                None => {
                    self.left[semaphore] += 1;
                    false
                }
            },
            SimStep::Fork(start) => {
                self.made[start] += 1;
                let made = self.made[start];
                let (begun, left): (Vec<_>, Vec<_>) =
                    self.start_queue[start].drain(..).partition(|(_, number)| *number < made);
                self.start_queue[start] = left;
                let wakes = !begun.is_empty();
                for (next, _) in begun {
                    let one = &mut self.threads[next];
                    (one.origin, one.arrival, one.last_arrival) = (Some(now), Some(now), now);
                    one.state = State::Ready;
                }
                wakes
            }
            SimStep::Forked { start, number } => {
                let one = &mut self.threads[thread];
                if one.origin.is_some() {
                    return false;
                }
                if self.made[start] > number {
                    (one.origin, one.arrival, one.last_arrival) = (Some(now), Some(now), now);
                    return false;
                }
                one.state = State::Waits;
                self.start_queue[start].push((thread, number));
                false
            }
            _ => true,
        }
    }

    /// A job begins without a wait.
    fn passed(&mut self, thread: usize, arrival: u64) {
        let one = &mut self.threads[thread];
        if one.begins.take().is_some() {
            (one.arrival, one.last_arrival, one.worked) = (Some(arrival), arrival, false);
        }
    }
}

/// Some acts, locks within each other, each given back.
fn acts(dice: &mut Dice, depth: u32) -> Vec<SimStep> {
    let mut acts = Vec::new();
    for _ in 0..dice.between(0, 4) + 1 {
        let one = dice.between(0, KINDS as u64 - 1) as usize;
        match dice.between(0, 15) {
            0..=3 => acts.push(SimStep::Run(1 + dice.between(0, 6))),
            4 => acts.push(SimStep::RunFor(1 + dice.between(0, 5))),
            5 => acts.push(SimStep::Sleep(1 + dice.between(0, 9))),
            6 => acts.push(SimStep::Timer {
                timer: one,
                period: 5 + dice.between(0, 20),
                absolute: dice.between(0, 1) == 0,
            }),
            7 | 8 if depth == 0 => {
                let lock = one;
                acts.push(SimStep::Lock(lock));
                acts.extend(self::acts(dice, 1));
                if dice.between(0, 2) == 0 {
                    acts.push(SimStep::Wait {
                        event: dice.between(0, KINDS as u64 - 1) as usize,
                        lock,
                    });
                }
                acts.push(SimStep::Unlock(lock));
            }
            7 => acts.extend([SimStep::Lock(one), SimStep::Run(2), SimStep::Unlock(one)]),
            9 => acts.push(SimStep::Suspend(one)),
            10 => acts.push(SimStep::Signal(one)),
            11 => acts.push(SimStep::Broadcast(one)),
            12 => acts.push(SimStep::Barrier(one)),
            13 => acts.push(SimStep::Take(one)),
            14 => acts.push(SimStep::Post(one)),
            _ => acts.push([SimStep::Yield, SimStep::Fork(one)][dice.between(0, 1) as usize]),
        }
    }
    acts
}

fn random(dice: &mut Dice) -> System {
    let cpus = 1 + dice.between(0, 1) as u32;
    let mut system = System::new(cpus);
    system.resources = vec![SimLockProtocol::Plain; KINDS];
    system.barriers = vec![2, 1, 3];
    let count = 2 + dice.between(0, 4) as u32;
    for number in 0..count {
        let mut phases: Vec<SimPhase> = (0..1 + dice.between(0, 2))
            .map(|_| SimPhase {
                loops: Some(dice.between(0, 3)),
                class: None,
                cpus: Vec::new(),
                acts: acts(dice, 0),
            })
            .collect();
        let first = match dice.between(0, 3) {
            0 => {
                let start = dice.between(0, KINDS as u64 - 1) as usize;
                Some(SimStep::Forked { start, number: dice.between(0, 1) })
            }
            _ => None,
        };
        let loops = (dice.between(0, 2) == 0).then(|| dice.between(0, 3));
        // So that no round takes no time.
        let acts = first.into_iter().chain([SimStep::Run(1)]).collect();
        phases.insert(0, SimPhase { loops: Some(1), class: None, cpus: Vec::new(), acts });
        let kinds = [JobTrigger::Timer, JobTrigger::Event, JobTrigger::Sleep, JobTrigger::Start];
        let beginning = kinds[dice.between(0, 3) as usize];
        let start = dice.between(0, 3) * dice.between(0, 9);
        let start = if first.is_some() { 0 } else { start };
        let script = Script { start, loops, phases, beginning };
        let thread = Thread::scripted(Class::Fifo(1 + number), script, u64::MAX);
        system.threads.push(thread.on(&[number % cpus]));
    }
    system
}

/// The engine does what the interpreter does, in each nanosecond.
#[test]
fn scripts_run_as_interpreted() {
    const HORIZON: u64 = 400;
    let first = std::env::var("HOURGLASS_SCRIPT_SEED").ok().and_then(|seed| seed.parse().ok());
    let (first, count) = first.map_or((1u64, 3_000), |seed| (seed, 1));
    let mut jobs = 0;
    for seed in first..first + count {
        let mut dice = Dice::new(seed);
        let system = random(&mut dice);
        let (found, wanted) = (simulated(&system, HORIZON), interpreted(&system, HORIZON));
        jobs += wanted.done.iter().map(Vec::len).sum::<usize>();
        let ran = found.ran.iter().zip(&wanted.ran);
        for (cpu, (found, wanted)) in ran.enumerate() {
            let differs = found.iter().zip(wanted).position(|(a, b)| a != b);
            if let Some(at) = differs {
                let (found, wanted) = (found[at], wanted[at]);
                panic!("seed {seed}, CPU {cpu} at {at}: {found:?} for {wanted:?}\n{system:#?}");
            }
        }
        assert_eq!(found.done, wanted.done, "seed {seed}\n{system:#?}");
    }
    assert!(count == 1 || jobs > 10_000, "{jobs}");
}
