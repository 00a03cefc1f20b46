//! First changes of PyTorch's messages on GPUs.

use crate::screen::first_change;

/// PyTorch's message, of a GPU of 24 GiB.
fn of_torch(asked: &str, free: &str, held: &str, cached: &str) -> String {
    format!(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 23.65 GiB of which {free} is \
         free. Including non-PyTorch memory, this process has 23.00 GiB memory in use. Of the allocated memory {held} is allocated by PyTorch, \
         and {cached} is reserved by PyTorch but unallocated."
    )
}

/// Only what is trained keeps anything for a backward pass, and joined pieces make no more memory.
#[test]
fn a_model_that_only_runs_keeps_nothing() {
    let full = of_torch("1.00 GiB", "0.50 GiB", "21.50 GiB", "0.25 GiB");
    let (task, screen) = first_change(&format!("with torch.no_grad():\n{full}"));
    assert!(task.starts_with("See whether batches leave") && screen.contains("91 %   21.50 GiB  tensors"), "{screen}");
    assert!(!screen.contains("expandable") && !screen.contains("nvidia-smi"), "{screen}");
    let (task, _) = first_change(&format!("loss.backward()\n{full}"));
    assert!(task.starts_with("Take fewer samples at once, or put checkpoints"), "{task}");
    let pieces = of_torch("1.00 GiB", "0.50 GiB", "19.50 GiB", "2.25 GiB");
    assert!(first_change(&format!("with torch.no_grad():\n{pieces}")).0.starts_with("Let the allocator join"));
    let (_, screen) = first_change(&format!("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python x.py\n{pieces}"));
    assert!(!screen.contains("expandable_segments:True\n\n") && !screen.contains("Let the allocator"), "{screen}");
}

#[test]
fn a_server_has_flags_of_its_own() {
    let full = of_torch("1.00 GiB", "0.50 GiB", "21.50 GiB", "0.25 GiB");
    let frames = |function: &str| {
        format!(
            "sglang.launch_server\nTraceback (most recent call last):\n  File \"/a/runner.py\", line 3, in {function}\n    x()\n{full}"
        )
    };
    assert!(first_change(&frames("init_cuda_graphs")).0.starts_with("Capture fewer CUDA graphs (`--cuda-graph-max-bs"));
    assert!(first_change(&frames("forward")).0.starts_with("Take fewer tokens at once (`--chunked-prefill-size`)"));
    // An error that names the setting knows best.
    let told = "RuntimeError: Not enough memory. You need to decrease `--max-batch-prefill-tokens`";
    let log = format!("text_generation_launcher --max-batch-prefill-tokens 4096\n{full}\n{told}");
    assert_eq!(first_change(&log).0, "Lower `--max-batch-prefill-tokens` from 4096 to 2000, by the error's figures");
}

/// A request for more than half of a device is one array; a state that is saved is gathered whole.
#[test]
fn what_pytorch_asks_for_tells_the_step() {
    let whole = of_torch("20.00 GiB", "5.00 GiB", "18.00 GiB", "0.25 GiB");
    assert!(first_change(&format!("loss.backward()\n{whole}")).0.starts_with("Never make the array whole"));
    let full = of_torch("1.00 GiB", "0.50 GiB", "21.50 GiB", "0.25 GiB");
    let saving = format!(
        "Traceback (most recent call last):\n  File \"/a/train.py\", line 7, in save\n    state = ema_model.state_dict()\n{full}"
    );
    assert!(first_change(&saving).0.starts_with("Save each device's own part"));
    let (task, screen) =
        first_change("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.");
    assert!(task.starts_with("Look for the first error") && screen.contains("no machine has"), "{screen}");
    let (_, screen) = first_change(
        "RuntimeError: MPS backend out of memory (MPS allocated: 13.98 GB, other allocations: 3.06 GB, max allowed: 18.13 GB). Tried to \
         allocate 1.75 GB on private pool.",
    );
    assert!(screen.starts_with("Out of memory on a GPU") && !screen.contains("nvidia"), "{screen}");
}

/// Facts of the text tell what fills the memory: sizes that make up the request, figures that grow, a replicated state, a rank on
/// another's GPU.
#[test]
fn facts_of_a_text_come_before_guesses() {
    let gpu = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 17.14GiB\njax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out \
               of memory while trying to allocate 18402508800 bytes.";
    let (task, screen) = first_change(&format!("grid (96, 96, 96), points (5200, 3)\n{gpu}"));
    assert!(task.starts_with("Never make the array whole"), "{screen}");
    assert!(screen.contains("5,200 × 96 × 96 ×"), "{screen}");
    let steps = |at: u64| format!("Evaluation [{at}/500] cur mem: {}\n", 6000 + 36 * at);
    let log: String = [0, 10, 20, 460, 470, 480].into_iter().map(steps).collect();
    let full = of_torch("146.00 MiB", "15.44 MiB", "22.50 GiB", "0.25 GiB");
    assert_eq!(
        first_change(&format!("{log}{full}")).0,
        "Keep nothing of past batches on the device: memory grows with each"
    );
    let killed = "Out of memory: Killed process 12 (python3) total-vm:9kB, anon-rss:451521536kB";
    assert!(first_change(&format!("{log}{killed}")).0.starts_with("Find what the host keeps"));
    let state = "exp_avg (1600, 4800) float32 sharding={replicated}";
    let tpu = "Error loading program: Attempting to reserve 3.32G at the bottom of memory. That was not possible. There are 3.13G free.";
    assert!(first_change(&format!("{state}\n{tpu}")).0.starts_with("Divide the state between devices"));
    let others = "Process 70410 has 10.12 GiB memory in use. Process 70411 has 9.87 GiB memory in use. Including";
    let rank = format!("[rank5]: {}", full.replace("Including", others));
    assert_eq!(first_change(&rank).0, "Give each process its own GPU: rank 5 asks GPU 0");
}

