//! Dumps that name elements of tuples where they are read (`%fusion#1`).

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::collections::HashMap;
use std::fmt::Write as _;

use tilewise::tpu::Generation;
use tilewise_hlo::{Module, Opcode, dataflow::Dataflow};
use tilewise_memory::{MemoryPlan, PlanOptions};
use tilewise_testing::programs;

fn plan(module: &Module, generation: &str) -> MemoryPlan {
    MemoryPlan::new(module, &PlanOptions::new(generation.parse::<Generation>().unwrap())).unwrap()
}

#[test]
fn totals_are_the_compilers() {
    let text = tilewise_hlo::read_text(programs::path("elements.hlo.gz")).unwrap();
    let (modules, rows) = (Module::parse_all(text), programs::table("elements.csv"));
    assert_eq!(modules.len(), rows.len());
    for (row, module) in rows.into_iter().zip(modules) {
        let module = module.unwrap();
        assert_eq!((module.name(), module.warnings()), (row[0].as_str(), &[][..]));
        assert!(Dataflow::new(&module).mismatch().is_none(), "{}", row[0]);
        let plan = plan(&module, &row[1]);
        let found = [plan.argument_bytes, plan.output_bytes, plan.alias_bytes, plan.temporary_bytes()];
        assert_eq!(found.map(|bytes| bytes.to_string()), row[2..6], "{}", row[0]);
    }
}

/// The text as a dump has it: without `get-tuple-element`, but for roots, and with elements where they are read.
fn as_dumped(module: &Module) -> String {
    let mut text = module.source().to_owned();
    for computation in module.computations() {
        let mut elements: HashMap<&str, String> = HashMap::new();
        let mut body = String::new();
        for instruction in computation.instructions() {
            let name = |name: &str| elements.get(name).cloned().unwrap_or_else(|| format!("%{name}"));
            let operands: Vec<String> = instruction.operand_names().map(name).collect();
            if instruction.opcode() == Opcode::GetTupleElement && !instruction.is_root() {
                let element = format!("{}#{}", operands[0], instruction.attribute("index").unwrap());
                elements.insert(instruction.name(), element);
                continue;
            }
            let operands = match instruction.opcode() {
                Opcode::Constant | Opcode::Parameter => instruction.operands_text().to_owned(),
                _ => operands.join(", "),
            };
            let root = if instruction.is_root() { "ROOT " } else { "" };
            let (name, shape, opcode) = (instruction.name(), instruction.shape_text(), instruction.opcode_text());
            let attributes = instruction.attributes_text();
            writeln!(body, "  {root}%{name} = {shape} {opcode}({operands}){attributes}").unwrap();
        }
        // The computation's old lines are those between its first name and its last attribute.
        let start = text.find(&format!("%{} (", computation.name())).unwrap();
        let open = start + text[start..].find("{\n").unwrap() + 2;
        let close = open + text[open..].find("\n}").unwrap() + 1;
        text.replace_range(open..close, &body);
    }
    text
}

#[test]
fn a_dump_has_the_plan_of_the_whole_text() {
    let mut elements = 0;
    for row in programs::table("sizes.csv") {
        let module = tilewise_hlo::read(programs::path(&row[0])).unwrap();
        let text = as_dumped(&module);
        elements += text.matches('#').count();
        let dump = Module::parse(text).unwrap();
        assert_eq!(dump.warnings(), [], "{}", row[0]);
        let values = |module: &Module| {
            let plan = plan(module, &row[1]);
            let values = plan.spaces.iter().flat_map(|space| &space.values);
            let mut values: Vec<String> = values
                .map(|value| {
                    let name = module.instruction(value.instruction).unwrap().name();
                    format!("{name}{:?}: {} bytes at {:?}", value.shape_index(), value.bytes, value.offset)
                })
                .collect();
            values.sort();
            values
        };
        assert_eq!(values(&dump), values(&module), "{}", row[0]);
    }
    assert!(elements > 70, "{elements} elements");
}
