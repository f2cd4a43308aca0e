//! An experiment whose parts fit together.
//!
//! Owns: [`Experiment`], its defaults, what is refused, and its description for documents.
//! Must not: run it.

use std::path::PathBuf;

use hourglass_documents::spelling;
use hourglass_documents::sweep::{SweepExperiment, SweepShard};
use hourglass_runs::store::sweep::SweepFolderError;
use hourglass_sched::{Task, TaskError, catalogue};
use hourglass_tasks::TaskSetError;
use hourglass_tasks::generate::{
    GenerateError, MOST_PROCESSORS, Millionths, Recipe, Source, UtilisationMethod,
};
use thiserror::Error;

use super::experiment_keys::ExperimentBuilder;
use super::template::{ScaledTaskSet, Template, TemplateError};
use super::{ANALYSES, Analysis, ProcessorScope};

/// The default number of sets of a point.
const DEFAULT_SETS: u64 = 1_000;

/// How many draws may run out of tries before a set is left out.
const DRAWS: u64 = 4;

/// Of how many sets of a point nothing may be drawn before the experiment is refused.
const SETS_TRIED: u64 = 4;

/// The default number of steps from the least to the greatest utilisation: 5 % of the machine.
const DEFAULT_STEPS: u64 = 20;

/// An experiment that can be run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The points, ascending.
    pub utilisations: Vec<Millionths>,
    /// Sets a point.
    pub sets: u64,
    /// Processors, from 1.
    pub processors: u32,
    /// The sets that are drawn, or the set that is scaled.
    pub subject: SetSource,
    /// The analyses compared, each once.
    pub analyses: Vec<&'static Analysis>,
    /// Older words by which analyses were requested, each with the present name.
    pub older: Vec<(&'static str, &'static str)>,
    /// Whether what each analysis says of each set is kept.
    pub keep_sets: bool,
    /// Which part of it is to be done, by its number from 0, and how many there are; all of it without.
    pub shard: Option<(u64, u64)>,
}

/// The source of the sets.
#[derive(Clone, Debug)]
pub enum SetSource {
    /// Drawn at random.
    Drawn(Recipe),
    /// One set, its execution times scaled.
    Scaled(Template),
}

