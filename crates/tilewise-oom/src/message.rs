//! Messages and their parts.

use crate::block_sizes::BlockSize;
use crate::device;
use crate::entry::Entry;
use crate::facts::Facts;
use crate::form::Form;
use crate::framework::Framework;
use crate::job::Job;
use crate::kernel_library::{self, KernelOption};
use crate::occasion::Occasion;
use crate::pool::Chunks;
use crate::product::Product;
use crate::server::Server;
use crate::tables::{Output, Persistent, Requirement, Usage};
use crate::text::size::PrintedSize;
use crate::text::word;
use crate::traceback::Frame;
use crate::verdict::OomVerdict;
use tilewise::tpu::Generation;

/// A parsed message about memory or layout.
///
/// Fields are `None` where the message has no such part, or was cut before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The message's form.
    pub form: Form,
    /// XLA's error code, `E1000`; messages of older compilers have none.
    pub code: Option<String>,
    /// The name of the memory that ran out: `hbm`, `vmem`, `smem`, …
    pub memory_space: Option<String>,
    /// Bytes needed: at [`RunTime`](Form::RunTime) and on a GPU, bytes requested; if the program fits, bytes used; for
    /// [`Rematerialization`](Form::Rematerialization), bytes reached.
    pub used: Option<PrintedSize>,
    /// Bytes available: at [`RunTime`](Form::RunTime), bytes free; for [`Rematerialization`](Form::Rematerialization),
    /// its target, unless negative.
    pub limit: Option<PrintedSize>,
    /// The difference, if the message prints it.
    pub exceeded: Option<PrintedSize>,
    /// The largest free piece at [`RunTime`](Form::RunTime), if it isn't all free memory.
    pub contiguous: Option<PrintedSize>,
    /// The memory's whole capacity, if a message of [`RunTime`](Form::RunTime) prints it.
    pub capacity: Option<PrintedSize>,
    /// The name of the HLO module or program.
    pub module: Option<String>,
    /// The memory's contents.
    pub usage: Option<Usage>,
    /// Arrays that stay in memory between runs, at [`RunTime`](Form::RunTime).
    pub persistent: Vec<Persistent>,
    /// The results' memory.
    pub output: Option<Output>,
    /// The memory of the program itself.
    pub requirement: Option<Requirement>,
    /// The lists' entries, in the message's order.
    pub entries: Vec<Entry>,
    /// Further fields; they depend on the form.
    pub facts: Facts,
    /// Whether a person retold it in other words than a compiler or run time prints.
    pub is_retold: bool,
    /// Whether parts are missing: the text ends before the message does, or begins after its headline.
    pub truncated: bool,
    /// The framework that compiled the program, if names or wordings show it.
    pub framework: Option<Framework>,
    /// The server whose log the text is, if the text names one.
    pub server: Option<Server>,
    /// The job, as far as the text shows it.
    pub job: Job,
    /// Whether the text names spilled registers, or a kernel; of messages about a core's own memory, or a GPU's kernel.
    pub named: Named,
    /// Numbers of the text that multiply to the request, on a machine without tiles, if the message lists no arrays.
    pub product: Option<Product>,
    /// The chunks in use of a GPU's pool, if the text lists them, those with the most bytes first.
    pub chunks: Vec<Chunks>,
    /// The kernel that the text names, if many programs share it, such as `splash_mha_fwd`; only in messages about a
    /// core's own memory.
    pub kernel: Option<String>,
    /// Options of the library that has the kernel, with which it needs less; only in messages about a core's own memory, or a
    /// GPU's kernel.
    pub kernel_options: Vec<KernelOption>,
    /// The kernel's block sizes, if its name or its metadata has them; only in messages about a core's own memory.
    pub block_sizes: Vec<BlockSize>,
    /// Its own sentences in one line; `None` for tables and lists without a sentence.
    pub quote: Option<String>,
    /// The work of the job, by the functions of a traceback; see [`occasion`](Self::occasion).
    pub(crate) in_function: Option<Occasion>,
    /// The one generation of TPUs that the text names.
    pub generation: Option<Generation>,
    /// The line of the reader's program that a traceback in the text leads to.
    pub raised_at: Option<Frame>,
    /// The library's line that makes the request, where a framework runs each operation as it is called, as PyTorch does.
    pub requested_at: Option<Frame>,
    /// The text's other messages, the most important first.
    pub others: Vec<Self>,
}

