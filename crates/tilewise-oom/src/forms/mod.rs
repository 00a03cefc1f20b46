//! The catalogue: every form of message, with its wordings and its meaning.
//!
//! A [`Rule`] has all that is known of a form. To add a form, add a variant to [`Form`] and a rule to its family; to
//! add a wording, add a line to its rule.

mod elsewhere;
mod gpu;
mod hbm;
mod interface;
mod kernel;
mod report;
mod run_time;

use crate::form::Form;
use crate::level::Level;
use crate::message::Message;
use crate::pattern::Pattern;
use crate::text::reader::Reader;
use crate::verdict::{OomVerdict, UntiledMachine};
use std::collections::HashMap;
use std::sync::LazyLock;

impl Form {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::Form::EarlyAbort.as_str(), "early_abort");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Assignment => "assignment",
            Self::Scoped => "scoped",
            Self::Allocation => "allocation",
            Self::EarlyAbort => "early_abort",
            Self::RunTime => "run_time",
            Self::Cores => "cores",
            Self::SparseCore => "sparse_core",
            Self::Excerpt => "excerpt",
            Self::CacheRoom => "cache_room",
            Self::CachePage => "cache_page",
            Self::CacheFull => "cache_full",
            Self::Rematerialization => "rematerialization",
            Self::Donation => "donation",
            Self::HostPlacement => "host_placement",
            Self::InputMismatch => "input_mismatch",
            Self::MatmulType => "matmul_type",
            Self::Block => "block",
            Self::Index => "index",
            Self::Slice => "slice",
            Self::OperandLayout => "operand_layout",
            Self::Lowering => "lowering",
            Self::Resharding => "resharding",
            Self::HostCompute => "host_compute",
            Self::Usage => "usage",
            Self::AllocatorStatistics => "allocator_statistics",
            Self::ServerStatistics => "server_statistics",
            Self::BufferAssignment => "buffer_assignment",
            Self::Gpu => "gpu",
            Self::Device => "device",
            Self::SharedMemory => "shared_memory",
            Self::Autotuning => "autotuning",
            Self::GpuRetry => "gpu_retry",
            Self::GpuArguments => "gpu_arguments",
            Self::Host => "host",
            Self::HostPool => "host_pool",
            Self::HostWarning => "host_warning",
            Self::Tenstorrent => "tenstorrent",
            Self::CoreHalt => "core_halt",
            Self::CompilerCheck => "compiler_check",
            Self::ConstantFolding => "constant_folding",
            Self::GpuRegisters => "gpu_registers",
            Self::Resource => "resource",
            Self::Told => "told",
            Self::Other => "other",
        }
    }

    /// The severity of a message of this form.
    #[must_use]
    pub fn level(self) -> Level {
        self.rule().level
    }

    pub(crate) fn rule(self) -> &'static Rule {
        rules().find(|rule| rule.form == self).unwrap_or(&hbm::OTHER)
    }
}

/// All that is known of a form.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) form: Form,
    pub(crate) level: Level,
    /// The source of the verdict.
    pub(crate) judged: Judged,
    /// The page in `docs/errors`.
    pub(crate) page: &'static str,
    /// The message's memory, if the wording doesn't name it.
    pub(crate) memory: Option<&'static str>,
    /// XLA's codes that may come before the message.
    pub(crate) codes: &'static [&'static str],
    /// Sentences that each make a message of this form. `~` marks a retelling, `*` a sentence that may repeat.
    pub(crate) opens: &'static [&'static str],
    /// Sentences that add to a message. `+` marks one that counts only behind a message or its code.
    pub(crate) adds: &'static [&'static str],
    /// Fields that together make a message, even without an opening sentence.
    pub(crate) suffices: &'static [&'static str],
    /// Reads on behind the first sentence, for parts that no wording can express.
    pub(crate) then: Option<fn(&mut Reader<'_>, &mut Message)>,
}

impl Rule {
    const fn new(form: Form, level: Level, judged: Judged, page: &'static str) -> Self {
        let (codes, opens, adds, suffices) = (&[], &[], &[], &[]);
        Self { form, level, judged, page, memory: None, codes, opens, adds, suffices, then: None }
    }

    /// Whether tables and lists may follow it.
    pub(crate) fn has_tables(&self) -> bool {
        matches!(self.judged, Judged::Memory | Judged::RunTime | Judged::Kernel)
    }

