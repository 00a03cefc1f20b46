//! The setting that a program's own error or warning tells to change: ``Try increasing `gpu_memory_utilization` ``.

use super::{SEARCHED, pool_settings::assigned, trials};
use crate::text::{tail, word};
use crate::traceback::Frame;

/// A setting that an error tells to raise or to lower, or a warning of the line that fails to set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// The setting's name, as the error has it.
    pub name: String,
    /// The way to change it.
    pub way: Way,
    /// Its value, if the text has one; of one that is to be set, the value to be.
    pub value: Option<String>,
    /// Whether the text tells that a value further that way ran out of memory: no value is left.
    pub is_exhausted: bool,
}

/// The way to change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// To a higher value.
    Raise,
    /// To a lower value.
    Lower,
    /// To this value, in the environment.
    Set,
}

/// Verbs without their endings: `increase`, `increasing`.
const RAISE: [&str; 2] = ["increas", "rais"];
const LOWER: [&str; 4] = ["decreas", "reduc", "lower", "limiting"];

/// Words between a verb and the setting, at most.
const BETWEEN: usize = 3;

/// Lines that an error goes on in, each of which is indented.
const MORE: usize = 4;

/// Maximum number of errors that are read, the last first.
const MOST: usize = 32;

/// A count that can't be lowered by much.
const SMALL: f64 = 4.0;

impl Told {
    /// The setting of the last line of an error that names one.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = tail(text, SEARCHED);
        let lines: Vec<&str> = text.lines().collect();
        let errors = (0..lines.len()).rev().filter_map(|at| Some((at, said(lines[at])?)));
        errors.take(MOST).find_map(|(at, error)| {
            // An error that another lack of memory follows is of an earlier run.
            let is_over = |line: &&str| line.contains("out of memory") || line.contains("OutOfMemory");
            if lines[at + 1..].iter().any(is_over) {
                return None;
            }
            let more = lines[at + 1..].iter().take(MORE).take_while(|line| line.starts_with([' ', '\t'])).copied();
            [error].into_iter().chain(more).find_map(|line| Self::of_line(line, text))
        })
    }

    /// The direction and the first setting of a line that can be changed, with the last value that the text has of it.
    fn of_line(line: &str, text: &str) -> Option<Self> {
        let words: Vec<(usize, usize)> = word::all(line).collect();
        words.iter().enumerate().find_map(|(at, (start, end))| {
            let verb = line[*start..*end].to_ascii_lowercase();
            let is = |verbs: &[&str]| verbs.iter().any(|known| verb.starts_with(known));
            let way = if is(&RAISE) { Way::Raise } else { Some(Way::Lower).filter(|_| is(&LOWER))? };
            let names = words.iter().skip(at + 1).take(BETWEEN).filter_map(|(start, end)| setting(line, *start, *end));
            names.into_iter().find_map(|name| {
                let bare = name.trim_start_matches('-');
                // An option's value may be printed as that of an attribute.
                let values = |name: &str| {
                    let places = text.match_indices(name).map(|(at, _)| at + name.len());
                    places.filter_map(|at| value(&text[at..])).last()
                };
                let value = values(bare).or_else(|| values(&bare.replace('-', "_")));
                let is_exhausted = way == Way::Raise && value.is_some_and(|value| is_exhausted(text, bare, value));
                // A fraction is no count.
                let is_small = |value: &str| value.parse::<f64>().is_ok_and(|count| (1.0..=SMALL).contains(&count));
                let is_done = way == Way::Lower && value.is_some_and(is_small);
                let value = value.map(str::to_owned);
                (!is_done).then(|| Self { name: name.to_owned(), way, value, is_exhausted })
            })
        })
    }

    /// Whether it is this option, written with hyphens or underscores.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let text = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.";
    /// let told = Message::parse(text)?.job.told.expect("a setting");
    /// assert!(told.is_option("--gpu-memory-utilization") && !told.is_option("--max-num-seqs"));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn is_option(&self, option: &str) -> bool {
        let plain = |name: &str| name.trim_start_matches('-').replace('-', "_");
        plain(&self.name) == plain(option)
    }

    /// The variable that a warning of the line which makes a request tells to set: `Enable it with NAME=1`.
    pub(crate) fn of_warning(text: &str, line: &Frame) -> Option<Self> {
        let place = format!("{}:{}: ", line.file, line.line);
        let warnings = text.lines().filter(|line| line.starts_with(&place) && line.contains("Warning: "));
        warnings.flat_map(str::split_whitespace).find_map(|word| {
            let (name, value) = word.trim_end_matches(['.', ',']).split_once('=')?;
            let is_variable = name.contains('_') && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
            (is_variable && is_plain).then(|| Self {
                name: name.to_owned(),
                way: Way::Set,
                value: Some(value.to_owned()),
                is_exhausted: false,
            })
        })
    }
}

