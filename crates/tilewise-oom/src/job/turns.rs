//! Steps that ran before a failure.

use super::SEARCHED;
use crate::text::{tail, word};

/// Words that count what a job repeats.
const TURNS: [&str; 10] =
    ["step", "iteration", "iter", "epoch", "round", "episode", "generation", "trial", "batch", "time"];

/// Words that count how long a job ran.
const HOURS: [&str; 3] = ["hour", "day", "week"];

/// Words between a verb and a number of turns that are past.
const PAST: [&str; 6] = ["after", "completed", "finished", "succeeded", "worked", "ran"];

/// Numbers in words.
const SEVERAL: [&str; 16] = [
    "few", "several", "many", "hundreds", "two", "three", "four", "five", "six", "ten", "twenty", "thirty", "forty",
    "fifty", "sixty", "hundred",
];

/// Whether a text tells of steps that ran before the failure: `step 1200`, `Epoch 3/10`, `after a few iterations`.
pub(super) fn have_run(text: &str) -> bool {
    let text = tail(text, SEARCHED);
    if text.lines().any(is_bar_of_steps) || has_rising_counts(text) {
        return true;
    }
    let words: Vec<(usize, usize)> = word::all(text).collect();
    let lower =
        |at: usize| words.get(at).map(|(start, end)| text[*start..*end].to_ascii_lowercase()).unwrap_or_default();
    (0..words.len()).any(|at| {
        let name = lower(at);
        let ending = if name.ends_with("ches") { "es" } else { "s" };
        let singular = name.strip_suffix(ending).unwrap_or(&name);
        let is_turn = TURNS.contains(&singular);
        if !is_turn && !HOURS.contains(&singular) {
            return false;
        }
        // `the 48th iteration`
        let is_ordinal = |word: &str| {
            let count = ["th", "nd", "rd"].iter().find_map(|end| word.strip_suffix(end));
            count.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 1))
                || ["second", "third"].contains(&word)
        };
        // `when I run it a second time` tells of no step.
        let is_near = || at > 0 && &text[words[at - 1].1..words[at].0] == " ";
        let is_repeated = ["batch", "iteration", "epoch"].contains(&singular);
        if is_repeated && is_near() && is_ordinal(&lower(at - 1)) {
            return true;
        }
        if singular == name && is_turn {
            // `step 12` and `step: 12`, in a line of a log; `batch 32` and `epoch=10` are settings, `time: 12` is a clock's.
            // `at about batch 3100`
            let is_rough = at > 0 && ["about", "around", "roughly", "near"].contains(&lower(at - 1).as_str());
            return (singular != "batch" || is_rough) && singular != "time" && is_number(text, &words, at + 1);
        }
        let before: Vec<String> = (at.saturating_sub(4)..at).map(lower).collect();
        // `stable for hours`
        if !is_turn && name != singular && before.last().is_some_and(|word| word == "for") {
            return true;
        }
        let is_past = before.iter().any(|word| PAST.contains(&word.as_str()));
        let is_counted = before.last().is_some_and(|count| {
            SEVERAL.contains(&count.as_str()) || count.parse::<u64>().is_ok_and(|count| count > 0)
        });
        is_past && is_counted
    })
}

/// Lines of one form whose counts rise, from which on steps ran.
const RISING: usize = 2;

/// Whether counts out of a total rise from line to line, `Rendering chunk 12960/129599`, and not of what is loaded first.
fn has_rising_counts(text: &str) -> bool {
    let mut last: Option<(&str, &str, u64)> = None;
    let mut rising = 1;
    for line in text.lines().filter(|line| !LOADED.iter().any(|word| line.contains(word))) {
        let Some((before, behind)) = line.split_once('/') else { continue };
        let start = before
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let all = &behind[..behind.bytes().take_while(u8::is_ascii_digit).count()];
        let Some(done) = before[start..].parse::<u64>().ok().filter(|_| !all.is_empty()) else { continue };
        let words = before[..start].trim();
        let is_rising = last.is_some_and(|(name, total, count)| (name, total) == (words, all) && done > count);
        rising = if is_rising && !words.is_empty() { rising + 1 } else { 1 };
        if rising > RISING {
            return true;
        }
        last = Some((words, all, done));
    }
    false
}

