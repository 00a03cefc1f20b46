//! Whether a job trains.

use super::SEARCHED;
use crate::text::tail;

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
        const SIGNS: [(&[&str], Run); 4] = [
            (&["no_grad(", "inference_mode("], Run::Inference),
            (
                &[
                    ".backward(",
                    "training_step",
                    "optimizer.step",
                    "value_and_grad",
                    "GradientTape",
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
            // Prose, where nothing else tells.
            (&["training", "Training"], Run::Training),
        ];
        let text = tail(text, SEARCHED).as_bytes();
        let has = |sign: &&str| memchr::memmem::find(text, sign.as_bytes()).is_some();
        SIGNS.iter().find(|(signs, _)| signs.iter().any(has)).map(|(_, run)| *run)
    }
}
