//! The sentence that says what ran out, and by how much.

use memchr::memmem;

use crate::entry::{Entry, Operator, Section, WrittenShape};
use crate::instruction::{brackets_end, shape_length};
use crate::list::fold;
use crate::message::{Form, Message};
use crate::reader::{Reader, find_words};
use crate::size::PrintedSize;
use crate::tables::{Row, Usage};

/// How headlines begin. No headline contains the beginning of another.
const BEGINNINGS: [&str; 11] = [
    "Ran out of memory in memory space",
    "Ran out of memory on HBM",
    "HLO temporaries (",
    "Allocation (size=",
    "unlikely to have enough memory",
    "Attempting to allocate",
    "Attempting to reserve",
    "Failed to allocate request for",
    "TPU TensorCore Hbm usage:",
    "op current allocation offset upper bound (",
    "No viable logical replica count",
];

/// Where headlines begin in `text`, in order.
pub(crate) fn find_all(text: &str) -> Vec<usize> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for beginning in BEGINNINGS {
        let mut from = 0;
        while let Some((start, end)) = find_words(text, from, beginning) {
            found.push((start, beginning));
            from = end;
        }
    }
    found.sort_unstable();
    // `Ran out of memory on HBM, the total memory required for HLO temporaries (…)` is one headline.
    let mut last = None;
    found.retain(|(at, beginning)| {
        let goes_on = *beginning == "HLO temporaries (" && last.is_some_and(|last| at - last < 200);
        last = (*beginning == "Ran out of memory on HBM").then_some(*at);
        !goes_on
    });
    found.into_iter().map(|(at, _)| at).collect()
}

/// The last `E1000:` of `before`, the text in front of a headline, or the number in the link behind it.
pub(crate) fn code(before: &str, after: &str) -> Option<String> {
    let is_code = |word: &str| {
        let digits = word.strip_prefix('E')?.strip_suffix(':')?;
        (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("E{digits}"))
    };
    let from = before.len().saturating_sub(256);
    let near = (from..=before.len()).find_map(|from| before.get(from..)).unwrap_or("");
    near.split_whitespace().rev().find_map(is_code).or_else(|| {
        let link = "https://openxla.org/xla/errors/error_";
        let digits = after.get(memmem::find(after.as_bytes(), link.as_bytes())? + link.len()..)?.get(..4)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("E{digits}"))
    })
}

/// Reads the headline that `text` begins with into `message`, and says where the tables may start.
pub(crate) fn read(text: &str, message: &mut Message) -> usize {
    let mut reader = Reader::new(text, 0);
    if reader.eat("Ran out of memory in memory space") {
        memory_space(&mut reader, message);
    } else if reader.eat("Ran out of memory on HBM") || reader.rest().starts_with("HLO") {
        bound(&mut reader, message);
    } else if reader.eat("Allocation (size=") {
        allocation(&mut reader, message);
    } else if reader.eat("unlikely to have enough memory.") {
        message.form = Form::EarlyAbort;
        message.memory_space = Some("hbm".to_owned());
        message.used = reader.eat("Requires").then(|| reader.size()).flatten();
        message.limit = reader.eat(", has").then(|| reader.size()).flatten();
    } else if reader.eat("TPU TensorCore Hbm usage:") {
        cores(&mut reader, message);
    } else if reader.eat("op current allocation offset upper bound (") {
        sparse_core_allocation(&mut reader, message);
    } else if reader.eat("No viable logical replica count") {
        sparse_core_table(&mut reader, message);
    } else {
        run_time(&mut reader, message);
    }
    reader.at
}

/// `NAME. Used X of Y NAME. Exceeded NAME capacity by Z.`, or `NAME while allocating on stack for …`
fn memory_space(reader: &mut Reader<'_>, message: &mut Message) {
    let name = reader.word().trim_end_matches('.');
    message.memory_space = (!name.is_empty()).then(|| name.to_owned());
    if reader.eat("while allocating on stack for") {
        return scoped(reader, message);
    }
    message.form = Form::Assignment;
    if reader.eat("Used") {
        message.used = reader.size();
        if reader.eat("of") {
            message.limit = reader.size();
        }
        reader.word();
    }
    if reader.eat("Exceeded") {
        reader.word();
        message.exceeded = reader.eat("capacity by").then(|| reader.size()).flatten();
    }
}

