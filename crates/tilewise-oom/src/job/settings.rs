//! Settings that a text names beside a message: the batch of a job and the length of its samples, or a server's tokens.

use crate::server::Server;
use crate::text::word;
use std::cmp::Reverse;

/// A setting by which most arrays of a program grow: `per_device_batch_size=16`, `--max_target_length 2048`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name, as the text has it.
    pub name: String,
    /// Its value.
    pub value: u64,
}

impl Setting {
    /// Whether it is a batch, rather than a length.
    #[must_use]
    pub fn is_of_batch(&self) -> bool {
        let name = option(&self.name);
        name.contains("batch") || is_named(&name, "bs") || self.is_of_environments()
    }

    /// Whether it is this option, written with hyphens or underscores.
    #[must_use]
    pub fn is_option(&self, name: &str) -> bool {
        option(&self.name) == option(name.trim_start_matches('-'))
    }

    /// Whether it counts environments that a simulator steps at once, which are a batch of their own.
    #[must_use]
    pub fn is_of_environments(&self) -> bool {
        is_one_of(&option(&self.name), &ENVIRONMENTS)
    }

    /// Whether its name is one of trainers that have `gradient_accumulation_steps`: Transformers', Diffusers', MaxText's.
    #[must_use]
    pub fn is_of_accumulating_trainer(&self) -> bool {
        ["per_device_train_batch_size", "per_device_batch_size", "train_batch_size"].contains(&&*option(&self.name))
    }

    /// The option of this name that a text sets, if to one value: `sa_block_q=1024`, `--block-size 16`.
    pub(crate) fn of_option(text: &str, name: &str) -> Option<Self> {
        let mut found = only(named(text, |other| other == name));
        found.pop().filter(|_| found.is_empty())
    }

    /// Whether it is the length of a sample or of a request.
    #[must_use]
    pub fn is_of_length(&self) -> bool {
        let name = option(&self.name);
        ["len", "length", "seq", "context"].iter().any(|part| name.split('_').any(|word| word.contains(part)))
            && !name.contains("seqs")
    }

    /// Whether its name tells that each device, or each part of a batch, has as many: `per_device_train_batch_size`.
    ///
    /// ```
    /// let text = "Ran out of memory in memory space hbm. Used 8.83G of 8.00G hbm. --per_device_train_batch_size=8";
    /// assert!(tilewise_oom::Message::parse(text)?.job.settings[0].is_of_each_device());
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn is_of_each_device(&self) -> bool {
        const SIGNS: [&str; 8] =
            ["per_device", "per_core", "per_gpu", "per_chip", "per_replica", "micro", "local", "device_batch"];
        let name = option(&self.name);
        SIGNS.iter().any(|sign| name.contains(sign))
    }
}

/// Bytes that are searched: commands and options stand near a message.
const SEARCHED: usize = 64 << 10;

/// Ends of the names of batches, and of lengths of samples.
const NAMES: [&str; 15] = [
    "num_envs",
    "n_envs",
    "batch_size",
    "batchsize",
    "batch",
    "bs",
    "seq_len",
    "seq_length",
    "sequence_length",
    "max_length",
    "max_target_length",
    "max_seq_len",
    "max_seq_length",
    "cutoff_len",
    "seq",
];

/// Ends of the names of counts of environments.
const ENVIRONMENTS: [&str; 2] = ["num_envs", "n_envs"];

/// Words in the names of counts of passes over data, and of parts of it: with more of them nothing is larger at once.
const OF_PASSES: [&str; 11] =
    ["update", "epoch", "step", "iter", "timestep", "eval", "repeat", "pass", "round", "worker", "every"];

/// Whether a setting counts passes or parts, by its name: `num_updates_per_batch`, `num_minibatches`.
fn is_of_passes(name: &str) -> bool {
    let is_pass = |word: &str| OF_PASSES.iter().any(|pass| word == *pass || word.strip_suffix('s') == Some(pass));
    name.split('_').any(|word| is_pass(word) || word.ends_with("batches") || word == "passes")
}

/// A server's settings by which its programs grow, the most telling first.
const OF_SERVERS: [&str; 6] = [
    "chunked_prefill_size",
    "max_num_batched_tokens",
    "max_prefill_tokens",
    "max_num_seqs",
    "max_running_requests",
    "max_model_len",
];

