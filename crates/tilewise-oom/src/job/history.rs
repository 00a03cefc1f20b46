//! Runs of a job beside the one that failed: attempts in the same process, and optimizers with which it ran.

use crate::prose;
use crate::text::word;

/// An optimizer with which a job ran, and one with which it doesn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimizers {
    /// The one that works.
    pub works: &'static str,
    /// The one that fails.
    pub fails: &'static str,
    /// Arrays as large as the weights that the latter has beyond the former.
    pub arrays: u64,
}

/// Optimizers, in lower case and as they are written, and the arrays as large as the weights that each keeps.
const OPTIMIZERS: [(&str, &str, u64); 10] = [
    ("adafactor", "Adafactor", 0),
    ("sgd", "SGD", 0),
    ("muon", "Muon", 1),
    ("lion", "Lion", 1),
    ("rmsprop", "RMSprop", 1),
    ("adagrad", "Adagrad", 1),
    ("adamw", "AdamW", 2),
    ("adam", "Adam", 2),
    ("lamb", "LAMB", 2),
    ("nadam", "Nadam", 2),
];

/// Words of a sentence on what runs, and on what doesn't.
const WORKS: [&str; 9] = ["works", "worked", "can train", "can fine", "is fine", "runs", "fits", "trains", "i can "];
const FAILS: [&str; 11] = [
    "can't",
    "cannot",
    "can not",
    "n't work",
    "n't fit",
    "fails",
    "failed",
    "oom",
    "out of memory",
    "never",
    "runs out",
];

impl Optimizers {
    /// The optimizers of which sentences of a text tell: `It trains with SGD. With AdamW it fails.` `lower` is in lower case.
    pub(crate) fn of(lower: &str) -> Option<Self> {
        let (mut works, mut fails) = (None, None);
        for clause in prose::sentences(lower).flat_map(clauses) {
            let has = |known: &[&str]| known.iter().any(|sign| clause.contains(sign));
            let (bad, good) = (has(&FAILS), has(&WORKS));
            let mut named = OPTIMIZERS.iter().filter(|(name, ..)| has_word(clause, name));
            let (Some(only), None) = (named.next(), named.next()) else { continue };
            match (good, bad) {
                (_, true) if fails.is_none() => fails = Some(only),
                (true, false) if works.is_none() => works = Some(only),
                _ => {}
            }
        }
        let ((_, works, less), (_, fails, more)) = (works?, fails?);
        (more > less).then(|| Self { works, fails, arrays: more - less })
    }
}

/// The parts of a sentence, each of which may tell of another optimizer.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split(" but ").flat_map(|part| part.split("; ")).flat_map(|part| part.split(", "))
}

fn has_word(text: &str, name: &str) -> bool {
    word::all(text).any(|(start, end)| &text[start..end] == name)
}

/// Whether a text tells that the attempt which failed isn't the first in its process: `attempt 4 of the task, same process`.
/// `lower` is in lower case.
pub(super) fn is_repeated(lower: &str) -> bool {
    const SAME: [&str; 7] = [
        "same process",
        "same python process",
        "same pid",
        "without restarting",
        "same kernel session",
        "same interpreter",
        "same session",
    ];
    const AGAIN: [&str; 9] =
        ["attempt", "retry", "retries", "retried", "again", "second time", "re-run", "rerun", "second run"];
    const FIRST: [&str; 2] = ["the first time", "the first run"];
    const RAN: [&str; 6] = ["ran properly", "ran fine", "runs fine", "worked", "works", "succeeded"];
    const DENIED: [&str; 4] = ["not the same process", "no retry", "fresh process", "reboot"];
    let has = |sentence: &str, known: &[&str]| known.iter().any(|words| sentence.contains(words));
    let lines = || lower.lines().filter(|line| line.len() <= LONGEST && !has(line, &DENIED));
    // One sentence, or a line of several.
    lines().any(|line| has(line, &SAME) && has(line, &AGAIN))
        || lines().any(|line| has(line, &FIRST) && has(line, &RAN) && has(line, &AGAIN))
}

/// Bytes of the longest line of prose.
const LONGEST: usize = 1000;

/// Whether sentences tell that a job fails once it goes on from a checkpoint, and that a fresh one runs. `lower` is in lower case.
pub(super) fn is_resumed(lower: &str) -> bool {
    const RESUMED: [&str; 4] = ["resum", "after restor", "restart from", "restarting from"];
    const FRESH: [&str; 7] =
        ["fresh run", "fresh start", "cold start", "scratch", "step 0", "same hardware", "same config"];
    prose::tells(lower, &[&RESUMED, &FAILS], &[]) && prose::tells(lower, &[&FRESH], &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimizers_that_work() {
        let of = |text: &str| Optimizers::of(text).map(|it| (it.works, it.fails, it.arrays));
        let post = "i can fine tune at 4k with a batch size of 1 using sgd. i can't fine tune at all using adamw, no matter what.";
        assert_eq!(of(post), Some(("SGD", "AdamW", 2)));
        assert_eq!(of("it works with lion, but with adam it runs out of memory"), Some(("Lion", "Adam", 1)));
        for none in [
            "adamw works, sgd fails",
            "sgd and adamw both fail",
            "i train with adamw and it fails",
            "adamw works",
            "with adafactor it fails, with adamw, too",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn attempts_in_one_process() {
        assert!(is_repeated("ray shows this is attempt 4 of the task, same host, same process id as attempt 1"));
        assert!(is_repeated("i ran the cell again without restarting the kernel"));
        assert!(is_repeated("the script ran properly the first time, but when i again ran it i got this error"));
        for none in ["attempt 4, in a fresh process", "the same process has 2 threads", "attempt 2", "i retried it", ""]
        {
            assert!(!is_repeated(none), "{none}");
        }
    }
}
