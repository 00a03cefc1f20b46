//! Memory that grows from line to line of a log.

use super::{SEARCHED, turns};
use crate::prose;
use crate::text::{tail, word};

/// Lines of one form from which on a figure shows a trend.
const LEAST: usize = 4;

/// Forms of lines that are followed.
const FORMS: usize = 64;

/// Words for memory in the names of figures.
const NAMES: [&str; 6] = ["mem", "memory", "ram", "rss", "allocated", "alloc"];

/// The largest rise of a figure of memory between two lines of a log, which name the work there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rise {
    /// The second line's words before the figure's name: `After eval at step 1`.
    pub at: String,
    /// The figure before, as it is written.
    pub from: String,
    /// The figure then.
    pub to: String,
}

impl Rise {
    /// The rise that is a third or more of the greatest figure, and twice any other.
    pub(crate) fn of(log: &str) -> Option<Self> {
        let mut staged: Vec<(&str, &str, f64)> = Vec::new();
        for line in tail(log, SEARCHED).lines().filter(|line| line.len() <= LONGEST) {
            staged.extend(stage(line));
        }
        let most = staged.iter().map(|(.., figure)| *figure).fold(0.0, f64::max);
        let mut rises: Vec<(f64, usize)> =
            (1..staged.len()).map(|at| (staged[at].2 - staged[at - 1].2, at)).filter(|(rise, _)| *rise > 0.0).collect();
        rises.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let [(largest, at), (next, _), ..] = rises[..] else { return None };
        let [(_, from, _), (name, to, _)] = [staged[at - 1], staged[at]];
        let is_telling = staged.len() >= LEAST && largest >= most / 3.0 && largest >= 2.0 * next;
        is_telling.then(|| Self { at: name.to_owned(), from: from.to_owned(), to: to.to_owned() })
    }
}

/// The stage that a line of a log names before a figure of memory, and the figure: `a.py:394] After eval: RAM USED (GB) 155.2`.
fn stage(line: &str) -> Option<(&str, &str, f64)> {
    let said = line.rsplit_once("] ").map_or(line, |(_, said)| said).trim();
    let (name, behind) = said.split_once(": ")?;
    let digits = behind.find(|c: char| c.is_ascii_digit())?;
    let is_of_memory = word::all(&behind[..digits])
        .any(|(start, end)| NAMES.contains(&behind[start..end].to_ascii_lowercase().as_str()));
    let figure = &behind[digits..];
    let figure = &figure[..figure.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(figure.len())];
    let is_plain = name.len() <= LONGEST_NAME && !name.chars().any(|c| c.is_control() || c == '`');
    let is_name = is_plain && name.split(' ').count() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic());
    Some((name, figure, figure.parse().ok().filter(|_| is_of_memory && is_name)?))
}

/// A line of a log.
const LONGEST: usize = 512;

/// A stage's name.
const LONGEST_NAME: usize = 64;

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
    const MEMORY: [&str; 5] = ["memory", "ram ", "vram", "rss", " mem "];
    const GROWS: [&str; 16] = [
        "grew ",
        "grows ",
        "ever more",
        "more and more",
        "increases over time",
        "increasing over time",
        "increases steadily",
        "leak",
        "goes up",
        "going up",
        "climbs",
        "climbing",
        "keeps growing",
        "keeps increasing",
        "keeps rising",
        "increases by",
    ];
    const TIME: [&str; 19] = [
        "during the",
        "when running",
        "steps",
        "rapidly",
        "indefinitely",
        "all the way",
        "continuously",
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
    // A compiler's memory grows by the program, not by its steps.
    const DENIALS: [&str; 5] = ["not ", "no leak", "n't ", "never ", " compil"];
    prose::tells(lower, &[&MEMORY, &GROWS, &TIME], &DENIALS)
}

/// Whether a sentence tells of shapes that differ from call to call, each of which is compiled: `a different length in each step`.
pub(crate) fn recompiles(lower: &str) -> bool {
    const SHAPES: [&str; 4] = ["shape", "length", "sizes", "size "];
    const DIFFER: [&str; 5] = ["different", "varying", "variable", "varies", "changing"];
    const DENIALS: [&str; 5] = ["n't ", "not ", "same ", "fixed", "static"];
    let compiles = ["jit", "compil"].iter().any(|sign| lower.contains(sign));
    let recompiles = ["recompil", "retrac", "compiled again", "compiles again"].iter().any(|sign| lower.contains(sign));
    recompiles || compiles && prose::tells(lower, &[&SHAPES, &DIFFER], &DENIALS)
}

fn is_growing(figures: &[f64]) -> bool {
    let (Some(first), [.., before, last]) = (figures.first(), figures) else { return false };
    let is_rising = figures.windows(2).all(|pair| pair[0] <= pair[1]);
    // All that a step needs is there after the first steps: a plateau rises by next to nothing.
    figures.len() >= LEAST && *last > first * 1.5 && is_rising && last - before > (last - first) / 200.0
}

/// The figures behind a name of memory in a line, each with the words of the line before it.
fn figures(line: &str) -> Vec<(String, f64)> {
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
    fn the_largest_rise_names_its_work() {
        let log = "run.py:1] Before training: RAM used (GB) 7.7\nrun.py:2] After batch 0: RAM used (GB) 46.1\n\
                   run.py:3] Before eval at step 1: RAM used (GB) 54.0\nrun.py:4] After eval at step 1: RAM used (GB) 155.2\n";
        let rise = Rise::of(log).map(|rise| [rise.at, rise.from, rise.to]);
        assert_eq!(rise, Some(["After eval at step 1", "54.0", "155.2"].map(str::to_owned)));
        let even = "a b: mem 1\na c: mem 2\na d: mem 3\na e: mem 4\n";
        assert_eq!((Rise::of(even), Rise::of("step 1: loss 3"), Rise::of("")), (None, None, None));
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
