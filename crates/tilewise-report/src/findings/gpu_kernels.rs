//! Kernels of GPUs: shared memory, and workspaces of the algorithms that XLA tries.

use super::{
    Words,
    code::JAX_AND_NUMPY,
    words::{capitalized, printed},
};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::ElsewhereFinding};
use tilewise_oom::{Form, Framework, KernelOption, Message, OptionChange};

/// Shared memory that a block of threads may have at most, in bytes, and the cards: "Maximum amount of shared memory per thread
/// block" of NVIDIA's CUDA C++ Programming Guide, and the local data share of AMD's CDNA papers.
const CARDS: [(u64, &str); 7] = [
    (48 << 10, "what any NVIDIA card gives a kernel that doesn't ask for more, and the limit of those before Volta"),
    (64 << 10, "the limit of a T4, and of AMD's MI200 and MI300"),
    (96 << 10, "the limit of a V100"),
    (99 << 10, "the limit of an A10, L4, L40 and of GeForce RTX 30 to 50"),
    (160 << 10, "the limit of AMD's MI350"),
    (163 << 10, "the limit of an A100"),
    (227 << 10, "the limit of an H100, H200 and B200"),
];

/// No kernel's default has more stages: fewer can't divide its memory by more.
const MOST_STAGES: u64 = 4;

pub(super) fn words(finding: &ElsewhereFinding, about: &Recommendation) -> Words {
    match finding {
        ElsewhereFinding::SharedMemory { fusion: Some(fusion), .. } => Words::new(format!(
            "Keep the operations of `{fusion}` apart, a fusion of XLA's own, with `jax.lax.optimization_barrier`; or update jaxlib, whose newer versions may \
             divide it otherwise"
        ))
        .task("Keep the operations of XLA's fusion apart, or update jaxlib")
        .code(JAX_AND_NUMPY, "x = jax.lax.optimization_barrier(x)  # between the operations that are fused"),
        ElsewhereFinding::SharedMemory { percent, largest, is_of_pallas, is_own, .. } => {
            let are_stages_enough = percent.is_none_or(|percent| percent.saturating_mul(MOST_STAGES) >= 100);
            let fewer = if are_stages_enough { ", or take fewer stages (`num_stages`)" } else { "" };
            let divided = percent.map(|percent| format!(", and may fill {percent} % of what they do")).unwrap_or_default();
            let [of_sentence, of_task, blocks] = match is_own {
                true => ["", "", "the kernel's blocks"],
                false => ["If the kernel is your own, of Triton or Pallas: ", "If the kernel is yours: ", "its blocks"],
            };
            let words = Words::new(capitalized(&format!(
                "{of_sentence}make {blocks} smaller{fewer}, and loop over the rest in the kernel; each stage holds its blocks in shared \
                 memory{divided}"
            )));
            let now = largest.as_ref().map(|each| format!(" (`{}` is {} now)", each.name, each.size)).unwrap_or_default();
            let words = words.task(capitalized(&match percent {
                Some(50..) => format!("{of_task}halve a block{now}, or lower `num_stages`"),
                Some(percent) => {
                    let times = 100_u64.div_ceil((*percent).max(1)).next_power_of_two();
                    format!("{of_task}make {blocks} {times} times smaller{now}")
                }
                None => format!("{of_task}make {blocks} smaller{now}"),
            }));
            let words = match percent {
                Some(percent @ ..50) => sides(*percent, words),
                _ => words,
            };
            match about.framework {
                _ if !are_stages_enough => words,
                Some(Framework::Torch) => words.code(
                    "import triton",
                    "triton.Config({'BLOCK_M': BLOCK_M // 2, 'BLOCK_N': BLOCK_N}, num_stages=1)  # the kernel's own names",
                ),
                _ if !is_of_pallas => words,
                _ => words.code(
                    "from jax.experimental.pallas import triton as plgpu",
                    "params = plgpu.CompilerParams(num_stages=1)  # pallas_call(…, compiler_params=params)",
                ),
            }
        }
        ElsewhereFinding::Implementation(KernelOption { library, name, change: OptionChange::Set(to), .. }) => {
            Words::new(format!(
                "Choose another implementation by `{name}` of {library}, for these shapes or for the gradient alone: the kernel is {library}'s, \
                 and its blocks grow with the size of a head. `{to}` has no kernel of its own; or update {library}, which chooses the \
                 blocks"
            ))
            .task(format!("Set `{name}` to '{to}' in the call of {library}, whose kernel it is"))
            .code(None, format!("{name}='{to}'  # in the library's call; a newer version may choose smaller blocks"))
        }
        ElsewhereFinding::OtherKernel => {
            let of_xla = match about.framework {
                Some(Framework::Torch) | None => "",
                _ => {
                    ", such as XLA's attention (AlphaFold 3: `--flash_attention_implementation=xla`). If XLA made it: take another version of \
                     jaxlib, or cuBLAS for products of matrices (`XLA_FLAGS=--xla_gpu_enable_triton_gemm=false`)"
                }
            };
            Words::new(format!(
                "If the kernel is a library's, choose another implementation of it{of_xla}"
            ))
            .task("If it is a library's or XLA's: choose another implementation or version")
            .jax(about, None, "implementation='xla'  # in the library's call; AlphaFold 3: --flash_attention_implementation=xla")
        }
        ElsewhereFinding::NoAutotuning => Words::new(
            "Let XLA take its default algorithms: without autotuning the program runs, if it may be slower, or fails with its own error; most \
             often the memory is nearly full, and no algorithm that is tried has room",
        )
        .task("Let XLA take its default algorithms: what fails then tells the cause")
        .code(None, "export XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_autotune_level=0\""),
        ElsewhereFinding::AnyAlgorithm => Words::new(
            "Let XLA take a default algorithm, which may be slower, if this ended the job; a warning says that it already does",
        )
        .task("Let XLA take a default algorithm")
        .code(None, "export XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_strict_conv_algorithm_picker=false\""),
        ElsewhereFinding::SmallerOperand { shape } => Words::new(format!(
            "Compute the convolution in tiles of the picture, or of fewer pictures: its operand {shape} itself found no room, which every \
             algorithm needs"
        ))
        .task("Compute the convolution in tiles of the picture"),
        ElsewhereFinding::SmallerWorkspace => Words::new(
            "Compute the convolution in tiles of the picture, or leave the workspace room: it is taken from the pool that arrays \
             are in",
        ),
        _ => Words::new(""),
    }
}

