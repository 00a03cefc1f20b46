//! The causes of a program's memory: the groups of arrays that hold most of its peak, each in a sentence.

use super::remedies::{is_stacked, remedy};
use crate::{
    Quotes, axis,
    style::{bytes, file_and_line, grouped, percent, share},
};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use tilewise::PaddedAxis;
use tilewise_audit::{AxisName, Cause, Meaning, PeakGroup, PeakRow, Purpose, Report, SourceLine, SpacePeak};

/// A part of a program's peak, and its meaning.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PeakCause {
    /// [`Meaning::as_str`], or `fragmentation`.
    pub kind: &'static str,
    /// Bytes it takes.
    pub bytes: u64,
    /// Its share of the program's need, 0 … 1; `None` if unknown.
    pub share: Option<f64>,
    /// The number of its arrays.
    pub arrays: usize,
    /// The dimensions of the largest of them, as the program counts them.
    pub axes: Vec<CauseAxis>,
    /// Its description, without a full stop.
    pub sentence: String,
    /// The task that makes them take less, without a price; `None` where nothing helps.
    pub remedy: Option<&'static str>,
    /// The places of a row that hold data, and all that the row takes, if most of it is padding.
    pub filled: Option<[u64; 2]>,
    /// The line that makes the largest of them.
    #[serde(serialize_with = "crate::json::optional")]
    pub source: Option<SourceLine>,
    /// That line's text, where it is at hand.
    pub quote: Option<String>,
    /// The place of that line, in few letters.
    #[serde(skip)]
    pub place: String,
}

/// A dimension of an array.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CauseAxis {
    /// Its name; `None` if unknown.
    #[serde(serialize_with = "named")]
    pub name: Option<AxisName>,
    /// Its size.
    pub size: u64,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn named<S: Serializer>(name: &Option<AxisName>, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_ref().map(axis).serialize(serializer)
}

/// Causes are listed until they make up this percentage of the whole, and at most this number of them.
const TOLD: u128 = 80;
const MOST: usize = 3;
/// A padded cause is listed in any case if padding is more than this part of the peak, and the cause more than that.
const MUCH_PADDING: u64 = 3;
const PADDED: u64 = 10;

/// The causes of a peak, the largest first.
pub(crate) fn causes(report: &Report) -> Vec<PeakCause> {
    let (Ok(plan), Some(peak)) = (report.plan(), report.memory_space(0).and_then(|hbm| hbm.peak.as_ref())) else {
        return Vec::new();
    };
    let total = plan.total_bytes();
    let mut all: Vec<PeakCause> = peak.groups().iter().filter_map(|group| of_group(group, report, total)).collect();
    all.extend(gaps(peak, total));
    all.sort_by_key(|cause| std::cmp::Reverse(cause.bytes));
    let arrays = all.iter().map(|cause| cause.arrays).sum();
    let mut told = 0;
    let mut enough = all.iter().position(|cause| {
        told += u128::from(cause.bytes);
        told * 100 >= u128::from(total) * TOLD
    });
    enough = Some(enough.map_or(MOST, |last| last + 1).min(MOST));
    let rest = all.split_off(enough.unwrap_or(MOST).min(all.len()));
    let is_padded = peak.padding_bytes > peak.live_bytes / MUCH_PADDING;
    if is_padded && all.iter().all(|cause| cause.filled.is_none()) {
        let padded = rest.into_iter().find(|cause| cause.filled.is_some() && cause.bytes > total / PADDED);
        all.truncate(if padded.is_some() { MOST - 1 } else { MOST });
        all.extend(padded);
    }
    all.extend(rest_of(&all, arrays, total));
    all
}

/// All that no cause tells, if it is at least a hundredth.
fn rest_of(told: &[PeakCause], arrays: usize, total: u64) -> Option<PeakCause> {
    let bytes = told.iter().fold(total, |left, cause| left.saturating_sub(cause.bytes));
    let arrays = told.iter().fold(arrays, |left, cause| left.saturating_sub(cause.arrays));
    let sentence = match arrays {
        1 => "one other array".to_owned(),
        _ => format!("{} other arrays", grouped(arrays as u64)),
    };
    (arrays > 0 && bytes > total / 100).then(|| PeakCause {
        share: Some(share(bytes, total)),
        arrays,
        ..PeakCause::of_bytes("others", bytes, sentence)
    })
}

