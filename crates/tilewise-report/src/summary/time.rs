//! The time of a run, by the compiler's cycle counts.

use super::Remark;
use crate::style::Tone;
use crate::style::{duration, percent};
use tilewise::tpu::Generation;
use tilewise_audit::{
    Report,
    time::{Cores, Kind, Rates, Time, Unpriced},
};

/// The caveat behind every figure of time.
pub(crate) const NOT_MEASURED: &str = "estimated from the compiler's own cycle counts, not measured";

/// The remarks on a run's time; empty if the text has no cycle counts.
pub(super) fn remarks(report: &Report) -> Vec<Remark> {
    let Ok(time) = report.time() else { return Vec::new() };
    let mut remarks = vec![Remark { words: headline(time), tone: Tone::Plain }];
    let details = [bounded(time), loops(time), report.machine.generation().and_then(|of| cores(time, of))];
    remarks.extend(details.into_iter().flatten().map(|words| Remark { words, tone: Tone::Faint }));
    remarks
}

/// `≈160 ms a run (120 ms at the TPU's full rates, 220 ms by the compiler)`, and the caveat.
fn headline(time: &Time) -> String {
    let or_more = if time.is_at_least { " or more" } else { "" };
    let [estimate, floor, compiler] = [time.total.estimate, time.total.floor, time.total.compiler].map(duration);
    let bounds = format!("{floor} at the TPU's full rates, {compiler} by the compiler");
    format!("≈{estimate}{or_more} a run ({bounds}), {NOT_MEASURED}.")
}

fn bounded(time: &Time) -> Option<String> {
    let unpriced = time.unpriced();
    if unpriced.is_empty() {
        return None;
    }
    let kinds = unpriced.iter().map(operations).collect::<Vec<_>>().join(", ");
    let share = time.bound_share();
    Some(if share > 0.0 {
        format!("{} of that is only a lower bound: the compiler has no cycle counts for {kinds}.", percent(share))
    } else {
        format!("That leaves out {kinds}, for which the compiler has no cycle counts.")
    })
}

fn operations(unpriced: &Unpriced) -> String {
    let plural = if unpriced.operations == 1 { "" } else { "s" };
    format!("{} {} operation{plural}", unpriced.operations, kind_name(unpriced.kind))
}

fn loops(time: &Time) -> Option<String> {
    let (count, all) = (time.loops.iter().filter(|row| row.trips.is_none()).count(), time.conditionals);
    let loops = match count {
        0 => None,
        1 => Some("One loop of unknown trip count counts once".to_owned()),
        count => Some(format!("{count} loops of unknown trip count count once each")),
    };
    let conditionals = (all > 0).then(|| "each conditional counts as its slowest branch".to_owned());
    let both: Vec<String> = loops.into_iter().chain(conditionals).collect();
    let mut words = both.join("; ");
    let first = words.get_mut(..1)?;
    first.make_ascii_uppercase();
    Some(format!("{words}."))
}

fn cores(time: &Time, generation: Generation) -> Option<String> {
    if !Rates::has_two_cores(generation) || time.cores == Cores::Both {
        return None;
    }
    let asks = "`chip_config_name=\"megacore\"` compiles for both";
    Some(format!("These figures are of one core: a TPU {generation} runs both cores as one device (megacore); {asks}."))
}

/// A kind in words.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Matmul => "matmul",
        Kind::Elementwise => "elementwise",
        Kind::Reduce => "reduce",
        Kind::Copy => "copy/layout",
        Kind::SliceUpdate => "slice/update",
        Kind::GatherScatterSort => "gather/scatter/sort",
        Kind::Collective => "collective",
        Kind::Kernel => "Pallas kernel",
        Kind::CustomCall => "custom call",
        Kind::SparseCore => "SparseCore",
        Kind::Host => "host",
        Kind::DmaWait => "DMA wait",
        Kind::CollectiveWait => "collective wait",
        Kind::SparseCoreWait => "SparseCore wait",
        Kind::HostWait => "host wait",
        other => other.as_str(),
    }
}
