//! Truncated messages are still judged.

use std::{fs, path::Path};
use tilewise::tpu::Generation;
use tilewise_audit::{
    explain,
    recommendation::finding::{
        ElsewhereFinding, Finding, RowOperation, RowsOfFew, RunTimeFinding, Transform, WholeArray,
    },
};
use tilewise_oom::Message;

#[test]
fn messages_cut_anywhere_are_judged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data");
    let mut messages = 0;
    for file in fs::read_dir(folder).expect("the messages").flatten() {
        if file.path().extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(file.path()).expect("a message");
        let whole = explain(Message::parse(&text).expect("a message"), None);
        messages += 1;
        // The reader's own tests cut at every byte.
        for end in (0..text.len()).step_by(29) {
            let Some(part) = text.get(..end) else { continue };
            let Ok(message) = Message::parse(part) else { continue };
            let explained = explain(message, None);
            assert!(explained.allocations.len() <= whole.allocations.len(), "{:?} cut at {end}", file.path());
            assert!(explained.padding_bytes() <= whole.padding_bytes(), "{:?} cut at {end}", file.path());
        }
    }
    assert!(messages >= 17);
}

#[test]
fn what_a_kernel_declares_is_told_from_what_its_body_takes() {
    let of = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data").join(file);
        explain(tilewise_audit::read_log(&path, u64::MAX).expect("a message"), None).declared_and_body_bytes
    };
    assert_eq!(of("scoped_vmem_blocks_v6e.txt"), Some((128 << 20, 0)));
    assert_eq!(of("smem_prefetch.txt"), None, "SMEM has no body");
    let text = "Ran out of memory in memory space vmem while allocating on stack for %k.1 = f32[8,128] custom-call(%x), \
                custom_call_target=\"tpu_custom_call\". Scoped allocation with size 60.50M and limit 16.00M exceeded scoped vmem \
                limit by 44.50M.";
    let raised = |generation| {
        let explained = explain(Message::parse(text).expect("a message"), Some(generation));
        let limits = explained.advice.iter().filter_map(|advice| match &advice.finding {
            Finding::KernelLimit(limit) => limit.cap,
            _ => None,
        });
        limits.map(|(_, cap)| cap).next()
    };
    assert!(raised(Generation::V5p).is_some_and(|cap| (63 << 20..64 << 20).contains(&cap)));
    assert_eq!(raised(Generation::V4), None, "it has 16 MiB");
}

/// The thread is jax-ml/jax#7502. Compiled with jax 0.6.2, 0.9.2 and 0.12.0.1, an array of those bounds has temporaries
/// of at most 1 GiB, not 64.
#[test]
fn indices_that_only_an_older_jax_makes_are_told() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data/public/verdicts.txt");
    let messages = fs::read_to_string(path).expect("the messages");
    let text = messages.split("%%% ").find_map(|message| message.strip_prefix("jax7502 padding")).expect("its message");
    let explained = explain(Message::parse(text).expect("a message"), None);
    let first = explained.advice.first().map(|advice| &advice.finding);
    let is_of_four = |rows: &RowsOfFew| rows.columns == 4 && rows.operation == RowOperation::IndexTuples;
    assert!(matches!(first, Some(Finding::RowsOfFew(rows)) if is_of_four(rows)), "{first:?}");
}

/// The wording of erfanzar/EasyDeL#166: heads and pairs of positions, without a batch.
#[test]
fn scores_of_attention_need_no_batch() {
    let first = |name: &str| {
        let text = format!(
            "Ran out of memory in memory space hbm. Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.\n\n\
             Program hbm requirement 63.80G:\n    HLO temp         63.79G (100.0% utilization, 0.3% fragmentation (210.89M))\n\n  \
             Largest program allocations in hbm:\n\n  1. Size: 2.00G\n     Operator: op_name=\"jit(step)/jvp(Falcon)/{name}\"\n     \
             Shape: f32[32,4096,4096]{{1,2,0:T(8,128)}}\n     Unpadded size: 2.00G\n     Allocation type: HLO temp\n     \
             ==========================\n"
        );
        let explained = explain(Message::parse(&text).expect("a message"), None);
        explained.advice.first().map(|advice| matches!(advice.finding, Finding::AttentionScores(_)))
    };
    assert_eq!(first("h/0/self_attention/...qhd,...khd->...hqk/dot_general"), Some(true));
    assert_eq!(first("unet/up/dot_general"), Some(false), "a picture");
}

