//! An array on its way from one sharding to another.

use crate::entry::WrittenShape;
use crate::message::Message;
use crate::text::instruction::{brackets_end, shape_length};
use crate::text::size::PrintedSize;

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

/// The line that shows the largest array as replicated, in the words of frameworks that print shardings:
/// `exp_avg (1600, 4800) float32 sharding={replicated}`, `dev=2.936 GiB .params.embed spec=P(None, None)`.
pub(crate) fn replicated(text: &str) -> Option<String> {
    /// A line of a log.
    const LONGEST: usize = 400;
    /// Elements, or bytes, from which on an array is worth to be divided.
    const LEAST: u64 = 1 << 20;
    // Compilers print shardings of instructions.
    let is_of_program = |line: &str| line.contains(" = ") || line.contains('%') || line.contains("SPMD");
    let is_whole = |line: &&str| line.len() <= LONGEST && !is_of_program(line) && is_replicated(line);
    let sized = text.lines().filter(is_whole).map(|line| (extent(line), line));
    let (_, line) = sized.filter(|(extent, _)| *extent >= LEAST).max_by_key(|(extent, _)| *extent)?;
    Some(line.trim().to_owned())
}

/// Whether a line has a sharding that divides nothing.
fn is_replicated(line: &str) -> bool {
    let is_none = |spec: &str| spec.split(',').all(|axis| matches!(axis.trim(), "" | "None"));
    let mut specs =
        ["PartitionSpec(", "spec=P("].into_iter().filter_map(|name| line.split_once(name)?.1.split_once(')'));
    line.contains("sharding={replicated}")
        || line.contains("sharding: {replicated}")
        || specs.any(|(spec, _)| is_none(spec))
}

/// The largest size in bytes, or number of elements, that a line names.
fn extent(line: &str) -> u64 {
    let numbers = line.match_indices(|c: char| c.is_ascii_digit()).filter(|(at, _)| {
        !line[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '.' || before == '_')
    });
    let sizes = numbers.filter_map(|(at, _)| PrintedSize::figure(&line[at..])).map(|(size, _)| size.bytes());
    let shapes = line.match_indices(['(', '[']).filter_map(|(at, _)| {
        let (bounds, _) = line[at + 1..].split_once([')', ']'])?;
        bounds
            .split(',')
            .map(|bound| bound.trim().parse::<u64>().ok())
            .try_fold(1, |all: u64, bound| all.checked_mul(bound?))
    });
    sizes.chain(shapes).max().unwrap_or(0)
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
    use super::{parts_of_dimensions, replicated};

    #[test]
    fn lines_that_show_a_replicated_array() {
        let line = "exp_avg  h.0.weight  xla:0 (1600, 4800) float32 sharding={replicated}";
        assert_eq!(replicated(&format!("weight {{devices=[8,1]}}\n  {line}\n")).as_deref(), Some(line));
        assert!(replicated("mu: embedding f32[152064,3584] sharding=NamedSharding(spec=PartitionSpec())").is_some());
        let largest = "dev=2.936 GiB .params.embed  spec=P(None, None)";
        let others = "dev=0.2 GiB .params.norm  spec=P(None,)\ndev=0.3 GiB .params.head  spec=P('data', 'model')";
        assert_eq!(replicated(&format!("{others}\n{largest}")).as_deref(), Some(largest));
        // An instruction, a scalar, a divided array.
        for none in [
            "%p = f32[8,16] parameter(0), sharding={replicated}",
            "count () int32 sharding={replicated}",
            "weight (1600, 4800) float32 sharding={devices=[8,1]0,1}",
        ] {
            assert_eq!(replicated(none), None, "{none}");
        }
    }

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
