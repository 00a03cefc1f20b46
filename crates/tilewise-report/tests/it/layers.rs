//! Advice about layers that repeat: what is kept of each for the backward pass.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in helpers, which the lint does not take for tests")]

use super::advice::{MIB, advice, code, kind, report, sentence};
use tilewise::tpu::Generation;
use tilewise_audit::{Audit, Program, recommendation::Saving};
use tilewise_hlo::Module;
use tilewise_report::{AuditOutput, Summary};

/// A network of layers that aren't in a loop: `count` times a value of 16 MiB that the backward pass reads.
fn of_layers(count: usize, name: impl Fn(usize) -> String) -> String {
    let (lines, gradient) = gradient_of_layers("", "x.1", count, name);
    of_lines(&lines, &gradient)
}

/// The lines of one gradient of such a network, and what it is. Names of instructions begin with `which`.
fn gradient_of_layers(which: &str, input: &str, count: usize, name: impl Fn(usize) -> String) -> (String, String) {
    const WIDE: &str = "f32[512,8192]{1,0:T(8,128)}";
    const NARROW: &str = "f32[512,1024]{1,0:T(8,128)}";
    let (mut lines, mut inputs) = (Vec::new(), vec![input.to_owned()]);
    for layer in 0..count {
        let (name, before, next) = (name(layer), &inputs[layer], format!("{which}y.{layer}"));
        lines.push(format!(
            r#"  {which}k.{layer} = {WIDE} custom-call({before}), custom_call_target="up", metadata={{op_name="jit(step)/jvp({name}/dot_general"}}
  {next} = {NARROW} custom-call({which}k.{layer}), custom_call_target="down", metadata={{op_name="jit(step)/jvp({name}/dot_general"}}"#
        ));
        inputs.push(next);
    }
    let mut gradient = inputs[count].clone();
    for layer in (0..count).rev() {
        let (name, before) = (name(layer), &inputs[layer]);
        lines.push(format!(
            r#"  {which}g.{layer} = {NARROW} custom-call({before}, {which}k.{layer}, {gradient}), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp({name})/dot_general"}}"#
        ));
        gradient = format!("{which}g.{layer}");
    }
    (lines.join("\n"), gradient)
}

fn of_lines(lines: &str, gradient: &str) -> String {
    format!(
        r#"HloModule jit_step, is_scheduled=true

ENTRY main (x.1: f32[512,1024]) -> f32[512,1024] {{
  x.1 = f32[512,1024]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
{lines}
  ROOT r = f32[512,1024]{{1,0:T(8,128)}} add({gradient}, {gradient})
}}"#
    )
}

/// The sentence on recomputing layers, and the bytes that it frees.
fn recomputed(text: &str) -> (String, u64) {
    let found = advice(text);
    let found = found.iter().find(|advice| kind(advice) == ("checkpoint", "value")).expect("layers");
    (sentence(found), found.saving.bytes().unwrap())
}

/// The beginning of a network, such as convolutions of whole pictures, isn't one of the layers that follow.
#[test]
fn what_comes_before_the_layers_is_no_layers() {
    const STEM: &str = "f32[512,65536]{1,0:T(8,128)}";
    let name = |pass: &str| format!("metadata={{op_name=\"jit(step)/{pass}(Net)/conv\"}}");
    let (lines, gradient) = gradient_of_layers("", "begun", 8, |_| "Net)".to_owned());
    let plain = of_layers(8, |_| "Net)".to_owned());
    let text = of_lines(
        &format!(
            r#"  stem = {STEM} custom-call(x.1), custom_call_target="stem", {}
  begun = f32[512,1024]{{1,0:T(8,128)}} custom-call(stem), custom_call_target="begun", {}
{lines}
  end = f32[512,1024]{{1,0:T(8,128)}} custom-call(stem, {gradient}), custom_call_target="back", {}"#,
            name("jvp"),
            name("jvp"),
            name("transpose(jvp)"),
        ),
        "end",
    );
    let ((said, freed), (_, of_layers)) = (recomputed(&text), recomputed(&plain));
    assert!(said.contains("8 by the shapes that repeat") && said.contains("the largest keeps 20.00 MiB"), "{said}");
    assert!(freed <= of_layers, "{freed} > {of_layers}");
}