/// Until 2.0 PyTorch printed all that it reserves; a few free pieces are no cause.
#[test]
fn pieces_of_the_old_wording() {
    let of = |asked: &str, held: &str, reserved: &str| {
        first_change(&format!(
            "RuntimeError: CUDA out of memory. Tried to allocate {asked} (GPU 0; 23.65 GiB total capacity; {held} already allocated; 10.26 \
             GiB free; {reserved} reserved in total by PyTorch)"
        ))
    };
    let (task, screen) = of("10.84 GiB", "1.06 GiB", "12.53 GiB");
    assert!(task.starts_with("Let the allocator join") && screen.contains("11.47 GiB  free pieces"), "{screen}");
    let (_, screen) = of("20.00 MiB", "13.20 GiB", "13.30 GiB");
    assert!(!screen.contains("Let the allocator join") && !screen.contains("other processes"), "{screen}");
}

/// CUDA reports errors late: cuBLAS fails first where an index was out of bounds before.
#[test]
fn an_error_that_comes_late() {
    let (task, screen) =
        first_change("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
    assert_eq!(task, "If the GPU isn't full: look for an index out of bounds");
    assert!(!screen.contains("Out of memory") && !screen.contains("XLA_"), "{screen}");
}

/// The text's own code shows a second copy of the state on the device, or a list that grows.
#[test]
fn arrays_that_code_keeps() {
    let full = of_torch("20.00 MiB", "0.10 MiB", "22.50 GiB", "0.10 GiB");
    let code = "state = torch.load(path, map_location=device)\nmodel.load_state_dict(state['model'])\n";
    assert_eq!(
        first_change(&format!("{code}{full}")).0,
        "Load `state` to the host: on the device it stays beside the model"
    );
    let code = "ran for 3 hours\nfor x in loader:\n    feats.append(model(x))\n";
    assert_eq!(first_change(&format!("{code}{full}")).0, "Keep on the host what `feats` collects in a loop");
}

/// Of ranks that ask for as much, the line of one may be cut; logits are named by the line that makes them.
#[test]
fn the_fullest_rank_is_shown() {
    let whole = of_torch("20.00 GiB", "5.00 GiB", "18.00 GiB", "0.25 GiB");
    let frame =
        "Traceback (most recent call last):\n  File \"/a/loss.py\", line 66, in forward\n    logits = logits.float()\n";
    let cut = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of 23.65 GiB of which 4.00 GiB is free.";
    let (task, screen) = first_change(&format!("{frame}{whole}\n{cut}"));
    assert!(task.starts_with("Never make all logits at once") && screen.contains("18.00 GiB  tensors"), "{screen}");
}

/// A smaller batch frees neither a data set nor memory that others hold; a request that is nearly as large as all that is free finds no piece.
#[test]
fn memory_that_is_not_of_a_batch() {
    let others = of_torch("26.00 MiB", "18.94 MiB", "1.27 GiB", "0.03 GiB");
    assert_eq!(first_change(&others).0, "See which processes hold the GPU's memory");
    let fit = "Traceback (most recent call last):\n  File \"/home/a/a.py\", line 1, in <module>\n    model.fit(images, labels)\n";
    let of_tensorflow = |shape: &str| {
        format!(
            "{fit}ResourceExhaustedError: OOM when allocating tensor with shape[{shape}] and type float on /device:GPU:0 by allocator GPU_0_bfc"
        )
    };
    assert_eq!(first_change(&of_tensorflow("54000,128,128,3")).0, "Pass the data in batches, not whole");
    assert!(!first_change(&of_tensorflow("256,128,128,64")).0.starts_with("Pass"));
    let full = "Limit: 23483383808\nInUse: 18479054848\n";
    let (_, screen) = first_change(&format!("{}\n{full}", of_tensorflow("295,64,256,256")));
    assert!(!screen.contains("not in one piece"), "{screen}");
}

/// A loop that cuts its graph now and then runs all its batches as one program; prose tells no error of it.
#[test]
fn a_graph_of_several_batches_is_cut() {
    let told = |cut: &str| {
        format!(
            "OOM when I accumulate gradients on a TPU\n\n```python\nfor at, x in enumerate(loader):\n    loss = model(x.to(xm.xla_device()))\n    \
             loss.backward()\n{cut}    if (at + 1) % 8 == 0:\n        optimizer.step()\n        xm.mark_step()\n```\nWhy does it run out of memory?"
        )
    };
    assert!(first_change(&told("")).0.starts_with("Cut the graph after each batch"));
    let (task, screen) = first_change(&told("    xm.mark_step()\n"));
    assert!(task.starts_with("See what holds it") && screen.contains("xm.get_memory_info"), "{screen}");
}
