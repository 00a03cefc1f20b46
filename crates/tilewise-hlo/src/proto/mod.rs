//! Programs as protobuf messages, printed as XLA prints them: so a proto is read exactly as its text is.

mod computation;
mod dimension_numbers;
mod instruction;
mod messages;
mod print;

mod profile;
mod text;

pub(crate) use profile::{begins_as_profile, programs};

use messages::{HloComputationProto, HloModuleProto, HloProto, HloSnapshot, InstructionHead};
use prost::Message;
use prost::bytes::Bytes;

use crate::buffer_assignment::BufferAssignment;
use crate::error::{Error, ErrorKind};
use crate::scan::is_identifier;

/// A program found in bytes.
pub(crate) struct Found {
    module: HloModuleProto,
    /// The `BufferAssignmentProto` that came with it.
    buffer_assignment: Option<Bytes>,
    /// The size of the program in bytes.
    bytes: usize,
    /// Whether the text has async instructions in their short form, as `slice-start` for an `async-start` that wraps a
    /// `slice`: XLA prints modules that way, but not in its dumps, which are `HloProto`s.
    is_short: bool,
}

impl Found {
    /// The program as HLO text, and its buffer assignment.
    pub(crate) fn into_parts(self) -> Result<(String, Option<BufferAssignment>), Error> {
        let Self { module, buffer_assignment, bytes, is_short } = self;
        let computations = computation::Computations::of(&module, is_short)?;
        let assignment = buffer_assignment.map(|bytes| {
            let names = computations.instruction_names();
            BufferAssignment::decode(bytes, |id| names.get(&id).copied().map(str::to_owned))
        });
        Ok((print::module(&module, &computations, bytes)?, assignment.transpose()?))
    }
}

/// The program in an `HloModuleProto`, `HloProto` or `HloSnapshot`; `None` if the bytes hold no program.
///
/// # Errors
///
/// [`Truncated`](ErrorKind::Truncated) for bytes that begin as one of them and end too early.
pub(crate) fn find(bytes: &Bytes) -> Result<Option<Found>, Error> {
    // Protos don't name their type. A deeper message is looked for first: its bytes pass for few others.
    let hlo = HloSnapshot::decode(bytes.clone()).ok().and_then(|snapshot| snapshot.hlo);
    for candidate in hlo.into_iter().chain([bytes.clone()]) {
        let Ok(HloProto { hlo_module: Some(module), buffer_assignment }) = HloProto::decode(candidate) else {
            continue;
        };
        if let Some(found) = module_in(&module) {
            return Ok(Some(Found { module: found, buffer_assignment, bytes: module.len(), is_short: false }));
        }
    }
    if let Some(module) = module_in(bytes) {
        return Ok(Some(Found { module, buffer_assignment: None, bytes: bytes.len(), is_short: true }));
    }
    if begins_as_module(bytes) {
        let message = "the proto of an HLO module is damaged or cut off";
        return Err(Error::new(ErrorKind::Truncated, None, message));
    }
    Ok(None)
}

/// The message, if it is a module with at least one instruction.
fn module_in(bytes: &Bytes) -> Option<HloModuleProto> {
    let module = HloModuleProto::decode(bytes.clone()).ok()?;
    let computation = HloComputationProto::decode(module.computations.first()?.clone()).ok()?;
    let instruction = InstructionHead::decode(computation.instructions.first()?.clone()).ok()?;
    let names = [&computation.name, &instruction.name, &instruction.opcode];
    names.into_iter().all(|name| is_name(name.as_bytes())).then_some(module)
}

/// Whether the bytes begin with a module's name and its entry's, within up to two messages around it.
pub(crate) fn begins_as_module(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    for _ in 0..3 {
        let Some((length, after)) = field(rest, 1) else { return false };
        let name = after.get(..length).filter(|name| is_name(name));
        if name.is_some() && after.get(length..).and_then(|rest| field(rest, 2)).is_some() {
            return true;
        }
        rest = after;
    }
    false
}

/// The length of the field of this number, if the bytes begin with one that has a length, and the bytes behind.
fn field(bytes: &[u8], number: u8) -> Option<(usize, &[u8])> {
    let (&tag, mut rest) = bytes.split_first()?;
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    (tag == number << 3 | 2).then_some((usize::try_from(length).ok()?, rest))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().copied().all(is_identifier)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidProto, None, message)
}

fn undecodable(error: &prost::DecodeError) -> Error {
    invalid(format!("not a valid proto of an HLO module: {error}"))
}
