//! Parses a text: removes its surroundings, finds sentences, reads tables and lists, and puts the most important
//! message first.

use crate::block_sizes::{BlockSize, block_sizes, in_call};
use crate::candidates::{self, Candidate};
use crate::complaint;
use crate::device::{self, Device};
use crate::entry::{Entry, Operator, Section, WrittenShape};
use crate::error::Error;
use crate::facts::{Fact, FactValue};
use crate::form::Form;
use crate::forms::Judged;
use crate::framework::Framework;
use crate::job::{Job, Told};
use crate::kernel_library::{KernelMemory, KernelOption};
use crate::kernel_name;
use crate::killed;
use crate::level::Level;
use crate::list::{self, List};
use crate::loose_arrays;
use crate::memory;
use crate::message::{Message, Named};
use crate::occasion::Occasion;
use crate::pool;
use crate::product::Product;
use crate::server::Server;
use crate::tables::{Output, Persistent, Requirement, Usage};
use crate::text::clean;
use crate::text::instruction::{brackets_end, shape_length};
use crate::text::reader::Reader;
use crate::text::size::PrintedSize;
use crate::traceback::Frame;
use crate::verdict::OomVerdict;
use memchr::memmem;
use std::cmp::Reverse;
use std::ops::Range;

/// Words before and behind the kernel whose stack doesn't fit.
const STACK_OF: &str = "while allocating on stack for ";
const FIGURES: &str = "Scoped allocation with size";

/// The source file in the line prefixes of the compiler's own log.
const COMPILERS_LOG: &str = "deepsea_compiler_backend.cc";

impl Message {
    /// Like [`parse`](Self::parse), for a text that is read in one piece.
    pub(crate) fn parse_whole(text: &str) -> Result<Self, Error> {
        let is_log = text.contains(COMPILERS_LOG);
        // A log's line prefixes name devices and servers, too.
        let (device, server) = (Device::of(text), Server::of(text));
        let log = text;
        let text = clean::clean(log);
        let framework = Framework::of(&text).or_else(|| Framework::of_log(log));
        let is_no_error = |message: &Self| message.form.level() < Level::Error;
        let mut messages = read_all(&text, is_log, device);
        messages.extend(killed::by_launcher(&text).filter(|_| messages.iter().all(is_no_error)));
        messages.extend(killed::in_prose(&text).filter(|_| messages.is_empty()));
        // `RESOURCE_EXHAUSTED: Out of memory`, without a word more.
        let is_bare_status = |message: &Self| message.form == Form::Other && is_bare(message) && message.code.is_none();
        if messages.iter().all(is_bare_status)
            && let Some(complaint) = complaint::of(&text, device, log)
        {
            messages = vec![complaint];
        }
        let (kernel, named) = (kernel_name::of(&text), Named::of(&text));
        let options = [KernelMemory::Vmem, KernelMemory::Smem, KernelMemory::Shared]
            .map(|memory| KernelOption::all(&text, kernel.as_deref(), memory));
        let filled = pool::filled_percent(log);
        let chunks = pool::chunks(log);
        let (job, generation) = (Job::of(log, &text, server, framework), device::generation(&text));
        let is_of_core = |message: &Self| matches!(message.memory_space.as_deref(), Some("vmem" | "smem"));
        let with_names = |message: Self| {
            let is_of_core = is_of_core(&message);
            let of_name = || kernel.as_deref().map(block_sizes).unwrap_or_default();
            let listed = if is_of_core { sizes_of(&text, &message) } else { Vec::new() };
            let named_sizes = if is_of_core && listed.is_empty() { of_name() } else { listed };
            let is_of_kernel = is_of_core || message.form == Form::SharedMemory;
            let block_sizes = if is_of_kernel && named_sizes.is_empty() { in_call(&text) } else { named_sizes };
            let kernel_options = match message.memory_space.as_deref() {
                Some("vmem") => options[0].clone(),
                Some("smem") => options[1].clone(),
                _ if message.form == Form::SharedMemory => options[2].clone(),
                _ => Vec::new(),
            };
            let is_failure = message.form == Form::GpuRetry && is_before_error(&text, &message);
            let is_of_gpu = message.form == Form::Gpu || is_failure;
            let is_mosaic = message.verdict() == OomVerdict::Mosaic;
            let form = match is_of_gpu {
                true if is_of_autotuner(log, &message) => Form::GpuRetry,
                true => Form::Gpu,
                false => message.form,
            };
            let mut facts = message.facts;
            let bar = filled.filter(|_| is_of_gpu && !facts.has("pool_used"));
            facts.0.extend(bar.map(|percent| Fact { name: "filled", value: FactValue::Number(percent) }));
            let has_cause = facts.has("prefill") && log.contains("was the direct cause of the following exception");
            facts.0.extend(has_cause.then(|| Fact { name: "cause", value: FactValue::Text("exception".to_owned()) }));
            let error = (form == Form::GpuRetry).then(|| Error::other(&text)).flatten();
            facts.0.extend(error.map(|error| Fact { name: "error", value: FactValue::Text(error) }));
            let is_untiled = matches!(form.rule().judged, Judged::Elsewhere(_)) && message.entries.is_empty();
            let in_function = message.in_function.or(job.occasion);
            let product = message.used.as_ref().filter(|_| is_untiled).and_then(|used| Product::of(log, used));
            let mut job = job.clone();
            job.told = job.told.or_else(|| Told::of_warning(&text, message.requested_at.as_ref()?));
            Self {
                form,
                facts,
                in_function,
                framework,
                server,
                job,
                named: if is_of_core || is_of_gpu || is_mosaic || form == Form::SharedMemory {
                    named
                } else {
                    Named::default()
                },
                generation,
                product,
                chunks: if is_of_gpu { chunks.clone() } else { Vec::new() },
                kernel: kernel.clone().filter(|_| is_of_core),
                kernel_options,
                block_sizes,
                ..message
            }
        };
        in_order(messages.into_iter().map(with_names).collect()).ok_or_else(|| Error::of(&text))
    }
}

