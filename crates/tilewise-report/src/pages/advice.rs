//! Pages about changes that free memory, in the order of `docs/advice.md`.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "chunk",
        title: "chunk: the batch, or the loss, in parts",
        paragraphs: [
            "What is alive at the peak has one large dimension, such as a batch, tokens or pairs, and each part of it could be computed by itself. In parts, one after the other, only one part's values are alive: `jax.lax.map(f, xs, batch_size=…)`, microbatches whose gradients are added up before one update, or a cross entropy over chunks of tokens under `jax.checkpoint`.",
            "It helps wherever activations fill the memory, and costs little time while a part still fills the matrix unit. It is no help where arguments fill the memory, nor where parts depend on each other: edges of a graph whose messages are summed (its graphs are a batch, where there are several), or a batch norm over the whole batch. Samples that are shuffled before a loop over minibatches lie in memory twice. Each step of the loop can gather its own minibatch by its part of the shuffled indices.",
        ],
    },
    Page {
        name: "batch",
        title: "batch: the whole batch in one loop",
        paragraphs: [
            "A loop that adds up gradients of weights, such as a differential equation's solver under its adjoint, runs under `jax.vmap`: it carries a gradient for each sample. With the batch as one state, the loop carries one for all of it.",
            "It helps where all samples take the same steps. A solver that chooses its steps by the error then chooses them for the batch, not for each sample.",
        ],
    },
    Page {
        name: "checkpoint",
        title: "checkpoint: recompute, not keep",
        paragraphs: [
            "The backward pass reads what the forward pass kept: for each layer, or each step of a loop, several arrays. `jax.checkpoint` (`nn.remat` in Flax, `hk.remat` in Haiku, `eqx.filter_checkpoint` in Equinox) around the layer or the step keeps its input alone and computes the rest again.",
            "It frees most of what is kept between layers for about a third more work in them. Within one layer it frees nothing: the layer's own values are all there while its gradient is computed. A policy (`jax.checkpoint_policies`) keeps what is dear to compute again and small.",
        ],
    },
    Page {
        name: "donate",
        title: "donate: a result in its argument's memory",
        paragraphs: [
            "A step returns a state of the shapes that it got: parameters, an optimizer's state, a cache of keys and values. Without donation the old and the new one are held at once. `jax.jit(step, donate_argnums=…)` lets the new one take the old one's memory.",
            "The caller must not use the argument again. A donated array is used only if a result has its shape, element type, sharding and memory; JAX warns of those that are not. On GPUs an undonated result may serve as scratch memory, so that donation frees less.",
        ],
    },
    Page {
        name: "order",
        title: "order: another order of dimensions in memory",
        paragraphs: [
            "A TPU keeps the last dimension in memory on 128 lanes and the one before it on 8 rows or more, so a small dimension there is padded: `[N,4]` takes 32 times its size with 4 on the lanes. With another order the same elements take less.",
            "It holds for what crosses the interface: arguments, results, donated state. Let the compiler choose (`Format(Layout.AUTO)`), or drop a pinned layout from `in_shardings`. Within a function the compiler chooses layouts itself, and constraints there did nothing or harm when they were tried.",
        ],
    },
    Page {
        name: "transpose",
        title: "transpose: dimensions change places",
        paragraphs: [
            "As `order`, but in the program: the array itself is `[4,N]`, not `[N,4]`, in the loader that makes it or in the kernel that reads it.",
            "It helps for arguments, and for the operands of a kernel of yours, whose `BlockSpec` changes with it. A transpose within a function is undone by the compiler, and frees nothing.",
        ],
    },
    Page {
        name: "reshape",
        title: "reshape: the same elements under other bounds",
        paragraphs: [
            "A state or a cache is kept in a shape whose last dimensions fill whole tiles, `[pages,16,512]` and not `[pages,16,8,64]`, and is reshaped where it is used.",
            "It holds for arguments and state whose uses work on the new shape too. If the first use restores the old shape, the padding moves into a temporary, and the copy costs more than it saved.",
        ],
    },
    Page {
        name: "split",
        title: "split: an array for each column",
        paragraphs: [
            "Rows of few columns, gathered, scattered or reshaped from a flat array, take whole rows of 128 lanes, whatever they hold. Separate arrays, one for each column, are gathered one by one and lie on all lanes.",
            "Split before the gather, and keep the columns separate until after the scatter: splitting what was already gathered frees nothing.",
        ],
    },
    Page {
        name: "narrow",
        title: "narrow: smaller elements",
        paragraphs: [
            "Half of the bytes for each element, where the numbers bear it: activations and logits in bf16, optimizer states or caches in bf16 or 8 bits.",
            "It changes results, within rounding. A sum over many elements stays in f32 (`preferred_element_type`), and so do master weights.",
        ],
    },
    Page {
        name: "shard",
        title: "shard: arrays divided between devices",
        paragraphs: [
            "Each device holds a part: of the batch (data parallelism), of parameters and optimizer states (FSDP), of layers' matrices (tensor parallelism). An array of which every device holds the whole is replicated, often because an annotation is missing.",
            "It is what helps when arguments alone exceed the memory. What is divided is gathered where it is used, so communication takes the time that memory gained.",
        ],
    },
    Page {
        name: "block",
        title: "block: a kernel works on smaller blocks",
        paragraphs: [
            "A Pallas kernel holds in VMEM two buffers for each block that moves, padded to tiles, its scratch, and what its body keeps. Smaller blocks take less of all of them.",
            "`tilewise kernel` and `tw.largest_blocks` say which blocks fit. Raise the limit first (`limit`): it is a setting, and larger blocks are faster.",
        ],
    },
    Page {
        name: "limit",
        title: "limit: more than the default is allowed",
        paragraphs: [
            "A limit is a setting below what the machine has: of a kernel's VMEM (`pltpu.CompilerParams(vmem_limit_bytes=…)`, `--xla_tpu_scoped_vmem_limit_kib`), of the share of a GPU that JAX takes (`XLA_CLIENT_MEM_FRACTION`), of what a server plans with.",
            "Up to what the machine has it costs nothing but room for others: what a kernel may take is not there for values that the compiler keeps in VMEM.",
        ],
    },
    Page {
        name: "free",
        title: "free: what else lies in memory",
        paragraphs: [
            "The program itself would fit, but other arrays and programs are in memory: old states, results that are still referred to, another process on the same device.",
            "Drop references and `jax.clear_caches()`, look at `jax.live_arrays()`, and give each process a device of its own. What is free must also lie in one piece.",
        ],
    },
    Page {
        name: "audit",
        title: "audit: the program tells more than the message",
        paragraphs: [
            "A message lists the largest arrays, a program all of them, with when each is alive and which line made it. Some questions only the program answers: what a change frees, and what holds the peak then.",
            "Get its text with `jax.jit(f).lower(x).compile().as_text()` or `XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"`, or let `tw.audit(f, x, tpu=\"v5e\")` compile it without a TPU; then `tilewise audit`.",
        ],
    },
];
