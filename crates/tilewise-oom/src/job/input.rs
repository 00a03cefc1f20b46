//! Options that hold data or a state in the host's memory: of input pipelines, of saves and loads.

use super::{SEARCHED, pool_settings::assigned, trials};
use crate::text::{tail, word};

/// An option that holds data or a state in the host's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputOption {
    /// The option's name, as the text has it.
    pub name: String,
    /// Its value in the text.
    pub value: String,
    /// The data that it holds.
    pub kind: InputKind,
}

/// The contents of the host's memory that an option sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InputKind {
    /// All of a data set, once it is read.
    Cache,
    /// Elements that are shuffled.
    Shuffle,
    /// Batches that are made ahead.
    Prefetch,
    /// Bytes that a save or a load has at once.
    AtOnce,
    /// A copy of the state, from which an asynchronous save writes.
    Async,
}

impl InputKind {
    /// Whether it is of a state that is saved or loaded, not of data.
    #[must_use]
    pub fn is_of_state(self) -> bool {
        matches!(self, Self::AtOnce | Self::Async)
    }
}

/// Names of options: of big_vision, of Hugging Face's datasets, of others, each in the words of `tf.data`.
const OPTIONS: [(&str, InputKind); 18] = [
    ("async_checkpointing", InputKind::Async),
    ("enable_async_checkpointing", InputKind::Async),
    ("async_save", InputKind::Async),
    ("cache_raw", InputKind::Cache),
    ("cache_dataset", InputKind::Cache),
    ("cache_data", InputKind::Cache),
    ("cache_in_memory", InputKind::Cache),
    ("keep_in_memory", InputKind::Cache),
    ("load_in_memory", InputKind::Cache),
    ("in_memory", InputKind::Cache),
    ("shuffle_buffer_size", InputKind::Shuffle),
    ("shuffle_buffer", InputKind::Shuffle),
    ("shuffle_size", InputKind::Shuffle),
    ("buffer_size", InputKind::Shuffle),
    ("prefetch_buffer_size", InputKind::Prefetch),
    ("prefetch_size", InputKind::Prefetch),
    ("prefetch_batches", InputKind::Prefetch),
    ("prefetch_factor", InputKind::Prefetch),
];

/// Words in the names of options for bytes of a save or a load: `staging_budget_gb`, `save_concurrent_gb`.
const AT_ONCE: [&str; 3] = ["concurrent", "staging", "inflight"];

/// Fewer elements, or batches made ahead, are few.
const MANY_ELEMENTS: u64 = 100_000;
const MANY_BATCHES: u64 = 16;

/// More options aren't said.
const MOST: usize = 3;

impl InputOption {
    /// The options of a text, those that hold all data first.
    pub(crate) fn all(log: &str) -> Vec<Self> {
        let text = tail(log, SEARCHED);
        let mut found: Vec<Self> = Vec::new();
        for (start, end) in word::all(text) {
            let name = &text[start..end];
            let known = OPTIONS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
            let Some(kind) = known.or_else(|| is_at_once(name).then_some(InputKind::AtOnce)) else { continue };
            let Some(value) = assigned(&text[end..]) else { continue };
            let count = value.replace('_', "").parse::<u64>().ok();
            let is_large = match kind {
                InputKind::Cache | InputKind::Async => ["True", "true"].contains(&value),
                InputKind::AtOnce => count.is_some_and(|count| count > 1) && !trials::is_told_in_vain(text, start, end),
                InputKind::Shuffle => count.is_some_and(|count| count >= MANY_ELEMENTS),
                InputKind::Prefetch => count.is_some_and(|count| count >= MANY_BATCHES),
            };
            if is_large && !found.iter().any(|other| other.kind == kind) {
                found.push(Self { name: name.to_owned(), value: value.to_owned(), kind });
            }
        }
        found.sort_by_key(|option| option.kind);
        found.truncate(MOST);
        found
    }
}

/// Whether a name is of a number of bytes at once.
fn is_at_once(name: &str) -> bool {
    ["_gb", "_mb", "_bytes"].iter().any(|unit| name.ends_with(unit)) && AT_ONCE.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_pipelines() {
        let of = |text: &str| {
            let all = InputOption::all(text).into_iter();
            all.map(|option| format!("{} {}", option.name, option.value)).collect::<Vec<_>>()
        };
        let config = "config.input.shuffle_buffer_size = 250_000\nconfig.input.cache_raw = True  # Needs RAM";
        assert_eq!(of(config), ["cache_raw True", "shuffle_buffer_size 250_000"]);
        assert_eq!(of("prefetch_size: 64, prefetch_size: 2"), ["prefetch_size 64"]);
        assert_eq!(of("staging_budget_gb: 16\nasync_save=true"), ["staging_budget_gb 16", "async_save true"]);
        for none in
            ["cache_raw = False", "shuffle_buffer_size=1000", "use_cache=True", "prefetch_factor=2", "cache_raw", "é"]
        {
            assert_eq!(of(none), [""; 0], "{none}");
        }
    }
}
