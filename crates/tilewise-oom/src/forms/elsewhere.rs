//! Machines without tiles, except GPUs: hosts, Tenstorrent devices; resources other than memory, and failed checks.

use super::{Judged, Rule};
use crate::form::Form;
use crate::level::Level::{Error, Warning};
use crate::verdict::{OomVerdict, UntiledMachine};

pub(super) const RULES: &[Rule] = &[
    Rule {
        memory: Some("host"),
        opens: &["Out of host memory while trying to allocate {used:size}[ with allocator {allocator:name}]"],
        adds: &["+than the default {pool_gigabytes:number} GB"],
        ..Rule::new(Form::HostPool, Error, Judged::Elsewhere(UntiledMachine::Host), "host")
    },
    Rule {
        memory: Some("host"),
        // `CPUAllocator` in tsl/framework/cpu_allocator_impl.cc
        opens: &["Allocation of {used:bytes} exceeds {share:number} of free system memory"],
        ..Rule::new(Form::HostWarning, Warning, Judged::Elsewhere(UntiledMachine::Host), "host")
    },
    Rule {
        // `HloConstantFolding`, by the alarm of xla/service/slow_operation_alarm.cc
        opens: &["Constant folding an instruction is taking {:line}"],
        ..Rule::new(Form::ConstantFolding, Warning, Judged::As(OomVerdict::OtherResource), "resource")
    },
    Rule {
        memory: Some("host"),
        opens: &["Found an instruction {instruction:name} which does device compute in host memory space"],
        ..Rule::new(Form::HostCompute, Warning, Judged::As(OomVerdict::HostCompute), "host")
    },
    Rule {
        memory: Some("host"),
        opens: &[
            "Unable to allocate {used:size} for an array",
            "not enough memory you tried to allocate {used:size}",
            "std bad_alloc",
            "tcmalloc large alloc {used:bytes} nil",
            "ioctl failed … for {used:bytes} … requested {pages:number} pages",
            "failed to enqueue async memcpy from {pages:name} to … CUDA_ERROR_OUT_OF_MEMORY[ … size {used:count}]",
            "[Memory {group:name}] out of memory (Kill|Killed) process[ … anon rss {resident:size}[ file rss {of_files:size} shmem rss {shared:size}]]",
            "Killed process … anon rss {resident:size}[ file rss {of_files:size} shmem rss {shared:size}]",
            "Memory limit of {group_limit:size} exceeded with {resident:size} used",
            "memory usage {:size} limit {group_limit:size} failcnt",
            "oom kill[ constraint {constraint:name}]",
            "oom_kill",
            "[JIT session {session:name}] Cannot allocate memory",
            "LLVM {session:name} Unable to allocate section memory",
            "LLVM compilation {session:name} Cannot allocate memory",
            "was killed due to the node running {workers:name} on memory",
            "killed due to memory {workers:name} OOM",
            "session crashed after using all available RAM",
            "*MemoryError",
            // vLLM: `CacheConfig.verify_with_parallel_config`
            "Too large swap space {used:size} out of the {total:size} total CPU memory is allocated for the {swap:name} space",
        ],
        adds: &[
            "+(was running was|Memory on the node was) {node_used:size} {node:size}",
            "+killed by the {group:name} out of memory handler",
            "+StepId {slurm_job:number}",
        ],
        ..Rule::new(Form::Host, Error, Judged::Elsewhere(UntiledMachine::Host), "host")
    },
    Rule {
        opens: &[
            "Received message larger than max[ {message:number} vs {most:number}]",
            "Sent message larger than max[ {message:number} vs {most:number}]",
            "Too many open {files:name}",
            "No space left on device … /dev/shm/{segment:name}",
            "No space left on {disk:name}",
            "Error while creating shared memory {segment:name}",
            "insufficient shared memory {segment:name}",
            // PyTorch's `DataLoader`, of a bus error of a worker
            "encountered in {loader:name} This might be caused by insufficient shared memory {segment:name}",
            "dataloader's {loader:name} are out of shared memory {segment:name}",
            "workers are out of shared memory {segment:name}",
            "Computation requires more {parameters:name} {count:number} than supported limit {most:number}",
            "Allocating {asked:bytes} exceeds the memory limit of {scratch:bytes}",
            "operation {workspace:name} … failed cuSolver invalid value",
            "Failed to serialize the {proto:name}",
            "HloModuleProto exceeded maximum protobuf size of {hlo:name}",
            "(exceeded|exceeds) maximum protobuf size of {proto:name}",
            "Cannot serialize protocol buffer of type {proto:name}",
            // gRPC: `proto_buffer_writer.h`
            "assertion failed byte_count_ total_size_{proto:line}",
            "Check failed {:colon} … Thread creation via {threads:line}",
            "pthread_create failed for {threads:name}",
            "can't start new {threads:name}",
            "Quota exceeded for {quota:name}",
            "exceeded quota {quota:name}",
            "cannot allocate memory in static {tls:name} block",
            "Insufficient {quota:name} quota",
            "quota metrics exceed {quota:name} limits",
        ],
        ..Rule::new(Form::Resource, Error, Judged::As(OomVerdict::OtherResource), "resource")
    },
    Rule {
        // ptxas
        opens: &["Registers are spilled to local memory in function"],
        ..Rule::new(Form::GpuRegisters, Warning, Judged::As(OomVerdict::OtherResource), "resource")
    },
    Rule {
        opens: &[
            "Not enough space to allocate {used:bytes} {kind:name} buffer across {banks:number} banks[, where each bank needs to store {needed:bytes}[, but bank size is [only] {bank:bytes}]]",
            "Statically allocated circular buffers … grow to {used:bytes} which is beyond max L1 size of {limit:bytes}",
        ],
        adds: &[
            "free {free:bytes}",
            "largest free block {largest:bytes}",
            "+allocated {allocated:bytes} free {free:bytes}[ largest free block {largest:bytes}]",
        ],
        ..Rule::new(Form::Tenstorrent, Error, Judged::Elsewhere(UntiledMachine::Tenstorrent), "gpu")
    },
    Rule {
        opens: &[
            "RET_CHECK failure {place:name}[ {condition:line}]",
            // glog: a fatal line of the process that prints it
            "Check failed {:colon} {ended:line}",
        ],
        ..Rule::new(Form::CompilerCheck, Error, Judged::As(OomVerdict::CompilerCheck), "compiler_check")
    },
];
