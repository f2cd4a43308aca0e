//! The analyses by name.
//!
//! Owns: names, what each answers, whose it is. Must not: analyse.

use hourglass_model::check::AnalysisFacts;
use hourglass_model::near;

/// An analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it answers.
    pub about: &'static str,
    /// Whose it is.
    pub source: &'static str,
}

/// All analyses, in the order in which they are listed.
pub const ALL: &[Entry] = &[
    Entry {
        name: "fp-preemptive",
        about: "response times under fixed priorities",
        source: "Joseph and Pandya 1986; Lehoczky 1990; Audsley et al. 1993; Tindell et al. 1994",
    },
    Entry {
        name: "fp-suspension",
        about: "the same with tasks that suspend themselves",
        source: "Chen et al. 2019",
    },
    Entry {
        name: "fp-nonpreemptive",
        about: "response times under fixed priorities, jobs not preempted",
        source: "Davis, Burns, Bril and Lukkien 2007",
    },
    Entry {
        name: "fp-limited-preemptive",
        about: "response times under fixed priorities, jobs preempted at fixed points",
        source: "Bril, Lukkien and Verhaegh 2009; Bozhko and Brandenburg 2020",
    },
    Entry {
        name: "fp-floating-np",
        about: "response times under fixed priorities, sections anywhere not preempted",
        source: "Bozhko and Brandenburg 2020",
    },
    Entry {
        name: "fp-bursts",
        about: "response times under fixed priorities, jobs arriving in bursts",
        source: "Tindell, Burns and Wellings 1994; Richter 2005",
    },
    Entry {
        name: "fp-thresholds",
        about: "response times under fixed priorities with preemption thresholds",
        source: "Wang and Saksena 1999; Regehr 2002; Keskin, Bril and Lukkien 2010",
    },
    Entry {
        name: "fp-phases",
        about: "response times under fixed priorities, the phases of all tasks being known",
        source: "Leung and Merrill 1980; Palencia and Gonzalez Harbour 1998",
    },
    Entry {
        name: "edf-preemptive",
        about: "response times and demand under earliest deadline first",
        source: "Spuri 1996; Zhang and Burns 2009",
    },
    Entry {
        name: "edf-suspension",
        about: "response times under EDF with tasks that suspend themselves",
        source: "G\u{fc}nzel, von der Br\u{fc}ggen and Chen 2022; Spuri 1996",
    },
    Entry {
        name: "edf-nonpreemptive",
        about: "the same, jobs not preempted",
        source: "Jeffay, Stanat and Martel 1991; George, Rivierre and Spuri 1996",
    },
    Entry {
        name: "edf-limited-preemptive",
        about: "the same, jobs preempted at fixed points",
        source: "Bozhko and Brandenburg 2020",
    },
    Entry {
        name: "edf-floating-np",
        about: "the same, sections anywhere not preempted",
        source: "Baruah 2005; Bozhko and Brandenburg 2020",
    },
    Entry {
        name: "edf-demand",
        about: "whether deadlines hold under EDF, by demand alone",
        source: "Baruah, Mok and Rosier 1990; Zhang and Burns 2009",
    },
    Entry {
        name: "fifo",
        about: "response times first come, first served",
        source: "Bedarkar et al. 2022",
    },
    Entry {
        name: "supply",
        about: "response times under fixed priorities, and demand under EDF, inside a server",
        source: "Shin and Lee 2003; Easwaran, Anand and Lee 2007",
    },
    Entry {
        name: "holistic",
        about: "chains of tasks across CPUs under fixed priorities",
        source: "Tindell and Clark 1994; Palencia and Gonzalez Harbour 1998",
    },
    Entry {
        name: "global-fp-lc",
        about: "response times under global fixed priorities, limited carry-in",
        source: "Guan, Stigge, Yi and Yu 2009",
    },
    Entry {
        name: "global-fp-bc",
        about: "response times under global fixed priorities",
        source: "Bertogna and Cirinei 2007",
    },
    Entry {
        name: "global-edf",
        about: "global EDF: GFB, BAK, BCL, BAR and response times, whichever accepts",
        source: "Goossens et al. 2003; Baker 2003; Bertogna et al. 2005, 2007; Baruah 2007",
    },
    Entry {
        name: "liu-layland",
        about: "the utilisation bound of rate-monotonic priorities",
        source: "Liu and Layland 1973",
    },
    Entry {
        name: "hyperbolic",
        about: "the hyperbolic bound of rate-monotonic priorities",
        source: "Bini, Buttazzo and Buttazzo 2003",
    },
];

impl Entry {
    /// The analysis as a document has it.
    #[must_use]
    pub fn facts(&self) -> AnalysisFacts {
        AnalysisFacts {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            source: self.source.to_owned(),
        }
    }
}

/// The question which analysis a name may have meant, with a space behind it; empty if none is near.
pub(super) fn meant(name: &str) -> String {
    let question = near::did_you_mean(name, ALL.iter().map(|entry| entry.name));
    question.map_or_else(String::new, |question| format!("{question} "))
}

/// The analysis with this name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}
