//! Batches that were tried in vain.

use super::SEARCHED;
use crate::text::{tail, word};

/// Maximum bytes of a sentence on each side of its word for a batch.
const NEAR: usize = 160;

/// Ends of sentences.
const ENDS: [&str; 5] = [". ", "? ", "! ", ".\n", "\n\n"];

/// Outcomes of a trial that changed nothing.
const IN_VAIN: [&str; 19] = [
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
];

/// Words behind `same` where that is an outcome: of a script that is the same nothing was tried.
const SAME: [&str; 15] = [
    "message", "with", "for", "at", "if", "when", "even", "error", "thing", "result", "number", "bytes", "oom",
    "problem", "issue",
];

/// Words behind `still` where the trial failed.
const STILL: [&str; 8] = ["oom", "ooms", "out", "runs", "fails", "crashes", "dies", "the"];

/// Whether a sentence on batches tells that they ended the same: `Same with batch_size 64, 16 and 4.`
pub(super) fn are_in_vain(log: &str) -> bool {
    let lower = tail(log, SEARCHED).to_ascii_lowercase();
    let batches = word::all(&lower).filter(|(start, end)| lower[*start..*end].contains("batch"));
    let mut past = 0;
    for (start, end) in batches {
        // A sentence is read once.
        if start >= past {
            let (sentence, behind) = sentence(&lower, start, end);
            if is_in_vain(sentence) {
                return true;
            }
            past = behind;
        }
    }
    false
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
    use super::are_in_vain;

    #[test]
    fn batches_that_ended_the_same() {
        for text in [
            "OOM. Same with batch_size 64, 16 and 4.",
            "I tried to change the batch number, but no success (the entries stay the same with batch_size=512 and 256).",
            "always 24046MiB no matter how small I make the batch (tried 4096, 1024)",
            "lowered per-device batch size from 6 to 3, but it still runs out of space",
            "I went down to batch 1, same",
            "A smaller batch doesn't help",
            "I reduced the batch size (16 -> 8 -> 2 per replica), restarted the kernel, nothing helps.",
        ] {
            assert!(are_in_vain(text), "{text}");
        }
        for text in [
            "the same batch size",
            "On GPU the same model with the same batch per device takes 3 GB",
            "batch_size 16 still fits. It is the same error as in #12.",
            "Same here.\n\nbatch_size=8",
            "é batch é",
            "",
        ] {
            assert!(!are_in_vain(text), "{text}");
        }
    }
}
