//! A program's proto is read as its text is; see `testing/programs/README.md`.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::fs;
use tilewise_hlo::{BufferAssignment, Document, ErrorKind, HeapEvent, Instruction, Module, Opcode, Profile};
use tilewise_testing::{
    Random,
    programs::{bytes, example},
};

const STEM: &str = "module_0054.jit_f.cl_1003875606.after_optimizations";

fn document(bytes: &[u8]) -> Document {
    Document::decode(bytes.to_vec(), 1 << 30).unwrap()
}

fn module(bytes: &[u8]) -> Module {
    let module = Module::parse(document(bytes).text).unwrap();
    assert_eq!(module.warnings(), []);
    module
}

/// The facts of an instruction that questions about memory depend on.
fn facts(instruction: &Instruction<'_>) -> Vec<String> {
    let mut facts = vec![
        instruction.computation().name().to_owned(),
        format!("{}={:?}", instruction.computation().is_entry(), instruction.computation().execution_thread()),
        instruction.name().to_owned(),
        instruction.opcode_text().to_owned(),
        instruction.is_root().to_string(),
        instruction.shape().unwrap().to_string(),
        instruction.operand_names().collect::<Vec<_>>().join(" "),
        format!("{:?} {:?}", instruction.parameter_number(), instruction.output_to_operand_aliasing().unwrap()),
        instruction.calls().map(|call| format!("{} {}", call.role.as_str(), call.name)).collect(),
        format!("{:?}", instruction.metadata().and_then(|metadata| metadata.op_name())),
        format!("{:?}", instruction.frames().collect::<Vec<_>>()),
    ];
    // The JSON's keys come in another order.
    let config = instruction.attribute("backend_config").unwrap_or_default();
    let mut parts: Vec<&str> = config.split([',', '{', '}', '[', ']']).filter(|part| !part.is_empty()).collect();
    parts.sort_unstable();
    facts.push(parts.join(" "));
    if instruction.opcode() == Opcode::Constant && instruction.shape_text().starts_with("s32[]") {
        facts.push(instruction.operands_text().to_owned());
    }
    let read = [
        "index",
        "direction",
        "kind",
        "custom_call_target",
        "slice",
        "dynamic_slice_sizes",
        "async_execution_thread",
        "dimensions",
        "iota_dimension",
        "cross_program_prefetch_index",
        "channel_id",
    ];
    facts.extend(read.iter().map(|name| format!("{name}={:?}", instruction.attribute(name))));
    facts
}

fn assert_same(text: &Module, proto: &Module) {
    assert_eq!((text.name(), text.is_scheduled()), (proto.name(), proto.is_scheduled()));
    assert_eq!(text.input_output_aliases().unwrap(), proto.input_output_aliases().unwrap());
    assert_eq!(text.entry_computation_layout(), proto.entry_computation_layout());
    assert_eq!(text.instructions().len(), proto.instructions().len());
    // The computations come in another order, callees before their callers in both.
    for computation in text.computations() {
        let other = proto.computation(computation.name()).unwrap();
        assert_eq!(computation.instructions().len(), other.instructions().len());
        for (one, other) in computation.instructions().zip(other.instructions()) {
            assert_eq!(facts(&one), facts(&other));
        }
    }
    assert!(proto.computations().next_back().unwrap().is_entry());
}

#[test]
fn a_proto_is_read_as_its_text() {
    for name in ["rigid_frames.v6e", "host_weights_scan.v7x"] {
        let text = module(&bytes(&format!("{name}.hlo")));
        assert_same(&text, &module(&bytes(&format!("{name}.hlo.pb"))));
    }
}

/// Both are what jaxlib 0.12 made of a text in which a kernel started apart writes in its operand's place.
#[test]
fn a_start_says_where_what_it_runs_lies() {
    let text = module(include_bytes!("data/async_alias.hlo"));
    let proto = module(include_bytes!("data/async_alias.hlo.pb"));
    let start = |module: &Module| {
        let start = module.instructions().find(|at| at.opcode() == Opcode::AsyncStart).unwrap();
        start.attribute("output_to_operand_aliasing").map(str::to_owned)
    };
    assert_eq!(start(&text).as_deref(), Some("{{}: (0, {})}"));
    assert_eq!(start(&proto), start(&text));
}