/// Whether only lines of an autotuner name the requested bytes: it tries algorithms, and goes on without those that find no
/// room for their workspace.
fn is_of_autotuner(log: &str, message: &Message) -> bool {
    /// Bytes of a line's prefix, which another program may have broken.
    const PREFIX: usize = 256;
    const TRIALS: [&str; 2] = ["_algorithm_picker.cc", "autotuner"];
    // The driver's own line comes before the autotuner's.
    const DRIVER: &str = "_driver.cc";
    let Some(used) = &message.used else { return false };
    let places = || log.match_indices(used.text()).map(|(at, _)| &log.as_bytes()[at.saturating_sub(PREFIX)..at]);
    let names = |before: &[u8], sign: &str| memmem::find(before, sign.as_bytes()).is_some();
    let is_trial = |before: &[u8]| TRIALS.iter().any(|sign| names(before, sign));
    places().any(is_trial) && places().all(|before| is_trial(before) || names(before, DRIVER))
}

/// Whether an error ends the program after an optional request.
fn is_before_error(text: &str, message: &Message) -> bool {
    let place = message.used.as_ref().and_then(|used| text.rfind(used.text()));
    // A notebook's traceback has the error's name in front.
    let is_error =
        |at| ["RuntimeError: ", "RuntimeError  ", "errors_impl."].iter().any(|sign| text[at..].contains(sign));
    !message.facts.has("pinned") && place.is_some_and(is_error)
}

/// Block sizes of the kernel in a message about a core's memory: the kernel whose stack doesn't fit, otherwise that of
/// the first entry.
fn sizes_of(text: &str, message: &Message) -> Vec<BlockSize> {
    let behind = text.split_once(STACK_OF).map(|(_, behind)| behind.split_once(FIGURES).map_or(behind, |(own, _)| own));
    let listed = || message.entries.first().and_then(|entry| entry.label.as_deref());
    behind.or_else(listed).map(block_sizes).unwrap_or_default()
}

