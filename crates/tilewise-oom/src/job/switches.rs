//! Switches that a job's own command, configuration or code has off: with them on, its program takes less.

use super::SEARCHED;
use crate::prose;
use crate::text::{tail, word};

/// An option of a job with a value that makes its program larger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Switch {
    /// The effect of the other value.
    pub kind: SwitchKind,
    /// The option's name, as the text has it.
    pub name: String,
    /// Its value in the text; empty for an empty string.
    pub value: String,
    /// The value that makes the program smaller.
    pub to: &'static str,
}

/// The effect of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SwitchKind {
    /// Layers are computed again in the backward pass.
    Recompute,
    /// Values have 16 bits.
    Narrow,
    /// Layers are steps of a loop.
    Loop,
}

/// An option, its values that are off, and the value in place of each.
struct Known {
    name: &'static str,
    kind: SwitchKind,
    off: &'static [(&'static str, &'static str)],
}

/// Values of Python, of YAML and of commands.
const BOOLEANS: [(&str, &str); 3] = [("False", "True"), ("false", "true"), ("FALSE", "TRUE")];

/// Policies of `jax.checkpoint`, by their names; without one, nothing is computed again.
const POLICIES: [(&str, &str); 4] = [
    ("", "nothing_saveable"),
    ("none", "nothing_saveable"),
    ("everything_saveable", "nothing_saveable"),
    ("NONE", "NOTHING_SAVEABLE"),
];

/// Types of 32 bits; v2 and newer TPUs, and GPUs since 2020, compute in bfloat16.
const TYPES: [(&str, &str); 4] =
    [("fp32", "bf16"), ("float32", "bfloat16"), ("f32", "bf16"), ("torch.float32", "torch.bfloat16")];

/// MaxText's policies that save more than each layer's input.
const OF_MAXTEXT: [(&str, &str); 8] = [
    ("none", "full"),
    ("minimal", "full"),
    ("minimal_with_context", "full"),
    ("save_dot_except_mlp", "full"),
    ("save_dot_except_mlpwi", "full"),
    ("save_dot_with_context_except_mlp", "full"),
    ("save_qkv_proj", "full"),
    ("save_out_proj", "full"),
];

/// The options by library; of several of a kind, the first counts.
const OPTIONS: [Known; 15] = [
    // EasyLM, LWM
    Known { name: "remat_block", kind: SwitchKind::Recompute, off: &POLICIES },
    // MaxText
    Known { name: "remat_policy", kind: SwitchKind::Recompute, off: &OF_MAXTEXT },
    Known { name: "scan_layers", kind: SwitchKind::Loop, off: &BOOLEANS },
    // EasyDeL has policies, Transformers, Levanter and others a boolean.
    Known { name: "gradient_checkpointing", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "gradient_checkpointing", kind: SwitchKind::Recompute, off: &POLICIES },
    Known { name: "activation_checkpointing", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "use_gradient_checkpointing", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "enable_gradient_checkpointing", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "checkpoint_activations", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "use_remat", kind: SwitchKind::Recompute, off: &BOOLEANS },
    Known { name: "remat", kind: SwitchKind::Recompute, off: &BOOLEANS },
    // Transformers
    Known { name: "bf16", kind: SwitchKind::Narrow, off: &BOOLEANS },
    // Accelerate
    Known { name: "mixed_precision", kind: SwitchKind::Narrow, off: &[("no", "bf16"), ("fp32", "bf16")] },
    Known { name: "compute_dtype", kind: SwitchKind::Narrow, off: &TYPES },
    Known { name: "dtype", kind: SwitchKind::Narrow, off: &TYPES },
];

/// An option that a text sets.
struct Set<'a> {
    name: &'a str,
    value: &'a str,
    /// Whether it stands in a command or a configuration, where a name means the whole program; arguments of calls have such names, too.
    is_of_job: bool,
}

