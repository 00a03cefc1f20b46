//! The sizes of a requested array: numbers of the text that multiply to the request.

use crate::text::size::PrintedSize;
use crate::text::{tail, word};
use std::collections::BTreeSet;

/// Bytes that are searched: code and options stand near a message.
const SEARCHED: usize = 64 << 10;

/// Numbers from which on a text gives too many products.
const MOST: usize = 48;

/// Smaller numbers stand for too much else.
const LEAST: u64 = 16;

/// Dimensions of an array at most.
const RANK: usize = 4;

/// Bytes of an element.
const ELEMENTS: [u64; 3] = [4, 8, 2];

/// Allocators round up to whole blocks of this many bytes.
const BLOCK: u64 = 256;

/// Products of powers of two meet sizes by chance: the odd part of the number of elements has to be larger.
const ODD: u64 = 256;

/// The largest number of products that may meet the request by chance.
const CHANCE: f64 = 0.2;

/// Buffers beside an array that a program asks for with it take less than this part of it.
const BESIDE: u64 = 10_000;

/// Numbers of a text whose product is the bytes of a request, or nearly all of them, such as `jax.vmap` over 5,200 points of a grid `(96, 96, 96)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Product {
    /// The numbers, the largest first.
    pub factors: Vec<u64>,
    /// Bytes of an element, or of a record where the text has one number alone.
    pub element_bytes: u64,
    /// The names that the text gives each of the numbers: `num_timesteps`.
    pub names: Vec<Vec<String>>,
    /// The family of models whose vocabulary the first number is, if the text names one.
    pub family: Option<&'static str>,
}

/// Vocabularies of families of models, by names in lower case: the sizes of their published configurations.
const VOCABULARIES: [(&str, &str, &[u64]); 14] = [
    ("qwen", "Qwen", &[151_936, 152_064, 151_646, 248_320]),
    ("llama-3", "Llama 3", &[128_256]),
    ("llama3", "Llama 3", &[128_256]),
    ("llama 3", "Llama 3", &[128_256]),
    ("llama", "Llama", &[32_000, 32_001]),
    ("mistral", "Mistral", &[32_000]),
    ("mixtral", "Mixtral", &[32_000]),
    ("gemma", "Gemma", &[256_000, 262_208]),
    ("gpt2", "GPT-2", &[50_257]),
    ("phi-3", "Phi-3", &[32_064]),
    ("phi-4", "Phi-4", &[100_352]),
    ("deepseek", "DeepSeek", &[129_280]),
    ("command-r", "Command R", &[256_000]),
    ("whisper", "Whisper", &[51_865, 51_866]),
];

/// The odd part of a vocabulary that tells it from other sizes: 32,000 is 125 × 256.
const ODD_OF_VOCABULARY: u64 = 100;

/// Fewer tokens are none of a batch.
const TOKENS: u64 = 256;

/// Fewer elements of a text are no records of an array.
const RECORDS: u64 = 100_000;

/// Fewer records aren't told by their name either, nor are smaller ones.
const FEW: u64 = 1000;

/// Bytes of the largest record.
const RECORD: u64 = 1 << 16;

impl Product {
    /// Whether it is one number of records, whose size the text doesn't name.
    #[must_use]
    pub fn is_of_records(&self) -> bool {
        self.factors.len() == 1
    }

    /// Whether it is a square: a value for each two of one number.
    #[must_use]
    pub fn is_square(&self) -> bool {
        matches!(self.factors[..], [rows, columns] if rows == columns)
    }