/// The most important message, with the others; `messages` are in the order of the text.
pub(crate) fn in_order(mut messages: Vec<Message>) -> Option<Message> {
    messages.reverse();
    // Rematerialization's result is an estimate, which other warnings may contradict.
    let is_estimate = |message: &Message| message.form == Form::Rematerialization;
    messages.sort_by_key(|message| {
        let rule = message.form.rule();
        // A library that finds no room at all stops the job, whatever else was tried.
        let is_of_library = ["library", "handle"].iter().any(|fact| message.facts.has(fact));
        (
            Reverse(rule.level),
            !is_of_library,
            rule.is_vague(),
            // A server that refuses its options didn't run: another error of the text is of one that did.
            message.form == Form::CacheRoom && message.used.is_none(),
            is_estimate(message),
            message.is_retold,
            is_bare(message),
        )
    });
    // Of ranks that ask for as much, one line may be cut.
    let first = messages.first()?;
    let is_of_rank = |message: &Message| {
        let same = message.used.as_ref().zip(first.used.as_ref()).is_some_and(|(used, other)| used.is_same(other));
        message.form == first.form && same
    };
    let ranks = messages.iter().enumerate().filter(|(_, message)| is_of_rank(message));
    // The last of equals is the first of them here.
    let fullest = ranks.rev().max_by_key(|(_, message)| fullness(message)).map_or(0, |(at, _)| at);
    messages[..=fullest].rotate_right(1);
    let mut messages = messages.into_iter();
    let first = messages.next()?;
    Some(Message { others: messages.collect(), ..first })
}

/// Whether a message has at most the requested size: no limit, capacity or contents.
fn is_bare(message: &Message) -> bool {
    let figures = [&message.limit, &message.exceeded, &message.contiguous, &message.capacity];
    figures.into_iter().all(Option::is_none)
        && message.entries.is_empty()
        && message.usage.is_none()
        && ["free", "pool"].into_iter().all(|fact| message.facts.size(fact).is_none())
}

/// Number of last messages whose tracebacks are looked for, each in all of the text.
const FRAMED: usize = 64;

/// All messages of a cleaned text, in its order.
fn read_all(text: &str, is_log: bool, device: Device) -> Vec<Message> {
    let mut candidates = candidates::read(text);
    candidates.retain(|candidate| match candidate.rule.level {
        Level::Warning => !is_comment(text, candidate.start),
        _ => !candidate.facts.has("ended") || begins_line(text, candidate.start),
    });
    let tables: Vec<usize> =
        candidates.iter().filter(|candidate| candidate.rule.has_tables()).map(|candidate| candidate.start).collect();
    let mut messages: Vec<Message> = Vec::with_capacity(candidates.len());
    let framed = candidates.len().saturating_sub(FRAMED);
    for (number, candidate) in candidates.into_iter().enumerate() {
        let start = candidate.start;
        let after = tables.partition_point(|other| *other <= start);
        let chunk = start..tables.get(after).copied().unwrap_or(text.len());
        let before = if tables.first() == Some(&start) { &text[..start] } else { "" };
        let mut message = message(candidate, text, before, chunk, device);
        if number >= framed {
            set_frames(&mut message, text, start);
        }
        messages.push(message);
    }
    if tables.is_empty()
        && let Some(excerpt) = excerpt(text)
    {
        attach(excerpt, &mut messages, is_log);
    }
    let has_error = messages.iter().any(is_telling);
    messages.retain(|message| !has_error || message.form.level() < Level::Error || is_telling(message));
    // A warning about an optional request adds nothing beside an error, nor does a kernel that autotuning left out.
    // Nor does another resource beside memory.
    let is_lesser = |message: &Message| match message.form {
        Form::GpuRetry | Form::Resource => true,
        Form::SharedMemory => message.used.is_none() && message.limit.is_none(),
        _ => false,
    };
    let has_another = messages.iter().any(|message| is_telling(message) && !is_lesser(message));
    messages.retain(|message| !has_another || !is_lesser(message));
    let mut kept = Vec::with_capacity(messages.len());
    messages.into_iter().for_each(|message| add(&mut kept, message));
    kept
}

/// Whether a place is in a comment of Python: a warning in it is one that would come otherwise.
fn is_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at].trim_start().starts_with('#')
}

/// Whether a place begins its line, or follows the prefix of a log's line, `F0307 09:58:53.5 1 buffer.h:108] `.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', ']'])
}

