//! Programs as a TPU compiler printed them; see `testing/programs/README.md`.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::collections::BTreeSet;

use tilewise_hlo::{Instruction, Module, Opcode, SourceLocation, dataflow::Dataflow, read};
use tilewise_testing::programs;

const PROGRAMS: [&str; 4] = ["gnn.v6e", "sampler_loop.v6e", "rigid_frames.v5e", "pallas_kernel.v5e"];

fn program(name: &str) -> Module {
    read(programs::path(&format!("{name}.hlo"))).unwrap()
}

fn instruction<'m>(module: &'m Module, name: &str) -> Instruction<'m> {
    module.instructions().find(|instruction| instruction.name() == name).unwrap()
}

fn buffer_names(module: &Module) -> Vec<String> {
    let name = |buffer: tilewise_hlo::Buffer<'_>| {
        let index: Vec<_> = buffer.shape_index.iter().map(usize::to_string).collect();
        format!("{}{{{}}}", buffer.instruction.name(), index.join(","))
    };
    module.buffers().map(|buffer| name(buffer.unwrap())).collect()
}

#[test]
fn everything_is_read() {
    for name in PROGRAMS {
        let module = program(name);
        assert_eq!(module.warnings(), [], "{name}");
        assert!(module.is_scheduled());
        assert!(module.entry().unwrap().name().starts_with("main"));
        for computation in module.computations() {
            assert_eq!(module.computation(computation.name()), Some(computation));
            assert_eq!(computation.instructions().filter(Instruction::is_root).count(), 1);
        }
        for instruction in module.instructions() {
            instruction.shape().unwrap();
            assert_eq!(instruction.computation().instruction(instruction.name()), Some(instruction));
            assert!(instruction.operands().all(|operand| operand.instruction().is_some()), "{instruction:?}");
            assert!(instruction.calls().all(|call| call.computation().is_some()), "{instruction:?}");
            let framed = instruction.metadata().is_some_and(|metadata| metadata.stack_frame_id().is_some());
            assert_eq!(framed, instruction.source().is_some(), "{instruction:?}");
        }
        let lines = module.source().lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(module.instructions().len(), lines, "{name}");
    }
}

#[test]
fn parameters_are_those_of_the_layout() {
    for name in PROGRAMS {
        let module = program(name);
        let layout = module.entry_computation_layout().unwrap();
        let (parameters, _) = layout.split_once("->").unwrap();
        let expected = tilewise::Shape::parse_as_written(parameters).unwrap();
        let entry = module.entry().unwrap();
        let mut found = vec![None; expected.elements().count()];
        for parameter in entry.instructions() {
            if let Some(number) = parameter.parameter_number() {
                found[number] = Some(parameter.shape().unwrap());
            }
        }
        assert_eq!(found, expected.elements().map(Some).collect::<Vec<_>>(), "{name}");
    }
    let module = program("rigid_frames.v5e");
    let layout = module.entry_computation_layout().unwrap();
    assert!(layout.starts_with("(f32[20000,3,3]{0,2,1:T(4,128)}, ") && layout.contains(")->("), "{layout}");
}

#[test]
fn buffers_are_the_compilers() {
    let expected = programs::text("rigid_frames.v5e.buffers.txt");
    let expected: BTreeSet<_> = expected.lines().map(str::to_owned).collect();
    let module = program("rigid_frames.v5e");
    let found = buffer_names(&module);
    assert_eq!(found.len(), expected.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn sparse_core() {
    let module = program("gnn.v6e");
    let threads = module.computations().filter_map(|computation| computation.execution_thread());
    assert!(threads.clone().count() > 0 && threads.into_iter().all(|thread| thread == "sparsecore"));

    let update = instruction(&module, "scatter_offload_async_start.update");
    assert_eq!(update.output_to_operand_aliasing().unwrap().len(), 7);
    // The scatter works in place: its result is operand 0 at the bottom of two wrapped calls.
    let names = buffer_names(&module);
    assert!(names.contains(&"scatter_offload_async_start{2,12}".to_owned()));
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("scatter_offload_async_start.update") || name.starts_with("custom-call"))
    );
}

#[test]
fn a_loop_and_its_frames() {
    let module = program("sampler_loop.v6e");
    let looped = module.instructions().find(|instruction| instruction.opcode() == Opcode::While).unwrap();
    let roles: Vec<_> = looped.calls().map(|call| call.role.as_str()).collect();
    assert_eq!(roles, ["condition", "body"]);
    assert!(looped.calls().all(|call| call.computation().unwrap().owns_buffers()));
    assert!(!module.computation("region_0.3").is_some_and(|reducer| reducer.owns_buffers()));

    let subtract = instruction(&module, "sub.8");
    let frames: Vec<SourceLocation<'_>> = subtract.frames().collect();
    let lines: Vec<_> = frames.iter().map(|frame| frame.line).collect();
    assert_eq!(lines[1..], [344, 344, 344], "{frames:?}");
    assert_eq!(subtract.source().as_ref(), Some(&frames[0]));
}

#[test]
fn the_sampler_takes_twenty_steps() {
    let module = program("sampler_loop.v6e");
    let flow = Dataflow::new(&module);
    let loops: Vec<_> = module.instructions().filter(|instruction| instruction.opcode() == Opcode::While).collect();
    assert_eq!(loops.iter().map(|at| flow.trip_count(flow.op(at).unwrap())).collect::<Vec<_>>(), [Some(20)]);
}
