//! A server's cache of keys and values: pages larger than it counted, and no room for one request.

use super::{Words, words::printed};
use crate::style::bytes;
use tilewise_audit::recommendation::finding::CacheFinding;
use tilewise_oom::{Message, Server};

pub(super) fn words(finding: CacheFinding) -> Words {
    match finding {
        CacheFinding::LongRequests(Some(length)) => Words::new(format!(
            "Serve requests of at most {length} tokens, or give the server more of the memory"
        ))
        .code(None, format!("vllm serve MODEL --max-model-len {length}")),
        CacheFinding::LongRequests(None) => Words::new(
            "Give the server more of the memory, serve shorter requests, or divide the model between more devices",
        )
        .code(None, "vllm serve MODEL --gpu-memory-utilization 0.95 --max-model-len 2048  # as long as your requests"),
        CacheFinding::Full => Words::new(
            "Run fewer requests at once (`--max-running-requests`), use smaller pages (`--page-size`), or give the pool more of the \
             memory (`--mem-fraction-static`)",
        )
        .task("Run fewer requests at once (`--max-running-requests`), or use smaller pages"),
        CacheFinding::Idle => Words::new(
            "Free the engine's cache of keys and values before its weights are replaced, and make it again afterwards: no request runs meanwhile, and the \
             cache is the largest part of what it holds. Weights that are put array by array, each in place of the old one, need little more; a smaller \
             part of the memory for the engine (`--gpu-memory-utilization`) only makes room at the cost of requests",
        )
        .task("Free the engine's KV cache before the weights are replaced, and make it anew")
        .code(None, "llm.sleep(level=1)  # or reset_kv_cache; then the weights; then llm.wake_up(), or reinitialize_kv_cache"),
        CacheFinding::NoPart { server, devices } => Words::new(format!(
            "Divide the model between more devices, or load weights of fewer bits: a larger `{}` leaves programs no memory, a smaller one leaves the \
             cache none. A second, smaller model, as for speculative decoding, takes its part of the same memory",
            server.memory_flag()
        ))
        .task("Divide the model between more devices, or load smaller weights")
        .code(None, more_devices(server, devices)),
        CacheFinding::WarmUp(_) => Words::new(
            "Look at the exception before it: the server reports whatever fails in its warm-up as a lack of memory. Take fewer tokens if the GPUs \
             are full as it warms up",
        )
        .task("Look at the exception before it: every failure has these words"),
        _ => Words::new(
            "Leave each device more KV heads: fewer devices in tensor parallelism for attention, the others in data parallelism; a \
             narrower type of the cache alone saves nothing, since its heads are padded further",
        )
        .code(
            None,
            "vllm serve MODEL --tensor-parallel-size 2 --data-parallel-size 4  # KV heads / 2 at most, of 8 devices",
        ),
    }
}

/// The flag that divides a server's model between twice its devices, or between a number that the reader has to choose.
pub(super) fn more_devices(server: Server, devices: Option<u64>) -> String {
    if server == Server::LlamaCpp {
        return format!("{} 1,1  # the parts of two GPUs", server.devices_flag());
    }
    let flag = server.devices_flag();
    match devices {
        Some(devices) => format!("{flag} {}  # devices of one model; {devices} now", devices.saturating_mul(2)),
        None => format!("{flag} N  # N: as many devices as the weights need"),
    }
}

pub(super) fn page(message: &Message) -> [String; 2] {
    let counted = message.facts.size("counted").map_or(0, |size| size.bytes());
    let used = message.used.as_ref().map_or(0, |size| size.bytes());
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let times = used as f64 / counted.max(1) as f64;
    let why = match (used.checked_rem(counted), used.checked_div(counted)) {
        (Some(0), Some(2)) => {
            " One KV head of bf16 on each device, padded to 2, or heads of 64 would make it twice as large."
        }
        (Some(0), Some(4)) => {
            " One KV head of an 8-bit type on each device, padded to 4, would make it four times as large; so would one of \
             bf16, padded to 2, with heads of 64."
        }
        (Some(0), Some(8)) => {
            " One KV head of an 8-bit type on each device, padded to 4, with heads of 64 would make it eight times as large."
        }
        _ => "",
    };
    [
        format!(
            "Warning: a page of the KV cache takes {used} bytes, {times:.2} times the {counted} that the server counted."
        ),
        format!(
            "Padding is the cause: {} of each page hold no data. On each device the kernel pads KV heads to what one word \
             packs (2 of bf16, 4 of an 8-bit type), and each head to 128 lanes.{why} The server counts again with the \
             larger page: the cache holds fewer tokens, and nothing failed.",
            bytes(used.saturating_sub(counted))
        ),
    ]
}

pub(super) fn full(message: &Message) -> [String; 2] {
    let figure = |name| message.facts.number(name);
    let wanted = figure("wanted").map(|wanted| format!(": {wanted} tokens wanted"));
    let left = figure("left").map(|left| format!(", {left} free"));
    let of_tokens = wanted.map(|wanted| wanted + &left.unwrap_or_default()).unwrap_or_default();
    [
        format!("The server's pool of the KV cache is full{of_tokens}."),
        "The pool was set aside when the server started; the device's memory did not run out. Tokens come in pages, and each running \
         request begins pages of its own: fewer free pages than requests are too few, whatever tokens they have room for."
            .to_owned(),
    ]
}

pub(super) fn room(message: &Message) -> [String; 2] {
    if let Some(tokens) = message.facts.number("prefill") {
        return [
            format!("A server's warm-up with {tokens} tokens failed: for lack of memory, or otherwise."),
            "It runs the largest program once before it sizes the cache, and reports any exception there as a lack of memory.".to_owned(),
        ];
    }
    if let Some(lacking) = message.facts.size("lacking") {
        return [
            format!("A server has no memory for its KV cache: {} are lacking.", printed(lacking)),
            "The cache gets what weights and the largest program leave of the server's part of the memory: they take more than all of it."
                .to_owned(),
        ];
    }
    let wanted = message.facts.number("wanted");
    let headline = match (&message.used, &message.limit) {
        (Some(used), Some(limit)) => format!(
            "The KV cache of one request of {} tokens takes {}, and {} are left for it.",
            wanted.map_or_else(|| "the longest".to_owned(), |wanted| wanted.to_string()),
            printed(used),
            printed(limit)
        ),
        _ if wanted.is_some() => {
            let length = message.facts.number("length").map(|length| format!("; it has room for {length}"));
            format!(
                "The KV cache has no room for one request of {} tokens{}.",
                wanted.unwrap_or_default(),
                length.unwrap_or_default()
            )
        }
        _ => "Weights, programs and other processes leave no memory for the KV cache.".to_owned(),
    };
    let cause = "The server sets the cache aside from what weights, programs and other processes leave of its part: for one request of \
                 full length that is too little.";
    [headline, cause.to_owned()]
}
