//! The keys of a workload file that limit the run.

use hourglass_workload::Guard;
use serde::Deserialize;
use toml::Spanned;

use super::{FileKeys, FileResult, Source};
use crate::gates::{Gates, Limit};

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Percentiles {
    One(String),
    Several(Vec<String>),
}

impl Percentiles {
    fn texts(&self) -> &[String] {
        match self {
            Percentiles::One(text) => std::slice::from_ref(text),
            Percentiles::Several(texts) => texts,
        }
    }
}

impl Source<'_> {
    pub(super) fn guard(&self, keys: &FileKeys) -> FileResult<Guard> {
        Ok(Guard {
            stop_on_gap: self.optional(keys.stop_on_gap.as_ref(), Self::not_negative)?,
            stop_on_latency: self.optional(keys.stop_on_latency.as_ref(), Self::not_negative)?,
            ..Guard::default()
        })
    }

    pub(super) fn gates(&self, keys: &FileKeys) -> FileResult<Gates> {
        let mut gates = Gates::default();
        gates.on_hit.clone_from(&keys.on_hit);
        let time = |key: &Option<Spanned<String>>| self.optional(key.as_ref(), Self::not_negative);
        let latency = time(&keys.max_latency)?.map(Limit::MaxLatency);
        let gap = time(&keys.max_gap)?.map(Limit::MaxGap);
        let misses = keys.max_misses.map(Limit::MaxMisses);
        let percentiles = self.optional(keys.percentile.as_ref(), |percentiles| {
            let limits = percentiles.texts().iter().map(|text| Limit::percentile(text));
            limits.collect::<Result<Vec<Limit>, _>>()
        })?;
        let all = [latency, gap, misses].into_iter().flatten();
        all.chain(percentiles.into_iter().flatten()).for_each(|limit| gates.set(limit));
        Ok(gates)
    }
}