/// An experiment that cannot be done.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The file is no TOML.
    #[error("line {line}: {reason}")]
    NoToml {
        /// The line, from 1.
        line: usize,
        reason: String,
    },
    /// No worker thread can be started.
    #[error("no thread can be started: {0}; raise the limit on processes (ulimit -u)")]
    NoThread(String),
    /// A key that there is not.
    #[error("{}", spelling::unknown("key", .0, ExperimentBuilder::KEYS))]
    UnknownKey(String),
    /// A value that is not understood.
    #[error("{key}: {reason}")]
    Word {
        key: String,
        /// The error, and the right form.
        reason: String,
    },
    /// An analysis that there is not.
    #[error(
        "analyses: unknown analysis '{0}'; {question}hourglass sweep --list lists them",
        question = spelling::did_you_mean(.0, ANALYSES.iter().map(|analysis| analysis.name))
            .map_or_else(String::new, |question| format!("{question} "))
    )]
    UnknownAnalysis(String),
    /// An analysis twice.
    #[error("analyses: duplicate '{0}'; keep one of them")]
    Twice(&'static str),
    /// An analysis of one processor, with several.
    #[error(
        "analyses: '{name}' is for one processor, and there are {processors}; take one whose name \
         begins with p- or g-, or one processor"
    )]
    SingleOnly { name: &'static str, processors: u32 },
    /// No priorities are given.
    #[error(
        "analyses: '{0}' needs the priorities of a task file, and random sets have none; take rm, dm \
         or opa"
    )]
    NeedsPriorities(&'static str),
    /// Something that only drawn sets have.
    #[error("{0}: the tasks are given, and only their execution times are scaled; leave it out")]
    OnlyDrawn(&'static str),
    /// Nothing can be drawn by this recipe.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A set that cannot be scaled.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A task file is malformed.
    #[error(transparent)]
    Tasks(#[from] TaskSetError),
    /// A file of worked examples.
    #[error("a file of worked examples has many sets; take one set, as TOML")]
    Examples,
    /// A file of another tool that is not read.
    #[error("this looks like {0}")]
    Unread(&'static str),
    /// Another program works in the folder.
    #[error(
        "{}: another sweep is at work in this folder; wait until it ends, or name another folder",
        .0.display()
    )]
    InUse(PathBuf),
    #[error(transparent)]
    Folder(#[from] SweepFolderError),
    /// A folder that was to hold parts cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Parts { path: PathBuf, source: std::io::Error },
    /// A folder without parts.
    #[error("{}: no part of an experiment is there; name the folders of hourglass sweep --shard", .0.display())]
    NoParts(PathBuf),
    /// A whole experiment among parts.
    #[error("{} holds a whole experiment and no part of one; leave it out", .0.display())]
    NoPart(PathBuf),
    /// Parts of two experiments.
    #[error(
        "{}: {key} is {there}, in {} it is {here}; merge parts of one experiment",
        .path.display(), .other.display()
    )]
    OtherExperiment {
        path: PathBuf,
        /// The first key that differs.
        key: String,
        there: String,
        other: PathBuf,
        /// The value in that folder.
        here: String,
    },
    /// Parts of one experiment that was cut in two ways.
    #[error(
        "{} is one of {of} parts, {} one of {other_of}; merge parts of one cut",
        .path.display(), .other.display()
    )]
    CutOtherwise {
        path: PathBuf,
        of: u64,
        other: PathBuf,
        /// The number of parts of which that one is.
        other_of: u64,
    },
    #[error(
        "part {index} is there twice, in {} and {}; leave one out", .path.display(), .other.display()
    )]
    Double { index: u64, path: PathBuf, other: PathBuf },
    /// Parts are missing.
    #[error("{there} of {of} parts are there; missing: {named}")]
    Missing {
        there: u64,
        /// How many there are in all.
        of: u64,
        /// The first numbers that are missing.
        named: String,
    },
    /// A part that is not finished.
    #[error(
        "{}: {done} of {wanted} points are finished; the command that started it resumes from there",
        .path.display()
    )]
    Unfinished {
        path: PathBuf,
        /// Finished points.
        done: usize,
        /// Points that it has.
        wanted: usize,
    },
    /// A set with a task that cannot be.
    #[error("utilisation {utilisation}, set {set}: {source}")]
    Task { utilisation: Millionths, set: u64, source: TaskError },
}

impl ExperimentBuilder {
    /// The experiment that the draft describes: with `template`, of that set, else of drawn ones.
    ///
    /// # Errors
    /// Parts that exclude each other, or by which no set can be made.
    pub fn finish(&self, template: Option<Template>) -> Result<Experiment, SweepError> {
        let processors = match &template {
            Some(template) => self.processors.unwrap_or_else(|| template.processors()),
            None => self.processors.unwrap_or(1),
        };
        if processors == 0 || processors > MOST_PROCESSORS {
            return Err(GenerateError::Processors(processors).into());
        }
        let subject = match template {
            Some(template) => {
                self.refuse_drawing()?;
                SetSource::Scaled(template)
            }
            None => SetSource::Drawn(self.recipe(processors)),
        };
        let experiment = Experiment {
            utilisations: self.utilisations.clone().unwrap_or_else(|| default_points(processors)),
            sets: self.sets.unwrap_or(match subject {
                SetSource::Drawn(_) => DEFAULT_SETS,
                SetSource::Scaled(_) => 1,
            }),
            processors,
            analyses: self.analyses(processors, &subject)?,
            older: self.older(),
            subject,
            keep_sets: self.keep_sets.unwrap_or(false),
            shard: None,
        };
        experiment.check()?;
        Ok(experiment)
    }

