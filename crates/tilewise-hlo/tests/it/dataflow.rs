//! Values followed through programs as a TPU compiler printed them, and through small ones worked out by hand.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::collections::BTreeSet;

use tilewise::ShapeKind;
use tilewise_hlo::{
    Module, Opcode,
    dataflow::{Dataflow, Gap, Position, Source, Use},
    read,
};
use tilewise_testing::programs;

/// Every program that is one module of text or proto.
fn all() -> impl Iterator<Item = (String, Module)> {
    programs::all().into_iter().filter_map(|path| Some((path.display().to_string(), read(&path).ok()?)))
}

fn of(text: &str) -> Dataflow {
    Dataflow::new(&Module::parse(text).unwrap())
}

/// A position as `name{path}`.
fn named(flow: &Dataflow, position: Position) -> String {
    let path: Vec<_> = flow.shape_index(position).iter().map(usize::to_string).collect();
    let name = flow.instruction(flow.op_at(position)).map_or("?", |instruction| instruction.name());
    format!("{name}{{{}}}", path.join(","))
}

fn position(flow: &Dataflow, name: &str, path: &[usize]) -> Position {
    let instruction = flow.module().instructions().find(|instruction| instruction.name() == name).unwrap();
    flow.at(flow[flow.op(&instruction).unwrap()].position, path).unwrap()
}

#[test]
fn positions_are_the_paths_of_shapes() {
    for (name, module) in all() {
        let flow = Dataflow::new(&module);
        for (op, data) in flow.ops().iter() {
            let Some(instruction) = flow.instruction(op).filter(|_| !data.is_hidden) else { continue };
            assert_eq!(flow.op(&instruction), Some(op), "{name}");
            let Ok(shape) = instruction.shape() else { continue };
            let leaves: Vec<Position> = flow.positions(op).filter(|position| !flow.is_tuple(*position)).collect();
            let paths: Vec<_> = leaves.iter().map(|leaf| flow.shape_index(*leaf)).collect();
            assert_eq!(paths, shape.leaves().map(|(path, _)| path).collect::<Vec<_>>(), "{name}");
            for (number, (leaf, (path, shape))) in leaves.into_iter().zip(shape.leaves()).enumerate() {
                assert_eq!((flow.at(data.position, &path), flow.leaves_before(leaf)), (Some(leaf), number));
                assert_eq!((flow.shape(leaf), flow.op_at(leaf)), (Some(shape), op), "{name}");
            }
        }
    }
}

/// New buffers by the rules of each opcode are where the analysis of the whole program begins a value.
#[test]
fn buffers_are_where_values_begin() {
    let mut programs = 0;
    for (name, module) in all().filter(|(_, module)| module.is_scheduled()) {
        let flow = Dataflow::new(&module);
        assert_eq!(flow.gap(), None, "{name}");
        let buffers = module.buffers().map(|buffer| buffer.unwrap());
        let made: BTreeSet<(usize, Vec<usize>)> =
            buffers.map(|buffer| (buffer.instruction.index(), buffer.shape_index)).collect();
        let begins = |position: Position| {
            let op = flow.op_at(position);
            let (data, instruction) = (&flow[op], flow.instruction(op)?);
            // Values that join begin where they join; a context that is handed on is no new one.
            let joins = match data.opcode {
                Opcode::While | Opcode::Conditional | Opcode::AsyncUpdate => true,
                Opcode::Parameter => Some(data.body) != flow.entry(),
                _ => false,
            };
            let is_array = flow.shape(position).is_some_and(|shape| matches!(shape.kind(), ShapeKind::Array(_)));
            let mut path = flow.shape_index(position);
            if data.is_hidden {
                path.insert(0, 1);
                // A SparseCore's start may be given its operands, and make its results, in an update.
                instruction.shape().ok()?.leaves().find(|(leaf, _)| *leaf == path)?;
            }
            let aliases = instruction.output_to_operand_aliasing().unwrap();
            let is_aliased = aliases.iter().any(|alias| path.starts_with(&alias.output_index));
            (flow[data.body].runs && is_array && !joins && !is_aliased).then(|| (instruction.index(), path))
        };
        let begin: BTreeSet<_> = flow.values().iter().filter_map(|(_, position)| begins(*position)).collect();
        assert_eq!(begin, made, "{name}");
        programs += 1;
    }
    assert!(programs > 20);
}

#[test]
fn users_are_those_that_name_it() {
    for (name, module) in all() {
        let flow = Dataflow::new(&module);
        let mut named: Vec<Vec<(usize, usize)>> = vec![Vec::new(); flow.ops().len()];
        for op in flow.ops().ids() {
            for (number, operand) in flow.operands(op).iter().enumerate() {
                named[operand.index()].push((op.index(), number));
            }
        }
        for op in flow.ops().ids() {
            let users: Vec<_> = flow.users(op).iter().map(|user| (user.op.index(), user.operand)).collect();
            assert_eq!(users, named[op.index()], "{name}");
        }
    }
}

/// One step back, a value is the same but where it is copied; and an origin is where the steps end.
#[test]
fn sources_hold_the_same_value() {
    for (name, module) in all() {
        let flow = Dataflow::new(&module);
        for position in flow.all_positions().ids() {
            let joins_slices = flow.instruction(flow.op_at(position)).is_some_and(|at| at.joins_slices());
            match flow.source(position).filter(|_| !joins_slices) {
                Some(Source::Passed(from) | Source::Bitcast(from)) => {
                    assert_eq!(flow.value_at(from), flow.value_at(position), "{name}: {}", named(&flow, position));
                }
                Some(Source::Copied(copy, _)) => assert_eq!(flow.op_at(position), copy),
                _ => {}
            }
            let end = flow.sources(position).last().map_or(position, Source::position);
            assert_eq!(flow.origin(position), end, "{name}: {}", named(&flow, position));
        }
    }
}

