//! Texts of which nothing failed, and warnings: none of them is called out of memory. Wordings of JAX, XLA, libtpu, vLLM,
//! SGLang and Reactant, with figures of ours.

use tilewise_oom::{Level, Message, OomVerdict};

/// Logs, statistics and plans.
const REPORTS: [&str; 14] = [
    "XLA::TPU program HBM usage: 13.50G / 15.75G",
    "XLA::TPU program VMEM usage: 127.23M / 128.00M",
    "I0320 03:59:34.722540 855 deepsea_compiler_backend.cc:2163] XLA::TPU program HBM usage: 1.00G / 15.75G\n\
     I0320 03:59:34.722540 855 deepsea_compiler_backend.cc:2163] XLA::TPU program VMEM usage: 12.23M / 128.00M\n\
     I0320 03:59:34.722560 855 deepsea_compiler_backend.cc:2170] Total hbm usage >= 1.26G:\n    reserved        260.00M\n    \
     program           1.00G\n    arguments            0B\n",
    "(pid=, ip=10.68.9.4) I0320 03:59:34.722540 855 deepsea_compiler_backend.cc:2163] Total hbm usage >= 1.26G:\n    \
     reserved        260.00M\n    program           1.00G\n",
    "AllocatorStats\n--------------\nNum Allocs: 44\nIn Use: 2.648 GiB\nPeak In Use: 2.648 GiB\nLimit: 31.246 GiB\n\
     Reserved: 27.251 GiB\nReservable Limit: 28.763 GiB\nLargest Free Block: 1.347 GiB\n",
    "{'num_allocs': 12, 'bytes_in_use': 1073741824, 'peak_bytes_in_use': 2147483648, 'largest_alloc_size': 536870912, \
     'bytes_limit': 33822867456, 'bytes_reserved': 0, 'peak_bytes_reserved': 0, 'bytes_reservable_limit': 33822867456, \
     'largest_free_block_bytes': 32749125632}",
    "bytes_in_use: 1073741824\nbytes_limit: 17179869184\n",
    "TPU Memory profiling: available_device_memory=28.1GB, available_kv_cache=24.5GB, max_tokens=180000, cell_size=131072bytes",
    "Memory statistics | total_hbm_limit_gb=31.25GB | total_hbm_limit_cap_gb=28.12GB | total_hbm_used_gb=0.4GB",
    "INFO [kv_cache_utils.py:1305] GPU KV cache size: 175,856 tokens",
    "BufferAssignment:\nallocation 0: size 4194304, parameter 0, shape |f32[1024,1024]| at ShapeIndex {}:\n value: <1 p @0> \
     (size=4194304,offset=0): f32[1024,1024]{1,0}\n",
    "memory_stats() says bytes_in_use=0, bytes_limit=16642998272, largest_free_block_bytes=16642998272",
    "step 17, HBM in use after it: bytes_in_use 5368709120 of bytes_limit 17179869184",
    "XLA::TPU program HBM usage: 15.74G / 15.75G\nXLA::TPU program SMEM usage: 2.2K / 1.00M",
];

/// Messages of possible losses, which aren't failures.
const WARNINGS: [(&str, OomVerdict); 10] = [
    (
        "W1110 07:32:01.391885 918 hlo_rematerialization.cc:1363] Can't reduce memory use below 13.58GiB (14583876403 bytes) by \
         rematerialization; only reduced to 15.22GiB (16339342336 bytes)",
        OomVerdict::RematLimit,
    ),
    (
        "hlo_rematerialization.cc:3231] Can't reduce memory use below 56.48GiB (60647426270 bytes) by rematerialization; only \
         reduced to 89.66GiB (96270652980 bytes), down from 89.67GiB (96281235456 bytes) originally",
        OomVerdict::RematLimit,
    ),
    (
        "Can't reduce memory use below -25.62GiB (-27506732520 bytes) by rematerialization; only reduced to 48.25GiB \
         (51808779708 bytes), down from 48.25GiB (51808779708 bytes) originally",
        OomVerdict::RematLimit,
    ),
    (
        "KV cache page size calculated by vLLM (524288 Bytes) does not match with actual page size used by RPA kernel (2097152 \
         Bytes). Recalculating number of KV blocks using actual page size.",
        OomVerdict::Padding,
    ),
    (
        "gpu_hlo_schedule.cc:783] The byte size of input/output arguments (43049549824) exceeds the base limit (41857556480). \
         This indicates an error in the calculation!",
        OomVerdict::NotTpu,
    ),
    (
        "mlir.py:1184: UserWarning: Some donated buffers were not usable: ShapedArray(float32[784,50]), \
         ShapedArray(float32[50]).\nSee an explanation at https://docs.jax.dev/en/latest/faq.html#buffer-donation.\n  \
         warnings.warn(\"Some donated buffers were not usable:\"",
        OomVerdict::Donation,
    ),
    ("UserWarning: Some donated buffers were not usable: bfloat16[4,2737,32,128].", OomVerdict::Donation),
    ("UserWarning: Some donated buffers were not usable: f32[2,3]{1,0}", OomVerdict::Donation),
    ("UserWarning: Some donation buffers unavailable: int32[128], int32[3].", OomVerdict::Donation),
    ("UserWarning: Donation is not implemented for cpu.", OomVerdict::Donation),
];

#[test]
fn reports_fit() {
    for text in REPORTS {
        let message = Message::parse(text).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!((message.verdict(), message.form.level()), (OomVerdict::Fits, Level::Report), "{text}");
        assert!(message.others.iter().all(|other| other.form.level() == Level::Report), "{text}");
    }
}

#[test]
fn warnings_warn() {
    for (text, verdict) in WARNINGS {
        let message = Message::parse(text).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!((message.verdict(), message.form.level()), (verdict, Level::Warning), "{text}");
        let cause =
            (text.contains("exceeds the base limit") || text.contains("below -")).then_some(OomVerdict::Arguments);
        assert_eq!(message.cause(), cause, "{text}");
    }
}

/// Above or below an error they are evidence for it.
#[test]
fn an_error_comes_first() {
    let error = "RESOURCE_EXHAUSTED: Attempting to reserve 9.62G at the bottom of memory. That was not possible. There are \
                 7.14G free, 0B reserved, and 7.14G reservable.";
    for text in REPORTS.into_iter().chain(WARNINGS.map(|(text, _)| text)) {
        for both in [format!("{text}\n{error}\n"), format!("{error}\n{text}\n")] {
            let message = Message::parse(&both).unwrap_or_else(|_| panic!("{both}"));
            assert_eq!(message.verdict(), OomVerdict::Reservation, "{both}");
        }
    }
}
