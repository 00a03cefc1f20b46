//! An array on its way from one sharding to another.

use crate::entry::WrittenShape;
use crate::message::Message;
use crate::text::instruction::{brackets_end, shape_length};

/// The array in a warning about an involuntary full rematerialization: XLA's SPMD partitioner found no way from one
/// sharding to another, so each device makes the whole array.
///
/// The instruction is printed after partitioning, so its shape is that on each device: XLA prints
/// `f32[8,16,4]` of an array `[16,16,16]` with the sharding `{devices=[2,1,4]<=[4,2]T(1,0)}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resharding {
    /// The name of the instruction, `gather.1`.
    pub instruction: String,
    /// Its shape on each device, without a layout.
    pub shape: String,
    /// Bytes of the array on each device.
    pub device_bytes: u64,
    /// Bytes of the whole array, which each device holds for a moment; `None` if the sharding doesn't show them.
    pub whole_bytes: Option<u64>,
    /// Bytes that each device would send to each other one in an all-to-all, which needs no whole array; `None` if the
    /// sharding doesn't show them.
    pub piece_bytes: Option<u64>,
    /// Number of parts of each dimension in the wanted sharding; `None` if it doesn't show them.
    pub to_parts: Option<Vec<u64>>,
}

impl Message {
    /// The array that is replicated between two shardings; `None` for other messages, and where the instruction isn't
    /// printed.
    ///
    /// ```
    /// let text = "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding \
    ///             {devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} efficiently for HLO operation \
    ///             %add.2 = f32[8,16,4]{2,1,0} add(%param, %param). As the last resort, SPMD will replicate the tensor";
    /// let resharding = tilewise_oom::Message::parse(text)?.resharding().expect("an instruction");
    /// assert_eq!((&*resharding.instruction, &*resharding.shape), ("add.2", "f32[8,16,4]"));
    /// assert_eq!((resharding.device_bytes, resharding.whole_bytes), (2048, Some(16384)));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn resharding(&self) -> Option<Resharding> {
        let (name, definition) = self.facts.text("instruction")?.split_once(" = ")?;
        let shape = WrittenShape::new(definition[..shape_length(definition)].to_owned());
        let device_bytes = shape.logical_bytes()?;
        let rank = shape.parsed.as_ref().ok()?.dimensions().len();
        let parts = |field| parts_of_dimensions(self.facts.text(field)?, rank);
        let all = |parts: &Vec<u64>| parts.iter().try_fold(1_u64, |product, parts| product.checked_mul(*parts));
        let (from, to_parts) = (parts("from"), parts("to"));
        Some(Resharding {
            instruction: name.trim_start_matches(['%', ' ']).to_owned(),
            shape: shape.parsed.ok()?.without_layout().to_string(),
            device_bytes,
            whole_bytes: from.as_ref().and_then(all).and_then(|parts| device_bytes.checked_mul(parts)),
            piece_bytes: to_parts.as_ref().and_then(all).map(|parts| device_bytes.div_ceil(parts)),
            to_parts,
        })
    }
}

/// Number of parts of each dimension of an array of this rank in a sharding: `[2,1,4]`. Numbers beyond the rank are
/// copies.
fn parts_of_dimensions(sharding: &str, rank: usize) -> Option<Vec<u64>> {
    if sharding.starts_with("{replicated}") || sharding.starts_with("{maximal") {
        return Some(vec![1; rank]);
    }
    let (_, tiles) = sharding.split_once("devices=")?;
    let tiles = tiles.get(1..brackets_end(tiles, 0)?.checked_sub(1)?)?;
    let numbers = tiles.split(',').take(rank).map(|tile| tile.trim().parse::<u64>().ok());
    let parts: Vec<u64> = numbers.collect::<Option<_>>()?;
    let all = parts.iter().try_fold(1_u64, |product, parts| product.checked_mul(*parts))?;
    (all > 0 && parts.len() == rank).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::parts_of_dimensions;

    #[test]
    fn shardings_divide_dimensions() {
        for (sharding, rank, wanted) in [
            ("{devices=[8,1]<=[8]}", 2, Some(vec![8, 1])),
            ("{devices=[1,1,2,2]<=[4] last_tile_dim_replicate}", 3, Some(vec![1, 1, 2])),
            ("{replicated}", 2, Some(vec![1, 1])),
            ("{maximal device=0}", 2, Some(vec![1, 1])),
            ("{devices=[0,1]0,1}", 2, None),
            ("{devices=[99999999999,99999999999]}", 2, None),
            ("{devices=}", 1, None),
            ("{manual}", 1, None),
        ] {
            assert_eq!(parts_of_dimensions(sharding, rank), wanted, "{sharding}");
        }
    }
}