/// Whether a line with a higher value of this setting tells of a lack of memory: `--mem-fraction-static 0.85 -> CUDA out of memory`.
fn is_exhausted(text: &str, name: &str, now: &str) -> bool {
    let Ok(now) = now.parse::<f64>() else { return false };
    text.match_indices(name).take(MOST).any(|(at, _)| {
        let rest = &text[at + name.len()..];
        let line = rest.lines().next().unwrap_or_default();
        let tells = ["out of memory", "OutOfMemory", "OOM", "oom"].iter().any(|sign| line.contains(sign));
        tells && value(rest).and_then(|value| value.parse::<f64>().ok()).is_some_and(|value| value > now)
    })
}

/// The sentence of an error, behind its name: of prose that speaks of one, and of Python's own `raise`, nothing is.
fn said(line: &str) -> Option<&str> {
    let [name, message] = ["rror: ", "rror("].into_iter().find_map(|sign| {
        let (name, message) = line.split_once(sign)?;
        Some([name, message])
    })?;
    let is_code = name.trim_start().starts_with("raise ");
    (!is_code).then_some(message)
}

/// The name of a setting whose first word is here: in snake case, or an option with its hyphens.
fn setting(line: &str, start: usize, end: usize) -> Option<&str> {
    let is_option = line[..start].ends_with("--");
    let start = if is_option { start - 2 } else { start };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' && is_option;
    let end = line[end..].find(|c| !is_part(c)).map_or(line.len(), |more| end + more);
    let name = line[start..end].trim_end_matches('-');
    // Variables of the environment choose allocators, which is a guess.
    let is_of_program = name.bytes().any(|byte| byte.is_ascii_lowercase()) && (is_option || name.contains('_'));
    // An attribute of an instruction is no setting, and neither is its value.
    let is_attribute = line[end..].starts_with("=\"") || line[..start].ends_with("=\"");
    (is_of_program && !is_attribute).then_some(name)
}

