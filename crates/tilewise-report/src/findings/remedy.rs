//! Remedies of a copy at a kernel: the view or the layout that makes it free, in words and as code for both sides.

use super::words;
use crate::style::bytes;
use serde::Serialize;
use tilewise::Shape;
use tilewise_audit::{KernelArray, KernelSide, Remedy};
use tilewise_kernel::{View, ViewAccess, ViewPart};

/// The answer where no view of an array is free.
pub(crate) const NO_VIEW: &str = "no view of these bytes is free";

/// A [`Remedy`] in words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct RemedyWords {
    /// `layout`, `view`, `stored`, `donate` or `drop_alias`.
    pub kind: &'static str,
    /// The array that the kernel reads or writes instead, with its layout; `None` of other kinds than a view or a stored shape.
    pub shape: Option<String>,
    /// The way in which a kernel reads that: [`ViewAccess::as_str`].
    pub access: Option<&'static str>,
    /// The remedy, in a sentence.
    pub sentence: String,
    /// The code for it, in JAX: outside the kernel, then inside.
    pub code: Option<String>,
}

impl RemedyWords {
    /// The words of a view that a kernel reads instead of an operand of this shape.
    #[must_use]
    pub fn of_view(view: &View, operand: &Shape) -> Self {
        Self::said(&Remedy::View(view.clone()), operand, KernelSide::Operand)
    }

    /// The words of the remedy for a kernel's operand or result, if there is one.
    #[must_use]
    pub fn of(array: &KernelArray) -> Option<Self> {
        array.remedy.as_ref().map(|remedy| Self::said(remedy, &array.shape, array.side))
    }

    fn said(remedy: &Remedy, array: &Shape, side: KernelSide) -> Self {
        let (reads, written) = match side {
            KernelSide::Operand => ("Hand the kernel", "reads"),
            KernelSide::Result => ("Let the kernel write", "writes"),
        };
        let with = |view: &View, sentence: String| Self {
            kind: remedy.as_str(),
            shape: Some(view.shape.to_string()),
            access: Some(view.access.as_str()),
            sentence,
            code: Some(code(view, array, side)),
        };
        let bare = |sentence: String, code: Option<String>| Self {
            kind: remedy.as_str(),
            shape: None,
            access: None,
            sentence,
            code,
        };
        match remedy {
            Remedy::Layout(fix) => {
                let words = words(fix);
                bare(words.sentence, words.code)
            }
            Remedy::View(view) => with(view, format!("{reads} {}: {}", view.shape, clause(view.access))),
            Remedy::Stored { view, more_bytes } => {
                let price = match more_bytes {
                    0 => "takes no more".to_owned(),
                    more => format!("takes {} more", bytes(*more)),
                };
                let shape = &view.shape;
                with(
                    view,
                    format!(
                        "Keep it as {shape}, which {price} and which a kernel {written} as it is: {}",
                        clause(view.access)
                    ),
                )
            }
            Remedy::Donate { parameter } => bare(
                format!(
                    "Donate argument {parameter}: the kernel overwrites its operand, so XLA copies what isn't donated"
                ),
                Some(format!("step = jax.jit(step, donate_argnums={parameter})")),
            ),
            Remedy::DropAlias { kernel, result } => bare(
                format!(
                    "Leave result {result} of `{kernel}` out of its outputs and `input_output_aliases`: nobody reads it, and it \
                     overwrites what is still needed"
                ),
                None,
            ),
            _ => bare(String::new(), None),
        }
    }
}

/// A kernel's use of a view, in a clause.
fn clause(access: ViewAccess) -> &'static str {
    match access {
        ViewAccess::IndexMap => "its blocks hold the same rows and lanes, and only the index map changes",
        ViewAccess::Lanes => "its blocks hold the same rows and lanes, those of one folded dimension",
        ViewAccess::Rows => "the lanes of a block stay, and its rows are another dimension's",
        ViewAccess::Transposed => "a block is read transposed; a matrix product contracts its other dimension instead",
        ViewAccess::Split => "the rows of a block are slices of its lanes",
        _ => "its blocks are others",
    }
}

