//! Recommended changes with their savings: one type for programs, copies and messages.

use super::{
    change::{Change, Saving, Target},
    finding::{AttentionScores, Finding},
};
use crate::{message::Allocation, program::SourceLine};
use tilewise::Shape;
use tilewise_oom::Framework;

/// A change, and the memory it frees.
///
/// It follows from a program ([`Report::advice`](crate::Report::advice)), from one of its copies
/// ([`CopyReason::fix`](crate::CopyReason::fix)), or from an out-of-memory message
/// ([`Explanation::advice`](crate::Explanation::advice)); [`saving`](field@Self::saving) shows how exact its figure is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recommendation {
    /// The kind of change.
    pub change: Change,
    /// The target of the change.
    pub target: Target,
    /// The array concerned, of several the largest; `None` if a message names no array.
    pub array: Option<AdvisedArray>,
    /// The memory it frees.
    pub saving: Saving,
    /// Bytes that it frees alone: those before it may free some of them, too. `None` for a message.
    pub alone_bytes: Option<u64>,
    /// Bytes of that in arrays that a message lists, if the rest follows from its totals; otherwise `None`.
    pub listed_bytes: Option<u64>,
    /// The number of parts of the batch that the saving is for, if more parts free more.
    pub parts: Option<u64>,
    /// The attention scores that are most of the memory it frees: blockwise attention never holds them.
    pub scores: Option<AttentionScores>,
    /// The finding behind it, which `tilewise-report` puts into words, with code.
    pub finding: Finding,
    /// The lines to edit, if they aren't the array's own: the call of a layer or of the gradient, the jitted function, or all lines
    /// that a rewrite takes apart.
    pub edited: Option<EditedLines>,
    /// Whether a smaller batch is ruled out: by the text beside a message, or since another change names the batch already.
    pub is_batch_ruled_out: bool,
    /// The framework whose code to show, that of the program; `None` if unknown.
    pub framework: Option<Framework>,
    /// The compiled function, if it takes arrays alone and one device runs it.
    pub function: Option<String>,
    /// Its parameters that are donated already, or by a change before this one.
    pub donated: Vec<String>,
}

/// The lines of source to edit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditedLines {
    /// The line; of several, which are of one function, the first.
    pub line: SourceLine,
    /// The numbers of those behind it, in order.
    pub more: Vec<u32>,
    /// The lines around them whose calls all that a rewrite takes apart goes through, outermost first.
    pub around: Vec<SourceLine>,
    /// The user's function whose gradient it takes, by its qualified name: `train.<locals>.loss_fn`; `None` if it takes
    /// none, or that of a lambda.
    pub loss: Option<String>,
}

impl EditedLines {
    /// Several lines, within these calls; `None` if there are too many, none, or lines of several files.
    pub(super) fn of(mut lines: Vec<SourceLine>, around: Vec<SourceLine>) -> Option<Self> {
        /// More lines are a program of their own.
        const MOST: usize = 12;
        lines.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        lines.dedup_by(|one, other| (&one.file, one.line) == (&other.file, other.line));
        let (first, more) = lines.split_first().filter(|(_, more)| more.len() < MOST)?;
        if more.iter().any(|line| line.file != first.file) {
            return None;
        }
        let function = first.function.clone().filter(|_| more.iter().all(|line| line.function == first.function));
        let (line, more) = (SourceLine { function, ..first.clone() }, more.iter().map(|line| line.line).collect());
        Some(Self { line, more, around, loss: None })
    }
}

/// The array that a [`Recommendation`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdvisedArray {
    /// Its shape as XLA writes it, cut off where a message cuts it off.
    pub shape_text: String,
    /// The instruction that makes it.
    pub instruction: Option<String>,
    /// The layout to pass or return it in, if the change is only that and follows from a copy.
    pub requested: Option<Shape>,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

impl Recommendation {
    pub(crate) fn new(finding: Finding, target: Target, framework: Option<Framework>) -> Self {
        let change = finding.change();
        let (array, saving, listed_bytes, parts, scores) = (None, Saving::Unknown, None, None, None);
        Self {
            change,
            target,
            array,
            saving,
            alone_bytes: None,
            listed_bytes,
            parts,
            scores,
            finding,
            edited: None,
            is_batch_ruled_out: false,
            framework,
            function: None,
            donated: Vec::new(),
        }
    }

    /// The arguments that have the batch, as the program calls them, each with the batch's dimension number, for a step
    /// that `tilewise.microbatch` can take in [`parts`](field@Self::parts). Empty for other changes.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, usize)> {
        let batch = match &self.finding {
            Finding::LargeDimension(batch) => batch.function.as_ref().map(|_| batch),
            _ => None,
        };
        batch
            .into_iter()
            .flat_map(|batch| &batch.inputs)
            .flat_map(|(at, names)| names.iter().map(|name| (&**name, *at)))
    }

    /// The parameters of the compiled function to donate; empty for other changes.
    #[must_use]
    pub fn donate(&self) -> &[String] {
        match &self.finding {
            Finding::UndonatedState(state) => &state.roots,
            _ => &[],
        }
    }

    /// The line to edit; the line that makes the array, if no other is known.
    #[must_use]
    pub fn line(&self) -> Option<&SourceLine> {
        self.edited.as_ref().map(|edited| &edited.line).or_else(|| self.array.as_ref()?.source.as_ref())
    }

    pub(crate) fn saving(self, saving: Saving) -> Self {
        Self { saving, ..self }
    }

    /// Adds an array with no more known than its shape.
    pub(crate) fn about(self, shape: impl Into<String>) -> Self {
        Self { array: Some(AdvisedArray::of_shape(shape)), ..self }
    }
}

impl AdvisedArray {
    /// An array that a message lists.
    pub(crate) fn of_row(row: &Allocation) -> Self {
        let written = || row.entry.shape.as_ref().map(|shape| shape.text.clone());
        Self {
            instruction: row.entry.instruction().map(|(name, _)| name.to_owned()),
            op_name: Some(row.op_name()).filter(|name| !name.is_empty()).map(str::to_owned),
            source: row.source.clone(),
            ..Self::of_shape(row.shape.as_ref().map(Shape::to_string).or_else(written).unwrap_or_default())
        }
    }

    pub(crate) fn of_shape(shape_text: impl Into<String>) -> Self {
        Self { shape_text: shape_text.into(), instruction: None, requested: None, op_name: None, source: None }
    }

    /// Its shape; `None` if the text is cut off.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        Shape::parse_as_written(&self.shape_text).ok()
    }
}
