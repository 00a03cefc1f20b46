//! Sentences that people write around a log, and the occasion of a failure that they tell of.

use crate::occasion::Occasion;
use crate::text::word;

/// Marks that end a sentence before a space.
const MARKS: [char; 4] = ['.', '?', '!', ';'];

/// Maximum bytes of a sentence: longer ones are code or logs.
const LONGEST: usize = 400;

/// Signs that a sentence tells of a failure.
const FAILURES: [&str; 16] = [
    "oom",
    "memory",
    "fail",
    " dies",
    " died",
    "crash",
    "error",
    "runs out",
    "ran out",
    "stops",
    "killed",
    "kills",
    "sigkill",
    "exception",
    "breaks",
    "happens",
];

/// Words before the work of a job in a sentence on its failure.
const CONJUNCTIONS: [&str; 9] = ["when", "while", "during", "at", "on", "upon", "into", "each", "every"];

/// Those that speak of layers and batches, too, unless a state is named.
const REPEATED: [&str; 2] = ["each", "every"];

/// Words between a conjunction and the work.
const NEAR: usize = 12;

const SAVES: [&str; 6] = ["save", "saves", "saving", "saved", "serialization", "serializing"];

/// Savings for which no file is written.
const SPARED: [&str; 5] = ["memory", "vram", "ram", "space", "time"];

const EVALUATIONS: [&str; 5] = ["evaluation", "evaluating", "evaluates", "validation", "validating"];

const LOADS: [&str; 10] = [
    "load",
    "loads",
    "loading",
    "loaded",
    "restore",
    "restores",
    "restoring",
    "resuming",
    "prepared",
    "from_pretrained",
];

const INITIALIZATIONS: [&str; 4] = ["initialize", "initializing", "initialized", "initialization"];

/// Words for weights and a state, beside a verb that loads or makes them.
const WEIGHTS: [&str; 14] = [
    "from_pretrained",
    "model",
    "models",
    "weights",
    "checkpoint",
    "checkpoints",
    "pipeline",
    "transformer",
    "parameters",
    "params",
    "state",
    "unet",
    "vae",
    "shards",
];

/// The sentences of a text, line by line.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(in_line).filter(|sentence| !sentence.is_empty() && sentence.len() <= LONGEST)
}

/// Whether a sentence of a text, in lower case, has a word of each of these lists, and none that denies it.
pub(crate) fn tells(lower: &str, lists: &[&[&str]], denied: &[&str]) -> bool {
    sentences(lower).any(|sentence| {
        // A word may be the sentence's first.
        let sentence = format!(" {sentence}");
        let has = |known: &[&str]| known.iter().any(|word| sentence.contains(word));
        lists.iter().all(|known| has(known)) && !has(denied)
    })
}

/// The sentences of a line: a mark in a number or a name ends none.
fn in_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let marks = rest.match_indices(MARKS).map(|(at, _)| at + 1);
        let end = marks.into_iter().find(|at| rest[*at..].starts_with(' ')).unwrap_or(rest.len());
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// The words of a sentence.
pub(crate) fn words(sentence: &str) -> Vec<&str> {
    word::all(sentence).map(|(start, end)| &sentence[start..end]).collect()
}