fn gaps(peak: &SpacePeak, total: u64) -> Option<PeakCause> {
    let sentence = "gaps between temporaries, too small for what else is alive".to_owned();
    (peak.fragmentation_bytes > 0).then(|| PeakCause {
        share: Some(share(peak.fragmentation_bytes, total)),
        ..PeakCause::of_bytes("fragmentation", peak.fragmentation_bytes, sentence)
    })
}

fn of_group(group: &PeakGroup<'_>, report: &Report, total: u64) -> Option<PeakCause> {
    let largest = group.rows.first()?;
    let dimensions = largest.named_dimensions();
    let source = group.rows.iter().find_map(|row| row.source.clone());
    Some(PeakCause {
        kind: group.meaning.as_str(),
        bytes: group.bytes,
        share: Some(share(group.bytes, total)),
        arrays: group.count,
        axes: dimensions.into_iter().map(|(name, size)| CauseAxis { name: name.cloned(), size }).collect(),
        sentence: format!("{}{}", sentence(group, largest), padded(group)),
        remedy: remedy(group, report),
        filled: filled(&largest.causes).filter(|_| matches!(group.meaning, Meaning::Padding(_))),
        place: source.as_ref().map(file_and_line).unwrap_or_default(),
        source,
        quote: None,
    })
}

/// `, 2.30 GiB of it padding`, if that is much and not the sentence itself.
fn padded(group: &PeakGroup<'_>) -> String {
    const MUCH: u64 = 10;

    let padding = group.bytes.saturating_sub(group.logical_bytes);
    let is_told = matches!(group.meaning, Meaning::Padding(_)) || padding <= group.bytes / MUCH;
    if is_told { String::new() } else { format!(", {} of it padding", bytes(padding)) }
}

/// The places of a row that hold data, and all places that it takes, along all axes that are padded.
pub(super) fn filled(causes: &[Cause]) -> Option<[u64; 2]> {
    let axes = causes.iter().filter_map(|cause| match cause {
        Cause::Axis(axis) if axis.level == 0 => Some([axis.bound, axis.padded]),
        _ => None,
    });
    axes.reduce(|[bound, padded], axis| [bound.saturating_mul(axis[0]), padded.saturating_mul(axis[1])])
}

impl PeakCause {
    /// A cause of which no more is known than its bytes.
    pub(super) fn of_bytes(kind: &'static str, bytes: u64, sentence: String) -> Self {
        Self {
            kind,
            bytes,
            share: None,
            arrays: 0,
            axes: Vec::new(),
            sentence,
            remedy: None,
            filled: None,
            source: None,
            quote: None,
            place: String::new(),
        }
    }

    /// Whether it is all that no other cause of a program tells. What was there before, of a message, counts no arrays.
    pub(crate) fn is_rest(&self) -> bool {
        self.kind == "others" && self.arrays > 0
    }

    /// `70.0 %, 62.50 GiB`: its share of the whole, and its bytes.
    pub(crate) fn takes(&self) -> String {
        let share = self.share.map(|share| format!("{}, ", percent(share))).unwrap_or_default();
        format!("{share}{}", bytes(self.bytes))
    }

    pub(crate) fn quoting(self, quotes: &Quotes) -> Self {
        Self { quote: self.source.as_ref().and_then(|source| quotes.of(&source.file, source.line)), ..self }
    }
}

