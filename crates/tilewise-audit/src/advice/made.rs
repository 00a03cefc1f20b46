//! Batches that a step makes itself.

use super::{
    finding::{AllPairs, Blocks, Finding, LargeDimension},
    recommendation::Recommendation,
};

/// A batch that a step makes itself, such as all pairs of rows, which `tilewise.microbatch` takes in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadeBatch<'a> {
    /// The compiled function.
    pub function: &'a str,
    /// The line that makes the largest array, by its file's name: `train.py:30`.
    pub made_at: String,
    /// Samples.
    pub size: u64,
    /// Their dimension of that array.
    pub axis: usize,
    /// Parts, of equally many samples.
    pub parts: u64,
}

impl Recommendation {
    /// The batch that the step makes itself and that it can be given in parts; `None` for other changes.
    #[must_use]
    pub fn made(&self) -> Option<MadeBatch<'_>> {
        /// More parts than this multiple of the advised ones are smaller than tiles.
        const MORE: u64 = 4;
        let (size, axis, parts) = self.samples()?;
        let function = self.function.as_deref()?;
        let line = self.array.as_ref()?.source.as_ref()?;
        let file = line.file.rsplit(['/', '\\']).next().filter(|file| !file.contains('"'))?;
        let parts = (parts..=parts.saturating_mul(MORE)).find(|parts| size.is_multiple_of(*parts))?;
        Some(MadeBatch { function, made_at: format!("{file}:{}", line.line), size, axis, parts })
    }

    /// The number of samples, their dimension of the array, and the advised number of parts.
    fn samples(&self) -> Option<(u64, usize, u64)> {
        match &self.finding {
            Finding::LargeDimension(LargeDimension { size, place, is_made, joint, inputs, .. })
                if *is_made || joint.is_some() && inputs.is_empty() =>
            {
                Some((*size, *place, self.parts.unwrap_or(2)))
            }
            Finding::AllPairs(AllPairs { rows, columns, blocks, .. }) => {
                let bounds = self.array.as_ref()?.shape()?.bounds()?.to_vec();
                let column = bounds.iter().rposition(|size| size == columns)?;
                let axis = bounds[..column].iter().rposition(|size| size == rows)?;
                Some((*rows, axis, *blocks))
            }
            Finding::Blocks(Blocks { size, dimension, blocks, are_directions: false, joined, .. })
                if joined.is_empty() =>
            {
                Some((*size, *dimension, *blocks))
            }
            _ => None,
        }
    }
}