/// Whether an error tells its cause: by figures, lists or tables, or by its form.
fn is_telling(message: &Message) -> bool {
    let rule = message.form.rule();
    let has_figures = message.used.is_some() || message.limit.is_some() || !message.entries.is_empty();
    match rule.judged {
        _ if rule.level < Level::Error || rule.is_vague() => false,
        Judged::Memory | Judged::RunTime | Judged::Kernel => has_figures || message.usage.is_some(),
        _ if message.form == Form::Lowering => false,
        _ => true,
    }
}

/// Adds tables and lists without a sentence of their own: to a GPU's message, or, as the compiler's log prints tables
/// of programs that fit, to a message of [`Form::Usage`]; otherwise as a message.
fn attach(excerpt: Message, messages: &mut Vec<Message>, is_log: bool) {
    let has_list = !excerpt.entries.is_empty();
    if let Some(message) = messages.iter_mut().find(|message| matches!(message.form, Form::Gpu | Form::Device)) {
        message.truncated |= excerpt.entries.first().is_some_and(Entry::is_of_the_tail);
        message.entries = excerpt.entries;
    } else if let Some(message) = messages.iter_mut().find(|message| message.form == Form::Usage && !has_list) {
        message.usage = excerpt.usage;
    } else if is_log && !has_list {
        messages.insert(0, Message { form: Form::Usage, ..excerpt });
    } else {
        messages.insert(0, excerpt);
    }
}

/// Number of last messages that a message is compared with.
const COMPARED: usize = 256;

/// Adds a message; of repetitions the fullest is kept, in the place of the last.
pub(crate) fn add(messages: &mut Vec<Message>, message: Message) {
    let from = messages.len().saturating_sub(COMPARED);
    match messages[from..].iter().position(|other| is_repeated(&message, other)) {
        None => messages.push(message),
        Some(at) => {
            let other = messages.remove(from + at);
            messages.push(if fullness(&message) >= fullness(&other) { message } else { other });
        }
    }
}

fn fullness(message: &Message) -> (usize, usize) {
    let figures = [&message.used, &message.limit, &message.exceeded].into_iter().flatten().count();
    (message.entries.len(), figures + usize::from(message.usage.is_some()) + message.facts.iter().count())
}

fn is_repeated(a: &Message, b: &Message) -> bool {
    let same = |a: &Option<PrintedSize>, b: &Option<PrintedSize>| match (a, b) {
        (Some(a), Some(b)) => a.is_same(b),
        _ => true,
    };
    // Two wordings with both figures in common are of one failure.
    let is_one = |a: &Option<PrintedSize>, b: &Option<PrintedSize>| {
        a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a.is_same(b))
    };
    let is_alike = a.form.level() == b.form.level() && is_one(&a.used, &b.used) && is_one(&a.limit, &b.limit);
    is_alike
        || a.form == b.form
            && same(&a.used, &b.used)
            && same(&a.limit, &b.limit)
            && same(&a.exceeded, &b.exceeded)
            && a.memory_space == b.memory_space
            && a.facts.agree(&b.facts.0)
}

/// Tables and lists without a headline.
fn excerpt(text: &str) -> Option<Message> {
    let mut message = Message::new(Form::Excerpt);
    read_tables(&mut message, text);
    let is_told = |entry: &Entry| entry.label.is_some() || entry.shape.is_some() || entry.operator.is_some();
    let is_list = message.entries.iter().any(is_told);
    if !is_list && message.requirement.is_none() && message.usage.is_none() {
        return None;
    }
    message.used = message.usage.as_ref().map(|usage| usage.total.clone());
    complete(&mut message);
    set_frames(&mut message, text, text.len());
    Some(message)
}

/// Reads the tables and lists behind a headline; returns whether the end of the lists was seen.
fn read_tables(message: &mut Message, text: &str) -> bool {
    let List { entries, start, ended } = list::read(text);
    let tables = &text[..start];
    message.usage = message.usage.take().or_else(|| Usage::read(tables));
    message.persistent = Persistent::read_all(tables);
    message.output = Output::read(tables);
    message.requirement = Requirement::read(tables);
    let is_closed = entries.last().is_some_and(|entry| entry.complete);
    message.entries.extend(entries);
    if message.memory_space.is_none() {
        message.memory_space = list::memory_space(text);
    }
    // Newer messages, with a code, have an ending; in others the last entry must be complete.
    ended || message.code.is_none() && is_closed
}

