//! Possible holders of a device's memory, where a message has the size of one request alone.

use crate::advice::finding::{
    ElsewhereFinding::{self, *},
    Holders,
};
use tilewise_oom::{Framework, Message, Reason, UntiledMachine};

/// The part of a GPU's memory from which on a pool has most of it.
const MOST_OF_POOL: f64 = 0.85;

/// The possible holders of the memory, without those that the text excludes.
pub(super) fn holders(message: &Message, program: bool) -> Holders {
    let (job, is_size) = (&message.job, program && message.reason() == Reason::Size);
    // A host prints the same words.
    let is_gpu = message.machine() == Some(UntiledMachine::Gpu) || job.gpu.is_some();
    let others = !is_size && is_gpu && !job.is_alone && !job.lists_no_process;
    if message.server.is_some() {
        return Holders { program, others, ..Holders::default() };
    }
    let is_most = |(_, part): &(String, String)| part.parse::<f64>().is_ok_and(|part| part >= MOST_OF_POOL);
    let is_whole = job.pool.is_fraction_in_vain || job.pool.fraction.as_ref().is_some_and(is_most);
    // One array of that size isn't the last of many.
    let is_one = program && message.asks_for_a_quarter();
    Holders {
        arrays: !(is_size || job.takes_nothing || is_one),
        program,
        pool: !is_size && is_gpu && !is_whole && message.framework != Some(Framework::Torch),
        others,
    }
}

/// The look at holders, if any is left.
pub(super) fn of_any(holders: Holders) -> Option<ElsewhereFinding> {
    (holders != Holders::default()).then_some(Holders(holders))
}