    fn recipe(&self, processors: u32) -> Recipe {
        let plain = Recipe::default();
        let bounds = self.bounds.clone().unwrap_or_default();
        let method = match (processors, bounds.is_empty()) {
            (1, true) => UtilisationMethod::UUniFast,
            (_, true) => UtilisationMethod::RandFixedSum,
            (_, false) => UtilisationMethod::DirichletRescale,
        };
        Recipe {
            seed: self.seed.unwrap_or(plain.seed),
            tasks: self.tasks.unwrap_or(plain.tasks),
            processors,
            method: self.generator.unwrap_or(method),
            bounds,
            periods: self.periods.clone().unwrap_or(plain.periods),
            granularity: self.granularity.unwrap_or(plain.granularity),
            cost_granularity: self.cost_granularity.unwrap_or(plain.cost_granularity),
            deadlines: self.deadlines.unwrap_or(plain.deadlines),
            jitter: self.jitter.unwrap_or(plain.jitter),
        }
    }

    /// Refuses keys that contradict a given set.
    fn refuse_drawing(&self) -> Result<(), SweepError> {
        let said = [
            ("sets", self.sets.is_some_and(|sets| sets != 1)),
            ("tasks", self.tasks.is_some()),
            ("generator", self.generator.is_some()),
            ("bounds", self.bounds.is_some()),
            ("periods", self.periods.is_some()),
            ("granularity", self.granularity.is_some()),
            ("cost_granularity", self.cost_granularity.is_some()),
            ("deadlines", self.deadlines.is_some()),
            ("jitter", self.jitter.is_some()),
            ("seed", self.seed.is_some()),
        ];
        match said.iter().find(|(_, said)| *said) {
            Some((key, _)) => Err(SweepError::OnlyDrawn(key)),
            None => Ok(()),
        }
    }

    fn analyses(
        &self,
        processors: u32,
        subject: &SetSource,
    ) -> Result<Vec<&'static Analysis>, SweepError> {
        let given = match subject {
            SetSource::Drawn(_) => false,
            SetSource::Scaled(template) => template.has_priorities(),
        };
        let names = match &self.analyses {
            Some(words) => words.iter().map(String::as_str).collect(),
            None if given && processors == 1 => vec!["fp-preemptive", "opa", "edf-preemptive"],
            None => default_names(processors).to_vec(),
        };
        let mut chosen: Vec<&'static Analysis> = Vec::new();
        for analysis in names.into_iter().filter_map(catalogue::contender) {
            let name = analysis.name;
            if chosen.iter().any(|other| other.name == name) {
                return Err(SweepError::Twice(name));
            }
            if analysis.machine == ProcessorScope::Single && processors != 1 {
                return Err(SweepError::SingleOnly { name, processors });
            }
            if analysis.needs_priorities && !given {
                return Err(SweepError::NeedsPriorities(name));
            }
            chosen.push(analysis);
        }
        Ok(chosen)
    }

    fn older(&self) -> Vec<(&'static str, &'static str)> {
        let words = self.analyses.iter().flatten();
        let pair = |word: &String| {
            let found = catalogue::contender(word)?;
            Some((found.older.filter(|older| older == word)?, found.name))
        };
        words.filter_map(pair).collect()
    }
}

/// The analyses that are compared by default.
fn default_names(processors: u32) -> &'static [&'static str] {
    match processors {
        1 => &["liu-layland", "hyperbolic", "rm", "dm", "opa", "edf-preemptive"],
        _ => &["g-edf-gfb", "g-edf-rta", "g-dm-lc", "g-opa-lc", "p-dm-ff", "p-edf-ff"],
    }
}

/// The default points, from 5 % of the machine to all of it.
fn default_points(processors: u32) -> Vec<Millionths> {
    let whole = Millionths::whole(processors.into()).count();
    (1..=DEFAULT_STEPS).map(|at| Millionths::new(whole * at / DEFAULT_STEPS)).collect()
}

/// The sets of one point.
#[derive(Clone, Debug)]
pub(super) enum Sets {
    Drawn(Source),
    Scaled(ScaledTaskSet),
}

