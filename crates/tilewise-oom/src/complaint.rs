//! Sentences on memory by a person whose text has no error of it: `How can my model take less memory?`

use crate::device::Device;
use crate::error::{Error, last_error};
use crate::facts::{Fact, FactValue};
use crate::form::Form;
use crate::job::grows_in_words;
use crate::message::Message;
use crate::prose;
use crate::text::size::PrintedSize;

/// Bytes of the longest post: longer texts are documents and logs.
const LONGEST: usize = 16 << 10;

/// The status of an error that ran out of memory.
const STATUS: &str = "resource_exhausted";

/// Words of sentences on what ended with it.
const ENDS: [&str; 8] = ["fail", "output", "gives", " get", " got ", "raise", "crash", "throw"];

const MEMORY: [&str; 6] = ["memory", " ram", "vram", "hbm", "oom", "leak"];

/// Words on a memory that ran out.
const RAN_OUT: [&str; 18] = [
    "out of memory",
    "out-of-memory",
    "out of vram",
    "out of ram",
    "runs out",
    "run out of",
    "ran out of",
    " oom",
    "memory error",
    "exhausts ",
    "exhausting ",
    "blow up",
    "blows up",
    "blowing up",
    "used up",
    " explodes",
    "using all available",
    "uses all available",
];

/// Words of a question or a complaint on what a job takes.
const TAKES: [&str; 38] = [
    "so much",
    "too much",
    "more memory than",
    "memory usage",
    "memory use",
    "memory consumption",
    "memory footprint",
    "memory requirement",
    "reduce",
    "lot of memory",
    "huge",
    "not freed",
    "n't freed",
    "not released",
    "n't released",
    "not free",
    "n't free",
    "leak",
    "keeps increasing",
    "keeps growing",
    "nearly all",
    "almost all",
    "all the gpu",
    "all of the",
    "all gpu",
    "all my",
    "entire gpu",
    "compute for memory",
    "times the memory",
    "times more memory",
    "peak memory",
    "free the gpu memory",
    "free gpu memory",
    "release the memory",
    "release memory",
    "how much memory",
    "how much gpu memory",
    "much hbm",
];

/// Words of people on their own jobs, of which a line of a log or of a document has none.
const PEOPLES: [&str; 23] = [
    " i ",
    " the following ",
    " same ",
    "i'm ",
    " my ",
    " we ",
    " our ",
    " it ",
    " this ",
    " does ",
    "how ",
    "why ",
    " when ",
    " until ",
    "doesn't",
    "can't",
    "cannot",
    "crash",
    " fails",
    " fail ",
    " causes ",
    "any way",
    "a way ",
];

const DENIALS: [&str; 8] = [
    "no memory leak",
    "no leak",
    "not a memory",
    "no oom",
    "without oom",
    "n't run out",
    "not run out",
    "memory is fine",
];

/// Words for the host's memory; a GPU's may be called RAM, too.
const OF_HOST: [&str; 7] =
    [" ram", "xla:cpu", "on cpu", "cpu memory", "host memory", "system memory", "memory of the host"];

/// Words that mean no other memory, and those of the others.
const OF_HOST_ALONE: [&str; 6] = ["cpu memory", "cpu ram", "host memory", "host ram", "system memory", "system ram"];
const OF_DEVICES: [&str; 7] = ["gpu", "vram", "hbm", "cuda", "tpu memory", "device memory", "on tpu"];

/// Words of sentences on a node, which ends where its own memory is full: a device's leaves an exception.
const NODES: [&str; 6] =
    ["node crash", "node goes down", "vm crash", "machine crash", "machine freezes", "worker is killed"];

/// Words of sentences on processes that load data, each of which has its own in the host's memory.
const LOADERS: [&str; 2] = ["num_workers", "worker processes"];

/// The memories of a core, which kernels alone fill.
const OF_CORES: [&str; 2] = ["vmem", "smem"];

/// Words of a sentence on one that is full.
const FULL: [&str; 7] = ["error", "too much", "not enough", "exceed", "overflow", "full", "limit"];