/// `… HLO temporaries (X) exceeds available HBM (Y). HLO module: NAME.`
fn bound(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::Bound;
    message.memory_space = Some("hbm".to_owned());
    if reader.until("HLO temporaries (").is_none() {
        return;
    }
    message.used = reader.size();
    if reader.eat(") exceeds available HBM (") {
        message.limit = reader.size();
    }
    if reader.eat("). HLO module:") {
        // A name without the full stop may be cut short.
        message.module = reader.word().strip_suffix('.').filter(|name| !name.is_empty()).map(str::to_owned);
    }
}

/// `%NAME = SHAPE OPCODE(…), …. Scoped allocation with size X and limit Y exceeded scoped vmem limit by Z.`
fn scoped(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::Scoped;
    let start = reader.at;
    let found = reader.until("Scoped allocation with size");
    if found.is_some() {
        message.used = reader.size();
        message.limit = reader.eat("and limit").then(|| reader.size()).flatten();
        if reader.eat("exceeded scoped") {
            reader.word();
            message.exceeded = reader.eat("limit by").then(|| reader.size()).flatten();
        }
    }
    let instruction = found.map_or_else(|| reader.text[start..].lines().next().unwrap_or("").to_owned(), fold);
    let instruction = without_beginning(instruction.trim(), ". Scoped allocation with size");
    let instruction = instruction.trim_end_matches('.').to_owned();
    if instruction.is_empty() {
        return;
    }
    let mut entry = Entry::new(Section::Allocations, None);
    if let Some((_, definition)) = instruction.split_once(" = ") {
        let length = shape_length(definition);
        let whole = length > 0 && definition[length..].starts_with(' ');
        entry.shape = whole.then(|| WrittenShape::new(definition[..length].to_owned()));
    }
    entry.operator = instruction.rfind("metadata={").and_then(|at| {
        let brace = at + "metadata=".len();
        let end = brackets_end(&instruction, brace)?;
        Some(Operator::new(instruction[brace + 1..end - 1].to_owned()))
    });
    entry.complete = found.is_some() && message.used.is_some();
    entry.size.clone_from(&message.used);
    entry.allocation_type = Some("scoped".to_owned());
    entry.label = Some(instruction);
    message.entries.push(entry);
}

/// The text without the beginning of `words` at its end, where it was cut.
fn without_beginning<'a>(text: &'a str, words: &str) -> &'a str {
    (1..=words.len()).rev().find_map(|length| text.strip_suffix(words.get(..length)?)).unwrap_or(text)
}

