//! Kernels of libraries and servers: the user's options that reach them, with values by the sizes that the message prints.

use crate::{
    advice::finding::{BlockFinding, ChangedOption},
    message::Listing,
};
use tilewise_oom::{KernelOption, Message, OptionChange, PrintedSize, Server, Setting};

/// The least that a block has along lanes.
const LANES: u64 = 128;

/// Tokens of the largest page that servers take.
const LARGEST_PAGE: u64 = 1024;

/// The options of the library whose kernel lacks memory.
pub(super) fn options(listing: Listing<'_>) -> Option<BlockFinding> {
    let message = listing.message;
    let is_smem = message.memory_space.as_deref() == Some("smem");
    if let Some(server) = message.server {
        return if is_smem { pages(server, listing) } else { block_of_pages(server, listing) };
    }
    let Some(first) = message.kernel_options.first() else {
        return own_blocks(listing).filter(|_| !is_smem);
    };
    let squares = squares(message).filter(|_| is_smem);
    let options = message.kernel_options.iter().map(|option| {
        let to = match (option.change, option.value) {
            (OptionChange::Raise, Some(now)) => squares.as_ref().and_then(|(times, _)| now.checked_mul(*times)),
            (OptionChange::Lower, Some(now)) => Some((now / parts_that_fit(message)).max(LANES)).filter(|to| *to < now),
            _ => None,
        };
        let KernelOption { name, value, change, .. } = option.clone();
        ChangedOption { name, from: value, change, to }
    });
    let options = options.collect();
    Some(BlockFinding::Options {
        library: first.library.to_owned(),
        options,
        product: squares.map(|(_, product)| product),
    })
}

/// The job's own options for blocks, where neither the kernel nor its blocks are known otherwise.
fn own_blocks(listing: Listing<'_>) -> Option<BlockFinding> {
    let message = listing.message;
    let is_known = message.kernel.is_some() || message.named.own_kernel || !listing.allocations.is_empty();
    let parts = parts_that_fit(message);
    let lowered = |setting: &Setting| ChangedOption {
        name: setting.name.clone(),
        from: Some(setting.value),
        change: OptionChange::Lower,
        to: Some((setting.value / parts).max(LANES)).filter(|to| *to < setting.value),
    };
    let options: Vec<ChangedOption> = message.job.blocks.iter().filter(|_| !is_known).map(lowered).collect();
    (!options.is_empty()).then_some(BlockFinding::Options { library: String::new(), options, product: None })
}

/// The factor of both blocks with which tables of their pairs, (length / block)² elements, take half of the memory or less; and
/// that product, where it is exactly what is needed.
fn squares(message: &Message) -> Option<(u64, (Vec<u64>, u64))> {
    let (used, limit) = (message.used.as_ref()?.bytes(), message.limit.as_ref()?.bytes());
    let blocks = |name: &str| message.kernel_options.iter().find(|option| option.name.ends_with(name))?.value;
    let (queries, keys) = (blocks("block_q")?, blocks("block_kv")?);
    let length = message.job.settings.iter().find(|setting| setting.is_of_length())?.value;
    let (rows, columns) = (length.div_ceil(queries.max(1)), length.div_ceil(keys.max(1)));
    let element = [1, 2, 4]
        .into_iter()
        .find(|element| rows.checked_mul(columns).and_then(|all| all.checked_mul(*element)) == Some(used))?;
    let times = (1..=4).map(|power| 1_u64 << power).find(|times| used / (times * times) <= limit / 2)?;
    Some((times, (vec![rows, columns], element)))
}

/// Larger pages, where the largest table of a server's kernel has an entry for each page of all requests.
fn pages(server: Server, listing: Listing<'_>) -> Option<BlockFinding> {
    let message = listing.message;
    let serving = &message.job.serving;
    let (page, longest, requests) = (serving.page?, serving.longest?, serving.requests?);
    let (bounds, taken) = largest(listing)?;
    let of_request = longest.div_ceil(page.max(1));
    let entries = bounds.iter().try_fold(1_u64, |all, bound| all.checked_mul(*bound))?;
    (entries == of_request.checked_mul(requests)?).then_some(())?;
    let missing = message.budget().missing_bytes?;
    let times = (1..=6).map(|power| 1_u64 << power).find(|times| taken - taken / times > missing + missing / 8)?;
    let to = page.checked_mul(times).filter(|to| *to <= LARGEST_PAGE)?;
    let option = ChangedOption {
        name: server.page_flag()?.to_owned(),
        from: Some(page),
        change: OptionChange::Raise,
        to: Some(to),
    };
    let product = Some((vec![requests, of_request], taken / entries.max(1)));
    Some(BlockFinding::Options { library: server.as_str().to_owned(), options: vec![option], product })
}

