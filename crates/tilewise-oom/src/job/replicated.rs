//! Arrays of a state that a log shows whole on each device.

use crate::text::size::PrintedSize;

/// The line that shows the largest array as replicated, in the words of frameworks that print shardings:
/// `exp_avg (1600, 4800) float32 sharding={replicated}`, `dev=2.936 GiB .params.embed spec=P(None, None)`.
pub(super) fn replicated(text: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::replicated;

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
}