/// `N) would exceed memory (size=M) :: #allocationK [shape = '…', space=…, size = 0x…, scoped, tag = '…'] :: OWNER`
fn allocation(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::Allocation;
    let closed = |reader: &mut Reader<'_>| {
        let size = reader.plain_size();
        size.filter(|_| reader.rest().starts_with(')'))
    };
    message.used = closed(reader);
    if reader.eat(") would exceed memory (size=") {
        message.limit = closed(reader);
    }
    reader.eat(")");
    // The message is one line, often a long one because of its tag.
    let end = reader.rest().find(['\n', '\r']).map_or(reader.text.len(), |end| reader.at + end);
    let list = find_words(reader.text, reader.at, "shape =").filter(|(at, _)| at - reader.at.min(*at) < 200);
    let Some((_, after)) = list else {
        reader.at = end;
        return;
    };
    let mut entry = Entry::new(Section::Allocations, None);
    entry.size.clone_from(&message.used);
    reader.at = after;
    let rest = reader.rest().trim_start();
    reader.at = reader.text.len() - rest.len();
    if let Some(quoted) = rest.strip_prefix('\'') {
        if let Some(close) = quoted.find(['\'', '\n']).filter(|close| quoted[*close..].starts_with('\'')) {
            entry.shape = Some(WrittenShape::new(quoted[..close].to_owned()));
            reader.at += close + 2;
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

/// `, space=…, size = 0x…, scoped, tag = '…'] :: OWNER`, of which all is optional.
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

/// `Attempting to allocate X. That was not possible. There are Y free.` and its relatives.
fn run_time(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::RunTime;
    if reader.eat("Failed to allocate request for") {
        let rounded = reader.size();
        let exact = if reader.eat("(") { reader.size() } else { None };
        message.used = exact.or(rounded);
        return;
    }
    message.memory_space = Some("hbm".to_owned());
    if !reader.eat("Attempting to allocate") {
        reader.eat("Attempting to reserve");
    }
    message.used = reader.size();
    reader.eat("at the bottom of memory");
    if reader.eat(". That was not possible. There are") {
        message.limit = reader.size();
        reader.eat("free");
    }
    if reader.eat(". The largest contiguous region of free memory is") {
        message.contiguous = reader.size();
    } else if reader.eat(",") && reader.size().is_some() && reader.eat("reserved, and") {
        message.contiguous = reader.size().filter(|_| reader.eat("reservable"));
    }
    message.contiguous = message.contiguous.take().filter(|piece| message.limit.as_ref() != Some(piece));
    // A table of older run times.
    let table = find_words(reader.text, reader.at, "HBM capacity").filter(|(at, _)| at - reader.at < 200);
    message.capacity = table.and_then(|(_, end)| Reader::new(reader.text, end).size());
}

/// `X, SparseCore Hbm usage Y, exceeding available bytes: Z`
fn cores(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::Cores;
    message.memory_space = Some("hbm".to_owned());
    let dense = reader.size();
    let sparse = reader.eat(", SparseCore Hbm usage").then(|| reader.size()).flatten();
    if reader.eat(", exceeding available bytes:") {
        message.limit = reader.size();
    }
    let (Some(dense), Some(sparse)) = (dense, sparse) else { return };
    let total = PrintedSize::sum(&dense, &sparse);
    message.used = Some(total.clone());
    let row = |name: &str, size| Row { name: name.to_owned(), size };
    message.usage = Some(Usage { total, rows: vec![row("TensorCore", dense), row("SparseCore", sparse)] });
}

/// Bytes of a SparseCore's word.
const WORD: u64 = 4;

/// `N words) exceeds the legitimate user allocatable offset upper bound (M words) in memory space S …`
fn sparse_core_allocation(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::SparseCore;
    let words = |reader: &mut Reader<'_>| {
        let words = reader.plain_size()?;
        Some(PrintedSize::exact(words.bytes().checked_mul(WORD)?))
    };
    message.used = words(reader);
    if reader.eat("words) exceeds the legitimate user allocatable offset upper bound (") {
        message.limit = words(reader);
    }
    if reader.eat("words) in memory space") {
        message.memory_space = match reader.word() {
            "0" => Some("smem"),
            "201" => Some("tile_spmem"),
            "202" => Some("spmem"),
            "203" => Some("hbm"),
            "204" => Some("sflag"),
            _ => None,
        }
        .map(str::to_owned);
    }
}

/// `… fixed_size_allocation_bytes = A, row_dependent_size_allocation_bytes = B, total_spmem_size_bytes = C)`
fn sparse_core_table(reader: &mut Reader<'_>, message: &mut Message) {
    message.form = Form::SparseCore;
    message.memory_space = Some("tile_spmem".to_owned());
    let mut figure = |name: &str| {
        let mut ahead = *reader;
        ahead.at = find_words(reader.text, reader.at, name).filter(|(at, _)| at - reader.at < 1000)?.1;
        let size = ahead.plain_size();
        *reader = ahead;
        size
    };
    let fixed = figure("fixed_size_allocation_bytes =");
    let rows = figure("row_dependent_size_allocation_bytes =");
    message.limit = figure("total_spmem_size_bytes =");
    message.used = fixed.zip(rows).map(|(fixed, rows)| PrintedSize::exact(fixed.bytes().saturating_add(rows.bytes())));
}

/// The program that could not be loaded: `Error loading program 'NAME':` in front of the headline.
pub(crate) fn loaded_program(before: &str) -> Option<String> {
    let tail = before.trim_end().strip_suffix("':")?;
    let from = tail.rfind('\'')?;
    tail[..from].ends_with("loading program ").then(|| tail[from + 1..].to_owned())
}

/// Whether the headline's words alone, without figures, say that this is a message.
pub(crate) fn is_telling(text: &str) -> bool {
    !["HLO", "Attempting", "Failed", "TPU", "op "].iter().any(|word| text.starts_with(word))
}

/// Whether the headline's figures are all there.
pub(crate) fn is_whole(message: &Message) -> bool {
    let known = |size: &Option<PrintedSize>| size.is_some();
    let (used, limit, exceeded) = (known(&message.used), known(&message.limit), known(&message.exceeded));
    match message.form {
        Form::Assignment | Form::Scoped => used && limit && exceeded,
        Form::Bound => used && limit && (message.code.is_none() || message.module.is_some()),
        Form::Allocation => used && limit && message.entries.first().is_some_and(|entry| entry.complete),
        Form::EarlyAbort | Form::RunTime | Form::Cores | Form::SparseCore => used && limit,
        Form::Excerpt | Form::Other | Form::NotTpu => false,
    }
}
