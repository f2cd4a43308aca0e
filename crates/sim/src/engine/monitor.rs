//! Who watches what runs, and may stop it.
//!
//! Owns: [`Monitor`], what it sees ([`MachineView`]) and what it may order ([`OrderList`]). Must not: be a
//! policy; those of the SMT paper are written elsewhere, with this.

/// Watches a simulation. Called at an instant at which something that it asked for has happened,
/// after all CPUs have been given out; may close CPUs, stop threads and set timers.
///
/// An implementation
/// - MUST come to rest: after its orders, CPUs are given out again at the same instant, and it is
///   called again if its orders changed who runs. At most [`MOST_LOOKS`] calls are made an instant.
/// - MUST depend on nothing but what it sees and has seen.
///
/// The slack monitor of the SMT paper is: when a job of the real-time thread is dispatched, and when
/// the timer expires, compute slack from [`MachineView::job`], close the siblings or set the timer; when
/// the job is done, open them. Disabling SMT is: siblings are closed while it runs.
pub trait Monitor {
    /// Whether there is one. If not, looking costs nothing.
    const ACTIVE: bool = true;

    /// How many timers it has, numbered from 0.
    fn timers(&self) -> usize {
        1
    }

    /// The events at which it is called, besides its timers.
    fn call_reasons(&self) -> CallReasons {
        CallReasons { release: false, completion: true, dispatch: true, timer: true, budget: false }
    }

    /// Reads the state of the machine at an instant, and gives orders.
    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>);
}

/// How often a monitor is called at one instant before the simulation is given up.
pub const MOST_LOOKS: u32 = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallReasons {
    pub release: bool,
    pub completion: bool,
    /// A CPU runs another thread than before, or none.
    pub dispatch: bool,
    pub timer: bool,
    pub budget: bool,
}

impl CallReasons {
    pub(super) fn meets(self, wanted: CallReasons) -> bool {
        (self.release && wanted.release)
            || (self.completion && wanted.completion)
            || (self.dispatch && wanted.dispatch)
            || (self.timer && wanted.timer)
            || (self.budget && wanted.budget)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuGate {
    #[default]
    Open,
    /// Deadlines and fixed priorities, servers with budget among them; not the fair class.
    RealTime,
    /// No thread may run: the CPU is idle.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobView {
    /// The number of the job, from 0.
    pub job: u64,
    /// The nominal arrival of the job, ns.
    pub arrival: u64,
    /// The absolute deadline of the job, ns.
    pub deadline: u64,
    /// What it needs, ns of an unshared CPU. A scheduler that does not know the future uses what is
    /// reserved instead.
    pub cost: u64,
    /// The work that it has done, ns of an unshared CPU, rounded down.
    pub done: u64,
}

/// The machine at an instant, after CPUs have been given out.
pub trait MachineView {
    /// Now, ns.
    fn now(&self) -> u64;

    fn reasons(&self) -> CallReasons;

    /// Whether this timer of the monitor has just expired.
    fn expired(&self, timer: usize) -> bool;

    /// The thread that has the CPU.
    fn running(&self, cpu: u32) -> Option<usize>;

    fn cpu_of(&self, thread: usize) -> Option<u32>;

    fn gate(&self, cpu: u32) -> CpuGate;

    /// The first unfinished job of a thread that has been released.
    fn job(&self, thread: usize) -> Option<JobView>;

    /// The remaining budget of a server in this period, ns rounded up.
    fn budget(&self, server: usize) -> Option<u64>;

    /// When a server's period or deadline ends, ns.
    fn server_deadline(&self, server: usize) -> Option<u64>;
}

/// The orders of a monitor. They are carried out when its call returns.
#[derive(Debug)]
pub struct OrderList<'a> {
    pub(super) orders: &'a mut Vec<MonitorOrder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonitorOrder {
    Gate(u32, CpuGate),
    Stop(usize),
    Resume(usize),
    Wake(usize, u64),
    Cancel(usize),
    Spend(u32, u64),
}

impl OrderList<'_> {
    /// Sets the threads that may run on a CPU from now on.
    pub fn gate(&mut self, cpu: u32, gate: CpuGate) {
        self.orders.push(MonitorOrder::Gate(cpu, gate));
    }

    /// The thread does not run, as if frozen.
    pub fn stop(&mut self, thread: usize) {
        self.orders.push(MonitorOrder::Stop(thread));
    }

    /// The thread may run again.
    pub fn resume(&mut self, thread: usize) {
        self.orders.push(MonitorOrder::Resume(thread));
    }

    /// Sets a timer to a time, ns; at once if that is past.
    pub fn wake_at(&mut self, timer: usize, at: u64) {
        self.orders.push(MonitorOrder::Wake(timer, at));
    }

    /// A timer does not expire.
    pub fn cancel(&mut self, timer: usize) {
        self.orders.push(MonitorOrder::Cancel(timer));
    }

    /// The monitor itself uses `time` of a CPU, ns, before threads go on there.
    pub fn spend(&mut self, cpu: u32, time: u64) {
        self.orders.push(MonitorOrder::Spend(cpu, time));
    }
}

/// A monitor that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullMonitor;

impl Monitor for NullMonitor {
    const ACTIVE: bool = false;

    fn timers(&self) -> usize {
        0
    }

    fn call_reasons(&self) -> CallReasons {
        CallReasons::default()
    }

    fn on_event(&mut self, _: &dyn MachineView, _: &mut OrderList<'_>) {}
}