fn sentence(group: &PeakGroup<'_>, largest: &PeakRow) -> String {
    let count = group.count;
    let shape = shape(largest, group.meaning == Meaning::HeldTwice);
    let sizes = |row: &PeakRow| {
        let sizes = row.named_dimensions().into_iter().map(|(_, size)| size);
        (row.shape.element_type(), sizes.collect::<Vec<_>>())
    };
    let are_alike = group.rows.iter().all(|row| sizes(row) == sizes(largest));
    let each = if are_alike { "each " } else { "the largest " };
    let arguments = || {
        let roots: BTreeSet<&str> = group.rows.iter().filter_map(|row| root(row.op_name.as_deref()?)).collect();
        let roots: Vec<String> = roots.iter().take(2).map(|root| format!("`{root}`")).collect();
        roots.join(" and ")
    };
    let of_arguments = |what: &str| match (count, arguments()) {
        (1, _) => {
            let name = largest.op_name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
            format!("{what}{name}: {}", self::shape(largest, true))
        }
        (_, names) if names.is_empty() => format!("{what}: {count} arrays, {each}{shape}"),
        (_, names) => {
            format!("{what}: {count} arrays of {names}, {each}{}", self::shape(largest, true))
        }
    };
    let is_nearly_all = largest.count == 1 && largest.bytes / 9 >= group.bytes / 10;
    let listed = |one: &str, many: &str| match count {
        1 => format!("{one}{shape}"),
        2 if is_nearly_all => format!("{one}{shape}, and a small one"),
        _ if is_nearly_all => format!("{one}{shape}, and {} small ones", count - 1),
        _ => format!("{count} {many}, {each}{shape}"),
    };
    match group.meaning {
        Meaning::Padding(_) => {
            let axes = largest.causes.iter().filter_map(|cause| match cause {
                Cause::Axis(axis) if axis.level == 0 => Some(stored(axis)),
                _ => None,
            });
            let (axes, data, takes) = (axes.collect::<Vec<_>>(), bytes(group.logical_bytes), bytes(group.bytes));
            format!("{}: {}, so {data} of data takes {takes}", listed("", "arrays"), axes.join(" and "))
        }
        Meaning::HeldTwice => {
            let names = arguments();
            let names = if names.is_empty() { format!("{count} arrays") } else { names };
            format!(
                "{names}, held twice: as passed and as returned, since the old values aren't donated; {each}{shape}"
            )
        }
        Meaning::Purpose(purpose) => match purpose {
            Purpose::Parameter => of_arguments("parameters"),
            Purpose::OptimizerState => of_arguments("state of the optimizer"),
            Purpose::Cache => of_arguments("cache"),
            Purpose::OtherArgument if count == 1 => of_arguments("argument"),
            Purpose::OtherArgument => of_arguments("arguments"),
            Purpose::Result => listed("result: ", "results"),
            Purpose::Logits => listed("logits of ", "arrays of logits"),
            Purpose::Scores => listed("attention scores: ", &format!("arrays of attention scores{}", of_module(group))),
            Purpose::Kept if count == 1 => format!("{shape}, kept for the gradient"),
            Purpose::Kept => match repeated(group) {
                Some(times) => format!("{count} arrays of all {times}, kept for the gradient"),
                None => format!("{count} arrays{} kept for the gradient, {each}{shape}", of_module(group)),
            },
            Purpose::Gradient => listed("gradient of a parameter: ", "gradients of parameters"),
            Purpose::CopyOfArgument => {
                let of = arguments();
                let of = if of.is_empty() || count > 1 { String::new() } else { format!(" of {of}") };
                listed(&format!("copy{of}: "), "copies of arguments")
            }
            Purpose::LoopCarry if is_stacked(group) => listed("stacked by a loop: ", "arrays stacked by loops"),
            Purpose::LoopCarry => listed("carried by a loop: ", "arrays carried by loops"),
            Purpose::Workspace => {
                let routines: BTreeSet<&str> = group.rows.iter().filter_map(|row| row.routine.as_deref()).collect();
                let routines: Vec<String> = routines.iter().take(2).map(|routine| format!("`{routine}`")).collect();
                let of = if routines.is_empty() { "library routines".to_owned() } else { routines.join(" and ") };
                format!("workspace that {of} asks for")
            }
            _ => listed("one intermediate array: ", &format!("intermediate arrays{}", of_module(group))),
        },
        _ => listed("", "arrays"),
    }
}