/// Words of a text beside a message, such as in its title, that tell of its cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// Spilled registers.
    pub spills: bool,
    /// A kernel: Pallas, Mosaic or a custom call.
    pub kernel: bool,
    /// A kernel of Pallas.
    pub pallas: bool,
    /// A kernel that is the reader's: the text has its code, or calls it so.
    pub own_kernel: bool,
    /// A call of a kernel in the text's own code without a grid and blocks, so that its arrays are in VMEM whole.
    pub whole_arrays: bool,
    /// A kernel of Pallas for a SparseCore, and TPUs, none of which has one.
    pub no_sparse_core: bool,
    /// Code without a kernel, so that a kernel that it calls is a library's.
    pub other_code: bool,
    /// Attention.
    pub attention: bool,
    /// The library whose file has the kernel, by a path in the text.
    pub library: Option<&'static str>,
}

/// Whether a line speaks of a kernel of accelerators as the writer's: `our fused kernel`, `Writing a matmul kernel`.
fn calls_kernel_own(text: &str) -> bool {
    /// Bytes between the word and the kernel.
    const NEAR: usize = 60;
    const OWN: [&str; 4] = ["my", "our", "custom", "writing"];
    const KERNELS: [&str; 7] = ["pallas", "triton", "mosaic", "fused", "attention", "matmul", "cuda"];
    text.match_indices("kernel").any(|(at, _)| {
        let from = (at.saturating_sub(NEAR)..=at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
        let near = text[from..at].rsplit(['\n', '.', ';', ':', '(']).next().unwrap_or_default();
        let has = |known: &[&str]| {
            word::all(near).any(|(start, end)| known.iter().any(|name| near[start..end].eq_ignore_ascii_case(name)))
        };
        has(&OWN) && has(&KERNELS)
    })
}

/// Whether a call leaves arguments out: `pl.pallas_call(kernel, ...)(x)`.
fn is_cut(call: &str) -> bool {
    let call = call.split("\n\n").next().unwrap_or(call).split(")(").next().unwrap_or(call);
    call.contains("...") || call.contains('…')
}

impl Named {
    pub(crate) fn of(text: &str) -> Self {
        let has = |sign: &str| text.contains(sign);
        let library = kernel_library::owner(text);
        // A traceback has a library's code.
        let has_code = library.is_none() && ["pl.BlockSpec(", "pallas_call(", "@triton.jit"].into_iter().any(has);
        let is_own = has_code || calls_kernel_own(text);
        Self {
            spills: has("register allocator spill"),
            kernel: ["pallas", "Pallas", "osaic", "custom-call", "custom_call", "BlockSpec"].into_iter().any(has),
            pallas: ["pallas", "Pallas", "BlockSpec", "plgpu"].into_iter().any(has),
            own_kernel: is_own,
            no_sparse_core: ["SC_VECTOR_SUBCORE", "SC_SCALAR_SUBCORE", "VectorSubcoreMesh"].into_iter().any(has)
                && device::lacks_sparse_core(text),
            whole_arrays: has_code
                && has("out_shape")
                && text.split_once("pallas_call(").is_some_and(|(_, call)| !is_cut(call))
                && !["BlockSpec", "grid", "GridSpec", "memory_space"].into_iter().any(has),
            other_code: !is_own && text.lines().any(|line| line.trim_start().starts_with("import ")),
            attention: ["attention", "Attention"].into_iter().any(has),
            library,
        }
    }
}

impl Message {
    /// A message with only its form known.
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            code: None,
            memory_space: None,
            used: None,
            limit: None,
            exceeded: None,
            contiguous: None,
            capacity: None,
            module: None,
            usage: None,
            persistent: Vec::new(),
            output: None,
            requirement: None,
            entries: Vec::new(),
            facts: Facts::default(),
            is_retold: false,
            truncated: true,
            framework: None,
            server: None,
            job: Job::default(),
            named: Named::default(),
            product: None,
            chunks: Vec::new(),
            kernel: None,
            kernel_options: Vec::new(),
            block_sizes: Vec::new(),
            quote: None,
            in_function: None,
            generation: None,
            raised_at: None,
            requested_at: None,
            others: Vec::new(),
        }
    }

    /// The name of its page in `docs/errors`, without the extension: the code that XLA gives it, or would give it
    /// today, or a word.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let page = |text| Message::parse(text).map(|message| message.page());
    /// assert_eq!(page("Allocation (size=17825792) would exceed memory (size=16777216)")?, "E1001");
    /// assert_eq!(page("UserWarning: Some donated buffers were not usable: int32[128].")?, "donation");
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn page(&self) -> &'static str {
        let rule = self.form.rule();
        let own = rule.codes.iter().copied().find(|code| self.code.as_deref() == Some(*code) && *code != "E1002");
        let is_of_core = matches!(self.verdict(), OomVerdict::KernelMemory | OomVerdict::Spills);
        own.unwrap_or(match rule.page {
            "E1000" if is_of_core => "E1001",
            "E0101" if self.facts.text("verb") == Some("allocate") && self.module.is_none() => "E0100",
            // The message about an embedding table names no memory space.
            "E3000" if self.used.is_some() && self.facts.get("space_number").is_none() => "E3001",
            page => page,
        })
    }

    /// The function of JAX's own that is the whole program: `_normal`, which draws an array, `_identity_fn`, which moves
    /// one, or a single operation. `None` for a reader's program: its function has modules, loops or transformations
    /// in it, or no underscore before its name.
    ///
    /// ```
    /// let load = "Attempting to reserve 9.62G at the bottom of memory. That was not possible. There are 7.14G free.";
    /// let of_jax = tilewise_oom::Message::parse(&format!("Error loading program 'jit__identity_fn': {load}"))?;
    /// assert_eq!(of_jax.function_of_jax(), Some("_identity_fn"));
    /// assert_eq!(tilewise_oom::Message::parse(load)?.function_of_jax(), None);
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn function_of_jax(&self) -> Option<&str> {
        // Readers' functions begin with an underscore, too: a name alone has to be known.
        let of_module = match self.module.as_deref() {
            Some(module) => Some(module.strip_prefix("jit_").filter(|name| OF_JAX.contains(name))?),
            None => None,
        };
        let names = self.entries.iter().filter_map(|entry| entry.operator.as_ref()?.op_name());
        let names: Vec<&str> = names.filter(|name| name.starts_with("jit(")).collect();
        let of_names: Option<Vec<&str>> = names.into_iter().map(function_of_jax).collect();
        let of_names = of_names?;
        of_module.or_else(|| of_names.first().copied())
    }

    /// The number of the memory space, as layouts write it in `S(n)`: `hbm` 0, `vmem` 1, `cmem` 3, `smem` 4, `host` 5.
    ///
    /// The numbers are those of [`tilewise::tpu::memory_space_name`].
    ///
    /// ```
    /// let text = "Ran out of memory in memory space vmem. Used 32.42M of 16.00M vmem. Exceeded vmem capacity by 16.42M.";
    /// let message = tilewise_oom::Message::parse(text)?;
    /// assert_eq!(message.memory_space_number(), Some(1));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn memory_space_number(&self) -> Option<u8> {
        let name = self.memory_space.as_deref()?;
        (0..=5).find(|number| tilewise::tpu::memory_space_name(*number) == name)
    }
}