#[test]
fn a_dumps_proto_has_its_text_and_the_plan() {
    let text = module(&bytes(&format!("dump/{STEM}.txt")));
    let proto = bytes(&format!("dump/{STEM}.hlo.pb"));
    assert_same(&text, &module(&proto));

    let assignment = document(&proto).buffer_assignment.unwrap();
    let listed = document(&bytes(&format!("dump/{STEM}-buffer-assignment.txt"))).text;
    assert!(BufferAssignment::is_text(&listed));
    let sorted = |assignment: &BufferAssignment| {
        let mut allocations = assignment.allocations().to_vec();
        allocations.iter_mut().for_each(|allocation| allocation.values.sort_by_key(|value| value.id));
        allocations
    };
    assert_eq!(sorted(&assignment), sorted(&BufferAssignment::parse(&listed).unwrap()));
    assert_eq!(assignment.allocations().len(), 12);

    // Every value of the traces lies in the trace's allocation, and what is freed was there.
    assert!(!assignment.heap_traces().is_empty());
    for trace in assignment.heap_traces() {
        let allocation = assignment.allocations().iter().find(|found| found.index == trace.allocation).unwrap();
        let mut placed = Vec::new();
        for event in &trace.events {
            match *event {
                HeapEvent::Alloc(value) | HeapEvent::ShareWith(value, _) => placed.push(value),
                HeapEvent::Free(value) => assert!(placed.contains(&value)),
                _ => {}
            }
        }
        assert!(placed.iter().all(|id| allocation.values.iter().any(|value| value.id == *id)));
    }
}

/// A field of a message: its number and its bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 128 {
        field.push(u8::try_from(length & 127).unwrap() | 128);
        length >>= 7;
    }
    field.push(u8::try_from(length).unwrap());
    field.extend(content);
    field
}

#[test]
fn a_snapshot_and_gzip_are_recognised() {
    let proto = bytes(&format!("dump/{STEM}.hlo.pb"));
    let plain = document(&proto);
    let snapshot = [field(1, &proto), field(4, b"TPU")].concat();
    assert_eq!(document(&snapshot), plain);
    assert!([&proto, &snapshot, &bytes("rigid_frames.v6e.hlo.pb")].into_iter().all(|b| tilewise_hlo::is_proto(b)));

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &snapshot).unwrap();
    assert_eq!(document(&gzip.finish().unwrap()), plain);
}

/// A module `m` with the computation `c` of these instructions.
fn small(instructions: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
    let instructions: Vec<u8> = instructions.iter().flat_map(|instruction| field(2, instruction)).collect();
    let computation = [field(1, b"c"), instructions, vec![5 << 3, 1, 6 << 3, 1]].concat();
    [field(1, b"m"), field(2, b"c"), field(3, &computation), rest.to_vec()].concat()
}

/// The instruction `name = f32[] opcode()` of this id.
fn instruction(name: &[u8], opcode: &[u8], id: u8) -> Vec<u8> {
    [field(1, name), field(2, opcode), field(3, &[2 << 3, 11]), vec![0x98, 0x02, id]].concat()
}

fn error(bytes: &[u8]) -> (ErrorKind, String) {
    let error = Document::decode(bytes.to_vec(), 1 << 30).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn impossible_protos_are_errors_with_names() {
    let fine = small(&[instruction(b"x", b"iota", 1)], &[]);
    assert_eq!(module(&fine).instructions().next().unwrap().name(), "x");
    let operands = |ids: &[u8]| [vec![0xa2, 0x02, u8::try_from(ids.len()).unwrap()], ids.to_vec()].concat();
    let x = instruction(b"x", b"iota", 1);
    let schedule = |ids: &[u8]| field(7, &field(1, &[vec![8, 1], field(2, &field(1, ids))].concat()));
    for (bytes, words) in [
        (small(&[x.clone(), [instruction(b"y", b"add", 2), operands(&[9])].concat()], &[]), "an operand that doesn't"),
        (
            small(&[x.clone(), [instruction(b"y", b"call", 2), vec![0xb2, 2, 1, 7]].concat()], &[]),
            "calls a computation",
        ),
        (small(&[x.clone(), instruction(b"y z", b"add", 2)], &[]), "`y z` can't be a name"),
        (small(&[x.clone(), instruction(b"y", b"add()\n", 2)], &[]), "`add()\\n` can't be a name"),
        (small(&[x.clone(), [field(1, b"y"), field(2, b"add")].concat()], &[]), "a shape isn't valid"),
        (small(std::slice::from_ref(&x), &schedule(&[1, 1])), "doesn't name each instruction once"),
        (small(std::slice::from_ref(&x), &schedule(&[2])), "doesn't name each instruction once"),
        (small(&[x.clone(), vec![0xff]], &[]), "not a valid proto"),
    ] {
        let (kind, message) = error(&bytes);
        assert!(kind == ErrorKind::InvalidProto && message.contains(words), "{message}");
    }
    // A long name, many times: the text would have 100 times the proto's bytes.
    let long = instruction(&vec![b'x'; 20_000], b"iota", 1);
    let many = [vec![0xa2, 0x02, 0xa0, 0x9c, 0x01], vec![1; 20_000]].concat();
    let (kind, _) = error(&small(&[long, [instruction(b"y", b"tuple", 2), many].concat()], &[]));
    assert_eq!(kind, ErrorKind::TooLarge);
}

#[test]
fn damaged_protos_do_no_harm() {
    let whole = bytes(&format!("dump/{STEM}.hlo.pb"));
    for cut in (61..whole.len()).step_by(61) {
        let result = Document::decode(whole[..cut].to_vec(), 1 << 30);
        let kind = result.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Truncated, "cut at {cut}");
    }
    let mut random = Random::new(7);
    for _ in 0..2000 {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(3_u8) {
            let at = random.below(damaged.len());
            damaged[at] = random.below(255_u8);
        }
        if let Ok(document) = Document::decode(damaged, 1 << 30) {
            let _ = Module::parse_all(document.text);
        }
    }
}