impl Experiment {
    /// Asks for the sets of every point, so that what cannot be is found before anything is done. If
    /// nothing can be drawn of several sets of a point, the method does not suit it.
    fn check(&self) -> Result<(), SweepError> {
        for utilisation in &self.utilisations {
            let sets = self.at(*utilisation)?;
            let mut last = None;
            for set in 0..self.sets.min(SETS_TRIED) {
                match self.tasks(&sets, *utilisation, set)? {
                    (Some(_), _) => {
                        last = None;
                        break;
                    }
                    (None, _) => last = self.draw(&sets, *utilisation, set).err(),
                }
            }
            last.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    pub(super) fn at(&self, utilisation: Millionths) -> Result<Sets, SweepError> {
        match &self.subject {
            SetSource::Drawn(recipe) => Ok(Sets::Drawn(recipe.at(utilisation)?)),
            SetSource::Scaled(template) => {
                Ok(Sets::Scaled(template.at(utilisation, self.processors)?))
            }
        }
    }

    /// The tasks of a set of a point, and how many draws ran out of tries: after each, a set is drawn
    /// whose number no other set of the point has. None, if that comes to nothing either.
    pub(super) fn tasks(
        &self,
        sets: &Sets,
        utilisation: Millionths,
        set: u64,
    ) -> Result<(Option<Vec<Task>>, u64), SweepError> {
        for redrawn in 0..DRAWS {
            let number = set.saturating_add(self.sets.saturating_mul(redrawn));
            match self.draw(sets, utilisation, number) {
                Ok(tasks) => return Ok((Some(tasks), redrawn)),
                Err(SweepError::Generate(GenerateError::Discarded { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((None, DRAWS))
    }

    fn draw(
        &self,
        sets: &Sets,
        utilisation: Millionths,
        set: u64,
    ) -> Result<Vec<Task>, SweepError> {
        let source = match sets {
            Sets::Drawn(source) => source,
            Sets::Scaled(scaled) => return Ok(scaled.tasks().to_vec()),
        };
        let made = source.draw(set)?.into_iter().map(|drawn| {
            let task = Task::new(drawn.cost, drawn.period, drawn.deadline);
            task.map(|task| task.with_jitter(drawn.jitter))
        });
        made.collect::<Result<_, _>>().map_err(|source| SweepError::Task {
            utilisation,
            set,
            source,
        })
    }

    /// The experiment for documents. Equal ones have equal results.
    #[must_use]
    pub fn facts(&self) -> SweepExperiment {
        let plain = Recipe::default();
        let (recipe, template) = match &self.subject {
            SetSource::Drawn(recipe) => (recipe, None),
            SetSource::Scaled(template) => (&plain, Some(template)),
        };
        let drawn = |text: String| if template.is_some() { "given".to_owned() } else { text };
        SweepExperiment {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            utilisations: self.utilisations.iter().map(Millionths::to_string).collect(),
            sets: self.sets,
            tasks: template.map_or(recipe.tasks, Template::len),
            processors: self.processors,
            generator: template.map_or(recipe.method.to_string(), |_| "scaled".to_owned()),
            bounds: recipe.bounds.iter().map(ToString::to_string).collect(),
            periods: drawn(recipe.periods.to_string()),
            granularity: recipe.granularity.to_string(),
            cost_granularity: recipe.cost_granularity.to_string(),
            deadlines: drawn(recipe.deadlines.to_string()),
            jitter: drawn(format!("{},{}", recipe.jitter.0, recipe.jitter.1)),
            seed: recipe.seed,
            analyses: self.analyses.iter().map(|analysis| analysis.name.to_owned()).collect(),
            template: template.map(|template| template.text().to_owned()),
            keep_sets: self.keep_sets,
            shard: self.shard.map(|(index, of)| SweepShard {
                index,
                of,
                older: self
                    .older
                    .iter()
                    .map(|(word, name)| ((*word).into(), (*name).into()))
                    .collect(),
            }),
        }
    }
}