/// `` of `MixerBlock_0…11` ``: as much of the path as a line has room for.
fn of_module(group: &PeakGroup<'_>) -> String {
    const ROOM: usize = 36;

    let Some(module) = group.module() else { return String::new() };
    let starts = std::iter::once(0).chain(module.match_indices('/').map(|(at, _)| at + 1));
    let shown = starts.map(|start| &module[start..]).find(|path| path.chars().count() <= ROOM);
    shown.map_or_else(String::new, |path| format!(" of `{path}`"))
}

/// `12 columns are stored as 128`
fn stored(axis: &PaddedAxis) -> String {
    let what = match axis.from_minor {
        0 => "column",
        1 => "row",
        _ => "block",
    };
    let are = if axis.bound == 1 { " is" } else { "s are" };
    format!("{} {what}{are} stored as {}", grouped(axis.bound), grouped(axis.padded))
}

/// `512 steps`, if all arrays have them.
fn repeated(group: &PeakGroup<'_>) -> Option<String> {
    let of = |row: &PeakRow| {
        let mut axes = row.axes.iter();
        axes.find(|axis| matches!(axis.name, AxisName::Steps | AxisName::Layers))
            .map(|axis| (axis.size, axis.name.clone()))
    };
    let first = of(group.rows.first()?)?;
    let known = group.rows.iter().filter(|row| !row.axes.is_empty());
    let alike = known.filter(|row| of(row).as_ref() == Some(&first)).count();
    (2 * alike > group.rows.len()).then(|| counted(Some(&first.1), first.0))
}

/// `512 steps × 1,024 samples × 32,000 words, f32`; of an argument, which a reader knows, the rows are only counted.
fn shape(row: &PeakRow, is_argument: bool) -> String {
    let is_own = |name: &AxisName| is_argument && matches!(name, AxisName::Dimension(..));
    // An array's rows are its first dimension.
    let is_inner = |name: &AxisName, at: usize| at > 0 && matches!(name, AxisName::Dimension(..));
    let told = |at: usize, name: Option<&'_ AxisName>, size| {
        counted(name.filter(|name| !is_own(name) && !is_inner(name, at)), size)
    };
    let dimensions = row.named_dimensions().into_iter().enumerate();
    let dimensions: Vec<String> = dimensions.map(|(at, (name, size))| told(at, name, size)).collect();
    let element = row.shape.element_type().map(|of| of.to_string()).unwrap_or_default();
    match (dimensions.is_empty(), row.shape.as_array()) {
        (_, None) => "a tuple's table".to_owned(),
        (true, _) => format!("one {element}"),
        (false, _) => format!("{}, {element}", dimensions.join(" × ")),
    }
}

/// A size with its unit, as a reader counts it.
fn counted(name: Option<&AxisName>, size: u64) -> String {
    let size = grouped(size);
    let what = match name {
        Some(AxisName::Batch(_)) => "samples",
        Some(AxisName::Tokens(_)) => "tokens",
        Some(AxisName::Vocabulary) => "words",
        Some(AxisName::Classes) => "classes",
        Some(AxisName::Experts) => "experts",
        Some(AxisName::Layers) => "layers",
        Some(AxisName::Steps) => "steps",
        Some(AxisName::Dimension(argument, 0)) if is_told(argument) => return format!("{size} rows of `{argument}`"),
        _ => return size,
    };
    format!("{size} {what}")
}

/// Whether a reader knows an argument's rows by its name: not those of a weight, nor of a long path.
fn is_told(argument: &str) -> bool {
    const LONGEST: usize = 24;
    let is_weight = matches!(Purpose::of_argument(argument), Purpose::Parameter | Purpose::OptimizerState);
    !is_weight && argument.chars().count() <= LONGEST
}

/// The parameter of the Python function that an argument is part of.
fn root(name: &str) -> Option<&str> {
    let root = name.split(['[', '.']).next()?;
    (!root.is_empty() && !root.contains('/')).then_some(root)
}
