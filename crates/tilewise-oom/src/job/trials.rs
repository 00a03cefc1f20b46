//! Batches that were tried in vain.

use crate::prose;
use crate::text::word;

/// Maximum bytes of a sentence on each side of its word for a batch.
const NEAR: usize = 160;

/// Maximum number of places of a name that are read.
const MOST: usize = 64;

/// Ends of sentences.
const ENDS: [&str; 5] = [". ", "? ", "! ", ".\n", "\n\n"];

/// Outcomes of a trial that changed nothing.
const IN_VAIN: [&str; 26] = [
    "without success",
    "nothing help",
    "none help",
    "no matter",
    "regardless",
    "n't help",
    "not help",
    "no help",
    "n't change",
    "not change",
    "n't matter",
    "not matter",
    "no effect",
    "no difference",
    "no success",
    "independent of",
    "even with",
    "even at",
    "even for",
    "even a batch",
    "however small",
    "however low",
    "however few",
    "any batch",
    "all batch sizes",
    "whatever batch",
];

/// Words behind `same` where that is an outcome: of a script that is the same nothing was tried.
const SAME: [&str; 15] = [
    "message", "with", "for", "at", "if", "when", "even", "error", "thing", "result", "number", "bytes", "oom",
    "problem", "issue",
];

/// Words behind `still` where the trial failed.
const STILL: [&str; 8] = ["oom", "ooms", "out", "runs", "fails", "crashes", "dies", "the"];

/// Words for a trial; a text that ends in an error tells how it ended.
const TRIED: [&str; 5] = ["tried", "tries", "attempted", "without success", "already"];

/// Outcomes of a trial that helped.
const HELPED: [&str; 4] = ["works", "worked", "helps", "helped"];

/// Words of somebody who knows a smaller batch that runs.
const RUNS: [&str; 6] = [
    "finally runs is batch",
    "runs with batch",
    "works with batch",
    "works at batch",
    "fits with batch",
    "fits at batch",
];

/// Words of somebody who wants the batch as it is.
const KEPT: [&str; 7] = [
    "keep the batch",
    "keep my batch",
    "without reducing the batch",
    "without a smaller batch",
    "don't want to reduce the batch",
    "do not want to reduce the batch",
    "not want a smaller batch",
];

/// Lines from a list's item up to the sentence before the list.
const ITEMS: usize = 12;

/// Whether a sentence on batches tells that they ended the same, `Same with batch_size 64, 16 and 4`, that the batch is of
/// one sample, or that it has to stay. `lower` is in lower case.
pub(super) fn are_batches_in_vain(lower: &str) -> bool {
    let batches = word::all(lower).filter(|(start, end)| lower[*start..*end].contains("batch"));
    let mut past = 0;
    for (start, end) in batches {
        // A sentence is read once.
        if start >= past {
            let (sentence, behind) = sentence(lower, start, end);
            if is_in_vain(sentence)
                || is_of_one(sentence)
                || KEPT.iter().chain(&RUNS).any(|words| sentence.contains(words))
                || sentence.contains("keep ") && sentence.contains("batch_size=")
            {
                return true;
            }
            past = behind;
        }
    }
    false
}

/// Whether a sentence tells that inputs can't be shorter: `I cannot shorten the documents`.
pub(super) fn are_lengths_to_stay(lower: &str) -> bool {
    const DENIED: [&str; 9] = [
        "cannot ",
        "can't ",
        "can not ",
        "don't want to ",
        "do not want to ",
        "not an option",
        "without ",
        "need the ",
        "must keep ",
    ];
    const SHORTER: [&str; 6] = ["shorten", "shorter", "truncat", "reduce the sequence", "full length", "full context"];
    prose::tells(lower, &[&DENIED, &SHORTER], &[])
}

/// Whether a sentence has the batch as one sample: `batch size 1`, `a batch size of one`, `batch_size to 1`.
fn is_of_one(sentence: &str) -> bool {
    const BETWEEN: [&str; 13] =
        ["size", "sizes", "of", "to", "is", "was", "at", "as", "with", "already", "only", "just", "now"];
    let words: Vec<(usize, usize)> = word::all(sentence).collect();
    let of = |at: usize| words.get(at).map_or("", |(start, end)| &sentence[*start..*end]);
    (0..words.len()).filter(|at| ["batch", "batch_size", "batchsize", "batches"].contains(&of(*at))).any(|at| {
        let mut next = at + 1;
        while BETWEEN.contains(&of(next)) {
            next += 1;
        }
        let behind = words.get(next).map_or("", |(_, end)| &sentence[*end..]);
        // A counter of batches has no word for their size.
        let is_size = of(at) != "batch" || next > at + 1;
        let is_whole =
            !behind.starts_with(['/', 'k', '-']) && !behind.chars().take(2).last().is_some_and(|c| c.is_ascii_digit());
        is_size && is_whole && ["1", "one"].contains(&of(next))
    })
}

