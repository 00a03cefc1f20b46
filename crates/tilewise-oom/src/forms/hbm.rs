//! HBM at compile time: the program, its arguments and its results are larger than the memory.

use super::{Judged, Rule};
use crate::entry::{Entry, Section, WrittenShape};
use crate::form::Form;
use crate::level::Level::Error;
use crate::message::Message;
use crate::pattern::shape_at;
use crate::tables::{Row, Usage};
use crate::text::instruction::{fold, shape_length};
use crate::text::reader::{Reader, find_words};
use crate::text::size::PrintedSize;
use crate::verdict::OomVerdict;

/// Unknown resources ran out. A code without a text is only mentioned: `instead of RESOURCE_EXHAUSTED we see …`.
pub(super) const OTHER: Rule = Rule {
    opens: &[
        "*RESOURCE_EXHAUSTED{:colon}",
        "*Resource exhausted{:colon}",
        "*ResourceExhaustedError",
        "*XLA TPU compile permanent error",
    ],
    ..Rule::new(Form::Other, Error, Judged::As(OomVerdict::Unknown), "E1000")
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        codes: &["E1000", "E1002"],
        opens: &[
            "Ran out of memory in memory space {space:memory}",
            "~CompileTimeHbmOom [needs|used|required|requested|requires] {used:size} [of|vs|against|exceeds|available] {limit:size}",
            "Exceeded {space:memory} capacity by {exceeded:size}",
        ],
        adds: &[
            "Used {used:size} of [the] [available] {limit:size} [of] {space:memory}",
            "+Used {used:size} of {limit:size}",
            "~(exceeding|exceeds|exceeded) [the] [{space:memory}] capacity by {exceeded:size}",
            "~(required|requires|require|requested|needs|needed|need|used|using|uses) {used:size} [of] {space:memory}",
            "~(required|requested|needed|peak) {space:memory} [memory] [usage|is|was] {used:size}",
            "~HBM [memory] (required|needed|used|demand|peak) [is|was] {used:size}",
            "~(available|total|usable|capacity|limit) [of] {space:memory} [is|was] {limit:size}",
            "~HBM (available|capacity|limit|budget|size) [is|was|per] [chip|core|device] {limit:size}",
            "~only {limit:size} [of] [{space:memory}] [memory] (is|are|was|were) (available|usable|free)",
            "+(of|only|with|available|has|have|limit|capacity|exceeds) {limit:size} available",
            "+available {limit:size}",
            "+(required|requires|needed|needs|requested) {used:size}",
            "+(exceeded|over|short|overflow|shortfall|missing) [by] {exceeded:size}",
            "Estimated {used:size} exceeds {limit:size} {space:memory} capacity",
            "+HLO module {module:name}",
        ],
        suffices: &["used", "limit"],
        ..Rule::new(Form::Assignment, Error, Judged::Memory, "E1000")
    },
    Rule {
        memory: Some("hbm"),
        codes: &["E1000"],
        opens: &[
            "Ran out of memory on HBM[, the]",
            "[the] total memory required for HLO temporaries {used:size} [exceeds available HBM {limit:size}]",
            "HLO temporaries {used:size} exceeds available HBM {limit:size}",
            "~HLO temporaries (need|require|take|needed|required) {used:size} [of] {limit:size}",
        ],
        adds: &["+HLO module {module:name}", "+HLO temporaries {used:size}", "+exceeds available HBM {limit:size}"],
        ..Rule::new(Form::Bound, Error, Judged::Memory, "E1000")
    },
    Rule {
        codes: &["E1000", "E1001"],
        opens: &[
            "Allocation size {used:bytes} would exceed memory[ size {limit:bytes}]",
            "Allocation would exceed memory size {limit:bytes}",
        ],
        then: Some(allocation),
        ..Rule::new(Form::Allocation, Error, Judged::Memory, "E1000")
    },
    Rule {
        memory: Some("hbm"),
        codes: &["E1000"],
        opens: &["unlikely to have enough memory [Requires {used:size}[, has {limit:size} available]]"],
        adds: &["Aborting compilation early"],
        ..Rule::new(Form::EarlyAbort, Error, Judged::Memory, "E1000")
    },
    Rule {
        memory: Some("hbm"),
        codes: &["E1002", "E1000"],
        opens: &[
            "TPU TensorCore Hbm usage {dense:size}[, SparseCore Hbm usage {sparse:size}[, exceeding available bytes {limit:size}]]",
        ],
        then: Some(cores),
        ..Rule::new(Form::Cores, Error, Judged::Memory, "E1000")
    },
    Rule { ..Rule::new(Form::Excerpt, Error, Judged::Memory, "E1000") },
    Rule {
        memory: Some("hbm"),
        opens: &[
            "To serve at least one request with …  max seq len {wanted:number}[, {used:size} KV cache is needed[, which is larger than the available KV cache memory {limit:size}]]",
            "max seq len {wanted:number} is larger than the maximum number of tokens that can be stored in [the] KV cache {length:number}",
            "No available memory for the cache blocks",
            // vLLM: `Worker.determine_num_available_blocks`
            "the rest of the memory reserved for KV Cache is {lacking:below_zero}",
            "kv_cache_size {lacking:below_zero}",
            "weights leave no [GPU] memory for the KV cache",
            "Not enough memory Please try to increase mem fraction static",
            // Text Generation Inference: `warmup` in server/text_generation_server/models/flash_causal_lm.py
            "Not enough memory to handle {prefill:number} prefill tokens",
            "~max seq len {wanted:number} … {used:size} KV cache is needed … {limit:size}",
        ],
        adds: &["estimated maximum model length is {length:number}", "+available KV cache memory {limit:size}"],
        ..Rule::new(Form::CacheRoom, Error, Judged::As(OomVerdict::Size), "kv_cache")
    },
    Rule {
        opens: &[
            "(Decode|Prefill) out of memory Try to lower your batch size[ Try to allocate {wanted:number} tokens[ Available tokens {left:number}]]",
        ],
        ..Rule::new(Form::CacheFull, Error, Judged::As(OomVerdict::Size), "kv_cache")
    },
    OTHER,
];

