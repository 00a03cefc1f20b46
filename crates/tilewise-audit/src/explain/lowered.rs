//! Lower values of a job's settings: those that its devices divide, computed on the arrays that a setting sizes.

use crate::{
    advice::finding::{Lowered, Shrink},
    message::{Allocation, Listing},
};
use tilewise::Shape;
use tilewise_oom::{Framework, Message, PrintedSize, Section, Setting};

/// Percentage of what is needed that a setting sizes, at least, where no list shows it: weights and their state are the rest.
const SIZED: u128 = 80;

/// Of a reduction of at most this percentage, half of what is needed may be of other sizes.
const LITTLE: u64 = 25;

/// Bytes of the GPU with the most memory.
const LARGEST: u64 = 288 << 30;

/// The settings with lower values. A setting isn't lowered below a sample for each device.
pub(super) fn lowered(settings: Vec<Setting>, shrink: Option<Shrink>, listing: Listing<'_>) -> Vec<Lowered> {
    let is_possible = |setting: &Setting| parts(setting, listing).is_none_or(|parts| setting.value > parts);
    let settings = settings.into_iter().filter(is_possible);
    settings.map(|setting| Lowered { to: value(&setting, shrink, listing), setting }).collect()
}

/// The value that surely makes the difference, as far as the message tells; `None` if it doesn't.
fn value(setting: &Setting, shrink: Option<Shrink>, listing: Listing<'_>) -> Option<u64> {
    let message = listing.message;
    let parts = parts(setting, listing).unwrap_or(1);
    let Some(shrink) = shrink else {
        // Where the reduction is unknown, half is the usual next try.
        let to = setting.value / times_too_large(message).unwrap_or(2);
        return Some(to / parts * parts).filter(|to| *to > 0);
    };
    let share = share(setting, listing);
    let percent = match share {
        Some((sized, all)) => (u128::from(shrink.percent) * u128::from(all)).div_ceil(u128::from(sized.max(1))),
        None if shrink.percent <= LITTLE => u128::from(shrink.percent) * 2,
        None => (u128::from(shrink.percent) * 100).div_ceil(SIZED),
    };
    let left = |percent: u128| u64::try_from(u128::from(setting.value) * (100 - percent.min(100)) / 100).ok();
    // Nearly all of what is needed has to be the setting's then.
    let is_hopeless = share.is_none() && percent >= 100;
    let most = left(if is_hopeless { u128::from(shrink.percent) } else { percent })? / parts;
    let is_padded = message.server.is_some() && !setting.is_of_length();
    let whole = match share {
        // Servers pad tokens and requests to powers of two.
        _ if is_padded => leading(most, 1),
        Some(_) => rounded(setting, most),
        None if shrink.percent > LITTLE => leading(most, 1),
        None if setting.is_of_batch() => rounded(setting, most),
        None => leading(most, 3),
    };
    Some(whole * parts).filter(|to| *to > 0 && *to < setting.value)
}

/// A value rounded down to as many leading bits: of one bit, a power of two.
fn leading(value: u64, bits: u32) -> u64 {
    let rest = value.checked_ilog2().map_or(0, |power| (power + 1).saturating_sub(bits));
    value >> rest << rest
}

/// A value rounded down to one that is set in practice: a batch to rows of a TPU's tile, a length to its lanes.
fn rounded(setting: &Setting, value: u64) -> u64 {
    const SMALL_BATCHES: [u64; 7] = [12, 8, 6, 4, 3, 2, 1];
    let unit = match (setting.is_of_batch(), value) {
        (true, ..16) => return SMALL_BATCHES.into_iter().find(|batch| *batch <= value).unwrap_or(0),
        (true, _) => 8,
        (false, 256..) => 128,
        (false, 32..) => 16,
        _ => 1,
    };
    value / unit * unit
}

/// The parts of a batch of all devices, if it is divided: not a batch whose samples an array of one device has all.
fn parts(setting: &Setting, listing: Listing<'_>) -> Option<u64> {
    let job = &listing.message.job;
    let is_of_all = setting.is_of_batch() && !setting.is_of_each_device() && listing.message.server.is_none();
    // PyTorch/XLA has a process, and a batch of its own, for each device.
    let is_of_jax = matches!(listing.message.framework, Some(Framework::Jax) | None);
    let first = |row: &Allocation| row.shape.as_ref().and_then(|shape| shape.dimensions().first()?.bound());
    let is_whole = || listing.allocations.iter().any(|row| first(row) == Some(setting.value));
    let parts =
        job.devices.parts.or(job.devices.count).filter(|parts| *parts > 1 && setting.value.is_multiple_of(*parts));
    parts.filter(|_| is_of_all && is_of_jax && !is_whole())
}

/// The bounds by which a listed array shows a setting: its value, or a device's part of it.
pub(super) fn sizes(setting: &Setting, listing: Listing<'_>) -> Vec<u64> {
    let part = parts(setting, listing).map(|parts| setting.value / parts).filter(|part| *part > 1);
    [setting.value].into_iter().chain(part).collect()
}

/// Whether an array has the setting's size, or that of all samples together, as a bound.
fn is_sized(shape: &Shape, setting: &Setting, listing: Listing<'_>) -> bool {
    let sizes = sizes(setting, listing);
    let samples = listing.message.job.elements_of_samples();
    shape.dimensions().iter().filter_map(|dimension| dimension.bound()).any(|bound| {
        let is_part =
            || sizes.iter().any(|size| samples.is_some_and(|all| bound == all / (setting.value / size).max(1)));
        sizes.contains(&bound) || is_part()
    })
}

/// Bytes of listed arrays that a setting sizes, and of all that stand for: of the whole program, where the list has most of it and
/// the setting sizes what is missing; else of the list. `None` without such a list.
fn share(setting: &Setting, listing: Listing<'_>) -> Option<(u64, u64)> {
    let rows =
        listing.allocations.iter().filter(|row| row.entry.section == Section::Allocations && row.shape.is_some());
    let (mut sized, mut all) = (0_u64, 0_u64);
    for row in rows {
        all = all.saturating_add(row.taken_bytes());
        if row.shape.as_ref().is_some_and(|shape| is_sized(shape, setting, listing)) {
            sized = sized.saturating_add(row.taken_bytes());
        }
    }
    let budget = listing.message.budget();
    let program = budget.temporary_bytes.or(budget.used_bytes).unwrap_or_default();
    let is_most = all > program / 2 && budget.missing_bytes.is_some_and(|missing| sized > missing);
    (sized > 0).then_some((sized, if is_most { all.max(program) } else { all }))
}

/// How often a request exceeds the memory that is free, or else all of the device's, rounded up to a power of two.
fn times_too_large(message: &Message) -> Option<u64> {
    let asked = message.used.as_ref().map(PrintedSize::bytes)?;
    let left = message.warned_of_rematerialization().and_then(|warning| warning.limit.as_ref());
    let told = left
        .or(message.facts.size("free"))
        .or(message.capacity.as_ref())
        .map(PrintedSize::bytes)
        .filter(|free| *free > 0);
    // No device has more.
    let free = told.or_else(|| message.device_bytes()).unwrap_or(LARGEST);
    asked.div_ceil(free).checked_next_power_of_two().filter(|times| *times > 2)
}