    /// A square matrix, whose size the text needn't name, with few vectors of its length: hardly another number is one.
    fn of_square(text: &str, asked: &PrintedSize) -> Option<Self> {
        /// Fewer rows make squares by chance.
        const ROWS: u64 = 10_000;
        /// Most vectors beside it.
        const VECTORS: u64 = 8;
        let range = asked.low()..=asked.high();
        // A rounded size may have its bytes beside it.
        let exact = if asked.low() == asked.high() {
            vec![asked.low()]
        } else {
            let text = tail(text, SEARCHED);
            let numbers = word::all(text).filter_map(|(start, end)| text[start..end].parse().ok());
            numbers.filter(|bytes| range.contains(bytes)).take(MOST).collect()
        };
        let of = |bytes: u64| {
            ELEMENTS.into_iter().find_map(|element_bytes| {
                let (elements, rest) = (bytes / element_bytes, bytes % element_bytes);
                // With `beside` vectors, `rows` × (`rows` + `beside`) elements.
                let most = elements.isqrt();
                let rows = (0..=VECTORS).flat_map(|beside| {
                    let near = most.saturating_sub(beside / 2);
                    let is_it = move |rows: &u64| rows.checked_mul(rows + beside) == Some(elements);
                    [near, near + 1].into_iter().find(is_it)
                });
                // Round sizes are squares by chance, too.
                let is_odd = |rows: &u64| {
                    let odd = *rows >> rows.trailing_zeros();
                    std::iter::successors(Some(odd), |odd| odd.is_multiple_of(5).then_some(odd / 5)).last() > Some(ODD)
                };
                let rows = rows.filter(|rows| *rows >= ROWS && rest == 0).find(is_odd)?;
                Some(Self { factors: vec![rows, rows], element_bytes, names: Vec::new(), family: None })
            })
        };
        exact.into_iter().find_map(of)
    }

    /// The only number of a text that divides a request into records: 30,000,000 of 1,776 bytes.
    fn of_records(text: &str, numbers: &[u64], asked: &PrintedSize) -> Option<Self> {
        /// Bytes beside them: of scalars, and of a block.
        const REST: u64 = 512;
        let bytes = asked.low();
        let divides = |count: &&u64| {
            let record = bytes / **count;
            let is_odd = **count >> count.trailing_zeros() > ODD_OF_VOCABULARY;
            let is_many = is_odd && **count >= RECORDS && (8..=RECORD).contains(&record) && bytes % **count <= REST;
            // A number that has a name, and whose odd part divides the rest.
            let is_named = **count >= FEW
                && is_odd
                && bytes.is_multiple_of(**count)
                && record >= FEW
                && !names_of(text, **count).is_empty();
            record.is_multiple_of(4) && (is_many || is_named)
        };
        // The largest comes first.
        let count = *numbers.iter().find(divides).filter(|_| asked.low() == asked.high())?;
        Some(Self { factors: vec![count], element_bytes: bytes / count, names: Vec::new(), family: None })
    }

    /// The only product equal to a request, if too few were tried for a chance match, or else a square.
    pub(crate) fn of(text: &str, asked: &PrintedSize) -> Option<Self> {
        Self::of_numbers_of(text, asked).or_else(|| Self::of_square(text, asked))
    }

    /// The only product of a text's numbers.
    fn of_numbers_of(text: &str, asked: &PrintedSize) -> Option<Self> {
        let numbers = numbers(text)?;
        if let Some(logits) = Self::of_logits(text, &numbers, asked) {
            return Some(logits);
        }
        let widths = widths(text);
        let found = Self::of_numbers((&numbers, &widths), asked, 0, RANK)
            .or_else(|| Self::of_numbers((&numbers, &widths), asked, asked.low() / BESIDE, 2))
            .or_else(|| Self::of_records(text, &numbers, asked))
            .filter(|found| found.factors.len() <= 2 || found.stands_in(text))?;
        let names = found.factors.iter().map(|factor| names_of(text, *factor)).collect();
        Some(Self { names, ..found })
    }

    /// Whether the text has each number as often as the product.
    fn stands_in(&self, text: &str) -> bool {
        let text = tail(text, SEARCHED);
        let is_it = |number: u64, (start, end): (usize, usize)| {
            let end = end_of_groups(text, start, end);
            text[start..end].replace(['_', ','], "").parse() == Ok(number)
        };
        self.factors.iter().all(|factor| {
            let needed = self.factors.iter().filter(|other| *other == factor).count();
            word::all(text).filter(|place| is_it(*factor, *place)).count() >= needed
        })
    }

