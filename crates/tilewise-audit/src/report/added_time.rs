//! The work that a change repeats, and the time that it adds to a run.

use super::{
    sections::Report,
    work::{Product, products},
};
use crate::{
    advice::{
        Recommendation,
        finding::{Finding, GradientSums, LargeDimension},
    },
    program::{Purpose, SourceLine, Tracer, is_forward, modules, numbered},
};
use tilewise_memory::Role;

/// An operation of a gradient's forward pass.
struct Forward {
    /// The framework's name of it.
    name: String,
    source: Option<SourceLine>,
    /// Number of executions in a run.
    executions: u64,
    /// The cost of all of these together.
    cost: f64,
}

impl Report {
    /// Seconds that a change adds to a run, for recomputation and for weights that each part reads again. An estimate
    /// from the compiler's cycle counts; `None` if the text has none, and for changes that rearrange the program.
    #[must_use]
    pub fn added_seconds(&self, change: &Recommendation) -> Option<f64> {
        let time = self.time().ok()?;
        let mut tracer = Tracer::default();
        let rows = time.rows.iter().filter_map(|row| {
            let at = self.planned.module.instruction(row.instruction)?;
            let (name, source) = tracer.traced(&self.planned.flow, &at);
            let name = name.filter(|name| is_forward(name))?;
            Some(Forward { name, source, executions: row.executions, cost: row.total().estimate })
        });
        let again = repeated(change, rows)?;
        let read = match &change.finding {
            Finding::LargeDimension(batch) => time.rates.seconds_of_bytes(self.read_again(batch, change.parts?)),
            _ => 0.0,
        };
        Some(read + again)
    }

    /// The floating-point operations that a change repeats, as a part of the program's, by the matrix products and
    /// convolutions in its text; `None` without any, and for changes that rearrange the program.
    #[must_use]
    pub fn repeated_work(&self, change: &Recommendation) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a part, for people")]
        let cost = |product: &Product<'_>| product.flops.saturating_mul(product.executions) as f64;
        // A program that fits again isn't computed twice by the compiler.
        let products = || products(&self.planned.flow).filter(|product| !product.is_again);
        let all: f64 = products().map(|product| cost(&product)).sum();
        let mut tracer = Tracer::default();
        let rows = products().filter_map(|product| {
            let (name, source) = tracer.traced(&self.planned.flow, &product.instruction);
            let name = name.filter(|name| is_forward(name))?;
            Some(Forward { name, source, executions: product.executions, cost: cost(&product) })
        });
        repeated(change, rows).filter(|_| all > 0.0).map(|again| again / all)
    }

    /// Bytes that the parts of a batch read again: each reads all weights; with a gradient, in both passes, and the sums
    /// are read and written.
    fn read_again(&self, batch: &LargeDimension, parts: u64) -> u64 {
        let has_gradient = batch.gradients != GradientSums::None;
        let times = if has_gradient { 4 } else { 1 };
        let weights = self.memory_space(0).and_then(|hbm| hbm.peak.as_ref()).map_or(0, |peak| {
            let weights =
                peak.rows.iter().filter(|row| row.role == Role::Argument && row.purpose == Purpose::Parameter);
            weights.map(|row| row.bytes).fold(0, u64::saturating_add)
        });
        weights.saturating_mul(times).saturating_mul(parts.saturating_sub(1))
    }
}

/// The cost of the operations that a change runs a second time; `None` if it is unknown which.
fn repeated(change: &Recommendation, all: impl Iterator<Item = Forward>) -> Option<f64> {
    let sum = |is: &dyn Fn(&Forward) -> bool| {
        let found = all.filter(is).fold(0.0, |sum, one| sum + one.cost);
        (found > 0.0).then_some(found)
    };
    match &change.finding {
        Finding::UndonatedState(_) | Finding::StackedCache(_) => Some(0.0),
        Finding::KeptByLoop(kept) => {
            let steps = kept.steps?.0;
            sum(&|one| one.executions >= steps)
        }
        Finding::RepeatedLayers(kept) => match &kept.layers.path {
            Some(path) => sum(&|one| is_of_layers(&one.name, path)),
            None => sum(&|_| true),
        },
        // The chunks are behind a checkpoint.
        Finding::Logits(_) | Finding::ClassLogits(_) => {
            let line = change.array.as_ref()?.source.as_ref()?;
            sum(&|one| one.source.as_ref() == Some(line))
        }
        // Behind a checkpoint, the backward pass computes each part again.
        Finding::LargeDimension(batch) if batch.is_known => {
            let is_again = batch.gradients != GradientSums::None && (batch.joint.is_some() || batch.is_made);
            if is_again { sum(&|_| true) } else { Some(0.0) }
        }
        _ => None,
    }
}

/// Whether an operation is in one of these layers: `encoder/block_*`, `model/{encoder,decoder}`.
fn is_of_layers(name: &str, layers: &str) -> bool {
    match layers.strip_suffix('}').and_then(|layers| layers.rsplit_once("/{")) {
        Some((before, parts)) => {
            let depth = before.split('/').count();
            let path: Vec<&str> = modules(name).take(depth + 1).collect();
            path.len() > depth && path[..depth].join("/") == before && parts.split(',').any(|part| part == path[depth])
        }
        None => numbered(name).iter().any(|(path, _)| path == layers),
    }
}
