//! The kernels of a program, and what the compiler says that each takes of VMEM.

use super::{
    operands::{KernelOperand, operands},
    sections::Report,
};
use crate::program::{MOSAIC, Sizer, SourceLine, op_name, share, source_line, target};
use tilewise::tpu::{Generation, kernel::Limits};
use tilewise_hlo::{Instruction, Opcode, unquote};

/// The memory space of VMEM in a `backend_config`.
const VMEM: &str = "1";

/// A kernel of a program, and what it takes of VMEM by the compiler's own account: windows, scratch, and what its body
/// needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelRow {
    /// The call's name.
    pub instruction: String,
    /// The computation it is in.
    pub computation: String,
    /// Bytes of VMEM that it uses; `None` where the text doesn't say.
    pub used_bytes: Option<u64>,
    /// The limit in force, in bytes: what it asks for, or the generation's default. `None` where that isn't known.
    pub limit_bytes: Option<u64>,
    /// The largest limit that is honoured, in bytes.
    pub cap_bytes: Option<u64>,
    /// Its operands, with what XLA does to them before the call.
    pub operands: Vec<KernelOperand>,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

impl KernelRow {
    /// Whether it uses nine tenths of its limit or more: a slightly larger block may not compile.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.share_of_limit().is_some_and(|share| share >= 0.9)
    }

    /// What it uses as a share of its limit.
    #[must_use]
    pub fn share_of_limit(&self) -> Option<f64> {
        Some(share(self.used_bytes?, self.limit_bytes?))
    }

    /// Bytes that are read and written before one call, to bring its operands' elements into the order that it takes.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.operands.iter().map(KernelOperand::copied_bytes).fold(0, u64::saturating_add)
    }

    fn of(call: &Instruction<'_>, computation: &str, generation: Generation, sizer: &mut Sizer<'_>) -> Self {
        let instruction = call;
        let config = instruction.attribute("backend_config").map(unquote).unwrap_or_default();
        let limits = Limits::of(generation);
        let asked = vmem_bytes(&config, "\"scoped_memory_configs\"");
        Self {
            instruction: instruction.name().to_owned(),
            computation: computation.to_owned(),
            used_bytes: vmem_bytes(&config, "\"used_scoped_memory_configs\""),
            limit_bytes: asked.or(limits.map(|limits| limits.default_bytes)),
            cap_bytes: limits.map(|limits| limits.cap_bytes),
            operands: operands(instruction, sizer),
            op_name: op_name(instruction),
            source: source_line(instruction),
        }
    }
}

impl Report {
    /// The kernels of the program, in the order of the text: TPUs'.
    #[must_use]
    pub fn kernels(&self) -> Vec<KernelRow> {
        let Some(generation) = self.machine.generation() else { return Vec::new() };
        let computations = self.planned.module.computations();
        let calls = computations.flat_map(|computation| {
            computation.instructions().map(move |instruction| (computation.name(), instruction))
        });
        let kernels = calls.filter(|(_, instruction)| {
            instruction.opcode() == Opcode::CustomCall && target(instruction) == Some(MOSAIC)
        });
        let mut sizer = Sizer::default();
        let row =
            |(computation, call): (&str, Instruction<'_>)| KernelRow::of(&call, computation, generation, &mut sizer);
        kernels.map(row).collect()
    }
}

/// The bytes of VMEM in a list of the config: `"name":[{"memory_space":"1","offset":"0","size":"7430144"}]`.
fn vmem_bytes(config: &str, name: &str) -> Option<u64> {
    let (_, list) = config.split_once(name)?;
    let list = list.trim_start_matches([' ', ':']).strip_prefix('[')?;
    let (list, _) = list.split_once(']')?;
    let field = |object: &str, name: &str| {
        let (_, value) = object.split_once(name)?;
        let value = value.trim_start_matches([' ', ':', '"']);
        Some(value[..value.bytes().take_while(u8::is_ascii_digit).count()].to_owned())
    };
    let mut objects = list.split('}').filter(|object| field(object, "\"memory_space\"").as_deref() == Some(VMEM));
    field(objects.next()?, "\"size\"")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_lists_are_read() {
        let config = r#"{"scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"67108864"}],"custom_call_config":{"body":"TUzvUgFN"},"used_scoped_memory_configs":[{"memory_space":"4","size":"12"},{"size":"7430144", "memory_space": "1"}]}"#;
        assert_eq!(vmem_bytes(config, "\"scoped_memory_configs\""), Some(67_108_864));
        assert_eq!(vmem_bytes(config, "\"used_scoped_memory_configs\""), Some(7_430_144));
        for none in [
            "",
            "{}",
            r#"{"scoped_memory_configs":[]}"#,
            r#"{"scoped_memory_configs":["#,
            "\"scoped_memory_configs\":[{\"memory_space\":\"1\",\"size\":\"99999999999999999999\"}]",
        ] {
            assert_eq!(vmem_bytes(none, "\"scoped_memory_configs\""), None, "{none}");
        }
    }
}
