//! Who had the CPUs, by name: the measured threads, others by what they are called, interrupts.
//!
//! Owns: which occupants have a name of their own, in which order, and in which colour. Must not: draw.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::kernel::KernelNames;
use hourglass_trace::cpu_occupancy::{Occupant, Slice};

/// Colours that style sheets have for threads.
pub(crate) const COLOURS: u32 = 8;

/// Maximum number of named occupants beside the measured threads: there are no more distinct colours.
const MOST_NAMED: usize = 7;

/// A colour of the style sheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Thread(u32),
    /// Of all threads that have none of their own.
    Rest,
    Interrupts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OccupantTotal {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// A second sign beside the colour: which stripes others than the measured threads have; 0 for none.
    pub(crate) stripes: u32,
    /// For how long it had CPUs, all together.
    pub(crate) ns: u64,
}

/// Everybody, the measured threads first, then others by the time they had, interrupts last.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuOccupants {
    pub(crate) all: Vec<OccupantTotal>,
    of: BTreeMap<Occupant, usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct OccupantNames<'a> {
    /// The measured threads by the kernel's numbers: number in the run, label.
    pub(crate) measured: BTreeMap<u32, (u32, String)>,
    pub(crate) names: &'a KernelNames,
}

impl OccupantNames<'_> {
    /// `thread 0: CPU`, `stress (812)`, `interrupts`.
    pub(crate) fn in_full(&self, who: Occupant) -> String {
        match who {
            Occupant::Idle => "idle".to_owned(),
            Occupant::Interrupts => "interrupts".to_owned(),
            Occupant::Thread(number) => {
                match (self.measured.get(&number), self.names.threads.get(&number)) {
                    (Some((id, label)), _) => measured(*id, label),
                    (None, Some(name)) => format!("{name} ({number})"),
                    (None, None) => format!("thread {number} of the machine"),
                }
            }
        }
    }
}

fn measured(id: u32, label: &str) -> String {
    if label.is_empty() { format!("thread {id}") } else { format!("thread {id}: {label}") }
}

/// For how long each occupant had CPUs.
pub(crate) fn times<'a>(slices: impl IntoIterator<Item = &'a Slice>) -> BTreeMap<Occupant, u64> {
    let mut times: BTreeMap<Occupant, u64> = BTreeMap::new();
    for slice in slices {
        let sum = times.entry(slice.who).or_default();
        *sum = sum.saturating_add(slice.length_ns());
    }
    times
}

impl CpuOccupants {
    /// Groups occupants and their CPU times by name. Threads of one name are one party; idle time belongs to no party.
    pub(crate) fn new(times: &BTreeMap<Occupant, u64>, called: &OccupantNames<'_>) -> CpuOccupants {
        let mut parties = CpuOccupants::default();
        let mut taken = Vec::new();
        for (number, (id, label)) in &called.measured {
            let who = Occupant::Thread(*number);
            let Some(ns) = times.get(&who) else { continue };
            taken.push(id % COLOURS);
            parties.add(measured(*id, label), Colour::Thread(id % COLOURS), &[(who, *ns)]);
        }
        let mut by_name: BTreeMap<&str, Vec<(Occupant, u64)>> = BTreeMap::new();
        let mut rest = Vec::new();
        for (who, ns) in times {
            let Occupant::Thread(number) = who else { continue };
            match called.names.threads.get(number) {
                _ if called.measured.contains_key(number) => {}
                Some(name) => by_name.entry(name).or_default().push((*who, *ns)),
                None => rest.push((*who, *ns)),
            }
        }
        let mut named: Vec<_> = by_name.into_iter().collect();
        named.sort_by_key(|(_, who)| Reverse(sum(who)));
        let mut free = (0..COLOURS).filter(|colour| !taken.contains(colour)).take(MOST_NAMED);
        let mut others = 0;
        for (name, who) in named {
            match free.next() {
                Some(colour) => {
                    parties.add(name.to_owned(), Colour::Thread(colour), &who);
                    others += 1;
                    parties.all.last_mut().into_iter().for_each(|party| party.stripes = others);
                }
                None => rest.extend(who),
            }
        }
        if !rest.is_empty() {
            let name = match rest.len() {
                1 => "1 other thread".to_owned(),
                count => format!("{count} other threads"),
            };
            parties.add(name, Colour::Rest, &rest);
        }
        if let Some(ns) = times.get(&Occupant::Interrupts) {
            let all = [(Occupant::Interrupts, *ns)];
            parties.add("interrupts".to_owned(), Colour::Interrupts, &all);
        }
        parties
    }