/// The view outside the kernel, and the block and its index inside.
fn code(view: &View, array: &Shape, side: KernelSide) -> String {
    let bounds: Vec<u64> = array.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let parts: Vec<ViewPart> = view.dimensions.iter().flatten().copied().collect();
    let mut sorted = parts.clone();
    sorted.sort_by_key(|part| (part.dimension, std::cmp::Reverse(part.below)));
    let order: Vec<usize> = parts.iter().filter_map(|part| sorted.iter().position(|other| other == part)).collect();
    let sizes = |parts: &[ViewPart]| parts.iter().map(|part| part.size).collect::<Vec<u64>>();
    let size = |parts: &Vec<ViewPart>| parts.iter().map(|part| part.size).product::<u64>();
    let shape: Vec<u64> = view.dimensions.iter().map(size).collect();
    let (split, turned) = (sizes(&sorted), sizes(&parts));
    let mut chain = String::new();
    let reshape = |from: &[u64], to: &[u64], chain: &mut String| {
        if from != to {
            chain.push_str(&format!(".reshape({})", joined(to)));
        }
    };
    let transpose = |order: &[usize], chain: &mut String| {
        if !order.is_sorted() {
            chain.push_str(&format!(".transpose({})", joined(order)));
        }
    };
    match side {
        KernelSide::Operand => {
            reshape(&bounds, &split, &mut chain);
            transpose(&order, &mut chain);
            reshape(&turned, &shape, &mut chain);
        }
        KernelSide::Result => {
            reshape(&shape, &turned, &mut chain);
            let back: Vec<usize> =
                (0..order.len()).filter_map(|at| order.iter().position(|other| *other == at)).collect();
            transpose(&back, &mut chain);
            reshape(&split, &bounds, &mut chain);
        }
    }
    let outside = match side {
        KernelSide::Operand => format!("x = x{chain}  # outside the kernel: a bitcast"),
        KernelSide::Result => format!("y = y{chain}  # outside the kernel: a bitcast"),
    };
    match inside(view, &bounds) {
        Some(inside) => format!("{outside}\n{inside}"),
        None => outside,
    }
}

/// The block inside the kernel, if the view's dimensions are whole ones of the operand; else `None`.
fn inside(view: &View, bounds: &[u64]) -> Option<String> {
    let is_whole = |part: &ViewPart| bounds.get(part.dimension) == Some(&part.size);
    if !view.dimensions.iter().flatten().all(is_whole) {
        return None;
    }
    let all = |letter: char| joined(&(0..bounds.len()).map(|at| format!("{letter}{at}")).collect::<Vec<_>>());
    let block = |parts: &Vec<ViewPart>| match &parts[..] {
        [] => "1".to_owned(),
        parts => parts.iter().map(|part| format!("b{}", part.dimension)).collect::<Vec<_>>().join(" * "),
    };
    // Blocks of folded dimensions are whole, except for the first.
    let index =
        |parts: &Vec<ViewPart>| parts.first().map_or_else(|| "0".to_owned(), |part| format!("i{}", part.dimension));
    let (blocks, indices): (Vec<String>, Vec<String>) =
        view.dimensions.iter().map(|parts| (block(parts), index(parts))).unzip();
    let folded: Vec<String> = view
        .dimensions
        .iter()
        .flat_map(|parts| parts.iter().skip(1))
        .map(|part| format!("b{} is {}", part.dimension, part.size))
        .collect();
    let folded = if folded.is_empty() { String::new() } else { format!(", if {}", folded.join(" and ")) };
    Some(format!(
        "# BlockSpec(({}), …: ({})) becomes\n# BlockSpec(({}), …: ({})){folded}",
        all('b'),
        all('i'),
        joined(&blocks),
        joined(&indices)
    ))
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
