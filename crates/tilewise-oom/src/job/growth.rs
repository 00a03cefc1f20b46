//! Memory that grows from line to line of a log.

use super::{SEARCHED, turns};
use crate::prose;
use crate::text::{tail, word};

/// Lines of one form from which on a figure shows a trend.
const LEAST: usize = 4;

/// Forms of lines that are followed.
const FORMS: usize = 64;

/// Words for memory in the names of figures.
const NAMES: [&str; 5] = ["mem", "memory", "rss", "allocated", "alloc"];

/// Whether a figure of memory in lines of one form, each of which counts a turn, only grows, to at least one and a half times
/// the first, up to the last line: `it 100 | cur mem 6218`, `it 200 | cur mem 9810`, ….
pub(crate) fn grows(log: &str) -> bool {
    let mut series: Vec<(String, Vec<f64>)> = Vec::new();
    for line in tail(log, SEARCHED).lines().filter(|line| turns::counts_turns(line)) {
        for (form, figure) in figures(line) {
            match series.iter().position(|(of, _)| *of == form) {
                Some(at) => series[at].1.push(figure),
                None if series.len() < FORMS => series.push((form, vec![figure])),
                None => {}
            }
        }
    }
    series.iter().any(|(_, figures)| is_growing(figures))
}

/// Whether a sentence tells that memory grows as a job runs: `the RAM goes up with every iteration`.
pub(crate) fn is_told(lower: &str) -> bool {
    const MEMORY: [&str; 4] = ["memory", "ram ", "vram", "rss"];
    const GROWS: [&str; 8] = [
        "goes up",
        "going up",
        "climbs",
        "climbing",
        "keeps growing",
        "keeps increasing",
        "keeps rising",
        "grows with",
    ];
    const TIME: [&str; 12] = [
        "every",
        "each step",
        "each iteration",
        "each epoch",
        "iteration",
        "epoch",
        "over time",
        "until",
        "steadily",
        "constantly",
        "during training",
        "as it runs",
    ];
    const DENIALS: [&str; 4] = ["not ", "no leak", "n't ", "never "];
    let has = |sentence: &str, words: &[&str]| words.iter().any(|word| sentence.contains(word));
    prose::sentences(lower).any(|sentence| {
        has(sentence, &MEMORY) && has(sentence, &GROWS) && has(sentence, &TIME) && !has(sentence, &DENIALS)
    })
}

fn is_growing(figures: &[f64]) -> bool {
    let (Some(first), [.., before, last]) = (figures.first(), figures) else { return false };
    let is_rising = figures.windows(2).all(|pair| pair[0] <= pair[1]);
    // All that a step needs is there after the first steps: a plateau rises by next to nothing.
    figures.len() >= LEAST && *last > first * 1.5 && is_rising && last - before > (last - first) / 200.0
}

/// The figures behind a name of memory in a line, each with the words of the line before it.
fn figures(line: &str) -> Vec<(String, f64)> {
    /// A line of a log.
    const LONGEST: usize = 512;
    let line = if line.len() > LONGEST { "" } else { line };
    let (mut form, mut found, mut is_named) = (String::new(), Vec::new(), false);
    for (start, end) in word::all(line) {
        let word = &line[start..end];
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            let behind = &line[start..];
            let length = behind.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(behind.len());
            let figure = behind[..length].trim_end_matches('.').parse::<f64>();
            found.extend(figure.ok().filter(|_| is_named).map(|figure| (form.clone(), figure)));
            is_named = false;
        } else {
            let lower = word.to_ascii_lowercase();
            is_named |= lower.split('_').any(|part| NAMES.contains(&part));
            form.push_str(word);
            form.push(' ');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_in_words() {
        assert!(is_told("the cpu memory of the process goes up with every iteration."));
        let of_length = "attention memory grows with the square of the length";
        for none in ["the loss goes up. memory is flat", "memory doesn't go up with every step", of_length, ""] {
            assert!(!is_told(none), "{none}");
        }
    }

    #[test]
    fn figures_that_only_grow() {
        let log = |figures: &[u64]| {
            let line = |(at, figure): (usize, &u64)| format!("it {at}/500 | cur mem {figure} | 1.{at}s\n");
            figures.iter().enumerate().map(line).collect::<String>()
        };
        assert!(grows(&log(&[6218, 9810, 13_407, 17_002, 20_610, 23_527])));
        // A plateau after the first steps, a figure that falls, few lines, other figures.
        assert!(!grows(&log(&[6218, 20_000, 20_010, 20_010, 20_020])));
        assert!(!grows(&log(&[6218, 9810, 8000, 17_002])));
        assert!(!grows(&log(&[6218, 9810, 13_407])));
        assert!(!grows("memory: rss 46 GiB\nmemory: rss 103 GiB\nmemory: rss 171 GiB\nmemory: rss 238 GiB"));
        assert!(!grows("step 1\nstep 2\nstep 3\nstep 4\nstep 5\n"));
        assert!(!grows(&"mem 1 ".repeat(1 << 16)));
    }
}
