//! Little of the peak is padding, and no other rule found anything: what the memory holds is data.

use super::{Proposal, Rule, naming::at_line};
use crate::{
    program_model::{BufferChanges, ProgramModel},
    recommendation::{Change, Target},
};

/// Below this part of what is alive at the peak, padding isn't the cause.
const LITTLE: f64 = 0.1;

pub(crate) struct LittlePadding;

impl Rule for LittlePadding {
    fn propose<'m>(&self, program: &ProgramModel<'m>) -> Vec<Proposal<'m>> {
        let at_peak = program.arrays.iter().filter(|array| array.is_at_peak);
        let Some(largest) = at_peak.max_by_key(|array| array.bytes).filter(|_| program.padding_share < LITTLE) else {
            return Vec::new();
        };
        let sentence = format!(
            "Padding is not what takes this program's memory: the largest array, {}{}, is {} % of it, and holds data",
            largest.shape,
            at_line(&largest.instruction),
            largest.bytes.saturating_mul(100) / program.total_bytes.max(1)
        );
        vec![Proposal {
            change: Change::None,
            target: Target::Value,
            about: largest.clone(),
            buffers: BufferChanges::default(),
            is_bound: false,
            sentence,
            snippet: None,
        }]
    }
}
