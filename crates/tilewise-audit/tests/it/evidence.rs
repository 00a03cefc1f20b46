//! A program and its out-of-memory message: rules find the same in both.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::fmt::Write as _;
use tilewise::tpu::Generation;
use tilewise_audit::{Audit, Machine, Program, Recommendation, Report, Role, explain};
use tilewise_oom::Message;

const TPU: Generation = Generation::V5e;

/// The message that the compiler would print if half of a program fits: the arrays at its peak, the largest first.
fn message_of(report: &Report) -> String {
    let bounds = &report.memory_bounds;
    let (used, limit) = (bounds.at_most_bytes, bounds.at_most_bytes / 2);
    let mut inside = String::new();
    let mut outside = String::new();
    let hbm = report.memory_space(0).and_then(|hbm| hbm.peak.as_ref()).unwrap();
    let mut number = 0;
    for row in &hbm.rows {
        number += 1;
        let (list, label) = match row.role {
            Role::Argument => (&mut outside, format!("Argument {number} index {{}}")),
            Role::Output => (&mut outside, "Output index {}".to_owned()),
            _ => (&mut inside, format!("{} = {} {}(%p)", row.instruction, row.shape, row.opcode)),
        };
        for _ in 0..row.count {
            let (each, data) = (row.bytes / row.count as u64, row.logical_bytes / row.count as u64);
            let name = row.op_name.as_ref().map(|name| format!("     Operator: op_name=\"{name}\"\n"));
            let unpadded = if each > data { format!("     Unpadded size: {data}B\n") } else { String::new() };
            writeln!(
                list,
                "  {number}. Size: {each}B\n{}     Shape: {}\n{unpadded}     XLA label: {label}\n     ====\n",
                name.unwrap_or_default(),
                row.shape
            )
            .unwrap();
        }
    }
    format!(
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used {used}B of {limit}B \
         hbm. Exceeded hbm capacity by {}B.\n\nTotal hbm usage >= {used}B:\n    program {}B\n    arguments {}B\n\n\
         Output size {}B; shares {}B with arguments.\n\n  Largest program allocations in hbm:\n\n{inside}\n  \
         Largest program arguments and outputs in hbm:\n\n{outside}",
        used - limit,
        bounds.temporary_bytes.unwrap_or_default(),
        bounds.argument_bytes,
        bounds.output_bytes,
        bounds.alias_bytes
    )
}

fn kinds(advice: &[Recommendation]) -> Vec<(&'static str, &'static str)> {
    advice.iter().map(|advice| (advice.change.as_str(), advice.target.as_str())).collect()
}

/// A program for each rule that applies to both, with its first piece of advice.
const PROGRAMS: &[(&str, &str, (&str, &str))] = &[
    (
        "an argument in another order",
        r#"HloModule jit_f, is_scheduled=true
ENTRY main (x.1: f32[524288,8]) -> f32[524288] {
  x.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  ROOT r = f32[524288]{0:T(1024)} custom-call(x.1), custom_call_target="sum"
}"#,
        ("order", "argument"),
    ),
    (
        "an argument of a few columns",
        r#"HloModule jit_f, is_scheduled=true
ENTRY main (m.1: f32[1000000,3]) -> f32[8] {
  m.1 = f32[1000000,3]{0,1:T(4,128)} parameter(0), metadata={op_name="m"}
  ROOT end = f32[8]{0:T(128)} custom-call(m.1), custom_call_target="x"
}"#,
        ("split", "argument"),
    ),
    (
        "rows that are gathered",
        r#"HloModule jit_f, is_scheduled=true
fused { t = f32[1000,4]{0,1:T(4,128)} parameter(0)
  i = s32[65536]{0:T(1024)} parameter(1)
  ROOT g = f32[65536,4]{1,0:T(8,128)} gather(t, i), offset_dims={1}, metadata={op_name="jit(f)/gather"}
}
ENTRY main (t.1: f32[1000,4], i.1: s32[65536]) -> f32[4] {
  t.1 = f32[1000,4]{0,1:T(4,128)} parameter(0), metadata={op_name="t"}
  i.1 = s32[65536]{0:T(1024)} parameter(1), metadata={op_name="i"}
  rows = f32[65536,4]{1,0:T(8,128)} fusion(t.1, i.1), kind=kCustom, calls=fused, metadata={op_name="jit(f)/gather"}
  ROOT end = f32[4]{0:T(128)} custom-call(rows), custom_call_target="f"
}"#,
        ("split", "upstream"),
    ),
    (
        "logits of a vocabulary",
        r#"HloModule jit_step, is_scheduled=true
ENTRY main (h.1: bf16[32768,512], w.1: bf16[512,50304]) -> f32[8] {
  h.1 = bf16[32768,512]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="hidden"}
  w.1 = bf16[512,50304]{1,0:T(8,128)(2,1)} parameter(1), metadata={op_name="params['head']"}
  logits = f32[32768,50304]{1,0:T(8,128)} custom-call(h.1, w.1), custom_call_target="head", metadata={op_name="jit(step)/jvp()/dot_general"}
  e = f32[32768,50304]{1,0:T(8,128)} exponential(logits), metadata={op_name="jit(step)/jvp()/exp"}
  ROOT g = f32[8]{0:T(128)} custom-call(e, logits), custom_call_target="loss", metadata={op_name="jit(step)/transpose(jvp())/dot_general"}
}"#,
        ("chunk", "value"),
    ),
    (
        "a state that is not donated",
        r#"HloModule jit_step, is_scheduled=true
ENTRY main (p.1: f32[1024,1024], x.1: f32[128]) -> f32[1024,1024] {
  p.1 = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[128]{0:T(128)} parameter(1), metadata={op_name="x"}
  ROOT p = f32[1024,1024]{1,0:T(8,128)} negate(p.1)
}"#,
        ("donate", "argument"),
    ),
    (
        "most of the peak has one dimension",
        r#"HloModule jit_f, is_scheduled=true
ENTRY main (x.1: f32[4096,8]) -> f32[8] {
  x.1 = f32[4096,8]{0,1:T(8,128)} parameter(0), metadata={op_name="x"}
  wide = f32[4096,8,1024]{0,2,1:T(8,128)} broadcast(x.1), dimensions={0,1}
  sine = f32[4096,8,1024]{0,2,1:T(8,128)} sine(wide)
  ROOT r = f32[8]{0:T(128)} custom-call(wide, sine), custom_call_target="sum"
}"#,
        ("chunk", "value"),
    ),
];

#[test]
fn a_program_and_its_message_are_advised_alike() {
    for (name, text, expected) in PROGRAMS {
        let program = Program::parse(*text).expect(name);
        let report = Audit::new(&program).machine(Machine::Tpu(TPU)).limit(None).run();
        let of_program = kinds(report.advice());
        assert_eq!(of_program.first(), Some(expected), "{name}: the program");
        let message = message_of(&report);
        let explained = explain(Message::parse(&message).expect(name), Some(TPU));
        // Advice to shard arguments that do not fit alone follows from the message's verdict, not from a rule.
        let of_message = kinds(&explained.advice).into_iter().find(|(kind, _)| *kind != "shard");
        assert_eq!(of_message, Some(*expected), "{name}: {message}");
    }
}