impl SwitchKind {
    /// Whether a sentence tells that this was tried: `I also tried bf16, the same.`
    fn is_tried(self, log: &str) -> bool {
        const TRIED: [&str; 7] = ["tried", "already", "same", "not help", "n't help", "no difference", "still"];
        let names: &[&str] = match self {
            Self::Recompute => &["remat", "checkpointing", "saveable", "recompute"],
            Self::Narrow => &["bf16", "bfloat16"],
            Self::Loop => &["scan_layers", "scanned layers", "scan the layers"],
        };
        let has = |sentence: &str, known: &[&str]| known.iter().any(|words| sentence.contains(words));
        // Assignments are settings, of which several are trials by themselves.
        let is_prose = |sentence: &str| !sentence.contains(['=', '"']) && sentence.contains(' ');
        let lower = tail(log, SEARCHED).to_ascii_lowercase();
        prose::sentences(&lower).any(|sentence| is_prose(sentence) && has(sentence, names) && has(sentence, &TRIED))
    }
}

impl Switch {
    /// The switches of a text that are off, one of a kind. An option with several values was tried.
    pub(crate) fn all(log: &str) -> Vec<Self> {
        let text = tail(log, SEARCHED);
        let set: Vec<Set<'_>> = word::all(text).filter_map(|(start, end)| Set::at(text, start, end)).collect();
        let mut found: Vec<Self> = Vec::new();
        for known in &OPTIONS {
            let mut values = set.iter().filter(|set| set.name == known.name);
            let Some(first) = values.next().filter(|first| values.all(|other| other.value == first.value)) else {
                continue;
            };
            let is_sure = first.is_of_job || known.kind != SwitchKind::Narrow;
            let to = known.off.iter().find(|(off, _)| *off == bare(first.value)).map(|(_, to)| *to);
            if let Some(to) = to.filter(|_| is_sure && !found.iter().any(|other| other.kind == known.kind)) {
                let (name, value) = (first.name.to_owned(), bare(first.value).to_owned());
                found.push(Self { kind: known.kind, name, value, to });
            }
        }
        // In 16 bits already.
        let is_on = |set: &Set<'_>| matches!(set.name, "fp16" | "bf16") && bare(set.value).eq_ignore_ascii_case("true");
        if set.iter().any(is_on) {
            found.retain(|switch| switch.kind != SwitchKind::Narrow);
        }
        found.retain(|switch| !switch.kind.is_tried(log));
        found.sort_by_key(|switch| switch.kind);
        found
    }
}

/// A value without the class that has it: `EasyDeLGradientCheckPointers.NONE`. Types keep their library.
fn bare(value: &str) -> &str {
    value.rsplit_once("CheckPointers.").map_or(value, |(_, name)| name)
}

impl<'a> Set<'a> {
    /// The option whose name stands here: `--dtype='fp32'`, `remat_policy=minimal`, `gradient_checkpointing: false`.
    fn at(text: &'a str, start: usize, end: usize) -> Option<Self> {
        let name = &text[start..end];
        if !(OPTIONS.iter().any(|known| known.name == name) || name == "fp16") {
            return None;
        }
        /// Bytes of the longest path of a configuration, and of indentation.
        const NEAR: usize = 96;
        let from = (start.saturating_sub(NEAR)..=start).find(|from| text.is_char_boundary(*from)).unwrap_or(start);
        let before = &text[from..start];
        // A path of a configuration: `--optimizer.dtype`, `config.dtype`.
        let path = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
        let is_option = path.ends_with("--");
        let line = path.rsplit('\n').next().unwrap_or_default();
        let starts_line = line.trim().is_empty() && (from == 0 || line.len() < path.len());
        let behind = &text[end..];
        let rest = behind.trim_start_matches(['"', '\'']);
        let gap = rest.len() - rest.trim_start_matches(' ').len();
        let (rest, is_assigned) = match rest[gap..].chars().next() {
            Some('=') if !rest[gap..].starts_with("==") => (&rest[gap + 1..], true),
            Some(':') => (&rest[gap + 1..], true),
            _ if is_option && gap == 1 => (&rest[gap..], false),
            _ => return None,
        };
        let value = value(rest.trim_start_matches(' '))?;
        let is_spaced = is_assigned && (gap > 0 || rest.starts_with(' '));
        let is_ended = |after: &str| after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || c == '\\');
        let after = &text[value.1 + text.len() - rest.trim_start_matches(' ').len()..];
        let is_word = !is_spaced && path.ends_with(char::is_whitespace) || starts_line;
        Some(Self { name, value: value.0, is_of_job: is_option || is_word && is_ended(after) })
    }
}