/// Words for what comes before steps, without their first letters, which may be capitals.
const LOADED: [&str; 7] = ["oad", "etch", "Map", "okeniz", "shard", "Generating", "ompil"];

/// Whether a line of a log counts what a job repeats: `step=1100`, `Evaluation  [  10/2500]`.
pub(super) fn counts_turns(line: &str) -> bool {
    let is_bar = |at: usize| {
        let before = line[..at].trim_end().ends_with(|c: char| c.is_ascii_digit());
        before && line[at + 1..].trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    let is_turn = |(start, end): (usize, usize)| {
        let lower = line[start..end].to_ascii_lowercase();
        let behind = line[end..].trim_start_matches([' ', '=', ':', '#', '[']);
        (lower == "it" || TURNS.contains(&&*lower)) && behind.starts_with(|c: char| c.is_ascii_digit())
    };
    line.match_indices('/').any(|(at, _)| is_bar(at)) || word::all(line).any(is_turn)
}

/// Whether a line is a bar of steps of which some are done, `1/300 [12:22<61:42:17, 742.93s/it]`, and not of what is loaded
/// first.
fn is_bar_of_steps(line: &str) -> bool {
    let Some((before, behind)) = line.split_once(" [").filter(|(_, behind)| behind.contains('<')) else { return false };
    let is_timed = ["s/it]", "it/s]", "s/it,", "it/s,"].iter().any(|unit| behind.contains(unit));
    let count = before.rsplit(' ').next().and_then(|count| count.split_once('/'));
    let count = count.and_then(|(done, all)| Some((done.parse::<u64>().ok()?, all.parse::<u64>().ok()?)));
    is_timed
        && count.is_some_and(|(done, all)| (1..all).contains(&done))
        && !LOADED.iter().any(|word| line.contains(word))
}

/// Whether the next word is a number above one, with no more than a space, a colon, ` #` or ` = ` before it.
fn is_number(text: &str, words: &[(usize, usize)], at: usize) -> bool {
    let (Some((_, before)), Some((start, end))) = (words.get(at - 1), words.get(at)) else { return false };
    let between = &text[*before..*start];
    matches!(between, " " | ": " | ":" | " #" | " = ") && text[*start..*end].parse::<u64>().is_ok_and(|count| count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_before_a_failure() {
        for text in [
            "it failed at round 26 with",
            "Epoch 3/10 loss=2.1",
            "I0301 train.py:10] step: 1200, loss: 1.2",
            "OOM after a few iterations",
            "after 500 steps it dies",
            "it ran about 7 hours",
            "the same allocation having succeeded sixty times",
            "  0%|          | 1/300 [12:22<61:42:17, 742.93s/it]",
            "Rendering chunk 0/129599\nRendering chunk 12960/129599\nRendering chunk 64800/129599",
            "it stops at the 48th iteration",
            "runs out on the second batch",
            "training is stable for hours",
            "it dies at about batch 3100",
        ] {
            assert!(have_run(text), "{text}");
        }
        // Settings, first steps, layers.
        let loading = "Loading checkpoint shards:  50%|███  | 1/2 [00:10<00:10, 10.0s/it]";
        for text in [
            loading,
            "  0%| | 0/300 [00:00<?, ?it/s]",
            "steps=1000",
            "num_epochs 10",
            "epoch=10",
            "batch 32",
            "Epoch 1/10",
            "step_12",
            "chunk 1/3\nchunk 2/3",
            "Loading shard 1/9\nLoading shard 2/9\nLoading shard 3/9",
            "step 0",
            "",
        ] {
            assert!(!have_run(text), "{text}");
        }
    }
}
