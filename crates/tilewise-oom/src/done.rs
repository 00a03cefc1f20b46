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
}

/// Signs of each, in settings, commands and code.
const SIGNS: [(Done, &[&str]); 5] = [
    (
        Done::Recomputed,
        &[
            "remat_policy=full",
            "remat_policy: full",
            "remat_policy='full'",
            "nothing_saveable",
            "gradient_checkpointing=True",
            "gradient_checkpointing true",
            "gradient_checkpointing: true",
            "gradient_checkpointing_enable(",
        ],
    ),
    (Done::ExpandableSegments, &["expandable_segments:True", "expandable_segments: True"]),
    (Done::UnifiedMemory, &["TF_FORCE_UNIFIED_MEMORY"]),
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
        SIGNS.iter().filter(|(_, signs)| signs.iter().any(is_made)).map(|(done, _)| *done).collect()
    }
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
    }
}