/// The percentage that a flag for a part of the memory has, if the text sets one: `--gpu-memory-utilization 0.98`.
pub(super) fn percent(text: &str, flag: &str) -> Option<u64> {
    let set = parts(text, flag).filter(|((start, end), _)| !trials::is_told_in_vain(text, *start, *end));
    let mut all = set.map(|(_, part)| part);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// The count behind a flag, where the text has one only.
pub(super) fn count(text: &str, flag: &str) -> Option<u64> {
    let mut all = places(text, flag).into_iter().filter_map(|(_, end)| value(&text[end..])?.parse().ok());
    let first = all.next().filter(|count| *count > 0)?;
    all.all(|other| other == first).then_some(first)
}

/// The lowest percentage of a flag for a part of which a sentence tells that it failed, too: `With --gpu-memory-utilization 0.95
/// it died with the same message.`
pub(super) fn percent_in_vain(text: &str, flag: &str) -> Option<u64> {
    let failed = parts(text, flag).filter(|((start, end), _)| trials::is_told_in_vain(text, *start, *end));
    failed.map(|(_, part)| part).min()
}

/// The places of a flag's name, written with hyphens or underscores.
fn places(text: &str, flag: &str) -> Vec<(usize, usize)> {
    let offset = text.len() - tail(text, SEARCHED).len();
    let bare = flag.trim_start_matches('-');
    let written = bare.replace('-', "_");
    let found = |name: &str| {
        let found = text[offset..].match_indices(name).map(|(at, name)| (offset + at, offset + at + name.len()));
        found.collect::<Vec<_>>()
    };
    let others = if written == bare { Vec::new() } else { found(&written) };
    found(bare).into_iter().chain(others).collect()
}

/// The percentages behind a flag, each with the place of the flag's name.
fn parts(text: &str, flag: &str) -> impl Iterator<Item = ((usize, usize), u64)> {
    places(text, flag).into_iter().filter_map(move |(start, end)| {
        let part = value(&text[end..])?.parse::<f64>().ok().filter(|part| (0.01..=1.0).contains(part))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
        let percent = (part * 100.0).round() as u64;
        Some(((start, end), percent))
    })
}

/// A number behind a setting's name: `=0.7`, ` 24050`.
fn value(behind: &str) -> Option<&str> {
    let plain = || {
        let rest = behind.strip_prefix(' ')?;
        Some(&rest[..rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len())])
    };
    let found = assigned(behind).or_else(plain)?.trim_end_matches('.');
    found.parse::<f64>().is_ok().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_of_the_line_names_a_variable() {
        let at = |line| Frame { file: "/lib/sdpa.py".to_owned(), line, function: "f".to_owned(), code: None };
        let text =
            "/lib/sdpa.py:89: UserWarning: Flash attention is experimental. Enable it with TORCH_AOTRITON=1. (a=1)";
        let told = Told::of_warning(text, &at(89)).map(|told| (told.name, told.value));
        assert_eq!(told, Some(("TORCH_AOTRITON".to_owned(), Some("1".to_owned()))));
        assert_eq!(Told::of_warning(text, &at(90)), None);
    }

    #[test]
    fn parts_that_failed_too() {
        let of = |text: &str| percent_in_vain(text, "--gpu-memory-utilization");
        let flags = "serve --gpu-memory-utilization 0.98 --x=1\n\n";
        assert_eq!(of(&format!("{flags}With gpu_memory_utilization=0.95 it died with the same message.")), Some(95));
        assert_eq!(of(&format!("{flags}With --gpu-memory-utilization 0.83 it starts.")), None);
    }

    #[test]
    fn an_error_names_the_setting_to_change() {
        let of = |text: &str| {
            let told = Told::of(text)?;
            Some(format!(
                "{} {} {}",
                if told.way == Way::Raise { "raise" } else { "lower" },
                told.name,
                told.value.unwrap_or_default()
            ))
        };
        let cache = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing.";
        assert_eq!(
            of(&format!("LLM(gpu_memory_utilization=0.7)\n{cache}")).as_deref(),
            Some("raise gpu_memory_utilization 0.7")
        );
        let prefill =
            "run --max-batch-prefill-tokens 24050\nRuntimeError: You need to decrease `--max-batch-prefill-tokens`";
        assert_eq!(of(prefill).as_deref(), Some("lower --max-batch-prefill-tokens 24050"));
        let weights = "ValueError: Weights leave no memory under --mem-fraction-static=0.88.\n  Raise --mem-fraction-static to at least 0.91";
        assert_eq!(of(weights).as_deref(), Some("raise --mem-fraction-static 0.88"));
        let both = "--mem-fraction-static 0.85 -> CUDA out of memory\n--mem-fraction-static 0.84\nRuntimeError: try to increase --mem-fraction-static";
        assert_eq!(Told::of(both).map(|told| told.is_exhausted), Some(true));
        // Two requests aren't many.
        let two = "--max_num_seqs 2 --gpu_memory_utilization 0.95\nRuntimeError: try lowering `max_num_seqs` or `gpu_memory_utilization`";
        assert_eq!(of(two).as_deref(), Some("lower gpu_memory_utilization 0.95"));
        let earlier =
            "RuntimeError: try to increase --mem-fraction-static.\ntorch.OutOfMemoryError: CUDA out of memory.";
        assert_eq!(of(earlier), None);
        for none in [
            "increase gpu_memory_utilization",
            "    raise RuntimeError(error_msg)",
            "I get a resource error, though I lowered batch_size to 4",
            "Error: try reducing the batch size",
            "error: TF_GPU_ALLOCATOR=cuda_malloc_async will reduce fragmentation",
            "ValueError: %reduce.1 = f32[8] custom-call(%x), custom_call_target=\"tpu_custom_call\"",
            "ValueError: exceeded the limit of vmem_bytes",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