/// The two sides of a block that becomes this percentage of it, in powers of two.
fn sides(percent: u64, words: Words) -> Words {
    let times = 100_u64.div_ceil(percent.max(1)).next_power_of_two();
    let one = 1_u64 << times.ilog2().div_ceil(2);
    let other = times / one;
    words.caveat(format!("Such as one side {one} times and the other {other} times shorter; the grid takes as many times the steps along each"))
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    if message.form == Form::Autotuning {
        let asked = message.used.as_ref().map(|used| format!(": a workspace of {} had no room", printed(used)));
        let asked = asked.unwrap_or_else(|| ", most often since no workspace has room".to_owned());
        let name = message.facts.text("instruction").and_then(|text| text.split(" = ").next());
        let name = name.map(|name| format!(" `{}`", name.trim_start_matches('%'))).unwrap_or_default();
        if let Some((shape, asked)) = message.operand().zip(message.used.as_ref()) {
            return [
                format!("On a GPU, the convolution{name} had no room for its operand {shape}: {} asked for.", printed(asked)),
                "XLA tries algorithms of cuDNN before the program runs, on operands of their full size: the program needs them, \
                 too, whatever the algorithm."
                    .to_owned(),
            ];
        }
        if !message.lacks_workspace() {
            return [
                format!("On a GPU, autotuning found no algorithm for{}.", if name.is_empty() { " an operation" } else { &name }),
                "XLA tries algorithms and sizes of tiles before the program runs, in what memory is left: where little is, none has room."
                    .to_owned(),
            ];
        }
        return [
            format!("On a GPU, autotuning found no algorithm for the convolution{name}{asked}."),
            "XLA tries algorithms of cuDNN before the program runs, each with a workspace beside its arrays. The workspace is not \
             the program's own memory."
                .to_owned(),
        ];
    }
    let size = |bytes: u64| crate::style::bytes(bytes);
    let figures = message.used.as_ref().zip(message.limit.as_ref()).map(|(used, limit)| [used.bytes(), limit.bytes()]);
    let figures = figures.map(|[used, limit]| format!(": {} requested, {} available", size(used), size(limit)));
    let card = message.limit.as_ref().and_then(|limit| CARDS.iter().find(|(most, _)| *most == limit.bytes()));
    let card = card.map(|(most, what)| format!(" {} is {what}.", bytes(*most))).unwrap_or_default();
    [
        format!(
            "A GPU kernel needs more shared memory than a block of threads may have{}.",
            figures.unwrap_or_default()
        ),
        format!(
            "Shared memory holds the blocks that one kernel works on, once for each stage; the GPU's own memory did not run \
             out.{card}"
        ),
    ]
}