    /// The logits of tokens whose number is in the text, or the product of two that are, over the vocabulary of a model that
    /// it names.
    fn of_logits(text: &str, numbers: &[u64], asked: &PrintedSize) -> Option<Self> {
        let lower = tail(text, SEARCHED).to_ascii_lowercase();
        let families = VOCABULARIES.iter().filter(|(name, ..)| lower.contains(name));
        // Powers of two meet sizes by chance.
        let is_odd = |size: &&u64| **size >> size.trailing_zeros() > ODD_OF_VOCABULARY;
        let mut sizes =
            families.flat_map(|(_, family, sizes)| sizes.iter().filter(is_odd).map(move |size| (*family, *size)));
        let range = asked.low()..=asked.high();
        // A batch may be a small number of the text.
        let text = tail(text, SEARCHED);
        let small: BTreeSet<u64> = word::all(text)
            .filter_map(|(start, end)| text[start..end].parse().ok())
            .filter(|number| (2..LEAST).contains(number))
            .collect();
        let all = || numbers.iter().copied().chain(small.iter().copied());
        sizes.find_map(|(family, vocabulary)| {
            [4, 2].into_iter().find_map(|element_bytes| {
                let is_asked = |tokens: u64| {
                    let bytes = tokens.checked_mul(vocabulary)?.checked_mul(element_bytes)?;
                    (tokens >= TOKENS && range.contains(&bytes)).then_some(())
                };
                let lengths = || numbers.iter().filter(|number| is_length(text, **number));
                let one = lengths().find(|tokens| is_asked(**tokens).is_some()).map(|tokens| vec![*tokens]);
                let two = || {
                    lengths().find_map(|length| {
                        let batch = all().find(|batch| length.checked_mul(*batch).and_then(is_asked).is_some())?;
                        Some(vec![batch, *length])
                    })
                };
                let tokens = one.or_else(two)?;
                let factors = [vocabulary].into_iter().chain(tokens).collect();
                Some(Self { factors, element_bytes, names: Vec::new(), family: Some(family) })
            })
        })
    }

    /// The product of at most `most` numbers that lacks at most `beside` bytes of a request.
    fn of_numbers((numbers, widths): (&[u64], &[u64]), asked: &PrintedSize, beside: u64, most: usize) -> Option<Self> {
        let (mut low, high) = (asked.low().saturating_sub(beside), asked.high());
        if low == high {
            low = low.saturating_sub(BLOCK - 1);
        }
        #[expect(clippy::cast_precision_loss, reason = "a chance")]
        let width = (high - low + 1) as f64 / (high.max(1)) as f64;
        let mut tried = 0.0;
        (2..=most).find_map(|rank| {
            let mut search = Search { numbers, widths, low, high, rank, chosen: Vec::new(), found: Vec::new() };
            tried += search.products();
            if tried * width > CHANCE {
                return Some(None);
            }
            search.from(0, 1);
            (!search.found.is_empty()).then(|| search.found.pop().filter(|_| search.found.is_empty()))
        })?
    }
}

/// A search for products of `rank` numbers, each of which may come several times.
struct Search<'a> {
    numbers: &'a [u64],
    /// Bytes of an element.
    widths: &'a [u64],
    low: u64,
    high: u64,
    rank: usize,
    chosen: Vec<u64>,
    found: Vec<Product>,
}

impl Search<'_> {
    /// The number of products.
    #[expect(clippy::cast_precision_loss, reason = "a chance")]
    fn products(&self) -> f64 {
        let chosen = |of: usize| (self.numbers.len() + of) as f64 / (of + 1) as f64;
        (0..self.rank).map(chosen).product::<f64>() * self.widths.len() as f64
    }

    /// Chooses the next number, from one of the largest on.
    fn from(&mut self, start: usize, product: u64) {
        if self.chosen.len() == self.rank {
            let elements = self.widths.iter().copied().filter(|element| {
                product.checked_mul(*element).is_some_and(|bytes| (self.low..=self.high).contains(&bytes))
            });
            let is_odd = product >> product.trailing_zeros() > ODD;
            self.found.extend(elements.filter(|_| is_odd).map(|element_bytes| Product {
                factors: self.chosen.clone(),
                element_bytes,
                names: Vec::new(),
                family: None,
            }));
            return;
        }
        for at in start..self.numbers.len() {
            let Some(next) = product.checked_mul(self.numbers[at]).filter(|next| *next <= self.high) else { continue };
            self.chosen.push(self.numbers[at]);
            self.from(at, next);
            self.chosen.pop();
        }
    }
}