/// The value that a text begins with, and its end: quoted, maybe empty, or a name.
fn value(text: &str) -> Option<(&str, usize)> {
    /// Bytes of the longest value.
    const LONGEST: usize = 64;
    let quotes = text.bytes().take(2).take_while(|byte| matches!(byte, b'"' | b'\'')).count();
    // `''` is empty, of one kind of mark; `"'` opens twice.
    if quotes == 2 && text.as_bytes()[0] == text.as_bytes()[1] {
        return Some(("", 2));
    }
    let name = &text[quotes..];
    let length =
        name.bytes().take(LONGEST).take_while(|byte| byte.is_ascii_alphanumeric() || b"._".contains(byte)).count();
    let closing = name[length..].bytes().take(quotes).take_while(|byte| matches!(byte, b'"' | b'\'')).count();
    (length > 0 && closing == quotes).then(|| (name[..length].trim_end_matches('.'), quotes + length + closing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let all = Switch::all(text).into_iter();
        all.map(|switch| format!("{} {:?} {}", switch.name, switch.value, switch.to)).collect()
    }

    #[test]
    fn switches_that_are_off() {
        assert_eq!(
            read("train --dtype='fp32' \\\n --update_config=\"dict(remat_block='')\""),
            ["remat_block \"\" nothing_saveable", "dtype \"fp32\" bf16"]
        );
        assert_eq!(
            read("train.py remat_policy=minimal scan_layers=false dtype=float32"),
            ["remat_policy \"minimal\" full", "dtype \"float32\" bfloat16", "scan_layers \"false\" true"]
        );
        assert_eq!(
            read("args = TrainArguments(gradient_checkpointing=EasyDeLGradientCheckPointers.NONE,"),
            ["gradient_checkpointing \"NONE\" NOTHING_SAVEABLE"]
        );
        assert_eq!(
            read("gradient_checkpointing: false\nbf16: false"),
            ["gradient_checkpointing \"false\" true", "bf16 \"false\" true"]
        );
        assert_eq!(read("--mixed_precision no --bf16 False"), ["bf16 \"False\" True"]);
        assert_eq!(read("I tried a smaller batch. bf16 would be fine.\n--dtype=fp32"), ["dtype \"fp32\" bf16"]);
        assert_eq!(read("config.dtype = 'float32'\n"), ["dtype \"float32\" bfloat16"]);
    }

    #[test]
    fn switches_that_are_on_or_of_calls() {
        for none in [
            "--dtype='bf16' remat_policy=full scan_layers=true",
            "x = jnp.zeros((8, 128), dtype='float32')",
            "x = jnp.zeros(8, dtype=jnp.float32)",
            "x = f(a, dtype=float32, b)",
            "remat_policy=full, then remat_policy=minimal",
            "weight_dtype=float32",
            "I tried bf16, with the same result.\n--dtype=fp32",
            "Full remat doesn't help.\nremat_policy=minimal",
            "--dtype float32 --fp16 true",
            "remat_block == ''",
            "the dtype float32",
            "dtype=",
            "dtype='",
            "é--dtype=é",
            "",
        ] {
            assert_eq!(read(none), [""; 0], "{none}");
        }
    }
}