/// Sets what frames show of the error at `start`.
fn set_frames(message: &mut Message, text: &str, start: usize) {
    let frames = Frame::of_error(text, start, message.form.level() == Level::Error);
    // A killed process has no traceback, and its launcher's tells nothing.
    let is_of_form = |work: &Occasion| message.form == Form::Host || *work == Occasion::Capture;
    let of_log = || Occasion::of_log(&text[..start]).filter(is_of_form);
    // Without a traceback the last line before the message may be the call that failed.
    let of_call = || Occasion::of_last_call(&text[..start]).filter(|_| frames.is_empty());
    message.in_function = Occasion::of(&frames).or_else(of_log).or_else(of_call);
    // The backward pass is one call, which shows none of its operations.
    let is_operation = |frame: &&Frame| !frame.is_own() && frame.code.is_some() && !frame.file.contains("autograd");
    let is_of_torch = message.quote.as_ref().is_some_and(|quote| quote.contains("Tried to allocate"));
    let unrolled = frames.iter().find(|frame| frame.unrolled().is_some()).filter(|_| !is_of_torch);
    message.requested_at = frames.first().filter(is_operation).filter(|_| is_of_torch).or(unrolled).cloned();
    message.raised_at = frames.into_iter().find(Frame::is_own);
}

/// The message of a candidate. Its tables and lists are in `chunk`, or its tables in `before` if a log prints them first.
fn message(candidate: Candidate, text: &str, before: &str, chunk: Range<usize>, device: Device) -> Message {
    let Candidate { rule, mut facts, code, is_retold, is_open, start, end, first_end, .. } = candidate;
    let mut message = Message::new(rule.form);
    message.is_retold = is_retold;
    message.code = code.map(str::to_owned);
    message.memory_space = facts.take_text("space");
    message.used = facts.take_size("used");
    message.limit = facts.take_size("limit");
    message.exceeded = facts.take_size("exceeded");
    message.contiguous = facts.take_size("contiguous");
    message.capacity = facts.take_size("capacity");
    // A name without a full stop may be cut short.
    let is_named = rule.form != Form::Bound || text[end..].starts_with('.');
    message.module = facts.take_text("module").filter(|_| is_named);
    if rule.form == Form::Scoped {
        message.entries.extend(facts.take_text("instruction").map(|label| of_instruction(label, &message.used)));
    }
    message.facts = facts;
    let ending = ending(&text[start..end], &text[end..]);
    message.quote = Some(quote(&text[start..end + ending], message.used.as_ref().or(message.limit.as_ref())));
    if let Some(then) = rule.then {
        then(&mut Reader::new(text, first_end), &mut message);
    }
    let mut is_ended = false;
    if rule.has_tables() {
        is_ended = read_tables(&mut message, &text[chunk.clone()]);
        if message.usage.is_none() && message.entries.is_empty() {
            message.usage = Usage::read(before);
            message.requirement = message.requirement.take().or_else(|| Requirement::read(before));
        }
        if message.entries.is_empty() && message.form != Form::SparseCore {
            message.entries = loose_arrays::entries(&text[chunk]);
        }
    }
    let is_over =
        message.used.as_ref().zip(message.limit.as_ref()).is_some_and(|(used, limit)| used.low() > limit.high());
    if !is_open && rule.form == Form::Assignment && !is_over {
        message.form = Form::Usage;
    }
    if message.form == Form::Gpu && message.usage.is_none() {
        match device {
            // Before 2022 this wording was a TPU's, too.
            Device::Tpu => message.form = Form::RunTime,
            Device::Several if message.facts.has("ordinal") => message.form = Form::RunTime,
            Device::Unnamed => message.form = Form::Device,
            _ => {}
        }
    }
    complete(&mut message);
    message.truncated = !is_whole(&message, is_ended);
    message
}

