//! The pages of a cache: the arrays that hold them, and how many fit.

use super::{
    error,
    growth::Growth,
    resident::{ResidentArray, Residents},
};
use crate::failure::Failure;
use std::fmt;
use tilewise::Shape;

/// The arguments that are the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesOf {
    /// The name of the argument, or of its tree: `caches` matches all of `caches[0]`, `caches[1]`, ….
    pub name: String,
    /// The dimension that counts pages.
    pub dimension: usize,
}

impl std::str::FromStr for PagesOf {
    type Err = Failure;

    /// Parses `caches`, or `caches:1` with the dimension that counts pages.
    fn from_str(text: &str) -> Result<Self, Failure> {
        let (name, dimension) = match text.rsplit_once(':') {
            Some((name, dimension)) => (name, dimension.parse().ok()),
            None => (text, Some(0)),
        };
        match dimension.filter(|_| !name.is_empty()) {
            Some(dimension) => Ok(Self { name: name.to_owned(), dimension }),
            None => Err(error::not_pages(text)),
        }
    }
}

impl fmt::Display for PagesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.dimension)
    }
}

/// The pages of a set's cache.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PageArrays {
    /// Number of arrays, such as one per layer.
    pub arrays: usize,
    /// The name of the first.
    pub name: String,
    /// The shape of the first.
    pub shape: Shape,
    /// The dimension that counts pages.
    pub dimension: usize,
    /// Number of pages that the programs were compiled for.
    pub count: u64,
    /// Bytes of one page in all arrays.
    pub page_bytes: u64,
    /// Bytes of padding in one page.
    pub page_padding_bytes: u64,
    /// Number of pages that fit; `None` without a limit.
    pub fitting: Option<u64>,
    /// The number of the program that then holds the most beside resident arrays; `None` if none holds anything.
    pub decided_by: Option<usize>,
}

/// The page arrays of a set.
pub(super) struct Pages {
    /// Their indices among the resident arrays.
    pub(super) arrays: Vec<usize>,
    pub(super) dimension: usize,
    /// Tells which other arrays grow with them.
    pub(super) growth: Growth,
}

impl Pages {
    pub(super) fn of(residents: &Residents, programs: usize, asked: Option<&PagesOf>) -> Result<Option<Self>, Failure> {
        let dimension = asked.map_or(0, |asked| asked.dimension);
        let is_one = |array: &ResidentArray| match asked {
            Some(asked) => is_within(&array.name, &asked.name),
            None => {
                let is_everywhere = array.programs.len() == programs && !array.donated_to.is_empty();
                is_everywhere && array.shape.dimensions().len() > 2
            }
        };
        let arrays: Vec<usize> = (0..residents.arrays.len()).filter(|at| is_one(&residents.arrays[*at])).collect();
        let counts: Option<Vec<u64>> = arrays.iter().map(|at| bound(&residents.arrays[*at].shape, dimension)).collect();
        let counts = counts.filter(|counts| counts.windows(2).all(|pair| pair[0] == pair[1]));
        let count = counts.and_then(|counts| counts.first().copied()).filter(|count| *count > 0);
        match (count, asked) {
            (Some(count), _) => {
                let shapes = arrays.iter().map(|at| &residents.arrays[*at].shape);
                let growth = Growth::of(shapes, dimension, count);
                Ok(Some(Self { arrays, dimension, growth }))
            }
            (None, None) => Ok(None),
            (None, Some(asked)) if arrays.is_empty() => Err(error::no_pages(&asked.name)),
            (None, Some(asked)) => Err(error::several_counts(&asked.name, dimension)),
        }
    }
}

fn bound(shape: &Shape, dimension: usize) -> Option<u64> {
    shape.dimensions().get(dimension)?.bound()
}

/// Whether an argument has this name, or is a leaf of its tree.
fn is_within(argument: &str, name: &str) -> bool {
    argument.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}
