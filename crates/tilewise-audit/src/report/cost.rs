//! The cost of changes for a run: the time that they add, or the work that they repeat.

use super::{sections::Report, work::products};
use crate::{
    advice::{
        Recommendation,
        finding::{Finding, GradientSums, LargeDimension},
    },
    program::{MOSAIC, Purpose, SourceLine, Tracer, is_forward, modules, numbered},
};
use tilewise_hlo::Instruction;
use tilewise_memory::Role;
use tilewise_time::Row;

/// The cost of a change for a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeCost {
    /// Seconds, estimated from the compiler's cycle counts: for recomputation, and for weights that each part of a batch
    /// reads again.
    Seconds {
        /// Those that it adds.
        added: f64,
        /// Those of the program.
        run: f64,
    },
    /// The floating-point operations that it repeats, as a part of the program's, by the matrix products and convolutions in
    /// its text: without cycle counts.
    Work(f64),
    /// Unknown: it rearranges the program, or calls of libraries and kernels hide products.
    Unknown,
}

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
    /// The cost of each piece of [`advice`](Self::advice), in its order.
    #[must_use]
    pub fn costs(&self) -> Vec<ChangeCost> {
        let Ok(time) = self.time() else {
            let Some((all, forward)) = self.products() else { return vec![ChangeCost::Unknown; self.advice().len()] };
            let work =
                |change| repeated(change, &forward).map_or(ChangeCost::Unknown, |again| ChangeCost::Work(again / all));
            return self.advice().iter().map(work).collect();
        };
        let mut tracer = Tracer::default();
        let rows = time.rows.iter().filter_map(|row| {
            let at = self.planned.module.instruction(row.instruction)?;
            let (name, source) = tracer.traced(&self.planned.flow, &at);
            let name = name.filter(|name| is_forward(name))?;
            Some(Forward { name, source, executions: row.executions, cost: row.total().estimate })
        });
        let forward: Vec<Forward> = rows.collect();
        let run = time.total.estimate;
        let cost = |change: &Recommendation| {
            let (read, short) = match &change.finding {
                Finding::LargeDimension(batch) => {
                    let parts = change.parts.unwrap_or(1);
                    (self.read_again(batch, parts), of_short_steps(&time.rows, parts, batch.size))
                }
                _ => (0, 0.0),
            };
            let added = repeated(change, &forward).map(|again| again + time.rates.seconds_of_bytes(read) + short);
            added.map_or(ChangeCost::Unknown, |added| ChangeCost::Seconds { added, run })
        };
        self.advice().iter().map(cost).collect()
    }

    /// The work of all products, and those of the forward pass; `None` without any, or if some are hidden. A program that
    /// fits again isn't computed twice by the compiler.
    fn products(&self) -> Option<(f64, Vec<Forward>)> {
        let hides = |at: Instruction<'_>| at.custom_call_target() == Some(MOSAIC);
        if self.machine.generation().is_none() || self.planned.module.instructions().any(hides) {
            return None;
        }
        let (mut all, mut forward, mut tracer) = (0.0, Vec::new(), Tracer::default());
        for product in products(&self.planned.flow).filter(|product| !product.is_again) {
            #[expect(clippy::cast_precision_loss, reason = "a part, for people")]
            let cost = product.flops.saturating_mul(product.executions) as f64;
            all += cost;
            let (name, source) = tracer.traced(&self.planned.flow, &product.instruction);
            let name = name.filter(|name| is_forward(name));
            forward.extend(name.map(|name| Forward { name, source, executions: product.executions, cost }));
        }
        (all > 0.0).then_some((all, forward))
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

/// Seconds by which parts of a batch lengthen loops of many short steps, such as a generation's: an operation isn't shorter
/// than this for a part. Loops over the positions of the batch take a part of the steps.
fn of_short_steps(rows: &[Row], parts: u64, size: u64) -> f64 {
    const SHORTEST: f64 = 1e-6;
    const MANY: u64 = 64;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let short = |row: &Row| row.total().estimate.min(row.executions as f64 * SHORTEST);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let more = parts.saturating_sub(1) as f64;
    rows.iter().filter(|row| (MANY..size.max(MANY)).contains(&row.executions)).map(short).sum::<f64>() * more
}

/// The cost of the operations that a change runs a second time; `None` if it is unknown which.
fn repeated(change: &Recommendation, all: &[Forward]) -> Option<f64> {
    let sum = |is: &dyn Fn(&Forward) -> bool| {
        let found = all.iter().filter(|one| is(one)).fold(0.0, |sum, one| sum + one.cost);
        (found > 0.0).then_some(found)
    };
    match &change.finding {
        Finding::UndonatedState(_) | Finding::StackedCache(_) => Some(0.0),
        Finding::KeptByLoop(kept) => {
            let steps = kept.steps?.0;
            let is_of_it = |name: &str| kept.module.as_ref().is_none_or(|module| name.contains(&**module));
            sum(&|one| one.executions >= steps && is_of_it(&one.name))
        }
        Finding::RepeatedLayers(kept) => match &kept.layers.path {
            Some(path) => sum(&|one| is_of_layers(&one.name, path)),
            None => sum(&|_| true),
        },
        // A second pass reads what the first one joins.
        Finding::Blocks(found) if !found.joined.is_empty() => None,
        Finding::Blocks(found) if !found.has_gradient => Some(0.0),
        Finding::MappedCall(found) if !found.has_gradient => Some(0.0),
        Finding::MappedCall(_) => sum(&|one| one.name.contains("vmap(")),
        // The chunks are behind a checkpoint.
        Finding::Logits(_) | Finding::ClassLogits(_) | Finding::Blocks(_) => {
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
