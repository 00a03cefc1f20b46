//! Elements of tuples as operands.
//!
//! Dumps of compilers since jaxlib 0.11 name an element of a tuple where it is read, `%fusion#1`, or `%p#1#0` within a
//! tuple of tuples, and print no `get-tuple-element`. XLA's parser makes one for each distinct name, shared within its
//! computation, before the first instruction that reads it, and calls it `fusion_1`, or `p_1_0`: observed with jaxlib
//! 0.12.0.1, by printing a text that was read. This module does the same, so that a module has ordinary operands.

use foldhash::{HashMap, HashSet};
use std::borrow::Cow;
use std::mem;

use memchr::memchr;

use crate::opcode::Opcode;
use crate::operands::{Element, OperandTexts, element, has_operands};
use crate::record::{Data, InstructionRecord};
use crate::span::Span;

/// Puts a `get-tuple-element` before the first reader of each element that operands name, and its name in their place.
///
/// Returns the operands that brought them in, by the numbers of the instructions that were made.
pub(crate) fn expand(data: &mut Data) -> HashMap<usize, Span> {
    let reads_element = |instruction: &InstructionRecord| {
        has_operands(instruction.opcode) && memchr(b'#', data.text(instruction.operands).as_bytes()).is_some()
    };
    if memchr(b'#', data.source.as_bytes()).is_none() || !data.instructions.iter().any(reads_element) {
        return HashMap::default();
    }
    let mut expansion = Expansion {
        source: &data.source,
        appendix: String::new(),
        instructions: Vec::with_capacity(data.instructions.len()),
        operands: HashMap::default(),
    };
    let mut rest = mem::take(&mut data.instructions).into_iter();
    for computation in &mut data.computations {
        let instructions: Vec<_> = rest.by_ref().take(computation.end - computation.first).collect();
        computation.first = expansion.instructions.len();
        expansion.computation(instructions);
        computation.end = expansion.instructions.len();
    }
    expansion.instructions.extend(rest);
    let Expansion { appendix, instructions, operands, .. } = expansion;
    data.source.push_str(&appendix);
    data.instructions = instructions;
    operands
}

struct Expansion<'d> {
    source: &'d str,
    /// The text to append to the source.
    appendix: String,
    instructions: Vec<InstructionRecord>,
    /// The operand that brought in an instruction.
    operands: HashMap<usize, Span>,
}

impl<'d> Expansion<'d> {
    fn computation(&mut self, instructions: Vec<InstructionRecord>) {
        let source = self.source;
        let text = |span: Span| source.get(span.range()).unwrap_or_default();
        let reads_element = |instruction: &InstructionRecord| {
            has_operands(instruction.opcode) && memchr(b'#', text(instruction.operands).as_bytes()).is_some()
        };
        if !instructions.iter().any(reads_element) {
            self.instructions.extend(instructions);
            return;
        }
        let mut names: HashSet<String> = instructions.iter().map(|other| text(other.name).to_owned()).collect();
        let mut defined: HashSet<&str> = HashSet::default();
        let mut made: HashMap<(String, usize), String> = HashMap::default();
        for mut instruction in instructions {
            // If an operand isn't defined above, the text stays, and `resolve` warns of it.
            let is_defined = |operand: &str| match element(operand) {
                Some(Element { name, path }) => path.is_empty() || defined.contains(&operand[name]),
                None => memchr(b'#', operand.as_bytes()).is_none(),
            };
            if reads_element(&instruction) && OperandTexts::new(text(instruction.operands)).all(is_defined) {
                let mut operands: Vec<Cow<'_, str>> = Vec::new();
                for operand in OperandTexts::new(text(instruction.operands)) {
                    let Some(Element { name, path }) = element(operand).filter(|element| !element.path.is_empty())
                    else {
                        operands.push(operand.into());
                        continue;
                    };
                    let start = operand.as_ptr() as usize - source.as_ptr() as usize;
                    let span = Span::new(start, start + operand.len());
                    let mut tuple = operand[name.clone()].to_owned();
                    for number in path {
                        let key = (tuple, number);
                        tuple = match made.get(&key) {
                            Some(name) => name.clone(),
                            None => {
                                let name = self.element(&key.0, number, &mut names, span);
                                made.insert(key, name.clone());
                                name
                            }
                        };
                    }
                    operands.push(format!("{}%{tuple}", operand[..name.start].trim_end_matches('%')).into());
                }
                instruction.operands = self.append(&operands.join(", "));
            }
            defined.insert(text(instruction.name));
            self.instructions.push(instruction);
        }
    }

    /// Adds the instruction that is element `number` of `tuple`, and returns its name.
    fn element(&mut self, tuple: &str, number: usize, names: &mut HashSet<String>, operand: Span) -> String {
        let mut name = format!("{tuple}_{number}");
        if names.contains(&name) {
            let free = (1..).map(|count| format!("{name}.{count}")).find(|name| !names.contains(name));
            name = free.unwrap_or_default();
        }
        names.insert(name.clone());
        self.operands.insert(self.instructions.len(), operand);
        let record = InstructionRecord {
            name: self.append(&name),
            // Inferred, as wherever a text leaves it out.
            shape: Span::default(),
            opcode: Opcode::GetTupleElement,
            opcode_text: self.append("get-tuple-element"),
            operands: self.append(&format!("%{tuple}")),
            attributes: self.append(&format!(", index={number}")),
            is_root: false,
        };
        self.instructions.push(record);
        name
    }

    fn append(&mut self, text: &str) -> Span {
        let start = self.source.len() + self.appendix.len();
        self.appendix.push_str(text);
        Span::new(start, start + text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_a_name_and_numbers() {
        let read = |text: &str| element(text).map(|found| (text[found.name].to_owned(), found.path));
        assert_eq!(read("%p#1#0"), Some(("p".to_owned(), vec![1, 0])));
        assert_eq!(read("f32[2]{0} %p#0"), Some(("p".to_owned(), vec![0])));
        assert_eq!(read("(f32[2], /*#*/s8[]) p /*#7*/ # 00"), Some(("p".to_owned(), vec![0])));
        assert_eq!(read("f32[2] %p /*#1*/"), Some(("p".to_owned(), vec![])));
        for other in ["p#", "p#-1", "p#0.", "p#0x", "p#1 q", "p@0", "#1", "f32[2]#1", "p#99999999999999999999"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
