//! A program's interface: arguments of another size, results in another memory, unused donations.

use super::{Judged, Rule};
use crate::entry::{Entry, Section};
use crate::facts::FactValue;
use crate::form::Form;
use crate::level::Level::{Error, Warning};
use crate::message::Message;
use crate::text::reader::Reader;
use crate::verdict::OomVerdict;

pub(super) const RULES: &[Rule] = &[
    Rule {
        codes: &["E0102"],
        opens: &[
            "Executable (expected|{module:name} expected) parameter {parameter:number} of size {expected:bytes} [{expected_shape:shape}] [but got buffer with incompatible size {actual:bytes} [{actual_shape:shape}]]",
            "Executable (expected|{module:name} expected) [buffer] [at] (parameter|argument) {parameter:number} to have element type {expected_type:name} but got buffer with element type {actual_type:name}",
            "Executable (expected|{module:name} expected) [buffer] [at] (parameter|argument) {parameter:number} to have rank {expected_rank:number} but got buffer with rank {actual_rank:number}",
            "Executable (expected|{module:name} expected) [buffer] [at] (parameter|argument) {parameter:number} [to be] [in] memory (space|kind) {expected_space:name} but got … memory (space|kind) {actual_space:name}",
            "Executable (expected|{module:name} expected) [buffer] [at] (parameter|argument) {parameter:number}",
            "Argument does not match host shape or layout of computation parameter {parameter:number} want {expected_shape:shape} got {actual_shape:shape}",
            "~RuntimeProgramInputMismatch expected {expected_shape:shape} [but] got {actual_shape:shape}",
        ],
        adds: &["+(expected|want|compiled for) {expected_shape:shape}", "+(got|received|given) {actual_shape:shape}"],
        ..Rule::new(Form::InputMismatch, Error, Judged::As(OomVerdict::InputMismatch), "E0102")
    },
    Rule {
        memory: Some("host"),
        codes: &["E1200"],
        opens: &["Tensor which is moved to host starting from {instruction:name}"],
        adds: &["layout for this output is not set to host memory"],
        ..Rule::new(Form::HostPlacement, Error, Judged::As(OomVerdict::HostPlacement), "E1200")
    },
    Rule {
        opens: &[
            "Some donated buffers were not usable [{donated:shapes}]",
            "Donation is not implemented for {platform:name}",
            "~Some (donation|donated) buffers [were|are] (unavailable|unusable|not used|not usable) [{donated:shapes}]",
        ],
        then: Some(donated),
        ..Rule::new(Form::Donation, Warning, Judged::As(OomVerdict::Donation), "donation")
    },
];

/// Makes each donated array an entry.
fn donated(_: &mut Reader<'_>, message: &mut Message) {
    let Some(FactValue::Shapes(shapes)) = message.facts.take("donated") else { return };
    message.entries.extend(shapes.into_iter().map(|shape| Entry {
        shape: Some(shape),
        complete: true,
        ..Entry::new(Section::ArgumentsAndOutputs, None)
    }));
}