/// Maximum number of settings of a server that are named.
const MOST_OF_SERVERS: usize = 2;

/// Ends of the names of options that add up gradients of several batches: of Transformers, EasyLM, MaxText, Lightning.
const ACCUMULATIONS: [&str; 6] = [
    "gradient_accumulation_steps",
    "accumulate_gradient_steps",
    "grad_accum_steps",
    "gradient_accumulation",
    "accumulate_grad_batches",
    "grad_accum",
];

/// The only option of a text that adds up gradients of several batches.
pub(super) fn accumulation(text: &str) -> Option<Setting> {
    let mut found = only(named(text, |name| is_one_of(name, &ACCUMULATIONS)));
    found.pop().filter(|_| found.is_empty())
}

/// The elements of all samples, if both a batch and a length are known.
pub(super) fn elements(settings: &[Setting]) -> Option<u64> {
    match settings {
        [batch, length] if !is_of_server(batch) && batch.is_of_batch() && !length.is_of_batch() => {
            batch.value.checked_mul(length.value)
        }
        _ => None,
    }
}

/// Whether a batch is of one sample.
pub(super) fn has_batch_of_one(settings: &[Setting]) -> bool {
    settings.iter().any(|setting| setting.value == 1 && setting.is_of_batch())
}

/// The batch of a text, and the length of its samples; of a server's log, its own settings. Those that a text names with several
/// values, as a table of trials does, are left out.
pub(super) fn of(text: &str, server: Option<Server>) -> Vec<Setting> {
    let mut found;
    if server.is_some() {
        found = only(named(text, |name| is_one_of(name, &OF_SERVERS)));
        found.sort_by_key(|setting| OF_SERVERS.iter().position(|name| option(&setting.name) == *name));
        found.dedup_by_key(|setting| option(&setting.name));
        found.truncate(MOST_OF_SERVERS);
    } else {
        let all = named(text, is_of_samples);
        // Where batches were tried, the length of a sample is no first guess.
        let are_tried = all.iter().any(|(setting, is_only)| !is_only && setting.is_of_batch());
        found = if are_tried { Vec::new() } else { only(all) };
        // One of a kind: an option of a command before a log's word for it, then the longest name, which is the most telling.
        let is_option = |it: &Setting| text.contains(&["--", &*it.name].concat());
        let order =
            |it: &Setting| (!it.is_of_batch(), !it.is_of_environments(), !is_option(it), Reverse(it.name.len()));
        found.sort_by_key(order);
        found.dedup_by_key(|setting| setting.is_of_batch());
    }
    found
}

/// Parts of names of a model's own sizes, and of what isn't a size.
const OTHERS: [&str; 36] = [
    "hidden", "dim", "model", "vocab", "head", "unit", "feature", "channel", "layer", "expert", "embed", "ffn",
    "width", "depth", "class", "rank", "seed", "port", "step", "epoch", "iter", "worker", "device", "gpu", "tpu",
    "core", "node", "version", "interval", "every", "time", "warmup", "dump", "xla", "bytes", "mem",
];

/// Other settings of inputs that a text names, by their form alone: `max_msa 512`, `num_rays=4096`.
pub(super) fn sizes(text: &str) -> Vec<Setting> {
    /// Smaller ones stand for too much else.
    const LEAST: u64 = 32;
    let is_other = |name: &str| is_of_passes(name) || OTHERS.iter().any(|other| name.contains(other));
    let is_size = |name: &str| name.contains('_') && name.len() > 4 && !is_other(name);
    let all = named(text, is_size);
    // Where one of them was changed, the others are no first guess.
    let all = if all.iter().all(|(_, is_only)| *is_only) { only(all) } else { Vec::new() };
    all.into_iter().filter(|setting| setting.value >= LEAST && setting.name != setting.name.to_uppercase()).collect()
}