/// Maximum bytes between the sizes and `[shape =`.
const NEAR_SHAPE: usize = 207;

/// Maximum bytes of an allocation's properties: a tag is at most an instruction's text.
const LONGEST_PROPERTIES: usize = 16 << 10;

/// `:: #allocation3 [shape = '…', space=…, size = 0x…, scoped, tag = '…'] :: OWNER`
fn allocation(reader: &mut Reader<'_>, message: &mut Message) {
    reader.eat(")");
    // Not the whole text, which may be a long one on a single line.
    let within =
        |length: usize| (0..4).find_map(|more| reader.text.get(..reader.at + length + more)).unwrap_or(reader.text);
    let (near, whole) = (within(NEAR_SHAPE), within(LONGEST_PROPERTIES));
    let Some((_, after)) = find_words(near, reader.at, "shape =") else { return };
    let reader = &mut Reader::new(whole, after);
    let mut entry = Entry::new(Section::Allocations, None);
    entry.size.clone_from(&message.used);
    reader.skip_space();
    let rest = reader.rest();
    if let Some(quoted) = rest.strip_prefix('\'') {
        if let Some(close) = quoted.find(['\'', '\n']).filter(|close| quoted[*close..].starts_with('\'')) {
            entry.shape = Some(WrittenShape::new(quoted[..close].to_owned()));
            reader.at += close + 2;
        } else if quoted.contains("...") || quoted.contains('…') {
            entry.shape = shape_at(quoted).map(|(shape, _)| shape);
        }
    } else {
        let length = shape_length(rest);
        entry.shape = (length > 0).then(|| WrittenShape::new(rest[..length].to_owned()));
        reader.at += length;
    }
    properties(reader, message, &mut entry);
    if !entry.is_empty() {
        message.entries.push(entry);
    }
}

/// `, space=…, size = 0x…, scoped, tag = '…'] :: OWNER`, each part optional.
fn properties(reader: &mut Reader<'_>, message: &mut Message, entry: &mut Entry) {
    while reader.eat(",") {
        if reader.eat("space=") {
            let name = reader.word();
            message.memory_space = (!name.is_empty()).then(|| name.to_owned());
        } else if reader.eat("tag =") {
            reader.skip_space();
            let text = reader.rest();
            let (text, close) = text.strip_prefix('\'').map_or((text, "]"), |quoted| (quoted, "']"));
            let end = text.find(close);
            entry.complete = end.is_some();
            let tag = fold(text[..end.unwrap_or(text.len())].trim_end_matches('\''));
            entry.tag = (!tag.is_empty()).then_some(tag);
            reader.at = reader.text.len() - text.len() + end.map_or(text.len(), |end| end + close.len() - 1);
        } else if reader.eat("size =") {
            reader.word();
        } else if reader.word() == "scoped" {
            entry.allocation_type = Some("scoped".to_owned());
        }
    }
    if reader.eat("]") {
        entry.complete = true;
    }
    if reader.eat("::") {
        reader.skip_space();
        let owner = reader.rest().split_whitespace().next().unwrap_or("").trim_end_matches(['\'', '"', ')']);
        entry.label = (!owner.is_empty()).then(|| owner.to_owned());
    }
}

/// Adds up both kinds of core.
fn cores(_: &mut Reader<'_>, message: &mut Message) {
    let (Some(dense), Some(sparse)) = (message.facts.take_size("dense"), message.facts.take_size("sparse")) else {
        return;
    };
    let total = PrintedSize::sum(&dense, &sparse);
    message.used = Some(total.clone());
    let row = |name: &str, size| Row { name: name.to_owned(), size };
    message.usage = Some(Usage { total, rows: vec![row("TensorCore", dense), row("SparseCore", sparse)] });
}
