//! The job beside a message: whether steps ran before the failure, and how its process takes a GPU's memory.

use crate::text::word;

/// Bytes that are searched: a log ends near its error.
const SEARCHED: usize = 256 << 10;

/// Words that count what a job repeats.
const TURNS: [&str; 10] =
    ["step", "iteration", "iter", "epoch", "round", "episode", "generation", "trial", "batch", "time"];

/// Words between a verb and a number of turns that are past.
const PAST: [&str; 6] = ["after", "completed", "finished", "succeeded", "worked", "ran"];

/// Numbers in words.
const SEVERAL: [&str; 16] = [
    "few", "several", "many", "hundreds", "two", "three", "four", "five", "six", "ten", "twenty", "thirty", "forty",
    "fifty", "sixty", "hundred",
];

/// The settings of the memory that a process takes of a GPU, where the text shows them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PoolSettings {
    /// The variable that limits the pool, and its value, a part of the GPU's memory: `XLA_PYTHON_CLIENT_MEM_FRACTION`, `.10`.
    pub fraction: Option<(String, String)>,
    /// The variable that takes the pool away, and its value: `XLA_PYTHON_CLIENT_ALLOCATOR`, `platform`.
    pub unpooled: Option<(String, String)>,
}

impl PoolSettings {
    pub(crate) fn of(text: &str) -> Self {
        let set = |is: fn(&str) -> bool| {
            word::all(text).find_map(|(start, end)| {
                let name = &text[start..end];
                let value = is(name).then(|| assigned(&text[end..])).flatten()?;
                Some((name.to_owned(), value.to_owned()))
            })
        };
        let is_fraction = |value: &(String, String)| value.1.parse::<f64>().is_ok_and(|part| 0.0 < part && part <= 1.0);
        Self {
            fraction: set(|name| name.ends_with("CLIENT_MEM_FRACTION") || name == "PJRT_ALLOCATOR_FRACTION")
                .filter(is_fraction),
            unpooled: set(|name| name.ends_with("CLIENT_ALLOCATOR")).filter(|(_, value)| value == "platform"),
        }
    }

    /// The part of the memory that the pool may have, if that is less than most of it.
    #[must_use]
    pub fn small_fraction(&self) -> Option<(&str, &str)> {
        /// A part that JAX takes without a setting.
        const DEFAULT: f64 = 0.75;
        let (name, value) = self.fraction.as_ref().filter(|_| self.unpooled.is_none())?;
        value.parse::<f64>().is_ok_and(|part| part < DEFAULT).then_some((name, value))
    }
}

/// The value behind a variable's name: `=.10`, `'] = "0.3"`, `", "platform"`.
fn assigned(behind: &str) -> Option<&str> {
    let rest = behind.trim_start_matches(['"', '\'', ']', ' ']);
    let rest = rest.strip_prefix(['=', ':', ','])?.trim_start_matches([' ', '"', '\'']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('.')).filter(|value| !value.is_empty())
}

/// Whether a text tells of steps that ran before the failure: `step 1200`, `Epoch 3/10`, `after a few iterations`.
pub(crate) fn has_run(text: &str) -> bool {
    let start = (text.len().saturating_sub(SEARCHED)..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let text = &text[start..];
    let words: Vec<(usize, usize)> = word::all(text).collect();
    let lower =
        |at: usize| words.get(at).map(|(start, end)| text[*start..*end].to_ascii_lowercase()).unwrap_or_default();
    (0..words.len()).any(|at| {
        let name = lower(at);
        let singular = name.strip_suffix('s').unwrap_or(&name);
        if !TURNS.contains(&singular) {
            return false;
        }
        if singular == name {
            // `step 12` and `step: 12`, in a line of a log; `batch 32` and `epoch=10` are settings, `time: 12` is a clock's.
            return !["batch", "time"].contains(&singular) && is_number(text, &words, at + 1);
        }
        let before: Vec<String> = (at.saturating_sub(4)..at).map(lower).collect();
        let is_past = before.iter().any(|word| PAST.contains(&word.as_str()));
        let is_counted = before.last().is_some_and(|count| {
            SEVERAL.contains(&count.as_str()) || count.parse::<u64>().is_ok_and(|count| count > 0)
        });
        is_past && is_counted
    })
}

/// Whether the next word is a number above one, right behind a space or a colon.
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
            "the same allocation having succeeded sixty times",
        ] {
            assert!(has_run(text), "{text}");
        }
        // Settings, first steps, layers.
        for text in ["steps=1000", "num_epochs 10", "epoch=10", "batch 32", "Epoch 1/10", "step_12", "step 0", ""] {
            assert!(!has_run(text), "{text}");
        }
    }

    #[test]
    fn settings_of_the_pool() {
        let of = |text: &str| PoolSettings::of(text);
        let small = |text: &str| of(text).small_fraction().map(|(name, value)| format!("{name} {value}"));
        let name = "XLA_PYTHON_CLIENT_MEM_FRACTION";
        assert_eq!(small(&format!("export {name}=.10\n")), Some(format!("{name} .10")));
        assert_eq!(small(&format!("os.environ[\"{name}\"] = \"0.3\"")), Some(format!("{name} 0.3")));
        assert_eq!(small("`XLA_CLIENT_MEM_FRACTION=0.9`"), None);
        assert_eq!(small(&format!("{name} is not set")), None);
        let unpooled = of(&format!("{name}=.3 XLA_PYTHON_CLIENT_ALLOCATOR=platform"));
        assert!(unpooled.unpooled.is_some() && unpooled.small_fraction().is_none());
    }
}