/// As of large and small pictures through one network: both run before the gradient of either.
#[test]
fn a_network_may_run_twice() {
    let lines_of = |which: &str| {
        let (lines, gradient) = gradient_of_layers(which, "x.1", 8, |layer| format!("Net)/layer_{layer}/mlp"));
        let at = lines.find(&format!("  {which}g.")).expect("a backward pass");
        (lines[..at].to_owned(), lines[at..].to_owned(), gradient)
    };
    let (large, large_back, one) = lines_of("large.");
    let (small, small_back, other) = lines_of("small.");
    let sum = format!("\n  sum = f32[512,1024]{{1,0:T(8,128)}} add({one}, {other})");
    let (said, freed) =
        recomputed(&of_lines(&[large, small, large_back, "\n".to_owned(), small_back, sum].concat(), "sum"));
    assert!(said.contains("each of the 8 layers `Net/layer_*`"), "{said}");
    // Of 16 times 16 MiB.
    assert!(freed > 200 * MIB, "{}", freed / MIB);
}

/// Compilers put gradients of weights off, and keep what they are computed from; what is recomputed is only there in its layer's
/// backward pass. Of `distilled_crops`, recompiling freed 1902 MiB where 325 would be, were they put off still.
/// One product forward and two backward, as of any layer: a checkpoint repeats a third.
#[test]
fn a_checkpoint_repeats_the_forward_pass() {
    let (lines, gradient) = gradient_of_layers("", "x.1", 8, |layer| format!("Net)/layer_{layer}/mlp"));
    let product = |name: &str, pass: &str, layer: usize| {
        format!(
            "  {name}.{layer} = f32[512,512]{{1,0:T(8,128)}} dot(x.1, x.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, \
             metadata={{op_name=\"jit(step)/{pass}(Net)/layer_{layer}/mlp/dot_general\"}}\n"
        )
    };
    let of_layer =
        |layer: usize| [product("f", "jvp", layer), product("a", "transpose", layer), product("b", "transpose", layer)];
    let products: String = (0..8).flat_map(of_layer).collect();
    let module = Module::parse(of_lines(&format!("{products}{lines}"), &gradient)).unwrap();
    let report = report(&module, Generation::V5e);
    let summary = Summary::of(&report);
    let change = summary.changes.iter().find(|change| change.recommendation.change.as_str() == "checkpoint");
    assert!(change.expect("layers").effect.starts_with("33 % more compute"), "{change:?}");
}

#[test]
fn gradients_of_weights_are_computed_in_their_layers_backward_pass() {
    let (lines, gradient) = gradient_of_layers("", "x.1", 8, |layer| format!("Net)/layer_{layer}/mlp"));
    let of_weights = |layer: usize| {
        let name = format!("jit(step)/transpose(jvp(Net))/layer_{layer}/mlp/dot_general");
        format!(
            "  w.{layer} = f32[1024,128]{{1,0:T(8,128)}} custom-call(k.{layer}, g.{layer}), custom_call_target=\"weights\", metadata={{op_name=\"{name}\"}}\n"
        )
    };
    let put_off: String = (0..8).map(of_weights).collect();
    let (said, freed) = recomputed(&of_lines(&format!("{lines}\n{put_off}"), &gradient));
    assert!(said.contains("each of the 8 layers `Net/layer_*`"), "{said}");
    assert!((90 * MIB..=7 * 16 * MIB).contains(&freed), "{}", freed / MIB);
}

/// No plan tells what a compiler makes of recomputed layers: neither exact nor a bound.
#[test]
fn what_recomputed_layers_free_is_an_estimate() {
    let found = advice(&of_layers(8, |layer| format!("Net)/layer_{layer}/mlp")));
    let saving = found[0].saving;
    assert!(matches!(saving, Saving::About(_)) && saving.is_estimate() && !saving.is_bound(), "{saving:?}");
}