    /// Whether it tells little: any other error tells more.
    pub(crate) fn is_vague(&self) -> bool {
        matches!(self.form, Form::Other | Form::CompilerCheck | Form::ConstantFolding | Form::GpuRegisters)
    }
}

/// The source of a message's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The memory, the tables and the lists.
    Memory,
    /// The requested and the free bytes.
    RunTime,
    /// A kernel's own memory, unless it is spilled registers.
    Kernel,
    /// Always this verdict.
    As(OomVerdict),
    /// Another machine, without tiles.
    Elsewhere(UntiledMachine),
}

/// All rules, those of the more telling forms first.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    [hbm::RULES, kernel::RULES, run_time::RULES, interface::RULES, gpu::RULES, elsewhere::RULES, report::RULES]
        .into_iter()
        .flatten()
}

/// One sentence of a rule, compiled.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub(crate) rule: &'static Rule,
    pub(crate) wording: &'static str,
    pub(crate) pattern: Pattern,
    /// Whether it is a message by itself.
    pub(crate) opens: bool,
    /// Whether it counts only behind a message or its code.
    pub(crate) only_adds: bool,
    pub(crate) is_retold: bool,
    pub(crate) repeats: bool,
}

impl Sentence {
    fn new(rule: &'static Rule, wording: &'static str, opens: bool) -> Self {
        Self {
            rule,
            wording,
            pattern: Pattern::new(wording),
            opens,
            only_adds: wording.starts_with('+'),
            is_retold: wording.starts_with('~'),
            repeats: wording.starts_with('*'),
        }
    }
}

/// All sentences, by the words that they may begin with.
pub(crate) struct Catalogue {
    sentences: Vec<Sentence>,
    first: HashMap<String, Vec<usize>>,
    /// For each first letter, a bit for each length of a first word.
    lengths: [u64; 128],
}

impl Catalogue {
    /// The sentences that may begin with this word.
    pub(crate) fn beginning_with(&self, word: &str) -> impl Iterator<Item = &Sentence> {
        let letter = word.bytes().next().map_or(0, |byte| byte.to_ascii_lowercase());
        let lengths = self.lengths.get(usize::from(letter)).copied().unwrap_or(0);
        let may_be = word.len() < 64 && lengths >> word.len() & 1 == 1;
        let numbers = may_be.then(|| self.first.get(&word.to_ascii_lowercase())).flatten();
        numbers.into_iter().flatten().map(|number| &self.sentences[*number])
    }
}

pub(crate) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let of_rule = |rule: &'static Rule| {
        let opens = rule.opens.iter().map(move |wording| Sentence::new(rule, wording, true));
        opens.chain(rule.adds.iter().map(move |wording| Sentence::new(rule, wording, false)))
    };
    let sentences: Vec<Sentence> = rules().flat_map(of_rule).collect();
    let mut first: HashMap<String, Vec<usize>> = HashMap::new();
    let mut lengths = [0; 128];
    for (number, sentence) in sentences.iter().enumerate() {
        for word in sentence.pattern.first_words() {
            let numbers = first.entry(word.to_owned()).or_default();
            numbers.retain(|other| *other != number);
            numbers.push(number);
            lengths[usize::from(word.as_bytes()[0])] |= 1 << word.len();
        }
    }
    Catalogue { sentences, first, lengths }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_one_rule_and_every_wording_compiles() {
        let mut forms: Vec<&str> = rules().map(|rule| rule.form.as_str()).collect();
        forms.sort_unstable();
        let count = forms.len();
        forms.dedup();
        assert_eq!((forms.len(), count), (45, 45));
        for sentence in &CATALOGUE.sentences {
            let wording = sentence.wording;
            let count = |c: char| wording.matches(c).count();
            for (open, close) in [('[', ']'), ('(', ')'), ('{', '}')] {
                assert_eq!(count(open), count(close), "{wording}");
            }
            let words = sentence.pattern.first_words();
            assert!(!words.is_empty() && words.iter().all(|word| word.len() < 64 && word.is_ascii()), "{wording}");
            let kinds = wording.split('{').skip(1).map(|field| field.split('}').next().unwrap());
            for field in kinds {
                let (name, kind) = field.split_once(':').unwrap();
                let known =
                    "size below_zero bytes count number memory name line instruction bounds braces shape shapes colon";
                assert!(name.is_ascii() && known.split(' ').any(|known| known == kind), "{wording}");
            }
        }
    }
}