/// Functions that JAX jits itself where they are called outside of `jax.jit`: of `jax.random`, `jax.numpy` and of moves.
const OF_JAX: [&str; 36] = [
    "_identity_fn",
    "_bernoulli",
    "_beta",
    "_categorical",
    "_cauchy",
    "_chisquare",
    "_dirichlet",
    "_exponential",
    "_gamma",
    "_gumbel",
    "_laplace",
    "_logistic",
    "_multivariate_normal",
    "_normal",
    "_normal_real",
    "_pareto",
    "_permutation",
    "_poisson",
    "_rademacher",
    "_randint",
    "_random_bits",
    "_shuffle",
    "_truncated_normal",
    "_uniform",
    "_threefry_fold_in",
    "_threefry_random_bits",
    "_threefry_split",
    "_einsum",
    "_mean",
    "_pad",
    "_roll",
    "_std",
    "_take",
    "_var",
    "_where",
    "_multi_slice",
];

/// The function of JAX's own that an operation's name shows as the program: `jit(_normal)/jit(main)/erf_inv`, or
/// `jit(concatenate)/concatenate`, which is called outside of any function.
fn function_of_jax(op_name: &str) -> Option<&str> {
    let (name, path) = op_name.strip_prefix("jit(")?.split_once(")/")?;
    let (scopes, operation) = path.rsplit_once('/').unwrap_or(("", path));
    // Modules, loops and transformations are of a reader's program.
    let is_own = |scope: &str| scope.is_empty() || scope.starts_with("jit(");
    let is_single = path.trim_start_matches("jit(main)/") == name;
    let is_bare = !operation.contains('(') && scopes.split('/').all(is_own);
    (is_single || name.starts_with('_') && is_bare).then_some(name)
}