/// The occasion that a sentence on the failure names: `It dies while the model is being loaded.`, `when it saves a checkpoint:`.
pub(crate) fn occasion(lower: &str) -> Option<Occasion> {
    if is_uneven(lower) {
        return Some(Occasion::Division);
    }
    sentences(lower).find_map(|sentence| {
        let is_of_failure = FAILURES.iter().any(|sign| sentence.contains(sign)) || sentence.trim_end().ends_with(':');
        if !is_of_failure || sentence.contains("rror: ") {
            return None;
        }
        let words = words(sentence);
        let places = words.iter().enumerate().filter(|(_, word)| CONJUNCTIONS.contains(word)).map(|(at, _)| at + 1);
        // `Loading the model in each rank kills the job.`
        let is_subject = words.first().is_some_and(|word| word.ends_with("ing"))
            && !["but", "works", "fine", "then"].iter().any(|word| words.contains(word));
        let found = is_subject.then_some(0).into_iter().chain(places).find_map(|at| {
            let near = &words[at..words.len().min(at + NEAR)];
            let has = |known: &[&str]| near.iter().any(|word| known.contains(word));
            let ends = near.last().is_some_and(|word| SAVES.contains(word));
            let is_loop = near.windows(2).any(|pair| pair[0] == "eval" && ["loop", "step", "steps"].contains(&pair[1]));
            match () {
                () if at > 0 && REPEATED.contains(&words[at - 1]) && !has(&WEIGHTS) => None,
                () if near.windows(2).any(|pair| SAVES.contains(&pair[0]) && !SPARED.contains(&pair[1])) || ends => {
                    Some(Occasion::Save)
                }
                () if has(&EVALUATIONS) || is_loop => Some(Occasion::Evaluation),
                () if has(&LOADS) && has(&WEIGHTS) => Some(Occasion::Load),
                () if has(&INITIALIZATIONS) && has(&WEIGHTS) => Some(Occasion::Weights),
                () => None,
            }
        });
        found.map(Some).or_else(|| is_of_step(&words).then_some(None))
    })?
}

/// Whether a sentence tells that one device holds much more than others: `GPU 0 uses 12 GB, the others 1.5 GB`. `lower` is in lower
/// case.
fn is_uneven(lower: &str) -> bool {
    const FIRST: [&str; 9] =
        ["device 0", "gpu 0", "gpu:0", "gpu0", "tpu:0", "first gpu", "first device", "one device", "only one gpu"];
    const OTHERS: [&str; 6] =
        ["the others", "other devices", "other gpus", "the rest", "all other", "remaining devices"];
    const TAKES: [&str; 8] = [" use", "memory", "gb", "gib", "holds", "allocat", "full", "hbm"];
    tells(lower, &[&FIRST, &OTHERS, &TAKES], &["n't ", "not "])
}

/// Whether a sentence on a failure puts it into a step: `the crash is in the first training step, in backward`.
fn is_of_step(words: &[&str]) -> bool {
    const STEPS: [&str; 6] = ["step", "steps", "backward", "iteration", "iterations", "epoch"];
    const BEFORE: [&str; 3] = ["first", "second", "training"];
    let is_one = |at: usize| words[..at].iter().rev().take(2).any(|word| BEFORE.contains(word));
    (0..words.len()).any(|at| STEPS.contains(&words[at]) && is_one(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occasions_in_sentences() {
        for (text, expected) in [
            ("it fails while the model is being prepared.", Some(Occasion::Load)),
            ("training itself works; when the epoch is over and it saves a checkpoint:", Some(Occasion::Save)),
            ("i get oom when loading the 70b checkpoint on two gpus", Some(Occasion::Load)),
            ("runs out of memory during validation", Some(Occasion::Evaluation)),
            ("crashes on initialization of the model", Some(Occasion::Weights)),
            ("training works when the model is loaded in 8 bits", None),
            ("each checkpoint saving increases cpu memory usage", Some(Occasion::Save)),
            ("each layer saves its input, so memory is full", None),
            ("loading the model in each rank kills the job", Some(Occasion::Load)),
            ("loading the model works, then it runs out of memory", None),
            ("root cause: oom during checkpoint serialization", Some(Occasion::Save)),
            ("the head is oomkilled 12 seconds into the restore of the checkpoint", Some(Occasion::Load)),
            ("i am running into a hbm oom during the eval loop of xlnet", Some(Occasion::Evaluation)),
            ("it dies at step 20 of training", None),
            ("i load the model, then train, and it fails", None),
            ("it fails at once, though it saves memory as it should", None),
            ("runtimeerror: error(s) when loading state", None),
            ("it runs out of memory during evaluation after the first epoch", Some(Occasion::Evaluation)),
            ("it dies when it saves a checkpoint at the end of the first epoch", Some(Occasion::Save)),
            ("it fails while loading the weights, before the first training step", Some(Occasion::Load)),
            (
                "the crash is in the first training step. with 4 bits it runs out of memory while it loads the model",
                None,
            ),
        ] {
            assert_eq!(occasion(text), expected, "{text}");
        }
    }
}
