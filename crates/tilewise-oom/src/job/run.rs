//! Whether a job trains.

use super::SEARCHED;
use crate::text::{tail, word};

/// The use of a model, where the text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Run {
    /// A gradient is taken.
    Training,
    /// No gradient is taken.
    Inference,
}

impl Run {
    pub(crate) fn of(text: &str) -> Option<Self> {
        /// Signs, the surest first.
        const SIGNS: [(&[&str], Run); 3] = [
            (&["no_grad(", "inference_mode("], Run::Inference),
            (
                &[
                    ".backward(",
                    "training_step",
                    "optimizer.step",
                    "value_and_grad",
                    "GradientTape",
                    ".fit(",
                    "Trainer",
                    "train.py",
                    "train_",
                    "fine-tun",
                    "fine tun",
                    "finetun",
                    "autograd",
                ],
                Run::Training,
            ),
            (&["inference", "predict", ".generate("], Run::Inference),
        ];
        let log = tail(text, SEARCHED);
        let text = log.as_bytes();
        // A model that is fine-tuned already may only run.
        let has = |sign: &&str| {
            memchr::memmem::find_iter(text, sign.as_bytes()).any(|at| !text[at + sign.len()..].starts_with(b"ed"))
        };
        let signed = SIGNS.iter().find(|(signs, _)| signs.iter().any(has)).map(|(_, run)| *run);
        signed.or_else(|| speaks_of_training(log).then_some(Self::Training))
    }
}

/// Whether prose speaks of a training, where nothing else tells: not `training=False`, nor `post-training`.
fn speaks_of_training(text: &str) -> bool {
    word::all(text).any(|(start, end)| {
        text[start..end].eq_ignore_ascii_case("training")
            && !text[..start].ends_with('-')
            && !text[end..].starts_with("=False")
    })
}
