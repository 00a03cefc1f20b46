//! The time that a change adds to a run.

use super::sections::Report;
use crate::{
    advice::{
        Recommendation,
        finding::{Finding, GradientSums, LargeDimension},
    },
    program::{Purpose, SourceLine, Tracer, is_forward, numbered},
};
use tilewise_memory::Role;

impl Report {
    /// Seconds that a change adds to a run, for recomputation and for weights that each part reads again. An estimate
    /// from the compiler's cycle counts; `None` if the text has none, and for changes that rearrange the program.
    #[must_use]
    pub fn added_seconds(&self, change: &Recommendation) -> Option<f64> {
        self.time().ok()?;
        let of_line = |line: &SourceLine| self.forward_seconds(|_, source, _| source == Some(line));
        let line = || change.array.as_ref()?.source.as_ref();
        match &change.finding {
            Finding::UndonatedState(_) | Finding::StackedCache(_) => Some(0.0),
            Finding::KeptByLoop(kept) => {
                let steps = kept.steps?.0;
                Some(self.forward_seconds(|_, _, executions| executions >= steps))
            }
            Finding::RepeatedLayers(kept) => Some(match &kept.layers.path {
                Some(layers) => {
                    self.forward_seconds(|name, _, _| numbered(name).iter().any(|(path, _)| path == layers))
                }
                None => self.forward_seconds(|_, _, _| true),
            }),
            // The chunks are behind a checkpoint.
            Finding::Logits(_) | Finding::ClassLogits(_) => Some(of_line(line()?)),
            Finding::LargeDimension(batch) if batch.is_known => Some(self.of_parts(batch, change.parts?)),
            _ => None,
        }
    }

    /// Seconds that the parts of a batch add: each reads all weights; with a gradient, in both passes, and the sums are
    /// read and written.
    fn of_parts(&self, batch: &LargeDimension, parts: u64) -> f64 {
        let has_gradient = batch.gradients != GradientSums::None;
        let times = if has_gradient { 4 } else { 1 };
        let weights = self.memory_space(0).and_then(|hbm| hbm.peak.as_ref()).map_or(0, |peak| {
            let weights =
                peak.rows.iter().filter(|row| row.role == Role::Argument && row.purpose == Purpose::Parameter);
            weights.map(|row| row.bytes).fold(0, u64::saturating_add)
        });
        let bytes = weights.saturating_mul(times).saturating_mul(parts.saturating_sub(1));
        let read = self.time().map_or(0.0, |time| time.rates.seconds_of_bytes(bytes));
        // Behind a checkpoint, the backward pass computes each part again.
        let again = has_gradient && (batch.joint.is_some() || batch.is_made);
        read + if again { self.forward_seconds(|_, _, _| true) } else { 0.0 }
    }

    /// Seconds of the operations of a gradient's forward pass that match a name, line and number of executions.
    fn forward_seconds(&self, is: impl Fn(&str, Option<&SourceLine>, u64) -> bool) -> f64 {
        let Ok(time) = self.time() else { return 0.0 };
        let mut tracer = Tracer::default();
        let seconds = time.rows.iter().filter_map(|row| {
            let at = self.planned.module.instruction(row.instruction)?;
            let (name, source) = tracer.traced(&self.planned.flow, &at);
            let name = name.filter(|name| is_forward(name))?;
            is(&name, source.as_ref(), row.executions).then(|| row.total().estimate)
        });
        seconds.fold(0.0, |sum, one| sum + one)
    }
}