const LOOP: &str = "
body { p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  y = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  z = f32[8] multiply(x, y)
  ROOT t = (s32[], f32[8], f32[8]) tuple(next, x, z)
}
condition { q = (s32[], f32[8], f32[8]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  six = s32[] constant(6)
  ROOT less = pred[] compare(j, six), direction=LT
}
first { a = f32[8] parameter(0)
  ROOT b = f32[8] negate(a)
}
second { c = f32[8] parameter(0)
  ROOT d = f32[8] copy(c)
}
ENTRY main { k = s32[] parameter(0)
  u = f32[8] parameter(1)
  zero = s32[] constant(0)
  start = (f32[8], f32[8], u32[]) copy-start(u)
  v = f32[8] copy-done(start)
  init = (s32[], f32[8], f32[8]) tuple(zero, v, v)
  w = (s32[], f32[8], f32[8]) while(init), condition=condition, body=body
  e = f32[8] get-tuple-element(w), index=1
  f = f32[8] get-tuple-element(w), index=2
  g = f32[8] conditional(k, e, f), branch_computations={first, second}
  ROOT r = (f32[8], f32[8]) tuple(e, g)
}";

#[test]
fn loops_pass_on_what_every_turn_does() {
    let flow = of(LOOP);
    let origin = |name: &str, path: &[usize]| named(&flow, flow.origin(position(&flow, name, path)));
    assert_eq!(origin("e", &[]), "u{}");
    assert_eq!(origin("x", &[]), "u{}");
    assert_eq!(origin("a", &[]), "u{}");
    assert_eq!(origin("r", &[0]), "u{}");
    assert_eq!(origin("f", &[]), "w{2}");
    assert_eq!(origin("y", &[]), "p{2}");
    assert_eq!(origin("c", &[]), "w{2}");
    assert_eq!(origin("r", &[1]), "g{}");
    let around = flow.loop_around(flow.op_at(position(&flow, "p", &[]))).unwrap();
    assert_eq!(flow.instruction(around).unwrap().name(), "w");
    assert_eq!((flow.trip_count(around), flow.executions(flow[around].body)), (Some(6), Some(1)));
    assert_eq!(flow.calls(around).iter().map(|call| flow.executions(call.1)).collect::<Vec<_>>(), [Some(6), Some(6)]);
}

#[test]
fn readers_are_seen_through_loops_branches_and_copies() {
    let flow = of(LOOP);
    let readers = |name: &str, path: &[usize]| {
        let readers = flow.readers(position(&flow, name, path)).map(|reader| match reader {
            Use::Read(op) => flow.instruction(op).unwrap().name().to_owned(),
            Use::Result(position) => format!("result {}", flow.leaves_before(position)),
            other => panic!("{other:?}"),
        });
        readers.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(readers("u", &[]), "b result 0 w z");
    assert_eq!(readers("f", &[]), "result 1");
    assert_eq!(readers("z", &[]), "w");
    assert_eq!(readers("p", &[2]), "z");
    assert_eq!(readers("g", &[]), "result 1");
    assert_eq!(readers("k", &[]), "g");
}

#[test]
fn what_is_too_much_to_look_at_is_said() {
    let copies: String = (0..300).map(|k| format!("c{k} = f32[8] copy(a)\n")).collect();
    let flow = of(&format!("ENTRY e {{ a = f32[8] parameter(0)\n{copies}ROOT r = f32[8] negate(a)\n}}"));
    assert_eq!(flow.readers(position(&flow, "a", &[])).last(), Some(Use::More));
    assert_eq!(flow.readers(position(&flow, "c7", &[])).last(), None);
}

#[test]
fn what_the_text_leaves_open_is_told() {
    let gap = |text: &str| of(text).gap().cloned();
    assert_eq!(
        gap("HloModule m, entry_computation_layout={()->f32[]}\nf { a = f32[] parameter(0)\n}"),
        Some(Gap::NoEntry)
    );
    let flow = of("x = f32[8] copy(y)");
    assert!(matches!(flow.gap(), Some(Gap::Operand { operand, .. }) if operand == "y"));
    let origin = flow.op_at(flow.origin(position(&flow, "x", &[])));
    assert!(flow.instruction(origin).is_none() && flow[flow[origin].body].root == origin);
    assert!(matches!(gap("x = f33[8] constant(0)"), Some(Gap::Shape { .. })));
}

/// Computations that call each other in a circle, which XLA refuses.
#[test]
fn circles_end() {
    let flow = of("
f { a = (f32[8]) parameter(0)
  b = (f32[8]) call(a), to_apply=f
  w = (f32[8]) while(b), condition=f, body=f
  ROOT c = (f32[8]) conditional(w, w, w), branch_computations={f, f}
}");
    for position in flow.all_positions().ids() {
        assert!(flow.sources(position).count() <= 256 && flow.readers(position).count() <= 256);
        assert!(flow.origin(position).index() < flow.all_positions().len());
    }
    assert!(flow.ops().ids().all(|op| flow.trip_count(op).is_none()));
    assert_eq!(flow.entry().and_then(|entry| flow.executions(entry)), Some(1));
}