/// A person's sentence on memory, in a text without an error: that it ran out, grows, or is more than was thought.
/// `log` is the text with the marks of its lines, such as a heading's.
pub(crate) fn of(text: &str, device: Device, log: &str) -> Option<Message> {
    // Notation and programs are answered as what they are.
    if text.len() > LONGEST || text.contains("HloModule ") || text.contains(":T(") || Error::of(text).is_about_another()
    {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let has = |sentence: &str, known: &[&str]| {
        let begun = format!(" {sentence}");
        known.iter().any(|word| begun.contains(word))
    };
    // Alone it is an error's line, which tells nothing more.
    let names_status = |sentence: &str| {
        let is_its_end = has(sentence, &ENDS) && !sentence.contains("instead of");
        sentence.contains(STATUS) && is_its_end && has(&lower, &PEOPLES)
    };
    let is_of_memory = |sentence: &str| has(sentence, &MEMORY) || names_status(sentence);
    let is_told = |sentence: &&str| {
        let is_said = has(sentence, &PEOPLES) || sentence.contains(STATUS);
        is_said && is_of_memory(sentence) && !has(sentence, &DENIALS)
    };
    let is_of_core = |sentence: &&str| has(sentence, &PEOPLES) && has(sentence, &FULL) && !has(sentence, &DENIALS);
    let of_core = prose::sentences(&lower).filter(is_of_core).find_map(|sentence| {
        let core =
            prose::words(sentence).into_iter().find_map(|word| OF_CORES.into_iter().find(|core| *core == word))?;
        Some((core, sentence))
    });
    // A post on a core's memory may tell in another sentence that it ran out.
    let named = prose::words(&lower).into_iter().find_map(|word| OF_CORES.into_iter().find(|core| *core == word));
    // A post begins with its title, or with what it is about; a document with a heading.
    let is_title =
        |sentence: &&str| is_of_memory(sentence) && !has(sentence, &DENIALS) && !log.trim_start().starts_with('#');
    let title = prose::sentences(&lower).next().filter(is_title);
    let ran_out = || {
        title
            .into_iter()
            .chain(prose::sentences(&lower).filter(is_told))
            .find(|of| has(of, &RAN_OUT) || names_status(of))
    };
    let names_others = has(&lower, &[" hbm", "vram", " ram"]);
    let of_core = of_core.or_else(|| named.filter(|_| !names_others).and_then(|core| Some((core, ran_out()?))));
    let quoted = |sentence: &str| lower.find(sentence).map(|at| text[at..at + sentence.len()].to_owned());
    let is_of_kernel = ["pallas", "triton"].iter().any(|kernel| lower.contains(kernel));
    let of_block = ran_out().filter(|_| is_of_kernel && lower.contains("shared memory") && last_error(text).is_none());
    if let Some(quote) = of_block.and_then(quoted) {
        return Some(Message {
            is_retold: true,
            truncated: false,
            quote: Some(quote),
            ..Message::new(Form::SharedMemory)
        });
    }
    if let Some((core, sentence)) = of_core.filter(|_| last_error(text).is_none()) {
        let (memory_space, quote) = (Some(core.to_owned()), quoted(sentence));
        return Some(Message {
            memory_space,
            is_retold: true,
            truncated: false,
            quote,
            ..Message::new(Form::Assignment)
        });
    }
    let told = |known: &[&str]| prose::sentences(&lower).filter(is_told).find(|sentence| has(sentence, known));
    let (failed, grows) = (ran_out(), prose::sentences(&lower).find(|sentence| grows_in_words(sentence)));
    let failed = failed.or(grows);
    // An error of another kind is what ended the job.
    let asked = || told(&TAKES).filter(|_| last_error(text).is_none());
    let sentence = failed.or_else(asked)?;
    // A sentence that names no memory is on the one that the text is about.
    let is_of_loaders = prose::sentences(&lower).any(|of| has(of, &LOADERS) && has(of, &MEMORY));
    let names_host = has(&lower, &OF_HOST_ALONE) || has(&lower, &NODES) || is_of_loaders;
    let is_of_text = names_host && !has(&lower, &OF_DEVICES);
    let is_of_host =
        (has(sentence, &OF_HOST) || is_of_text) && !["gpu", "vram", "hbm"].iter().any(|name| sentence.contains(name));
    // The sentence's own device goes before others in the text, such as those of versions of libraries.
    let named = quoted(sentence).map(|quote| Device::of(&quote));
    let device = named.filter(|named| matches!(named, Device::Tpu | Device::Gpu)).unwrap_or(device);
    let form = match device {
        _ if failed.is_none() => Form::Told,
        _ if is_of_host => Form::Host,
        Device::Tpu => Form::RunTime,
        Device::Gpu => Form::Gpu,
        Device::Several | Device::Unnamed => Form::Device,
    };
    let figures = |sentence| quoted(sentence).and_then(|quote| Some((needed_of(&quote)?, quote)));
    let told_needed = prose::sentences(&lower).filter(is_told).find_map(figures).filter(|_| form == Form::RunTime);
    if let Some(([used, limit], quote)) = told_needed {
        let (memory_space, used, limit, quote) = (Some("hbm".to_owned()), Some(used), Some(limit), Some(quote));
        let told = Message { is_retold: true, truncated: false, quote, ..Message::new(Form::Assignment) };
        return Some(Message { memory_space, used, limit, ..told });
    }
    let mut message = Message { is_retold: true, truncated: false, quote: quoted(sentence), ..Message::new(form) };
    let is_growth = failed.is_some() && failed == grows;
    message.facts.0.extend(is_growth.then(|| Fact { name: "grows", value: FactValue::Text("told".to_owned()) }));
    Some(message)
}

/// The size that a sentence says is needed, and the only other one: `HBM is only 31.25GB and it needed around 41GB`.
fn needed_of(sentence: &str) -> Option<[PrintedSize; 2]> {
    /// Words between a verb and its size.
    const NEAR: usize = 3;
    let is_start = |at: usize| !sentence[..at].ends_with(|before: char| before.is_alphanumeric() || before == '.');
    let starts = sentence.char_indices().filter(|(at, letter)| letter.is_ascii_digit() && is_start(*at));
    let sizes = starts.filter_map(|(at, _)| {
        let (size, length) = PrintedSize::figure(&sentence[at..])?;
        sentence[..at + length].ends_with(|unit: char| unit.is_ascii_alphabetic()).then_some((at, at + length, size))
    });
    let [(first, end, one), (second, _, other)] = <[_; 2]>::try_from(sizes.collect::<Vec<_>>()).ok()?;
    let is_needed = |before: &str| {
        let words = prose::words(before);
        words.iter().rev().take(NEAR).any(|word| word.starts_with("need") || word.starts_with("requir"))
    };
    let (needed, had) = match (is_needed(&sentence[..first]), is_needed(&sentence[end..second])) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return None,
    };
    (needed.bytes() > had.bytes()).then_some([needed, had])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_of_what_is_there() {
        let of = |text: &str| needed_of(text).map(|sizes| sizes.map(|size| size.bytes() >> 30));
        assert_eq!(of("OOM errors since HBM is only 31.25 GiB and it needed around 41 GiB"), Some([41, 31]));
        assert_eq!(of("It requires 20GiB of 16GiB."), Some([20, 16]));
        for none in
            ["It needs 41 GiB.", "31 GiB of 41 GiB", "it needs 3 GiB of 16 GiB", "needs 4 of 3 layers", "é9", ""]
        {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn forms_of_complaints() {
        let of = |text: &str| of(text, Device::of(text), text).map(|message| message.form);
        for (text, form) in [
            ("Why does my JAX program take so much memory on a TPU?", Form::Told),
            ("On my GPU this runs out of memory.", Form::Gpu),
            ("It runs out of memory when the TPU compiles it.", Form::RunTime),
            ("The RAM of the machine goes up with every step until it freezes.", Form::Host),
            ("A save takes 14GB of CPU memory. With a larger model I run out of memory when it saves.", Form::Host),
            ("How can I reduce the memory usage of jax.hessian?", Form::Told),
            ("Training crashes with OOM. The training node crashes as it saves.", Form::Host),
            ("[Bug] OOM on a GPU with the new release\nVersions: see below", Form::Gpu),
            ("The new version fails with `RESOURCE_EXHAUSTED` on my GPU.", Form::Gpu),
            ("Pallas gives RESOURCE_EXHAUSTED\nIt runs into shared memory issues on our card.", Form::SharedMemory),
            ("It takes as many copies as num_workers, and memory is full. The VM crashes with OOM.", Form::Host),
            ("OOM on a TPU\nThe vmem fix isn't in my version.", Form::Assignment),
            ("Pallas kernels: vmem error when using larger models.", Form::Assignment),
            ("At length 256 it seems that the page table is taking too much smem.", Form::Assignment),
        ] {
            assert_eq!(of(text), Some(form), "{text}");
        }
        for none in [
            "step 10, memory usage 12.5 GiB",
            "# Out-of-memory messages\n\nThese files have those of TPUs.",
            "The loss is too high.",
            "JaxRuntimeError: RESOURCE_EXHAUSTED",
            "This isn't about memory: there is no leak.",
            &"My job runs out of memory. ".repeat(1000),
            "memory usage of bf16[8,128]{1,0:T(8,128)} is the question",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
