//! The size of a model that a text names.

use super::SEARCHED;
use crate::text::tail;

/// The model that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Number of its parameters.
    pub parameters: u64,
    /// Whether the text speaks of training it, and not of adapters alone.
    pub is_trained: bool,
    /// Bits of a weight where it only runs: 16 unless the text names a quantization.
    pub bits: u8,
}

/// Words of quantizations, in lower case, and bits of a weight.
const QUANTIZED: [(&str, u8); 12] = [
    ("w4a16", 4),
    ("load_in_4bit", 4),
    ("int4", 4),
    ("nf4", 4),
    ("awq", 4),
    ("gptq", 4),
    ("q4_", 4),
    ("load_in_8bit", 8),
    ("w8a8", 8),
    ("int8", 8),
    ("fp8", 8),
    ("q8_", 8),
];

impl Model {
    /// The model of a text that names one size: `gemma-2b`, `1.1 Billion Parameters`, `Total params: 573,228,546`.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = tail(text, SEARCHED);
        let named = text.match_indices(['b', 'B']).filter_map(|(at, _)| parameters(text, at));
        let mut sizes = text.lines().filter_map(counted).chain(named);
        let parameters = sizes.next()?;
        let lower = text.to_ascii_lowercase();
        // Who loads a pretrained model need not train it.
        let trains =
            lower.match_indices("train").any(|(at, _)| !["pre", "pre-"].iter().any(|word| lower[..at].ends_with(word)));
        // Adapters leave the model itself without gradients and an optimizer's state.
        let is_trained = trains && !["lora", "peft"].iter().any(|word| lower.contains(word));
        let quantized = QUANTIZED.into_iter().find(|(word, _)| lower.contains(word));
        let bits = quantized.map_or(16, |(_, bits)| bits);
        sizes.all(|other| other == parameters).then_some(Self { parameters, is_trained, bits })
    }

    /// Bytes of its weights; in training, with gradients and Adam's moments, all in f32.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let bits = if self.is_trained { 128 } else { u64::from(self.bits) };
        self.parameters.saturating_mul(bits) / 8
    }
}

/// The number of parameters that a line counts: `Total params: 573,228,546`, `Number of parameters = 560142482`.
fn counted(line: &str) -> Option<u64> {
    /// A line of a log.
    const LONGEST: usize = 200;
    const LEAST: u64 = 50_000_000;
    let (name, figure) = line.rsplit_once([':', '=']).filter(|_| line.len() <= LONGEST)?;
    let digits = figure.trim().split(' ').next()?.replace([',', '_'], "");
    let name = name.to_ascii_lowercase();
    let is_count = name.trim_end().ends_with("params") || name.trim_end().ends_with("parameters");
    digits.parse().ok().filter(|count| is_count && *count >= LEAST)
}

/// The number of parameters before the letter at `at`; `None` for a size in bytes, `8B`.
fn parameters(text: &str, at: usize) -> Option<u64> {
    /// Digits of a size.
    const MOST: usize = 12;
    /// Letters before it that are looked at for the name of a family.
    const FAMILY: usize = 16;

    let (before, behind) = (&text[..at], &text[at + 1..]);
    let is_word = behind.get(..6).is_some_and(|rest| rest.eq_ignore_ascii_case("illion"));
    let before = if is_word { before.trim_end_matches(' ') } else { before };
    let digits = before.bytes().rev().take(MOST).take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (name, number) = before.split_at(before.len() - digits);
    let behind = if is_word { behind[6..].trim_start_matches('s') } else { behind };
    if behind.starts_with(|letter: char| letter.is_alphanumeric()) {
        return None;
    }
    let next = behind.trim_start_matches([' ', '-']).get(..5).unwrap_or_default();
    // Parts of hexadecimal identifiers end so, too.
    let is_family = |letter: char| letter.is_ascii_alphabetic() && letter.to_ascii_lowercase() > 'f';
    let is_named = name.ends_with(['-', '_']) && name.chars().rev().take(FAMILY).any(is_family);
    if !is_named && !next.eq_ignore_ascii_case("param") && !next.eq_ignore_ascii_case("model") {
        return None;
    }
    let billions = number.parse::<f64>().ok().filter(|billions| (0.05..5000.0).contains(billions))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0.05 to 5000 billions")]
    Some((billions * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_models() {
        let of = |text: &str| Model::of(text).map(|model| (model.parameters / 1_000_000, model.is_trained));
        assert_eq!(of("Model Contain  1.1 Billion Parameters, train.py"), Some((1100, true)));
        assert_eq!(of("1.100048384  Billion Parameters"), Some((1100, false)));
        assert_eq!(of("--model google/gemma-2b"), Some((2000, false)));
        assert_eq!(of("from_pretrained('EleutherAI/gpt-neo-2.7B')"), Some((2700, false)));
        assert_eq!(of("from_preset('mistral_7b_en')"), Some((7000, false)));
        let bytes = |text: &str| Model::of(text).map(Model::bytes);
        assert_eq!(bytes("from_preset('mistral_7b_en')"), Some(14_000_000_000));
        assert_eq!(bytes("llama-7b, load_in_4bit=True"), Some(3_500_000_000));
        assert_eq!(of("a 7B parameter model"), Some((7000, false)));
        let summary = "  Total params: 573,228,546\n  Trainable params: 573,228,546\nNon-trainable params: 0";
        assert_eq!(of(summary), Some((573, true)));
        assert_eq!(of("LoRA training, a 7B parameter model"), Some((7000, false)));
        // Bytes, several models, other words.
        for none in [
            "Size: 8B",
            "0B reserved",
            "gemma-2b or llama-7b",
            "2bit",
            "x-4bfloat",
            "-2b",
            "é-b",
            "b",
            "4f89-412b-9a0c",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