/// Options that set the blocks of a computation: `scan_query_chunk_size=2048`, `block_q=512`; of attention's, if there are any, these.
pub(super) fn blocks(text: &str) -> Vec<Setting> {
    const PARTS: [&str; 4] = ["block", "chunk", "tile", "tiling"];
    const OTHER: [&str; 7] = ["num", "prefill", "page", "max", "cache", "count", "blocks"];
    const OF_ATTENTION: [&str; 8] = ["q", "k", "kv", "query", "key", "queries", "keys", "attention"];
    /// More options aren't said.
    const MOST: usize = 3;
    let has = |name: &str, known: &[&str]| name.split('_').any(|word| known.contains(&word));
    let is_block = |name: &str| name.contains('_') && has(name, &PARTS) && !has(name, &OTHER);
    let mut found = only(named(text, is_block));
    found.retain(|setting| setting.value > 1);
    if found.iter().any(|setting| has(&option(&setting.name), &OF_ATTENTION)) {
        found.retain(|setting| has(&option(&setting.name), &OF_ATTENTION));
    }
    found.truncate(MOST);
    found
}

/// The settings that have one value in a text.
fn only(all: Vec<(Setting, bool)>) -> Vec<Setting> {
    all.into_iter().filter_map(|(setting, is_only)| is_only.then_some(setting)).collect()
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| is_named(name, known))
}

fn is_of_samples(name: &str) -> bool {
    // A batch may be of a part of the data: `batchsize_train`.
    let is_known = is_one_of(name, &NAMES) || ["batch_size_", "batchsize_"].iter().any(|at| name.starts_with(at));
    is_known && !is_of_passes(name)
}