/// The length of what closes a sentence: full stops, brackets, and quotation marks that it opened.
fn ending(sentence: &str, behind: &str) -> usize {
    let is_open = |sign: char| sentence.matches(sign).count() % 2 == 1;
    let closes = |sign: &char| match sign {
        ')' | '.' => true,
        '\'' | '"' => is_open(*sign),
        ']' => sentence.contains('['),
        _ => false,
    };
    behind.chars().take_while(closes).count()
}

/// Maximum characters of a quote.
const QUOTED: usize = 600;

/// The sentences of a message in one line; long ones begin at the line with `figure`.
fn quote(sentences: &str, figure: Option<&PrintedSize>) -> String {
    let at = figure.filter(|_| sentences.len() > QUOTED).and_then(|figure| sentences.find(figure.text()));
    let start = at.map_or(0, |at| sentences[..at].rfind('\n').map_or(0, |end| end + 1));
    in_one_line(&sentences[start..])
}

/// The words with a space between them, up to [`QUOTED`] characters.
fn in_one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() >= QUOTED {
            return line + " …";
        }
        line.extend((!line.is_empty()).then_some(' '));
        line.push_str(word);
    }
    line
}

/// The entry of an instruction `%NAME = SHAPE OPCODE(…), …, metadata={…}`.
fn of_instruction(label: String, used: &Option<PrintedSize>) -> Entry {
    let mut entry = Entry::new(Section::Allocations, None);
    if let Some((_, definition)) = label.split_once(" = ") {
        let length = shape_length(definition);
        let is_whole = length > 0 && definition[length..].starts_with(' ');
        entry.shape = is_whole.then(|| WrittenShape::new(definition[..length].to_owned()));
    }
    entry.operator = label.rfind("metadata={").and_then(|at| {
        let brace = at + "metadata=".len();
        let end = brackets_end(&label, brace)?;
        Some(Operator::new(label[brace + 1..end - 1].to_owned()))
    });
    entry.complete = used.is_some();
    entry.size.clone_from(used);
    entry.allocation_type = Some("scoped".to_owned());
    entry.label = Some(label);
    entry
}

/// Completes the memory space and the limit from other parts.
fn complete(message: &mut Message) {
    let rule = message.form.rule();
    if message.memory_space.is_none() {
        let capacity = message.limit.as_ref().filter(|_| matches!(rule.judged, Judged::Memory | Judged::Kernel));
        let sizeless = message.entries.iter().all(|entry| entry.size.is_none() && entry.is_scoped());
        let space =
            rule.memory.or_else(|| capacity.and_then(|limit| memory::of_capacity(limit.bytes()))).or_else(|| {
                match message.code.as_deref() {
                    Some("E1001") => Some("vmem"),
                    Some("E0100" | "E0101" | "E1000" | "E1002") => Some("hbm"),
                    _ => (sizeless && !message.entries.is_empty()).then_some("vmem"),
                }
            });
        message.memory_space = space.map(str::to_owned);
    }
    // If only the reservable size is printed, it is the free size.
    message.limit = message.limit.take().or_else(|| message.contiguous.clone());
    message.contiguous = message.contiguous.take().filter(|piece| message.limit.as_ref() != Some(piece));
}

/// Whether no part is known to be missing; `is_ended` tells whether the end of the lists was seen.
fn is_whole(message: &Message, is_ended: bool) -> bool {
    let known = |size: &Option<PrintedSize>| size.is_some();
    let (used, limit, exceeded) = (known(&message.used), known(&message.limit), known(&message.exceeded));
    match message.form {
        Form::Assignment => used && limit && exceeded && is_ended,
        Form::Scoped => used && limit && exceeded,
        Form::Bound => used && limit && (message.code.is_none() || message.module.is_some()),
        Form::Allocation => used && limit && message.entries.first().is_some_and(|entry| entry.complete),
        // A device's ordinal ends the sentence.
        Form::RunTime => used && (limit || message.facts.has("ordinal")),
        Form::EarlyAbort | Form::Cores | Form::SparseCore => used && limit,
        Form::Excerpt | Form::Other => false,
        _ => true,
    }
}
