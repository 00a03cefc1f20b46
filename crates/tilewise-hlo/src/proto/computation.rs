//! Computations, with the names and ids of their instructions.

use foldhash::HashMap;

use prost::Message;
use prost::bytes::Bytes;
use tilewise::Shape;

use super::messages::{HloComputationProto, HloInstructionProto, HloModuleProto, InstructionHead};
use super::{invalid, is_name, undecodable};
use crate::error::Error;

/// The shape in a message, as text.
pub(super) fn shape(bytes: &Bytes) -> Result<Shape, Error> {
    Shape::decode_proto(bytes).map_err(|error| invalid(format!("a shape isn't valid: {error}")).caused_by(error))
}

/// A computation, with the names and ids of its instructions.
pub(super) struct Computation {
    pub(super) proto: HloComputationProto,
    pub(super) heads: Vec<InstructionHead>,
    positions: HashMap<i64, usize>,
    /// For a computation that is only there to be wrapped by an async instruction: the one instruction beside its
    /// parameters, which the text gives to the async instruction (`HloComputation::CanExpandIntoSingleInstruction`).
    pub(super) single_instruction: Option<HloInstructionProto>,
}

impl Computation {
    fn of(bytes: &Bytes) -> Result<Self, Error> {
        let proto = HloComputationProto::decode(bytes.clone()).map_err(|error| undecodable(&error))?;
        check_name(&proto.name)?;
        let head = |bytes: &Bytes| {
            let head = InstructionHead::decode(bytes.clone()).map_err(|error| undecodable(&error))?;
            check_name(&head.name)?;
            check_name(&head.opcode)?;
            Ok(head)
        };
        let heads = proto.instructions.iter().map(head).collect::<Result<Vec<_>, Error>>()?;
        let positions = heads.iter().enumerate().map(|(at, head)| (head.id, at)).collect();
        Ok(Self { proto, heads, positions, single_instruction: None })
    }

    /// The position of the instruction of this id.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    pub(super) fn instruction(&self, at: usize) -> Result<HloInstructionProto, Error> {
        let bytes = self.proto.instructions.get(at).cloned().unwrap_or_default();
        HloInstructionProto::decode(bytes).map_err(|error| undecodable(&error))
    }

    /// The root, if all others are parameters.
    fn only_root(&self) -> Option<usize> {
        let root = self.position(self.proto.root_id)?;
        let others = self.heads.iter().enumerate().filter(|(at, _)| *at != root);
        others.into_iter().all(|(_, head)| head.opcode == "parameter").then_some(root)
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name.as_bytes()) {
        return Ok(());
    }
    let start: String = name.chars().take(80).collect();
    Err(invalid(format!("`{}` can't be a name in HLO", start.escape_debug())))
}

/// All computations of a module.
pub(super) struct Computations {
    pub(super) list: Vec<Computation>,
    positions: HashMap<i64, usize>,
}

impl Computations {
    /// Reads the computations. If `is_short`, async instructions are to be printed in their short form.
    pub(super) fn of(module: &HloModuleProto, is_short: bool) -> Result<Self, Error> {
        let list = module.computations.iter().map(Computation::of).collect::<Result<Vec<_>, _>>()?;
        let positions = list.iter().enumerate().map(|(at, computation)| (computation.proto.id, at)).collect();
        let mut computations = Self { list, positions };
        let wrapped = if is_short { computations.wrapped()? } else { Vec::new() };
        for position in wrapped {
            let computation = &computations.list[position];
            if let Some(root) = computation.only_root() {
                computations.list[position].single_instruction = Some(computation.instruction(root)?);
            }
        }
        Ok(computations)
    }

    /// The computations that async instructions wrap.
    fn wrapped(&self) -> Result<Vec<usize>, Error> {
        let mut wrapped = Vec::new();
        for computation in &self.list {
            for (at, _) in computation.heads.iter().enumerate().filter(|(_, head)| head.opcode == "async-start") {
                let called = computation.instruction(at)?.called_computation_ids;
                wrapped.extend(called.first().and_then(|id| self.positions.get(id)));
            }
        }
        Ok(wrapped)
    }

    /// The names of all instructions by their ids, which are unique in a module.
    pub(super) fn instruction_names(&self) -> HashMap<i64, &str> {
        let heads = self.list.iter().flat_map(|computation| &computation.heads);
        heads.map(|head| (head.id, head.name.as_str())).collect()
    }

    pub(super) fn get(&self, id: i64) -> Option<&Computation> {
        self.list.get(*self.positions.get(&id)?)
    }
}
