//! Run time: the program compiled, but there is no room for its buffers or for the program itself.

use super::{Judged, Rule};
use crate::form::Form;
use crate::level::Level::Error;
use crate::verdict::OomVerdict;

pub(super) const RULES: &[Rule] = &[
    Rule {
        memory: Some("hbm"),
        codes: &["E0101", "E0100"],
        opens: &[
            "Attempting to {verb:name} {used:size} [at the bottom of memory]",
            "Could not allocate {used:bytes} in memory {:name}[; {contiguous:bytes} allocatable[, {limit:bytes} available]]",
            "Error loading program (Attempting to {load:name} {used:size} [at the bottom of memory]|{module:name})",
            "Error allocating device buffer",
            "~(trying|tried|attempted|failed|unable) to (reserve|allocate|load) {used:size} [of] [HBM] [with|when|but|while|where] [only] [there are|there is|there was] ({contiguous:size} reservable|{limit:size} [HBM] free|{limit:size} [HBM] available)",
            "~RuntimeProgramAllocationFailure {used:size} (needed|required|requested|asked) {limit:size} (free|available|reservable)",
        ],
        adds: &[
            "There (are|is) {limit:size} free[, {reserved:size} reserved[, and {contiguous:size} reservable]]",
            "largest contiguous region of free memory is {contiguous:size}",
            "HBM capacity {capacity:size}",
            "+(with|only|but|where) {limit:size} (free|available)",
            "+Graph output size {graph_output:size}",
        ],
        ..Rule::new(Form::RunTime, Error, Judged::RunTime, "E0101")
    },
    Rule {
        codes: &["E0200"],
        opens: &["Accelerator device halted prematurely", "halted unexpectedly at tag", "core halted unexpectedly"],
        adds: &[
            "observed errors are {observed:name}",
            "+BoundsCheck {bounds_check:number}",
            "+Semaphore … nonzero value upon exit from a {semaphore:name} kernel",
            "+launch group with a {launch:name} launch id",
        ],
        ..Rule::new(Form::CoreHalt, Error, Judged::As(OomVerdict::Unknown), "E0200")
    },
];
