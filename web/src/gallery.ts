// Examples: the figures of XLA's documents, a program, and messages that others met.

import gnn from "../../examples/gnn_large.v5e.hlo?url";
import lstm from "../../examples/lstm_train.v4.hlo.gz?url";
import attention from "../../examples/machines/attention.h100.hlo?url";
import earlyAbort from "../../crates/tilewise-oom/tests/data/public/early_abort.txt?url";
import hbmV4 from "../../crates/tilewise-oom/tests/data/public/hbm_v4.txt?url";
import prefixedLog from "../../crates/tilewise-oom/tests/data/public/prefixed_log.txt?url";
import reserve from "../../crates/tilewise-oom/tests/data/public/run_time_reserve.txt?url";
import smem from "../../crates/tilewise-oom/tests/data/public/smem.txt?url";
import spills from "../../crates/tilewise-oom/tests/data/public/vmem_spills.txt?url";
import wrappedOperator from "../../crates/tilewise-oom/tests/data/public/wrapped_operator.txt?url";

export interface Example {
  title: string;
  about: string;
  /// A shape,
  text?: string;
  /// or where the text is, with its name.
  url?: string;
  name?: string;
}

/// The one whose picture is shown at first.
export const SHOWN_FIRST: Example = { title: "gnn_large.v5e.hlo", about: "A graph network on a TPU v5e: most of what it holds is padding", url: gnn, name: "gnn_large.v5e.hlo" };

export const GALLERY: Record<string, Example[]> = {
  "Messages that others met": [
    { title: "u32[N,1], padded 128 times", about: "pytorch/xla 1965: a log of it", url: prefixedLog },
    { title: "63.8 GiB of 30.75", about: "EasyDeL 166: hardly any padding", url: hbmV4 },
    { title: "10.96 GiB for 140 MiB of data", about: "google/flax 1733: a convolution’s padding", url: wrappedOperator },
    { title: "Register spills in VMEM", about: "pytorch/xla 7942", url: spills },
    { title: "1.7 KiB of scalar memory (SMEM) too much", about: "vllm 8318", url: smem },
    { title: "3.47 exbibytes needed", about: "jax 7822: compiling was given up early", url: earlyAbort },
    { title: "No room when it ran", about: "pytorch/xla 1735: other programs hold it", url: reserve },
  ],
  Programs: [
    SHOWN_FIRST,
    { title: "lstm_train.v4.hlo", about: "A training step on a TPU v4: what the forward pass keeps for the backward pass", url: lstm, name: "lstm_train.v4.hlo" },
    { title: "attention.h100.hlo", about: "Attention on a GPU", url: attention, name: "attention.h100.hlo" },
  ],
  Shapes: [
    { title: "f32[3,5]{1,0:T(2,2)}", about: "Figure 1 of XLA’s tiled-layout document", text: "f32[3,5]{1,0:T(2,2)}" },
    { title: "f32[4,8]{1,0:T(2,4)(2,1)}", about: "Figure 2: tiles within tiles", text: "f32[4,8]{1,0:T(2,4)(2,1)}" },
    { title: "bf16[300,500]{1,0:T(8,128)(2,1)}", about: "A TPU’s: rows share 32-bit words", text: "bf16[300,500]{1,0:T(8,128)(2,1)}" },
    { title: "f32[400000,12]{1,0:T(8,128)}", about: "12 of 128 lanes used: ten times too large", text: "f32[400000,12]{1,0:T(8,128)}" },
  ],
};
