//! Serialised modules say what their texts say.

use std::{fs, path::PathBuf};

use tilewise_hlo::{ErrorKind, Instruction, Module};

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/data/protos", name].iter().collect()
}

/// What is read of an instruction.
fn what(instruction: Instruction<'_>) -> String {
    format!(
        "{} {} {:?} {:?} {:?} {:?} {:?}",
        instruction.name(),
        instruction.opcode(),
        instruction.shape().map(|shape| shape.to_string()),
        instruction.operand_names().collect::<Vec<_>>(),
        instruction.calls().collect::<Vec<_>>(),
        instruction.source(),
        instruction.metadata().and_then(|metadata| metadata.op_name()),
    )
}

#[test]
fn modules_and_their_texts_are_the_same() {
    for (proto, text) in [
        ("rigid_frames.v6e.hlo.pb", "rigid_frames.v6e.hlo"),
        ("rigid_frames.v5e.dump.hlo.pb", "rigid_frames.v5e.dump.txt"),
    ] {
        let (proto, text) = (tilewise_hlo::read(file(proto)).unwrap(), tilewise_hlo::read(file(text)).unwrap());
        assert_eq!(proto.warnings(), []);
        assert_eq!((proto.name(), proto.is_scheduled()), (text.name(), true));
        assert_eq!(proto.input_output_aliases().unwrap(), text.input_output_aliases().unwrap());
        assert_eq!(proto.entry_computation_layout(), text.entry_computation_layout());
        for expected in text.computations() {
            let found = proto.computation(expected.name()).unwrap();
            // Within a fusion, which isn't scheduled, any order will do.
            let sorted = |module: tilewise_hlo::Computation<'_>, is_ordered: bool| {
                let mut all: Vec<_> = module.instructions().map(what).collect();
                if !is_ordered {
                    all.sort();
                }
                all
            };
            let is_ordered = expected.owns_buffers();
            assert_eq!(sorted(found, is_ordered), sorted(expected, is_ordered), "{}", expected.name());
            assert_eq!(found.root().unwrap().name(), expected.root().unwrap().name());
        }
        assert_eq!(proto.entry().unwrap().name(), text.entry().unwrap().name());
    }
}

#[test]
fn what_is_cut_or_changed_is_an_error_or_a_module() {
    let bytes = fs::read(file("rigid_frames.v6e.hlo.pb")).unwrap();
    for end in (0..bytes.len()).step_by(37) {
        if let Ok(text) = tilewise_hlo::decode(bytes[..end].to_vec(), u64::MAX) {
            let _ = Module::parse(text);
        }
    }
    for at in (0..bytes.len()).step_by(11) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        if let Ok(text) = tilewise_hlo::decode(changed, u64::MAX) {
            let _ = Module::parse(text);
        }
    }
}

#[test]
fn a_name_can_not_stand_for_something_else() {
    let bytes = fs::read(file("rigid_frames.v6e.hlo.pb")).unwrap();
    let at = bytes.windows(9).position(|window| window == b"maximum.1").unwrap();
    let mut changed = bytes;
    changed[at] = b'\n';
    assert_eq!(tilewise_hlo::decode(changed, u64::MAX).unwrap_err().kind(), ErrorKind::Syntax);
}