/// The sentence on values that layers keep, without and with a checkpoint around the layers.
#[test]
fn layers_that_are_recomputed_are_not_to_be_recomputed() {
    let said = |text: &str| {
        let found = report(&Module::parse(text).unwrap(), Generation::V5e);
        let causes = Summary::of(&found).causes;
        causes.iter().find(|cause| cause.kind == "kept_for_gradient").and_then(|cause| cause.remedy).expect("a remedy")
    };
    let plain = of_layers(8, |layer| format!("Net)/layer_{layer}/mlp"));
    assert!(said(&plain).starts_with("Recompute what is kept"), "{}", said(&plain));
    let recomputed =
        plain.replace("transpose(jvp(Net)/", "transpose(jvp(Net))/jvp(Net)/checkpoint/rematted_computation/");
    assert!(said(&recomputed).ends_with("or save less under the checkpoint"), "{}", said(&recomputed));
}

/// As of a step that goes up by one gradient and down by another: each runs through all layers.
#[test]
fn two_gradients_are_of_the_same_layers() {
    let name = |layer| format!("Net)/layers/{layer}/mlp");
    let (first, up) = gradient_of_layers("up.", "x.1", 8, name);
    let (second, down) = gradient_of_layers("down.", &up, 8, name);
    let (said, bytes) = recomputed(&of_lines(&format!("{first}\n{second}"), &down));
    assert!(
        said.contains("each of the 8 layers `layers/*`: for the backward pass the largest keeps 18.00 MiB"),
        "{said}"
    );
    assert!((96 * MIB..=7 * 16 * MIB).contains(&bytes), "{bytes}");
}

/// Modules of other names than numbers are wrapped as layers are.
#[test]
fn modules_are_recomputed_whatever_they_are_called() {
    let names = ["down", "middle", "up"];
    let (said, bytes) = recomputed(&of_layers(3, |layer| format!("Net)/{}/conv", names[layer])));
    assert!(said.contains("each of the 3 layers `Net/{down,middle,up}`"), "{said}");
    assert!((30 * MIB..=2 * 16 * MIB).contains(&bytes), "{bytes}");
    let (said, _) = recomputed(&of_layers(4, |layer| format!("Net)/block_{}_{}/conv", layer / 2, layer % 2)));
    assert!(said.contains("each of the 4 layers `Net/block_*`"), "{said}");
}

/// As the levels of an associative scan: what each layer has twice doesn't make two layers of it.
#[test]
fn layers_have_some_shapes_twice() {
    let text = of_layers(2, |_| "Net)".to_owned());
    let level = |at: usize, number: usize| {
        let name = r#"metadata={op_name="jit(step)/jvp(Net)/add"}"#;
        format!(
            r#"  s.{at}{number} = f32[512,6144]{{1,0:T(8,128)}} custom-call(k.{at}), custom_call_target="level", {name}"#
        )
    };
    let mut text = text;
    for at in 0..2 {
        let next = format!("  y.{at} = ");
        text = text.replace(&next, &format!("{}\n{}\n{next}", level(at, 0), level(at, 1)));
        text = text.replace(&format!(", k.{at}, "), &format!(", k.{at}, s.{at}0, s.{at}1, "));
    }
    let (said, _) = recomputed(&text);
    assert!(said.contains("each layer, 2 by the shapes that repeat"), "{said}");
}