    /// The same, with the times of a part of the run.
    pub(crate) fn within(mut self, times: &BTreeMap<Occupant, u64>) -> CpuOccupants {
        for (place, party) in self.all.iter_mut().enumerate() {
            let own = self.of.iter().filter(|(_, of)| **of == place);
            party.ns = own
                .fold(0, |sum, (who, _)| sum.saturating_add(times.get(who).copied().unwrap_or(0)));
        }
        self
    }

    fn add(&mut self, name: String, colour: Colour, who: &[(Occupant, u64)]) {
        let place = self.all.len();
        self.of.extend(who.iter().map(|(who, _)| (*who, place)));
        self.all.push(OccupantTotal { name, colour, stripes: 0, ns: sum(who) });
    }

    /// The place of an occupant's party; `None` for an idle CPU.
    pub(crate) fn place(&self, who: Occupant) -> Option<usize> {
        self.of.get(&who).copied()
    }
}

fn sum(who: &[(Occupant, u64)]) -> u64 {
    who.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_first_then_by_time_then_the_rest() {
        let mut names = KernelNames::default();
        names.threads.extend([(8, "spinner".to_owned()), (9, "spinner".to_owned())]);
        names.threads.extend((20..40).map(|n| (n, format!("kworker/{n}"))));
        let measured = BTreeMap::from([(70, (0, "CPU".to_owned())), (71, (13, String::new()))]);
        let called = OccupantNames { measured, names: &names };
        let mut times: BTreeMap<Occupant, u64> =
            (20..40).map(|n| (Occupant::Thread(n), 100 + u64::from(n))).collect();
        let more = [(70, 5), (71, 6), (8, 4_000), (9, 3_000), (99, 1)];
        times.extend(more.map(|(number, ns)| (Occupant::Thread(number), ns)));
        times.extend([(Occupant::Interrupts, 7), (Occupant::Idle, 1_000_000)]);
        let parties = CpuOccupants::new(&times, &called);
        let named: Vec<(&str, u64)> = parties.all.iter().map(|p| (p.name.as_str(), p.ns)).collect();
        let first =
            [("thread 0: CPU", 5), ("thread 13", 6), ("spinner", 7_000), ("kworker/39", 139)];
        assert_eq!(named[..4], first);
        let last = ["16 other threads", "interrupts"];
        assert_eq!(named.len(), COLOURS as usize + 2);
        assert_eq!([named[8].0, named[9].0], last);
        // No colour twice; 0 and 5 are the measured threads', and the others have a second sign.
        let mut colours: Vec<Colour> = parties.all.iter().map(|party| party.colour).collect();
        colours.dedup();
        assert_eq!(colours.len(), parties.all.len());
        assert_eq!(parties.all[1].colour, Colour::Thread(5));
        assert_eq!(parties.all[2].colour, Colour::Thread(1));
        let stripes: Vec<u32> = parties.all.iter().map(|party| party.stripes).collect();
        assert_eq!(stripes, [0, 0, 1, 2, 3, 4, 5, 6, 0, 0]);
        // All time but idle belongs to a party.
        let shared: u64 = parties.all.iter().map(|party| party.ns).sum();
        assert_eq!(shared, times.values().sum::<u64>() - 1_000_000);
        assert_eq!(parties.place(Occupant::Thread(9)), Some(2));
        assert_eq!(parties.place(Occupant::Idle), None);
        assert_eq!(called.in_full(Occupant::Thread(8)), "spinner (8)");
        assert_eq!(called.in_full(Occupant::Thread(99)), "thread 99 of the machine");
    }
}