/// Whether the text tells that what has this name was tried: in its sentence, or in the one before the list that it is in.
/// `lower` is in lower case.
pub(super) fn is_tried(lower: &str, name: &str) -> bool {
    let is_tried =
        |text: &str| TRIED.iter().any(|word| text.contains(word)) && !HELPED.iter().any(|word| text.contains(word));
    lower.match_indices(name).take(MOST).any(|(at, _)| {
        let (sentence, _) = sentence(lower, at, at + name.len());
        if is_in_vain(sentence) || is_tried(sentence) {
            return true;
        }
        let mut before = lower[..at].rsplit('\n');
        let is_item = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit() || "-*•".contains(c));
        before.next().is_some_and(is_item) && before.take(ITEMS).find(|line| !is_item(line)).is_some_and(is_tried)
    })
}

/// Whether the sentence around this place tells that something ended the same.
pub(super) fn is_told_in_vain(text: &str, start: usize, end: usize) -> bool {
    is_in_vain(&sentence(text, start, end).0.to_ascii_lowercase())
}

/// The sentence around a word, and its end.
fn sentence(text: &str, start: usize, end: usize) -> (&str, usize) {
    let first = (start.saturating_sub(NEAR)..=start).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    let last = (end..=text.len().min(end + NEAR)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(end);
    let before = ENDS.iter().filter_map(|mark| Some(first + text[first..start].rfind(mark)? + mark.len())).max();
    let behind = ENDS.iter().filter_map(|mark| Some(end + text[end..last].find(mark)?)).min();
    let behind = behind.unwrap_or(last);
    (&text[before.unwrap_or(first)..behind], behind)
}

fn is_in_vain(sentence: &str) -> bool {
    let words: Vec<&str> = word::all(sentence).map(|(start, end)| &sentence[start..end]).collect();
    let follows = |first: &str, known: &[&str], is_end: bool| {
        let mut places = words.iter().enumerate().filter(|(_, word)| **word == first);
        places.any(|(at, _)| words.get(at + 1).map_or(is_end, |next| known.contains(next)))
    };
    IN_VAIN.iter().any(|outcome| sentence.contains(outcome))
        || follows("same", &SAME, true)
        || follows("still", &STILL, false)
}

#[cfg(test)]
mod tests {
    use super::{are_batches_in_vain, are_lengths_to_stay, is_tried};

    fn are_in_vain(text: &str) -> bool {
        are_batches_in_vain(&text.to_ascii_lowercase())
    }

    #[test]
    fn lengths_that_stay() {
        assert!(are_lengths_to_stay("the batch is one per device and i cannot shorten the documents."));
        assert!(!are_lengths_to_stay("a shorter sequence works. it cannot be right"));
        assert!(are_batches_in_vain("the batch is already one per device"));
    }

    #[test]
    fn settings_that_were_tried() {
        let name = "mem_fraction";
        for text in [
            "also tried mem_fraction=0.7 with memory growth. whatever i set, it crashes.",
            "tried so far without success:\n1. preallocate=false\n2. mem_fraction at .20 and .50",
            "mem_fraction=0.5 doesn't help",
        ] {
            assert!(is_tried(text, name), "{text}");
        }
        for text in ["export mem_fraction=.5", "i tried mem_fraction=.9 and it works", "steps:\n- mem_fraction=.5", ""]
        {
            assert!(!is_tried(text, name), "{text}");
        }
    }

    #[test]
    fn batches_that_ended_the_same() {
        for text in [
            "OOM. Same with batch_size 64, 16 and 4.",
            "I tried to change the batch number, but no success (the entries stay the same with batch_size=512 and 256).",
            "always 24046MiB no matter how small I make the batch (tried 4096, 1024)",
            "lowered per-device batch size from 6 to 3, but it still runs out of space",
            "I went down to batch 1, same",
            "Batch size 1: stops at the 48th iteration",
            "I use a batch size of one",
            "with batch_size to 1 already",
            "batch size 1，still fails",
            "I would like to keep the batch of 7",
            "We want to keep TP=1 and per_device_batch_size=13",
            "goes out of memory however small I make the batch",
            "A smaller batch doesn't help",
            "I reduced the batch size (16 -> 8 -> 2 per replica), restarted the kernel, nothing helps.",
        ] {
            assert!(are_in_vain(text), "{text}");
        }
        for text in [
            "the same batch size",
            "to keep the effective batch size",
            "On GPU the same model with the same batch per device takes 3 GB",
            "batch_size 16 still fits. It is the same error as in #12.",
            "Same here.\n\nbatch_size=8",
            "é batch é",
            "batch size 16",
            "batch 1/300 loss 2.1",
            "batch size 1.5k",
            "",
        ] {
            assert!(!are_in_vain(text), "{text}");
        }
    }
}
