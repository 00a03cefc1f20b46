//! GPUs: memory of the device, shared memory of one kernel, autotuning.

use super::{Judged, Rule};
use crate::entry::{Entry, Operator, Section, WrittenShape};
use crate::facts::{Fact, FactValue, Facts};
use crate::form::Form;
use crate::level::Level::{Error, Report, Warning};
use crate::message::Message;
use crate::tables::{Row, Usage};
use crate::text::reader::Reader;
use crate::text::size::PrintedSize;
use crate::verdict::UntiledMachine;

const GPU: Judged = Judged::Elsewhere(UntiledMachine::Gpu);

/// The allocator's name shows which memory ran out.
const OF_ALLOCATOR: &str = "Allocator {allocator:name} ran out of memory trying to allocate {used:size}";

pub(super) const RULES: &[Rule] = &[
    Rule {
        opens: &[
            "Shared memory size limit exceeded[ requested {used:count}[ available {limit:count}]]",
            "out of resource (shared|tensor) memory[ Required {used:count}[ Hardware limit {limit:count}]]",
            "Shared memory requested exceeds device resources",
            "Entry function {function:name} uses too much shared data[ {used:count}[ bytes {:count} bytes system][ bytes][ {limit:count} max]]",
            "kernel exceeds available shared memory[ smem_bytes {used:count}[ [max_smem_bytes] {limit:count}]]",
            "local memory {used:count} exceeds limit {limit:count}[ in function {function:name}]",
        ],
        ..Rule::new(Form::SharedMemory, Error, GPU, "shared_memory")
    },
    Rule {
        opens: &[
            "Failed to determine best cudnn convolution algorithm for {instruction:instruction}",
            "Failed to determine best cudnn convolution algorithm",
            "All algorithms tried for convolution {instruction:instruction} failed",
            "Autotuning failed for HLO {instruction:instruction}",
            "No reference output {reference:name}",
        ],
        adds: &[
            "+Out of memory while trying to allocate {used:size}",
            "+Out of memory allocating {used:size}",
            "+Failed to allocate request for {used:size}",
        ],
        ..Rule::new(Form::Autotuning, Error, GPU, "gpu")
    },
    Rule {
        opens: &[
            "Allocator {allocator:name} ran out of memory trying to allocate {used:size} … caller indicates that this is not a failure",
            "failed to allocate {used:size} from device[ RESOURCE_EXHAUSTED][ CUDA_ERROR_OUT_OF_MEMORY]",
            "Failed to allocate device memory of {used:size}[ RESOURCE_EXHAUSTED][ CUDA_ERROR_OUT_OF_MEMORY]",
            "could not allocate pinned {pinned:name} [memory] of size {used:count}",
            "failed to alloc {used:count} bytes on {pinned:name}[ {code:name}]",
        ],
        ..Rule::new(Form::GpuRetry, Warning, GPU, "gpu")
    },
    Rule {
        opens: &[
            "Out of memory while trying to allocate [{used:size}]",
            "Out of memory allocating [{used:size}]",
            "Failed to allocate request for {used:size} [on device ordinal {ordinal:number}]",
            OF_ALLOCATOR,
            "cuMemAllocAsync failed to allocate {used:size}",
            "CUDA out of memory [Tried to allocate {used:size}]",
            "HIP out of memory [Tried to allocate {used:size}]",
            "CUDA out of memory Tried to allocate more than {damaged:name} memory",
            "CUDA runtime error in {call:name} … out of memory",
            // ggml: `ggml_cuda_error`, and the allocation before it; PyTorch's `c10_cuda_check_implementation`
            "allocating {used:size} on device {ordinal:number} cudaMalloc failed out of memory",
            "failed to allocate CUDA0 buffer of size {used:count}",
            // Warp
            "CUDA error 2 out of memory[ … Failed to allocate {used:count} bytes on device]",
            "CUDA error out of memory",
            "~ran out of memory trying to allocate {used:size}",
            "MPS backend out of memory",
            "Failed to load in memory {loaded:name}",
            "Failed to launch CUDA kernel {loaded:name} … CUDA_ERROR_OUT_OF_MEMORY",
            "Failed to allocate {used:bytes} for new constant",
            "failed initializing StreamExecutor for CUDA device ordinal {context:number} … CUDA_ERROR_OUT_OF_MEMORY",
            "Failed to instantiate [gpu|CUDA|HIP] {graph:name} CUDA_ERROR_OUT_OF_MEMORY",
            "out of memory trying to instantiate {graph:name} with",
            "NCCL operation {communicator:name} … Cuda failure out of memory",
            "NCCL operation {communicator:name} … Failed to CUDA calloc",
            "NCCL {communicator:name} Cuda failure out of memory",
            "NCCL {communicator:name} Cuda failure {:number} out of memory",
            "*Dst tensor is not initialized",
            "operation {library:name} failed out of memory",
            "operation (gpusolverDnCreate|cusolverDnCreate) {handle:name} failed cuSolver",
            "failed to create {handle:name} handle",
            "DNN library initialization {handle:name}",
            "could not create {handle:name} handle",
            "(cuSolver|cuBLAS|cuDNN|cuSPARSE|cuFFT) has not been {handle:name}",
            "*CUDA_ERROR_ILLEGAL_ADDRESS an illegal memory access was {broken:name}",
            "*CUDA_ERROR_OUT_OF_MEMORY",
            "*hipErrorOutOfMemory",
            "*torch cuda OutOfMemoryError",
            "*torch OutOfMemoryError",
            "*failed to allocate memory on GPU",
            "OOM when allocating tensor [with shape {tensor:bounds} and type {element:name}]",
            "*by allocator GPU_0_bfc",
            "CUDA error (CUBLAS_STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED) when calling cublasCreate {late:name}",
            "*CUDNN_STATUS_ALLOC_FAILED",
            "*CUBLAS_STATUS_ALLOC_FAILED",
            "*BufferAssignment OOM Debugging",
            "*BFCAllocator dump for GPU_0_bfc",
            "*BufferAssignment stats",
            "*Sum Total of in use chunks {pool_used:size}",
            "*Buffer {:number} Size {:size}",
            "*Bin for {used:size} was {:size} Chunk State",
        ],
        adds: &[
            "parameter allocation {parameter:size}",
            "constant allocation {constant:size}",
            "maybe_live_out allocation {live_out:size}",
            "preallocated temp allocation {temporary:size}",
            "preallocated temp fragmentation {fragmentation:size}",
            "+total allocation {total:size}",
            "+executable_name {module:name}",
            "+Memory usage {free:count} bytes free {capacity:count} bytes total",
            "+insufficient driver version {driver:line}",
            "+of which {free:size} is free",
            "+GPU {:number} {capacity:size} total",
            "+capacity {held:size} already",
            "+allocated {free:size} free[ {:size} allowed][ {in_pool:size} reserved in total by PyTorch][ {cached:size} cached]",
            "+Of the allocated memory {held:size} is allocated by PyTorch",
            "+and {cached:size} is reserved by PyTorch but unallocated",
            "+has a total (capacity|capacty) of {capacity:size}",
            "+Including non PyTorch memory this process has {own:size} memory in use",
            "+with {graphs:size} allocated in private pools",
            "+Free memory Total memory {free:count} {capacity:count}",
            "+memory_limit_ ({pool:size}|{pool:count}) available (size|bytes) ({ungrown:size}|{ungrown:count})",
            "+Limit ({pool:size}|{pool:bytes}) InUse ({pool_used:size}|{pool_used:bytes})",
            "+LargestFreeBlock ({piece:size}|{piece:bytes})",
            "+node {node:name}",
            "+requested by op {node:name}",
            "+by allocator {allocator:name}",
        ],
        then: Some(gpu),
        ..Rule::new(Form::Gpu, Error, GPU, "gpu")
    },
    Rule { ..Rule::new(Form::Told, Report, Judged::Elsewhere(UntiledMachine::Unnamed), "gpu") },
    Rule { ..Rule::new(Form::Device, Error, Judged::Elsewhere(UntiledMachine::Unnamed), "gpu") },
    Rule {
        opens: &["byte size of input output arguments {used:bytes} exceeds the base limit [{limit:bytes}]"],
        ..Rule::new(Form::GpuArguments, Warning, GPU, "gpu")
    },
];