/// A value that is moved to VMEM before the backward pass reads it there was kept until then.
#[test]
fn what_is_prefetched_for_the_backward_pass_is_kept() {
    let plain = of_layers(8, |layer| format!("Net)/layers/{layer}/mlp"));
    let mut text = plain.clone();
    for layer in 0..8 {
        let place = format!("  g.{layer} = ");
        let moved = format!(
            "  p.{layer} = (f32[512,8192]{{1,0:T(8,128)S(1)}}, f32[512,8192]{{1,0:T(8,128)}}, u32[]{{:S(2)}}) copy-start(k.{layer})\n  \
             v.{layer} = f32[512,8192]{{1,0:T(8,128)S(1)}} copy-done(p.{layer})\n"
        );
        text = text
            .replace(&place, &format!("{moved}{place}"))
            .replace(&format!(", k.{layer}, "), &format!(", v.{layer}, "));
    }
    let ((_, bytes), (_, prefetched)) = (recomputed(&plain), recomputed(&text));
    assert!(prefetched >= bytes, "{prefetched} < {bytes}");
    // Or in slices.
    let mut sliced = plain;
    for layer in 0..8 {
        let place = format!("  g.{layer} = ");
        let half = |number: u64| {
            let (start, end) = (number * 256, (number + 1) * 256);
            format!(
                "  p{number}.{layer} = ((f32[512,8192]{{1,0:T(8,128)}}), f32[256,8192]{{1,0:T(8,128)S(1)}}, s32[]{{:S(2)}}) slice-start(k.{layer}), slice={{[{start}:{end}], [0:8192]}}\n  \
                 d{number}.{layer} = f32[256,8192]{{1,0:T(8,128)S(1)}} async-done(p{number}.{layer})\n"
            )
        };
        let whole = format!(
            "  v.{layer} = f32[512,8192]{{1,0:T(8,128)S(1)}} custom-call(d0.{layer}, d1.{layer}), custom_call_target=\"ConcatBitcast\"\n"
        );
        sliced = sliced
            .replace(&place, &format!("{}{}{whole}{place}", half(0), half(1)))
            .replace(&format!(", k.{layer}, "), &format!(", v.{layer}, "));
    }
    let (_, prefetched) = recomputed(&sliced);
    assert!(prefetched >= bytes, "{prefetched} < {bytes}");
}

#[test]
fn unrolled_layers_are_recomputed() {
    let found = advice(&of_layers(8, |layer| format!("Net)/layers/{layer}/mlp")));
    let found = found.iter().find(|advice| kind(advice) == ("checkpoint", "value")).expect("layers");
    assert!(sentence(found).contains("each of the 8 layers `layers/*`"), "{}", sentence(found));
    assert_eq!(code(found).as_deref(), Some("layer = jax.checkpoint(layer)"));
    // All but the values of the layer whose backward pass runs.
    assert!(found.saving.bytes().is_some_and(|bytes| (96 * MIB..=7 * 16 * MIB).contains(&bytes)), "{:?}", found.saving);
    // Without numbers in the names, the shapes that repeat tell of the layers.
    let found = advice(&of_layers(8, |_| "Net)".to_owned()));
    let found = found.iter().find(|advice| kind(advice) == ("checkpoint", "value")).expect("layers");
    assert!(sentence(found).contains("each layer, 8 by the shapes that repeat"), "{}", sentence(found));
}

/// A constant of the backward pass is broadcast before the forward pass runs.
#[test]
fn what_the_backward_pass_reads_is_kept_for_the_gradient() {
    let made = |name: &str, operands: &str, op: &str| {
        let array = "f32[1024,1024]{1,0:T(8,128)}";
        let metadata = format!("metadata={{op_name=\"jit(step)/{op}/Dense_0/dot_general\"}}");
        format!("  {name} = {array} custom-call({operands}), custom_call_target=\"f\", {metadata}\n")
    };
    let lines = [
        "HloModule jit_step, is_scheduled=true\n\nENTRY e {\n".to_owned(),
        "  x = f32[1024,1024]{1,0:T(8,128)} parameter(0)\n".to_owned(),
        "  one = f32[8,128]{1,0:T(8,128)} custom-call(), custom_call_target=\"f\", \
         metadata={op_name=\"jit(step)/transpose(jvp(Net))/mul\"}\n"
            .to_owned(),
        made("y0", "x", "jvp(Net)/Block_0"),
        made("y1", "y0", "jvp(Net)/Block_1"),
        made("y2", "y1", "jvp(Net)/Block_2"),
        made("z2", "y2, one", "transpose(jvp(Net))/Block_2"),
        made("z1", "z2, y1", "transpose(jvp(Net))/Block_1"),
        made("ROOT z0", "z1, y0", "transpose(jvp(Net))/Block_0"),
    ];
    let program = Program::parse(lines.concat() + "}\n").expect("a program");
    let output = AuditOutput::new(Audit::new(&program).run());
    let summary = output.summary();
    let kept = summary.causes.iter().find(|cause| cause.kind == "kept_for_gradient").expect("kept");
    let sentence = "3 arrays of `Net/Block_0…2/Dense_0` kept for the gradient, each 1,024 × 1,024, f32";
    assert_eq!((kept.arrays, &*kept.sentence), (3, sentence));
}