/// A profile with this plane of programs, after one of a device.
fn profile(programs: &[(&str, &[u8])]) -> Vec<u8> {
    let entry = |(name, proto): &(&str, &[u8])| {
        let stats = [field(5, &[8, 5, 24, 6]), field(5, &[vec![8, 4], field(6, proto)].concat())].concat();
        field(4, &[vec![8, 6], field(2, &[field(2, name.as_bytes()), stats].concat())].concat())
    };
    let programs: Vec<u8> = programs.iter().flat_map(entry).collect();
    let device = [vec![8, 1], field(2, b"/device:TPU:0"), field(3, b"\x22\x03abc")].concat();
    [field(1, &device), field(1, &[field(2, b"/host:metadata"), programs].concat()), field(4, b"host")].concat()
}

#[test]
fn programs_of_a_profile_are_those_that_ran() {
    let recorded = fs::read(example("train.xplane.pb")).unwrap();
    let found = Profile::decode(recorded, 1 << 30).unwrap().expect("a profile");
    let names: Vec<&str> = found.programs.iter().map(|program| program.name()).collect();
    assert_eq!(
        names,
        [
            "jit_broadcast_in_dim(2)",
            "jit_broadcast_in_dim(4)",
            "jit_convert_element_type(0)",
            "jit_evaluate(8)",
            "jit_train_step(6)"
        ]
    );
    let step = found.programs.last().unwrap();
    assert!(step.is_called("jit_train_step") && step.is_called("jit_train_step(6)") && !step.is_called("jit_train"));
    let Document { text, buffer_assignment, .. } = step.document().unwrap();
    let module = Module::parse(text).unwrap();
    assert_eq!((module.name(), module.is_scheduled(), module.warnings()), ("jit_train_step", true, &[][..]));
    let temporaries = buffer_assignment.unwrap();
    let temporaries = temporaries.allocations().iter().filter(|allocation| allocation.is_temporary());
    assert!(temporaries.map(|allocation| allocation.values.len()).sum::<usize>() > 20);
}

#[test]
fn a_profile_is_read_whole_or_refused() {
    let program = small(&[instruction(b"x", b"iota", 1)], &[]);
    let (proto, one) = (field(1, &program), "jit_f(6)");
    assert_eq!(document(&profile(&[(one, &proto)])), document(&proto), "of one program, it is that");

    let two = profile(&[("jit_g(7)", &proto), (one, &proto)]);
    assert!(tilewise_hlo::is_profile(&two) && !tilewise_hlo::is_profile(&proto) && !tilewise_hlo::is_proto(&two));
    assert_eq!(Document::decode_all(two.clone(), 1 << 30).len(), 2);
    assert_eq!(
        error(&two),
        (ErrorKind::SeveralPrograms, "a profile of 2 programs, not of one: jit_f(6), jit_g(7)".to_owned())
    );
    assert_eq!(error(&profile(&[])).0, ErrorKind::NotHlo);
    assert_eq!(error(&profile(&[("jit_f", b"no proto")])).0, ErrorKind::NotHlo);
    // One that is damaged is an error of its own.
    let damaged = profile(&[(one, &proto), ("jit_g(7)", &field(1, &small(&[vec![0xff]], &[])))]);
    let kinds: Vec<_> =
        Document::decode_all(damaged, 1 << 30).into_iter().map(|found| found.map_err(|e| e.kind())).collect();
    assert!(matches!(kinds[..], [Ok(_), Err(_)]), "{kinds:?}");

    let head = two.iter().position(|byte| *byte == b'/').unwrap() + b"/device:TPU:0".len();
    let planes = two.len() - field(4, b"host").len();
    for cut in head..planes {
        // A profile that ends with a whole plane can't be told from one that has no more.
        let kind = error(&two[..cut]).0;
        assert!(matches!(kind, ErrorKind::Truncated | ErrorKind::NotHlo), "cut at {cut}: {kind:?}");
    }
    let mut random = Random::new(8);
    let recorded = fs::read(example("train.xplane.pb")).unwrap();
    for _ in 0..300 {
        let mut damaged = recorded[..40_000].to_vec();
        for _ in 0..=random.below(3_u8) {
            let at = random.below(damaged.len());
            damaged[at] = random.below(255_u8);
        }
        for bytes in [damaged, two.iter().map(|byte| if random.below(40_u8) == 0 { !byte } else { *byte }).collect()] {
            for document in Document::decode_all(bytes, 1 << 30).into_iter().flatten() {
                let _ = Module::parse_all(document.text);
            }
        }
    }
}
