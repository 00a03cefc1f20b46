//! Changes that a job made already, as its text shows them: they aren't advised.

/// A change that the text shows as made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done {
    /// Layers are recomputed, and save nothing else.
    Recomputed,
    /// PyTorch's allocator joins free pieces.
    ExpandableSegments,
    /// A GPU's memory may overflow into the host's.
    UnifiedMemory,
    /// Something cuts the graph of a lazy framework, such as `xm.mark_step()`.
    CutGraph,
    /// Attention is blockwise.
    BlockwiseAttention,
    /// Weights or a state are divided between devices.
    Sharded,
}

/// Signs of each, in settings, commands and code.
const SIGNS: [(Done, &[&str]); 6] = [
    (
        Done::Recomputed,
        &[
            "remat_policy=full",
            "remat_policy: full",
            "remat_policy='full'",
            "nothing_saveable",
            "NOTHING_SAVEABLE",
            "gradient_checkpointing=True",
            "gradient_checkpointing true",
            "gradient_checkpointing: true",
            "gradient_checkpointing_enable(",
            "enable_gradient_checkpointing(",
            "activation_checkpointing=True",
            "activation_checkpointing: True",
        ],
    ),
    (Done::ExpandableSegments, &["expandable_segments:True", "expandable_segments: True"]),
    (Done::UnifiedMemory, &["TF_FORCE_UNIFIED_MEMORY"]),
    (
        Done::Sharded,
        &[
            "fsdp",
            "FSDP",
            "FullySharded",
            "fully_shard",
            "zero_stage",
            "zero3",
            "ZeRO-3",
            "deepspeed",
            "DeepSpeed",
            "ModelParallel(",
        ],
    ),
    (Done::BlockwiseAttention, &["flash_attention(", "splash_attention", "make_flash_attention"]),
    (
        Done::CutGraph,
        &["mark_step", "torch_xla.sync", "torch_xla.step", "optimizer_step", "DeviceLoader", "ParallelLoader"],
    ),
];

/// Words before a sign with which a message tells to try it.
const HINT: &str = "try setting PYTORCH_CUDA_ALLOC_CONF=";

impl Done {
    /// The changes that a text shows.
    pub(crate) fn all(text: &str) -> Vec<Self> {
        let is_made = |sign: &&str| text.match_indices(*sign).any(|(at, _)| !text[..at].ends_with(HINT));
        let made = SIGNS.iter().filter(|(done, signs)| {
            let is_told = *done == Self::Recomputed && is_on(text, "activation checkpointing");
            (is_told || signs.iter().any(is_made)) && (*done != Self::CutGraph || !cuts_now_and_then(text, signs))
        });
        made.map(|(done, _)| *done).collect()
    }
}

/// Whether a list of options in prose has this one on: `compile True, activation checkpointing and offloading True`.
fn is_on(text: &str, option: &str) -> bool {
    /// Words up to its value.
    const WORDS: usize = 3;
    text.match_indices(option).any(|(at, _)| {
        let behind = text[at + option.len()..].split_whitespace().take(WORDS);
        behind
            .map(|word| word.trim_end_matches(['.', ',']))
            .any(|word| ["True", "true", "on", "enabled"].contains(&word))
    })
}

/// Whether code of a text cuts the graph only under a condition on the number of the step, as where gradients are accumulated:
/// `if (step + 1) % 8 == 0:`.
fn cuts_now_and_then(text: &str, signs: &[&str]) -> bool {
    /// Lines between a condition and a cut.
    const NEAR: usize = 8;
    let lines: Vec<&str> = text.lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let is_quoted = |at: usize| lines[at].contains("File \"") || at > 0 && lines[at - 1].contains("File \"");
    let cuts = (0..lines.len()).filter(|at| signs.iter().any(|sign| lines[*at].contains(sign)) && !is_quoted(*at));
    let mut conditions = cuts.map(|at| {
        let before = lines[at.saturating_sub(NEAR)..at].iter().rev();
        let outer =
            before.into_iter().find(|line| !line.trim().is_empty() && indentation(line) < indentation(lines[at]));
        outer.is_some_and(|line| line.trim_start().starts_with("if ") && line.contains('%'))
    });
    conditions.next().is_some_and(|first| first && conditions.all(|other| other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_of_the_message_is_no_setting() {
        let hint = "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation";
        assert_eq!(Done::all(hint), []);
        let set = format!("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n{hint}");
        assert_eq!(Done::all(&set), [Done::ExpandableSegments]);
        assert_eq!(Done::all("remat_policy=full xm.mark_step()"), [Done::Recomputed, Done::CutGraph]);
        let prose = "compile True, activation checkpointing and offloading True.";
        assert_eq!((Done::all(prose), Done::all("activation checkpointing off")), (vec![Done::Recomputed], vec![]));
        let rare = "loss.backward()\nif step % 8 == 0:\n    xm.mark_step()\n";
        assert_eq!(Done::all(rare), []);
        assert_eq!(Done::all(&format!("{rare}xm.mark_step()")), [Done::CutGraph]);
    }
}
