//! The attributes of an instruction: the computations they call, and whether any is missing.

use super::Resolver;
use super::misspelt::{Seen, is_nearly_any};
use crate::calls::{CallRole, called};
use crate::error::WarningKind;
use crate::opcode::{Opcode, wrapped};
use crate::pairs::Pairs;
use crate::scan::trim;

/// The attributes of instructions that a plan of memory depends on.
const READ: [&str; 10] = [
    "body",
    "branch_computations",
    "called_computations",
    "calls",
    "condition",
    "false_computation",
    "index",
    "output_to_operand_aliasing",
    "to_apply",
    "true_computation",
];

impl<'d> Resolver<'d> {
    /// Reads the attributes, but for those printed last: the metadata and the backend's configuration.
    pub(super) fn attributes(&mut self, at: usize, may_lack: bool) {
        let data = self.data;
        let instruction = &data.instructions[at];
        // `slice-start` and the like have their operation in their names.
        let opcode = match instruction.opcode {
            Opcode::AsyncStart if data.text(instruction.opcode_text) != "async-start" => Opcode::Slice,
            opcode => opcode,
        };
        let text = data.text(instruction.attributes);
        let (mut has, mut branches, mut seen) = (Has::default(), 0, Seen::default());
        let mut is_last_read = false;
        let mut pairs = Pairs::new(text);
        while let Some((name, value)) = pairs.next_name() {
            if !seen.add(name) {
                self.warn(WarningKind::DuplicateAttribute, data.span_of(name));
            }
            is_last_read = is_last(name, &text[value..]) && has.what_needs(opcode);
            if is_last_read {
                break;
            }
            let value = pairs.skip_value(value);
            if let Some(role) = CallRole::of(name) {
                has.roles |= 1 << role as u32;
                let runs_fusion =
                    || opcode == Opcode::Fusion || wrapped(data.text(instruction.opcode_text)) == Some(Opcode::Fusion);
                let takes_it = match role {
                    CallRole::Condition | CallRole::Body => opcode == Opcode::While,
                    CallRole::Branch | CallRole::True | CallRole::False => opcode == Opcode::Conditional,
                    CallRole::Select | CallRole::Scatter => opcode == Opcode::SelectAndScatter,
                    // An unknown instruction may call anything.
                    CallRole::Calls | CallRole::ToApply | CallRole::Called => true,
                };
                if !takes_it && opcode != Opcode::Unknown && !instruction.opcode.is_async() {
                    self.warn(WarningKind::UnexpectedAttribute, data.span_of(name));
                }
                if matches!(role, CallRole::Branch | CallRole::True | CallRole::False) {
                    branches += called(data, value).count();
                }
                self.note_called(value, role == CallRole::Calls && runs_fusion());
            } else if name == "control-predecessors" && memchr::memchr(b'#', value.as_bytes()).is_some() {
                // XLA accepts only names.
                self.warn(WarningKind::UnreadLines, data.span_of(value));
            } else if name == "index" {
                has.index = trim(value).parse::<usize>().is_ok();
            } else if is_nearly_any(name, &READ) {
                self.warn(WarningKind::MisspeltAttribute, data.span_of(name));
            }
        }
        if !is_last_read && !pairs.is_at_end() {
            self.warn(WarningKind::UnreadLines, data.span_of(pairs.rest()));
        }
        if !has.what_needs(opcode) {
            self.warn_at(WarningKind::MissingAttribute, at);
        } else if opcode == Opcode::Conditional && !may_lack && self.last_operands().len() != branches + 1 {
            // The branch index, and an operand for each branch.
            self.warn_at(WarningKind::OperandCount, at);
        }
    }
}

/// Whether the attributes from here on needn't be read: `metadata` and `backend_config`, which are printed last, and
/// whose brackets the parser has counted.
fn is_last(name: &str, values: &str) -> bool {
    match name {
        "metadata" => {
            let Some(end) = memchr::memchr(b'}', values.as_bytes()) else { return false };
            let rest = values[end + 1..].trim_ascii_end();
            rest.is_empty()
                || rest.strip_prefix(", backend_config=").is_some_and(|value| is_last("backend_config", value))
        }
        "backend_config" => values.trim_ascii_end().ends_with(['}', '"']) && !may_go_on(values),
        _ => false,
    }
}

/// Whether a further attribute may stand in a text: a comma with a letter behind it, which in JSON is rare.
fn may_go_on(values: &str) -> bool {
    let bytes = values.as_bytes();
    let behind = |at: usize| bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
    memchr::memchr_iter(b',', bytes).any(|at| matches!(behind(at), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'/')))
}

/// The attributes that an instruction has, of those it may need.
#[derive(Default)]
struct Has {
    /// A bit for each role.
    roles: u32,
    index: bool,
}

impl Has {
    /// Whether an instruction of this opcode has the attributes that it needs.
    fn what_needs(&self, opcode: Opcode) -> bool {
        use CallRole::{Body, Branch, Calls, Condition, False, ToApply, True};
        let has = |role: CallRole| self.roles & (1 << role as u32) != 0;
        match opcode {
            Opcode::Fusion | Opcode::AsyncStart => has(Calls),
            Opcode::Call => has(ToApply) || has(Calls),
            Opcode::While => has(Condition) && has(Body),
            Opcode::Conditional => has(Branch) || (has(True) && has(False)),
            Opcode::GetTupleElement => self.index,
            _ => true,
        }
    }
}