/// The bytes of an element: of the types that a text names, or else of usual ones.
fn widths(text: &str) -> Vec<u64> {
    const TYPES: [(u64, &[&str]); 3] = [
        (4, &["f32", "float32", "s32", "i32", "int32"]),
        (8, &["f64", "float64", "s64", "i64", "int64", "c64", "complex64"]),
        (2, &["bf16", "f16", "float16", "bfloat16"]),
    ];
    let text = tail(text, SEARCHED);
    let words: BTreeSet<String> = word::all(text).map(|(start, end)| text[start..end].to_ascii_lowercase()).collect();
    let is_named = |names: &[&str]| names.iter().any(|name| words.contains(*name));
    let named: Vec<u64> = TYPES.iter().filter(|(_, names)| is_named(names)).map(|(width, _)| *width).collect();
    if named.is_empty() { ELEMENTS.to_vec() } else { named }
}

/// The whole numbers of a text, the largest first: no part of a name, a figure with a unit, a clock or a place in a file.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let text = tail(text, SEARCHED);
    let mut found: Vec<u64> = Vec::new();
    for (start, end) in word::all(text) {
        let end = end_of_groups(text, start, end);
        let digits = text[start..end].replace(['_', ','], "");
        let Ok(number) = digits.parse::<u64>() else { continue };
        let (before, behind) = (&text[..start], &text[end..]);
        let is_whole = !before.ends_with(['.', ':', '/', '-', '#', ',']) && !before.ends_with("line ");
        let unit = behind.trim_start_matches(' ');
        let has_unit = PrintedSize::figure(&format!("{digits}{}", unit.get(..8).unwrap_or(unit))).is_some();
        // The base of a power is no size.
        let is_ended = !behind.starts_with([':', '/', '-']) && !is_decimal(behind) && !unit.starts_with("**");
        if is_whole && is_ended && !has_unit && number >= LEAST && !found.contains(&number) {
            found.push(number);
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    (found.len() <= MOST).then_some(found)
}

/// Whether a text gives a number as a length of samples: `cutoff_len: 2048`, `--max-batch-prefill-tokens 10000`.
fn is_length(text: &str, number: u64) -> bool {
    const NAMES: [&str; 6] = ["len", "tok", "seq", "context", "cutoff", "ctx"];
    let words: Vec<(usize, usize)> = word::all(text).collect();
    words.windows(2).any(|pair| {
        let [(start, end), (value, behind)] = [pair[0], pair[1]];
        let name = text[start..end].to_ascii_lowercase();
        text[value..behind].parse() == Ok(number) && NAMES.iter().any(|part| name.contains(part))
    })
}

/// The name to which a text assigns a number: `num_timesteps=30_000_000`.
fn names_of(text: &str, number: u64) -> Vec<String> {
    let text = tail(text, SEARCHED);
    let words: Vec<(usize, usize)> = word::all(text).collect();
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let [(start, end), (value, behind)] = [pair[0], pair[1]];
        let behind = end_of_groups(text, value, behind);
        let is_it = text[value..behind].replace(['_', ','], "").parse() == Ok(number);
        let name = text[start..end].to_owned();
        if is_it && text[end..value].trim() == "=" && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The end of a number whose groups of three digits commas divide, `181,207`; in brackets these divide several.
fn end_of_groups(text: &str, start: usize, end: usize) -> usize {
    let is_alone = end - start <= 3 && !text[..start].ends_with(['(', '[', '{', ',']);
    let group = |at: usize| {
        let digits = text.get(at..at + 4)?.strip_prefix(',')?;
        let is_group = digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_ended = !text[at + 4..].starts_with(|next: char| next.is_alphanumeric());
        (is_group && is_ended).then_some(at + 4)
    };
    if is_alone { std::iter::successors(Some(end), |at| group(*at)).last().unwrap_or(end) } else { end }
}

/// Whether a fraction or a group of three digits follows.
fn is_decimal(behind: &str) -> bool {
    let mut letters = behind.chars();
    matches!(letters.next(), Some('.' | ',')) && letters.next().is_some_and(|next| next.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, asked: &str) -> Option<(Vec<u64>, u64)> {
        let (asked, _) = PrintedSize::figure(asked)?;
        Product::of(text, &asked).map(|product| (product.factors, product.element_bytes))
    }

    #[test]
    fn sizes_in_pasted_code() {
        let grid = "linspace(-1, 1, 96) # (96, 96, 96, 3)\npoints (5200, 3)\nFile \"a.py\", line 44";
        assert_eq!(of(grid, "18402508800 bytes"), Some((vec![5200, 96, 96, 96], 4)));
        let samples = "X: (60000, 12), genes 2800, num_warmup=500, num_samples=2000";
        assert_eq!(of(samples, "1344000000000 bytes"), Some((vec![60_000, 2800, 2000], 4)));
        let logits = "Qwen3-0.6B, per_device_train_batch_size=8, max_completion_length=2048";
        assert_eq!(of(logits, "4.64 GiB"), Some((vec![151_936, 8, 2048], 2)));
        assert_eq!(of("llama-3.3-70b, cutoff_len: 2048", "1002.00 MiB"), Some((vec![128_256, 2048], 4)));
        let tokens = "max 73216 min 11004; vocab_size ... 151936, pid=884120";
        assert_eq!(of(tokens, "41.44 GiB"), Some((vec![151_936, 73_216], 4)));
        assert_eq!(of("jnp.ones(60_000)", "14400000000 bytes"), Some((vec![60_000, 60_000], 4)));
        assert_eq!(of("num_timesteps=30_000_000", "53280000080 bytes"), Some((vec![30_000_000], 1776)));
        assert_eq!(of("num_samples = 10,000, seed=7", "15273920000 bytes"), Some((vec![10_000], 1_527_392)));
        assert_eq!(of("10,000 samples", "15273920000 bytes"), None);
        assert_eq!(of("num_timesteps=30_000_001", "53280000080 bytes"), None);
        let beside = "181,207 parameters, num_samples=50, maxiter=30, 3090";
        assert_eq!(of(beside, "131344632216 bytes"), Some((vec![181_207, 181_207], 4)));
    }

    #[test]
    fn a_square_needs_no_number_of_the_text() {
        assert_eq!(of("", "1374521760000 bytes"), Some((vec![586_200, 586_200], 4)));
        assert_eq!(of("", "1374521760004 bytes"), None);
        // A rounded request, whose bytes another line has, three vectors among them.
        let line = "The byte size of input/output arguments (131344632216) exceeds";
        assert_eq!(of(line, "122.32GiB"), Some((vec![181_206, 181_206], 4)));
        assert_eq!(of("", "122.32GiB"), None);
        // 2^18 and 10^5 of each.
        assert_eq!(of("", "40000000000 bytes"), None);
        assert_eq!(of("", "274877906944 bytes"), None);
    }

    #[test]
    fn chance_is_no_product() {
        // Powers of two, too many numbers, figures with units, clocks.
        assert_eq!(of("(32, 512, 229376)", "112.00M"), None);
        let many = (100..148).map(|number| format!("{number} ")).collect::<String>();
        assert_eq!(of(&many, "1.32 GiB"), None);
        assert_eq!(of("60000 MiB 12:60000", "14400000000 bytes"), None);
        // One axis of a power, and a number that a shape of three has but once.
        assert_eq!(of("jnp.zeros(700 ** 3)", "1372000000 bytes"), None);
        assert_eq!(of("700 points", "1372000000 bytes"), None);
        assert_eq!(of("(700, 700, 700)", "1372000000 bytes"), Some((vec![700, 700, 700], 4)));
        assert_eq!(of("", "14400000000 bytes"), None);
        assert_eq!(of(&"9".repeat(1 << 17), "14400000000 bytes"), None);
    }
}