/// Reads the statistics of XLA's buffer assignment as a table, TensorFlow's array as an entry, and computes a pool's
/// free memory. Allocators of the host change the form.
fn gpu(_: &mut Reader<'_>, message: &mut Message) {
    let names =
        [("parameter", "arguments"), ("constant", "constants"), ("live_out", "results"), ("temporary", "temporaries")];
    let facts = &mut message.facts;
    let row = |(field, name): (&str, &str)| Some(Row { name: name.to_owned(), size: facts.take_size(field)? });
    let rows: Vec<Row> = names.into_iter().filter_map(row).collect();
    if let Some(total) = facts.take_size("total").or_else(|| rows.last().map(|row| row.size.clone())) {
        message.usage = Some(Usage { total, rows });
    }
    // The memory of cuDNN and cuBLAS lies beside the pool.
    let is_of_library = message.quote.as_ref().is_some_and(|quote| quote.contains("_STATUS_ALLOC_FAILED"));
    if is_of_library && message.used.is_none() && !message.facts.has("late") {
        message.facts.0.push(Fact { name: "library", value: FactValue::Text("cuDNN or cuBLAS".to_owned()) });
    }
    if let Some(entry) = tensor(&message.facts) {
        message.used = entry.size.clone();
        message.entries.push(entry);
    }
    let facts = &mut message.facts;
    // Before 2.0 PyTorch printed all that it reserved.
    let in_pool = facts.take_size("in_pool").zip(facts.size("held"));
    let cached = in_pool.map(|(all, held)| all.bytes().saturating_sub(held.bytes()));
    facts.0.extend(cached.map(|bytes| Fact { name: "cached", value: FactValue::Size(PrintedSize::exact(bytes)) }));
    // A pool that outgrew its limit is bounded by the memory.
    let pool = facts.size("pool").filter(|pool| pool.bytes() > 0).zip(facts.size("pool_used"));
    let pool = pool.filter(|(pool, used)| used.bytes() <= pool.bytes());
    if let Some((pool, used)) = pool.filter(|_| !facts.has("free")) {
        // Nothing is free where no block is: chunks are larger than what is in them.
        let is_full = facts.size("piece").is_some_and(|piece| piece.bytes() == 0);
        let free = if is_full { 0 } else { pool.bytes().saturating_sub(used.bytes()) };
        let free = PrintedSize::exact(free);
        facts.0.push(Fact { name: "free", value: FactValue::Size(free) });
    }
    match facts.text("allocator") {
        Some("cpu") => message.form = Form::Host,
        Some(name) if name.contains("host") => message.form = Form::HostPool,
        _ => {}
    }
}

/// The array that TensorFlow requests, `shape[1000,12,256,256] and type float`, and the operation that makes it.
fn tensor(facts: &Facts) -> Option<Entry> {
    let bounds: Option<Vec<String>> =
        facts.bounds("tensor")?.iter().map(|bound| Some(bound.as_ref()?.to_string())).collect();
    let element = match facts.text("element")? {
        "float" => "f32",
        "half" => "f16",
        "bfloat16" => "bf16",
        "double" => "f64",
        "bool" => "pred",
        "int8" => "s8",
        "uint8" => "u8",
        "int16" => "s16",
        "int32" => "s32",
        "int64" => "s64",
        "complex64" => "c64",
        "complex128" => "c128",
        _ => return None,
    };
    let shape = WrittenShape::new(format!("{element}[{}]", bounds?.join(",")));
    let mut entry = Entry::new(Section::Allocations, None);
    entry.size = Some(PrintedSize::exact(shape.logical_bytes()?));
    let name = facts.text("node").map(|node| node.trim_end_matches('}'));
    entry.operator = name.map(|name| Operator::new(format!("op_name=\"{name}\"")));
    entry.shape = Some(shape);
    Some(entry)
}