/// Smaller pages, shorter requests or more devices, where the largest array of a server's attention is a block of pages: two
/// buffers × tokens × heads of keys and values × their size, the tokens by pages where the kernel's name has no number of them.
fn block_of_pages(server: Server, listing: Listing<'_>) -> Option<BlockFinding> {
    /// More heads than values of 8 bits in a register's row: a dimension of so few holds these.
    const PACKED: u64 = 4;
    let message = listing.message;
    let serving = &message.job.serving;
    let is_paged = |kernel: &str| kernel.contains("ragged_paged_attention") || kernel.starts_with("RPA");
    let (bounds, taken) = largest(listing).filter(|_| message.kernel.as_deref().is_some_and(is_paged))?;
    let missing = message.budget().missing_bytes?;
    let times = (1..=4).map(|power| 1_u64 << power).find(|times| taken - taken / times >= missing)?;
    let pages =
        message.block_sizes.iter().find(|each| each.name == "bkvp").map(|each| each.size).filter(|pages| *pages > 0);
    let option = |name: &str, from: Option<u64>, change, to| ChangedOption { name: name.to_owned(), from, change, to };
    let (shorter, heads) = match (<[u64; 5]>::try_from(&bounds[..]), pages) {
        // The number of pages stays.
        (Ok([2, tokens, heads, ..=PACKED, _]), Some(pages)) => {
            let page = Some(tokens / pages)
                .filter(|page| page * pages == tokens && serving.page.is_none_or(|set| set == *page))?;
            let to = Some(page / times).filter(|to| *to > 0)?;
            (option(server.page_flag()?, Some(page), OptionChange::Lower, Some(to)), heads)
        }
        // A block has no more tokens than the longest request.
        (Ok([2, pages, page, heads, _]), None) if heads > PACKED => {
            let to = pages.checked_mul(page)? / times;
            let is_lower = to >= LANES && serving.longest.is_none_or(|longest| longest > to);
            is_lower.then_some(())?;
            (option(server.length_flag(), serving.longest, OptionChange::Lower, Some(to)), heads)
        }
        _ => return None,
    };
    let more = serving.devices.and_then(|now| now.checked_mul(times)).filter(|more| *more <= heads);
    let devices = option(server.devices_flag(), serving.devices, OptionChange::Raise, more);
    let options = [shorter]
        .into_iter()
        .chain(more.or(Some(heads).filter(|_| serving.devices.is_none())).map(|_| devices))
        .collect();
    let element = taken / bounds.iter().product::<u64>().max(1);
    Some(BlockFinding::Options { library: server.as_str().to_owned(), options, product: Some((bounds, element)) })
}

/// The bounds of the largest listed array, and its bytes; the kernel itself is listed as all that it needs.
fn largest(listing: Listing<'_>) -> Option<(Vec<u64>, u64)> {
    let used = listing.message.used.as_ref().map(PrintedSize::bytes);
    let rows = listing.allocations.iter().filter(|row| row.shape.is_some() && Some(row.taken_bytes()) != used);
    let row = rows.max_by_key(|row| row.taken_bytes())?;
    let bounds: Option<Vec<u64>> = row.shape.as_ref()?.dimensions().iter().map(|dimension| dimension.bound()).collect();
    let elements = |bounds: &[u64]| bounds.iter().try_fold(1_u64, |all, bound| all.checked_mul(*bound));
    let bounds = bounds.filter(|bounds| elements(bounds).is_some_and(|elements| elements > 0))?;
    Some((bounds, row.taken_bytes())).filter(|(_, taken)| *taken > 0)
}

/// The value of another implementation, for a kernel of a GPU.
pub(super) fn implementation(message: &Message) -> Option<&KernelOption> {
    message.kernel_options.iter().find(|option| matches!(option.change, OptionChange::Set(_)))
}

/// The divisor of the blocks, a power of two, so that they surely fit: memory grows at least in proportion to blocks.
pub(super) fn parts_that_fit(message: &Message) -> u64 {
    let figures = message.used.as_ref().zip(message.limit.as_ref()).map(|(used, limit)| (used.bytes(), limit.bytes()));
    let times = figures.map_or(2, |(used, limit)| used.div_ceil(limit.max(1)));
    times.clamp(2, 1 << 16).next_power_of_two()
}
