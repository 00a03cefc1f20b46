//! Texts that are no TPU's message of memory, but say so: messages of GPUs and hosts, and XLA's other error codes.

use crate::code::{is_memory, meaning_of_code};
use crate::message::{Form, Message};
use crate::reader::{Reader, find_words};

/// Words that only messages of GPUs and hosts have, and behind which they may name the size that was asked for.
const ELSEWHERE: [&str; 16] = [
    "Out of memory while trying to allocate",
    "Out of memory allocating",
    "CUDA out of memory. Tried to allocate",
    "HIP out of memory. Tried to allocate",
    "MPS backend out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "hipErrorOutOfMemory",
    "torch.cuda.OutOfMemoryError",
    "failed to allocate memory on GPU",
    "OOM when allocating tensor",
    "by allocator GPU_",
    "not enough memory: you tried to allocate",
    "Unable to allocate",
    "std::bad_alloc",
    "CUDNN_STATUS_ALLOC_FAILED",
    "oom-kill",
];

const EXHAUSTED: [&str; 4] =
    ["RESOURCE_EXHAUSTED", "Resource exhausted:", "ResourceExhaustedError", "XLA:TPU compile permanent error"];

pub(crate) fn read(text: &str) -> Option<Message> {
    not_tpu(text).or_else(|| coded(text)).or_else(|| {
        let is_exhausted = EXHAUSTED.iter().any(|words| text.contains(words));
        is_exhausted.then(|| Message::new(Form::Other))
    })
}

fn not_tpu(text: &str) -> Option<Message> {
    let (_, end) = ELSEWHERE.iter().filter_map(|words| find_words(text, 0, words)).min()?;
    let mut message = Message::new(Form::NotTpu);
    let mut reader = Reader::new(text, end);
    // `2.00 GiB`, `294970604000 bytes`.
    let plain = |reader: &mut Reader<'_>| reader.plain_size().filter(|_| reader.eat("bytes"));
    let mut ahead = reader;
    message.used = plain(&mut ahead).or_else(|| reader.size());
    message.truncated = false;
    Some(message)
}

/// `E2003: CompileTimeMosaicUnprovenMemoryAccessAlignment: …`
fn coded(text: &str) -> Option<Message> {
    let code = text.split_whitespace().find_map(|word| {
        let code = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_followed = word.contains(':');
        (is_followed && meaning_of_code(code).is_some()).then_some(code)
    })?;
    let mut message = Message::new(Form::Other);
    message.code = Some(code.to_owned());
    message.truncated = is_memory(code);
    if is_memory(code) {
        message.memory_space = match code {
            "E1001" => Some("vmem".to_owned()),
            "E3000" | "E3001" => None,
            _ => Some("hbm".to_owned()),
        };
    }
    Some(message)
}