/// The wording of erfanzar/EasyDeL's "GPT2 (150M model) support on Tv2.8": weights that Flax draws.
#[test]
fn rows_that_a_library_makes_are_not_the_users_to_split() {
    let is_split = |file: &str, operation: &str| {
        let text = format!(
            "Ran out of memory in memory space hbm. Used 9.35G of 7.48G hbm. Exceeded hbm capacity by 1.86G.\n\n\
             Program hbm requirement 9.35G:\n    HLO temp          9.35G (3.1% utilization: Unpadded (294.48M) Padded (9.35G), \
             0.0% fragmentation (30.0K))\n\n  Largest program allocations in hbm:\n\n  1. Size: 9.20G\n     \
             Operator: op_name=\"jit(f)/{operation}\" source_file=\"{file}\" source_line=979\n     \
             Shape: f32[19298688,2]{{1,0:T(8,128)}}\n     Unpadded size: 147.24M\n     \
             Extra memory due to padding: 9.06G (64.0x expansion)\n     XLA label: copy.1 = copy(fusion.7)\n     \
             Allocation type: HLO temp\n     ==========================\n"
        );
        let explained = explain(Message::parse(&text).expect("a message"), None);
        explained.advice.iter().any(|advice| matches!(advice.finding, Finding::RowsOfFew(_)))
    };
    let library = "/venv/lib/python3.10/site-packages/flax/core/scope.py";
    assert!(!is_split(library, "erf_inv"));
    assert!(is_split(library, "gather"), "a name tells what makes them");
    assert!(is_split("train.py", "erf_inv"));
}

/// Names of TensorFlow's `GradientTape`.
#[test]
fn what_a_gradient_keeps_on_a_gpu_is_known_by_its_name() {
    let transform = |name: &str| {
        let text = format!(
            "Out of memory while trying to allocate 22271409880 bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n    \
             preallocated temp allocation:   20.74GiB\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 3.40GiB\n\t\t\
             Operator: op_type=\"EmptyTensorList\" op_name=\"{name}\" source_file=\"train.py\" source_line=7\n\t\t\
             XLA Label: fusion\n\t\tShape: f32[1200,476,1600]\n\t\t==========================\n"
        );
        let explained = explain(Message::parse(&text).expect("a message"), None);
        explained.advice.into_iter().find_map(|advice| match advice.finding {
            Finding::Elsewhere(ElsewhereFinding::Smaller(largest)) => Some(largest.transform),
            _ => None,
        })
    };
    let gradient = transform("gradient_tape/model_1/rnn_1/while/lstm_cell/MatMul/ReadVariableOp_0/accumulator");
    assert_eq!(gradient, Some(Some(Transform::Gradient)));
    assert_eq!(transform("model_1/rnn_1/while/lstm_cell/MatMul"), Some(None));
}

/// Kinds of public threads, each in a text of our own with the figures that decide it.
#[test]
fn the_first_step_of_pytorch_and_its_servers() {
    let first = |text: &str| {
        let explained = explain(Message::parse(text).expect("a message"), None);
        explained.advice.into_iter().next().expect("advice").finding
    };
    let of = |text: &str| match first(text) {
        Finding::Elsewhere(found) => found,
        other => panic!("{other:?}"),
    };
    let small = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of 44.53 GiB of which \
                 448.00 KiB is free.";
    let captured = format!("vllm serve M --gpu-memory-utilization 0.98\nCapturing cudagraphs for decoding.\n{small}");
    let ElsewhereFinding::ServerPrograms { is_capture: true, percents: Some([98, 90]), .. } = of(&captured) else {
        panic!("{:?}", of(&captured))
    };
    let beside = "from vllm import LLM\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.63 GiB (GPU 0; 44.56 GiB total \
                  capacity; 27.91 GiB already allocated; 565.31 MiB free; 27.93 GiB reserved in total by PyTorch)";
    assert!(matches!(of(beside), ElsewhereFinding::ServerBeside { percent: 58, .. }));
    let scores = "The sequence is long (40320).\nq, k, v = (torch.ones(1, 16, 40320, 2) for _ in range(3))\nout = flex_attention(q, k, v)\ntorch.OutOfMemoryError: CUDA \
                  out of memory. Tried to allocate 48.45 GiB.";
    assert!(matches!(of(scores), ElsewhereFinding::Whole(WholeArray::Scores)));
    let state = "Traceback (most recent call last):\n  File \"/lib/torch/optim/adamw.py\", line 599, in _multi_tensor_adamw\n    roots = torch._foreach_sqrt(squares)\n\
                 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB.";
    assert!(matches!(of(state), ElsewhereFinding::OptimizerState));
    let hidden = "nvidia-smi inside the container lists no process.\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate \
                  216.00 MiB (GPU 0; 7.92 GiB total capacity; 69.17 MiB already allocated; 24.56 MiB free; 86.00 MiB reserved in total by \
                  PyTorch)";
    assert!(matches!(of(hidden), ElsewhereFinding::TorchHidden));
    let other = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which \
                 31.00 MiB is free. Process 17653 has 19.03 GiB memory in use. Including non-PyTorch memory, this process has 4.50 GiB memory \
                 in use. Of the allocated memory 4.10 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.";
    assert!(matches!(of(other), ElsewhereFinding::TorchProcesses(Some(other)) if other.number == 17_653));
    let closes = "I jit a function that closes over a large array.\nKilled";
    assert!(matches!(first(closes), Finding::RunTime(RunTimeFinding::ClosedOver)));
    let collected = "The job dies during evaluation.\nfailed (exitcode: -9) local_rank: 0";
    assert!(matches!(of(collected), ElsewhereFinding::HostCollection));
    // One that is listed alone is the process itself.
    let own = other.replace(" Including non-PyTorch memory, this process has 4.50 GiB memory in use.", "");
    let own = own.replace("4.10 GiB", "18.50 GiB");
    assert!(!matches!(of(&own), ElsewhereFinding::TorchProcesses(_)));
}
