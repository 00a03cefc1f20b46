//! Programs, and the messages of programs that run out of memory.

use std::hint::black_box;
use tilewise::visible_lines;
use tilewise_hlo::{BufferAssignment, Document, Module, WarningKind};
use tilewise_oom::Message;
use tilewise_report::{AsJson, MessageSummary, WriteText};

/// A file of a program, as text or proto, perhaps compressed, or of the compiler's plan: reads it, calls every method
/// of every part, audits each module, and compares the plan with ours.
pub fn hlo_text(data: &[u8]) {
    let Ok(Document { text, buffer_assignment, .. }) = Document::decode(data.to_vec(), 1 << 20) else { return };
    let buffer_assignment = buffer_assignment.or_else(|| BufferAssignment::parse(&text).ok());
    // A carriage return alone ends a line, but not in a string.
    let without_ends = |text: &str| text.replace("\\r", "").replace(['\r', '\n'], "");
    let shown = without_ends(&visible_lines(&text));
    for module in Module::parse_all(text.clone()) {
        match module {
            Ok(module) => {
                assert!(shown.contains(&without_ends(module.source())));
                audited(&module, buffer_assignment.as_ref());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn audited(module: &Module, buffer_assignment: Option<&BufferAssignment>) {
    walk(module);
    let report = tilewise_audit::audit(module);
    black_box(report.largest_padding().count());
    for row in report.buffers() {
        assert!(row.sizes.logical_bytes <= row.sizes.physical_bytes, "{}", row.shape);
    }
    if let Some(assignment) = buffer_assignment {
        black_box(report.agreement(assignment));
    }
}

/// Calls every method of every part.
fn walk(module: &Module) {
    let source = module.source();
    for warning in module.warnings() {
        let is_the_end = matches!(warning.kind(), WarningKind::NoEntry | WarningKind::EntryMissing);
        assert!(source.get(warning.span()).is_some_and(|text| !text.is_empty() || is_the_end), "{warning}");
    }
    black_box((module.name(), module.is_scheduled(), module.entry_computation_layout()));
    black_box((module.input_output_aliases().is_ok(), module.attributes().count()));
    for computation in module.computations() {
        black_box((computation.signature(), computation.execution_thread(), computation.owns_buffers()));
        black_box(computation.root().map(|root| root.name()));
        let same_name = module.computation(computation.name());
        assert!(computation.name().is_empty() || same_name.is_some_and(|first| first.index() <= computation.index()));
    }
    for instruction in module.instructions() {
        // An operand that is an instruction has a name that the text leaves out; for an element it has the number.
        let is_within = |text: &str| text.contains(instruction.opcode_text()) || text.contains('#');
        assert!(source.get(instruction.span()).is_some_and(is_within), "{instruction:?}");
        assert!(instruction.computation().instruction(instruction.name()).is_some());
        black_box((instruction.shape().is_ok(), instruction.parameter_number(), instruction.source()));
        black_box((instruction.defines(&[]).is_ok(), instruction.defines(&[1, 0]).is_ok()));
        black_box((instruction.attributes().count(), instruction.frames().count()));
        for operand in instruction.operands() {
            black_box((operand.name(), operand.shape_text(), operand.instruction().is_some()));
        }
        for call in instruction.calls() {
            black_box(call.computation().is_some());
        }
        if let Some(metadata) = instruction.metadata() {
            black_box((metadata.op_name(), metadata.op_type(), metadata.source_file(), metadata.source_line()));
        }
    }
    for buffer in module.buffers() {
        match buffer {
            Ok(buffer) => assert!(buffer.shape.as_array().is_some()),
            Err(error) => assert!(error.span().is_none_or(|span| source.get(span).is_some()), "{error}"),
        }
    }
}

/// An out-of-memory message: its parts can be asked for and explained, whatever surrounds it and wherever it is cut.
pub fn oom_message(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Message::parse(text) {
        Ok(message) => {
            black_box((message.memory_space_number(), message.truncated));
            black_box((message.verdict(), message.budget()));
            for entry in &message.entries {
                black_box((
                    entry.computed_bytes().is_some(),
                    entry.computed_unpadded_bytes().is_some(),
                    entry.agrees(),
                    entry.padding_bytes(),
                    entry.window(),
                ));
                black_box(entry.operator.as_ref().map(|operator| (operator.op_name(), operator.source_line())));
            }
            let explanation = tilewise_audit::explain(message, None);
            black_box((MessageSummary::of(&explanation), explanation.to_text(80)));
            assert!(serde_json::to_string(&AsJson(&explanation)).is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