/// The settings in a text whose names, in lower case and with underscores, are known, and whether each has one value.
fn named(text: &str, is_known: impl Fn(&str) -> bool) -> Vec<(Setting, bool)> {
    let end = (0..=SEARCHED.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    let mut found: Vec<(Setting, bool)> = Vec::new();
    let mut past = 0;
    for (start, end) in
        word::all(text).filter(|(start, _)| !text[..*start].ends_with('-') || text[..*start].ends_with("--"))
    {
        if start < past {
            continue;
        }
        let end = end_of_name(text, end);
        past = end;
        let name = &text[start..end];
        let lower = option(name);
        // `dataset.batch(32)`
        let called = || {
            let digits = text[end..].strip_prefix('(').filter(|_| lower == "batch" && text[..start].ends_with('.'))?;
            digits.split_once(')')?.0.parse().ok().filter(|size| *size > 0)
        };
        let set = is_known(&lower).then(|| value(&text[end..], lower.contains('_')).or_else(called)).flatten();
        let Some(value) = set else { continue };
        match found.iter_mut().find(|(setting, _)| setting.name == name) {
            Some((setting, is_only)) => *is_only &= setting.value == value,
            None => found.push((Setting { name: name.to_owned(), value }, true)),
        }
    }
    found
}

/// The end of a name of words that hyphens join: `chunked-prefill-size`.
fn end_of_name(text: &str, mut end: usize) -> usize {
    while let Some(rest) = text[end..].strip_prefix('-') {
        match word::length(rest) {
            0 => break,
            more => end += 1 + more,
        }
    }
    end
}

/// A name in lower case, with underscores.
fn option(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Whether a name is, or ends in, a known one: `per_device_batch_size`.
fn is_named(name: &str, known: &str) -> bool {
    name.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

fn is_of_server(setting: &Setting) -> bool {
    OF_SERVERS.contains(&&*option(&setting.name))
}

/// The whole number behind a name: `=16`, `": 16,`; of an option, ` 16`, too.
fn value(behind: &str, is_option: bool) -> Option<u64> {
    let rest = behind.trim_start_matches(['"', '\'']);
    let gap = rest.len() - rest.trim_start_matches(' ').len();
    // A colon stands in prose, too: `Global batch: 32`.
    let is_key = is_option || rest.len() < behind.len();
    let sign = rest[gap..].strip_prefix('=').or_else(|| rest[gap..].strip_prefix(':').filter(|_| is_key));
    let rest = match sign {
        Some(after) => after.trim_start_matches([' ', '"', '\'']),
        None if is_option && gap == 1 => &rest[gap..],
        None => return None,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_whole = !rest[digits..].starts_with(|next: char| "._*/+-".contains(next) || next.is_alphanumeric());
    let is_ended = is_whole || rest[digits..].starts_with(". ") || &rest[digits..] == ".";
    let value: u64 = rest[..digits].parse().ok().filter(|_| is_ended)?;
    // `16 * 1024`
    let factor = rest[digits..].trim_start_matches(' ').strip_prefix("* ").map(str::trim_start);
    let factor = factor.map(|factor| factor.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    let value = factor.map_or(Some(value), |factor| value.checked_mul(factor.parse().ok()?))?;
    (1..10_000_000).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::Server;

    #[test]
    fn gradients_that_are_added_up() {
        let of = |text: &str| super::accumulation(text).map(|setting| format!("{} {}", setting.name, setting.value));
        assert_eq!(of("--optimizer.accumulate_gradient_steps=1").as_deref(), Some("accumulate_gradient_steps 1"));
        assert_eq!(of("gradient_accumulation_steps: 4,").as_deref(), Some("gradient_accumulation_steps 4"));
        assert_eq!((of("grad_accum_steps=2 grad_accum_steps=4"), of("accumulate")), (None, None));
    }

    #[test]
    fn blocks_of_computations() {
        let of = |text: &str| {
            let all = super::blocks(text).into_iter().map(|setting| format!("{} {}", setting.name, setting.value));
            all.collect::<Vec<_>>()
        };
        let dict = "dict(scan_query_chunk_size=2048,scan_key_chunk_size=4096,scan_mlp_chunk_size=8192)";
        assert_eq!(of(dict), ["scan_query_chunk_size 2048", "scan_key_chunk_size 4096"]);
        assert_eq!(of("--chunk_size 512"), ["chunk_size 512"]);
        for none in
            ["num_blocks=4", "chunked_prefill_size=512", "block 512", "chunk_size=512 chunk_size=256", "é_block=é"]
        {
            assert_eq!(of(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn options_and_assignments() {
        let read = |text: &str| {
            let all = of(text, None).into_iter().map(|setting| format!("{} {}", setting.name, setting.value));
            all.collect::<Vec<_>>()
        };
        assert_eq!(
            read("per_device_batch_size=16 max_target_length=2048"),
            ["per_device_batch_size 16", "max_target_length 2048"]
        );
        assert_eq!(read("batch_size = 4 * 8\nseq_len = 16 * 1024"), ["batch_size 32", "seq_len 16384"]);
        assert_eq!(read("batch_size = 4 * é, seq_len = 9 * 99999999999999999999"), [""; 0]);
        assert_eq!(
            read("--per_device_train_batch_size 256 \\\n --seq_len=512"),
            ["per_device_train_batch_size 256", "seq_len 512"]
        );
        assert_eq!(read("train.py --batch_size=8\n[train] per_chip_batch=8"), ["batch_size 8"]);
        assert_eq!(read("{\"batch_size\": 64}, batch = 8, seq=1024."), ["batch_size 64", "seq 1024"]);
        assert_eq!(read("(seq=64, batch=1)"), ["batch 1", "seq 64"]);
        assert_eq!(read("BS=256, train_bs = 8"), ["train_bs 8"]);
        assert_eq!(read("num_updates_per_batch=8, batch_size=512, num_envs=3072"), ["num_envs 3072"]);
        assert_eq!(read("num_steps_per_batch=8, epochs_per_batch=2"), [""; 0]);
        assert_eq!(read("batchsize_train=50000, batchsize_test=10000"), ["batchsize_train 50000"]);
        assert_eq!(read("--per_device_batch_size=\"256\""), ["per_device_batch_size 256"]);
        assert_eq!(read("--batch-size 32 --max-length=512"), ["batch-size 32", "max-length 512"]);
        let server = of("--max-num-seqs 256 --chunked-prefill-size 2048 batch_size=8", Some(Server::Sglang));
        assert_eq!(server.iter().map(|setting| setting.value).collect::<Vec<_>>(), [2048, 256]);
        // Trials, prose, fractions, units, other names.
        for none in [
            "batch=8 fits, batch=16 does not",
            "--batch_size 4 --seq_len 128: with batch_size 1 it needs as much",
            "a batch 32",
            "Global batch: 32",
            "batch_size=0.5",
            "batch=8k",
            "batch=12*12",
            "seq2seq 4",
            "minibatch: x",
        ] {
            assert_eq!(read(none), [""; 0], "{none}");
        }
    }
}
