//! The settings of a server.

use super::told;
use crate::server::Server;
use crate::text::size::PrintedSize;

/// The settings of a server, as far as a text shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Serving {
    /// The percentage of the memory that its weights and cache may fill, if the text sets one.
    pub memory_percent: Option<u64>,
    /// The lowest percentage of that part of the memory that a sentence tells to have failed, too.
    pub memory_percent_in_vain: Option<u64>,
    /// Bytes of the GPU that its log gives: `total_gpu_memory (8.00GiB)`.
    pub gpu_bytes: Option<u64>,
    /// The number of devices between which it divides the model, if the text sets one.
    pub devices: Option<u64>,
    /// Tokens of a page of its cache, if the text sets them.
    pub page: Option<u64>,
    /// Tokens of the longest request, if the text sets them.
    pub longest: Option<u64>,
    /// Requests that it runs at once, if the text sets them.
    pub requests: Option<u64>,
    /// Whether llama.cpp failed to allocate the buffers of its computation, which a smaller batch makes smaller.
    pub lacks_compute_buffer: bool,
    /// Layers of a model of llama.cpp's that lie on GPUs.
    pub gpu_layers: Option<u64>,
}

impl Serving {
    pub(crate) fn of(log: &str, text: &str, server: Option<Server>) -> Self {
        Self {
            memory_percent: server.and_then(|server| told::percent(text, server.memory_flag())),
            memory_percent_in_vain: server.and_then(|server| told::percent_in_vain(text, server.memory_flag())),
            gpu_bytes: ["total_gpu_memory (", "total_gpu_memory="]
                .iter()
                .find_map(|name| size_of(log.split_once(name)?.1)),
            devices: server.and_then(|server| {
                let short = if server == Server::Vllm { "-tp" } else { "--tp" };
                told::count(text, server.devices_flag()).or_else(|| of_short(text, short))
            }),
            page: server.and_then(|server| told::count(text, server.page_flag()?)),
            longest: server.and_then(|server| told::count(text, server.length_flag())),
            requests: server.and_then(|server| told::count(text, server.requests_flag())),
            lacks_compute_buffer: log.contains("failed to allocate compute buffers"),
            gpu_layers: gpu_layers(log),
        }
    }
}

/// The number behind a short flag, a word of its own: `--tp 8`.
fn of_short(text: &str, flag: &str) -> Option<u64> {
    let mut words = text.split([' ', '\n', '\t', '=']).skip_while(|word| *word != flag);
    words.nth(1)?.parse().ok().filter(|devices| *devices > 0)
}

fn size_of(text: &str) -> Option<u64> {
    /// Bytes of a figure with its unit.
    const LONGEST: usize = 16;
    let end = text.find([')', ' ', '\n']).filter(|end| *end <= LONGEST)?;
    PrintedSize::figure(&text[..end]).map(|(size, _)| size.bytes())
}

/// The layers of llama.cpp's line `offloaded 65/65 layers to GPU`.
fn gpu_layers(log: &str) -> Option<u64> {
    let (_, behind) = log.rsplit_once("offloaded ")?;
    let (layers, rest) = behind.split_once('/')?;
    layers.parse().ok().filter(|layers| *layers > 1 && rest.lines().next().is_some_and(|line| line.contains("layers")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flags() {
        let of = |text: &str| of_short(text, "--tp");
        assert_eq!((of("serve --tp 8 x"), of("--tp=2"), of("--tps 8"), of("--tp")), (Some(8), Some(2), None, None));
    }

    #[test]
    fn layers_on_gpus() {
        assert_eq!(gpu_layers("llm_load_tensors: offloaded 65/65 layers to GPU"), Some(65));
        assert_eq!((gpu_layers("offloaded 1/2 files"), size_of("8.00GiB)"), size_of("8")), (None, Some(8 << 30), None));
    }
}
