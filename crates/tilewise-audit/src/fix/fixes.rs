//! What is found: fixes, or why there are none.

use crate::snippet;
use std::fmt;
use tilewise::{
    Shape,
    tpu::{self, Generation},
};

/// The most fixes that [`suggest`](super::suggest) finds.
pub const MAX_FIXES: usize = 5;

/// What [`suggest`](super::suggest) found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fixes {
    /// The best first, each of another kind; at most [`MAX_FIXES`].
    pub list: Vec<Fix>,
    /// Why there is no fix; `None` if there is one.
    pub no_fix: Option<NoFix>,
    /// The generation whose rule priced the fixes.
    pub generation: Generation,
    /// How the generation is known.
    pub basis: Basis,
}

impl Fixes {
    /// The fix to try first.
    #[must_use]
    pub fn best(&self) -> Option<&Fix> {
        self.list.first()
    }

    /// The same with the code written for an array of this name, such as `params['w']`, in place of `x`.
    ///
    /// ```
    /// use tilewise_audit::fix;
    ///
    /// let fixes = fix::suggest(&"f32[400000,12]{1,0:T(8,128)}".parse()?, None).for_argument("params['w']");
    /// assert_eq!(fixes.list[1].jax, "params['w'] = params['w'].T  # f32[12,400000]");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn for_argument(mut self, name: &str) -> Self {
        for fix in &mut self.list {
            fix.jax = renamed(&fix.jax, name);
        }
        self
    }
}

/// Code with this name wherever it has `x` by itself, but for its comment.
pub(crate) fn renamed(code: &str, name: &str) -> String {
    let (code, comment) = code.split_at(code.find("  #").unwrap_or(code.len()));
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut renamed = String::with_capacity(code.len() + comment.len());
    let mut before = ' ';
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == 'x' && !is_part(before) && !letters.peek().copied().is_some_and(is_part) {
            renamed.push_str(name);
        } else {
            renamed.push(letter);
        }
        before = letter;
    }
    renamed + comment
}

/// How the generation is known whose rule prices fixes. Layouts differ only between v2, v3 and everything since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// The caller named it.
    Given,
    /// The array's tiles occur only on this side of the divide.
    Inferred,
    /// The array's tiles don't tell; the rule since v4 is assumed.
    Assumed,
}

impl Basis {
    /// The basis in one word: `given`, `inferred` or `assumed`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Inferred => "inferred",
            Self::Assumed => "assumed",
        }
    }
}

/// What a fix changes, the simplest kind first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FixKind {
    /// The order of dimensions is left to the compiler.
    Order,
    /// The dimensions change places in the program.
    Transpose,
    /// The same elements under other bounds.
    Reshape,
    /// Several arrays in place of one.
    Split,
    /// One array in place of many small ones.
    Batch,
    /// A dimension shrinks.
    Resize,
    /// The elements become smaller.
    Narrow,
}

impl FixKind {
    /// The kind in one word, such as `transpose`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Transpose => "transpose",
            Self::Reshape => "reshape",
            Self::Split => "split",
            Self::Batch => "batch",
            Self::Resize => "resize",
            Self::Narrow => "narrow",
        }
    }
}

/// One change to a program, and what it saves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fix {
    /// What changes.
    pub kind: FixKind,
    /// What takes the array's place, in device memory. New orders, reshapes and batches have their default layouts, the
    /// others keep the array's order.
    pub arrays: Vec<NewArray>,
    /// How many such arrays these replace: 1, and more only for [`FixKind::Batch`].
    pub replaced: u64,
    /// Bytes the array takes now.
    pub bytes_before: u64,
    /// Bytes it takes afterwards, all new arrays together; for a batch its share of them, rounded up.
    pub bytes_after: u64,
    /// Bytes of data afterwards, counted in the same way.
    pub logical_bytes_after: u64,
    /// Whether elements are dropped or lose precision or range.
    pub changes_values: bool,
    /// What to do, in a sentence without a full stop, with axes named.
    pub sentence: String,
    /// The line of JAX that does it to an array `x`, or to the list `xs` that a batch is made of, before it is handed to a
    /// compiled function, and a comment with what comes out. [`imports`](Self::imports) go before it.
    pub jax: String,
}

impl Fix {
    /// What [`jax`](Self::jax) imports, a line each; empty where that needs nothing.
    #[must_use]
    pub fn imports(&self) -> &'static str {
        match &self.jax {
            code if code.contains("Layout(") => snippet::LAYOUT,
            code if code.contains("jax.") => snippet::JAX,
            code if code.contains("jnp.") => snippet::NUMPY,
            _ => "",
        }
    }

    /// Bytes the change frees, for each array as it is now.
    #[must_use]
    pub fn bytes_saved(&self) -> u64 {
        self.bytes_before - self.bytes_after
    }

    /// How many times its logical size the data takes afterwards.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn expansion(&self) -> f64 {
        self.bytes_after as f64 / self.logical_bytes_after as f64
    }
}

/// An array that a fix puts in place of the old one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewArray {
    /// Its shape, layout included.
    pub shape: Shape,
    /// How many of it.
    pub count: u64,
}

/// Why no fix is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoFix {
    /// A tuple, a token or an opaque value: only its leaves are laid out.
    NotAnArray,
    /// The size is not known: a dimension is `?`, or the array is larger than 2^63 − 1 bytes.
    Unsized,
    /// No generation's layout for the element type is known.
    UnknownElementType,
    /// Layouts in this memory space are not predicted.
    MemorySpace(u8),
    /// A scalar already takes the minimum allocation.
    Scalar,
    /// Nothing is padded.
    NoPadding,
    /// The padding is at most 2 % of the data.
    LittlePadding,
    /// Nothing that was tried frees 5 % of the padding.
    NothingHelps,
}

impl NoFix {
    /// A stable name in snake case, such as `nothing_helps`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAnArray => "not_an_array",
            Self::Unsized => "unsized",
            Self::UnknownElementType => "unknown_element_type",
            Self::MemorySpace(_) => "memory_space",
            Self::Scalar => "scalar",
            Self::NoPadding => "no_padding",
            Self::LittlePadding => "little_padding",
            Self::NothingHelps => "nothing_helps",
        }
    }
}

impl fmt::Display for NoFix {
    /// One clause: `nothing is padded`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnArray => "only arrays are laid out; of a tuple, ask for each leaf",
            Self::Unsized => "the size of the array is not known",
            Self::UnknownElementType => "the layout that TPUs give this element type is not known",
            Self::MemorySpace(space) => {
                return write!(f, "layouts in memory space {space} ({}) are not known", tpu::memory_space_name(*space));
            }
            Self::Scalar => "a scalar already takes the minimum allocation",
            Self::NoPadding => "nothing is padded",
            Self::LittlePadding => "the padding is at most 2 % of the data",
            Self::NothingHelps => {
                "no order, reshape, split, size or element type that was tried frees 5 % of the padding"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_about_the_array_by_its_name() {
        let name = "params['w']";
        assert_eq!(
            renamed("x = x.reshape(3, 4)  # f32[3,4]", name),
            "params['w'] = params['w'].reshape(3, 4)  # f32[3,4]"
        );
        assert_eq!(renamed("xs = jnp.unstack(x, axis=1)", name), "xs = jnp.unstack(params['w'], axis=1)");
        assert_eq!(renamed("x = jax.lax.slice_in_dim(x, 0, 2)", "y"), "y = jax.lax.slice_in_dim(y, 0, 2)");
    }
}
