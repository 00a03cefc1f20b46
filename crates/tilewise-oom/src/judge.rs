//! The verdict on a message.

use crate::entry::{Entry, WrittenShape};
use crate::form::Form;
use crate::forms::Judged;
use crate::framework::Framework;
use crate::job::Gpu;
use crate::message::Message;
use crate::text::size::PrintedSize;
use crate::verdict::{OomVerdict, UntiledMachine};
use tilewise::{Shape, tpu::Generation};

/// A request of at most this many bytes is small: if it fails, others hold the memory.
const SMALL: u64 = 64 << 20;

/// A request of at most this part of the pool is small, too: 1 in 16.
const SMALL_PART: u64 = 16;

/// The percentage of a pool from which on what was there before holds the memory.
const HALF: u64 = 50;

/// A pool of which less than this part is free is full, whatever the pieces: 1 in 20.
const MOSTLY_FULL: u64 = 20;

/// A pool is full, not in pieces, where what is free exceeds the request by less than this part of it: 1 in 4.
const SCARCE: u64 = 4;

/// Every GPU has several times as many bytes: if they aren't free, what was there before holds the rest.
const SMALL_ON_GPU: u64 = 1 << 30;

/// A pool of fewer bytes has a GPU that others fill.
const SMALL_POOL: u64 = 4 << 30;

/// Bytes of today's largest GPU.
pub(crate) const LARGEST_GPU: u64 = 288 << 30;

/// If the missing bytes are unknown, padding is the cause from this part of the used bytes on: 1 in 4.
const MUCH_PADDING: u128 = 4;

impl Message {
    /// The verdict on the message.
    ///
    /// ```
    /// use tilewise_oom::{Message, OomVerdict};
    ///
    /// let text = "Attempting to reserve 6.48G at the bottom of memory. That was not possible. \
    ///             There are 6.78G free, 0B reserved, and 3.33G reservable.";
    /// assert_eq!(Message::parse(text)?.verdict(), OomVerdict::Fragmentation);
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn verdict(&self) -> OomVerdict {
        match self.form.rule().judged {
            Judged::As(OomVerdict::Fits) if self.is_over() => OomVerdict::Size,
            Judged::As(verdict) => verdict,
            Judged::Elsewhere(_) => OomVerdict::NotTpu,
            Judged::RunTime => self.verdict_at_run_time(),
            _ if self.is_spilled() => OomVerdict::Spills,
            Judged::Kernel => OomVerdict::KernelMemory,
            Judged::Memory => match self.memory_space.as_deref() {
                Some("hbm" | "host") => self.verdict_on_hbm(),
                Some(_) => OomVerdict::KernelMemory,
                None if self.entries.iter().any(|entry| entry.window().is_some()) || self.is_list_of_kernel() => {
                    OomVerdict::KernelMemory
                }
                None => self.verdict_on_hbm(),
            },
        }
    }

    /// The message's machine, if it has no tiles.
    #[must_use]
    pub fn machine(&self) -> Option<UntiledMachine> {
        match self.form.rule().judged {
            Judged::Elsewhere(machine) => Some(machine),
            _ => None,
        }
    }

    /// The cause on a machine without tiles, as a verdict for TPUs, or the cause of a warning; `None` if the message
    /// doesn't show it.
    ///
    /// ```
    /// use tilewise_oom::{Message, OomVerdict};
    ///
    /// let text = "Out of memory while trying to allocate 34912723376 bytes.
    /// BufferAssignment stats:
    ///      preallocated temp allocation:   32.51GiB";
    /// let message = Message::parse(text)?;
    /// assert_eq!((message.verdict(), message.cause()), (OomVerdict::NotTpu, Some(OomVerdict::Size)));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn cause(&self) -> Option<OomVerdict> {
        // The target is the memory less arguments and results.
        if self.form == Form::Rematerialization && self.facts.has("below_zero") {
            return Some(OomVerdict::Arguments);
        }
        let used = self.used.as_ref();
        match self.machine()? {
            UntiledMachine::Gpu if self.form == Form::GpuArguments => Some(OomVerdict::Arguments),
            UntiledMachine::Gpu if self.form == Form::SharedMemory => Some(OomVerdict::KernelMemory),
            UntiledMachine::Gpu if matches!(self.form, Form::Autotuning | Form::GpuRetry) => None,
            UntiledMachine::Gpu | UntiledMachine::Unnamed => self.cause_on_gpu(),
            UntiledMachine::Host if matches!(self.form, Form::HostPool | Form::HostWarning) => None,
            UntiledMachine::Host => used.filter(|used| used.bytes() <= SMALL).map(|_| OomVerdict::Reservation),
            UntiledMachine::Tenstorrent => {
                let fact = |name| self.facts.size(name).map(PrintedSize::bytes);
                let (needed, bank) = (fact("needed"), fact("bank"));
                match (needed, bank, fact("free"), fact("largest")) {
                    (Some(needed), Some(bank), ..) if needed > bank => Some(OomVerdict::Size),
                    (Some(needed), _, Some(free), Some(largest)) if free >= needed && needed > largest => {
                        Some(OomVerdict::Fragmentation)
                    }
                    (Some(_), Some(_), ..) => Some(OomVerdict::Reservation),
                    _ => self.is_over().then_some(OomVerdict::Size),
                }
            }
        }
    }

    /// Whether Linux killed a process because its control group, such as a container, reached its memory limit.
    ///
    /// The wordings are those of `mm/oom_kill.c` in Linux.
    pub(crate) fn is_of_group(&self) -> bool {
        let constraint = self.facts.text("constraint");
        self.form == Form::Host
            && (self.facts.has("group") || self.facts.has("group_limit") || constraint == Some("CONSTRAINT_MEMCG"))
    }

    fn cause_on_gpu(&self) -> Option<OomVerdict> {
        // Modules and the buffers of libraries lie outside the pool that the process set aside for itself.
        if self.facts.has("handle") && self.used.is_none() {
            return (!self.has_free_gpu()).then_some(OomVerdict::Reservation);
        }
        if ["loaded", "graph", "communicator", "context", "library"].iter().any(|fact| self.facts.has(fact)) {
            return Some(OomVerdict::Reservation);
        }
        // The target is the memory less arguments and results.
        let leaves_nothing = |warning: &Self| match warning.form {
            Form::Rematerialization => {
                warning.facts.has("below_zero") || warning.limit.as_ref().is_some_and(|limit| limit.bytes() == 0)
            }
            other => other == Form::GpuArguments,
        };
        if self.others.iter().any(leaves_nothing) {
            return Some(OomVerdict::Arguments);
        }
        let used = self.used.as_ref()?;
        if self.room().or(self.left_by_arguments()).is_some_and(|room| used.bytes() > room) {
            Some(OomVerdict::Size)
        } else if self.cannot_grow() || self.is_taken() {
            Some(OomVerdict::Reservation)
        } else if let Some(free) = self.facts.size("free").filter(|free| free.bytes() >= used.bytes()) {
            let is_scarce = !self.facts.has("piece") && free.bytes() - used.bytes() < used.bytes() / SCARCE;
            let is_full = self.room().is_some_and(|room| free.bytes() < room / MOSTLY_FULL);
            Some(if is_full || is_scarce { OomVerdict::Reservation } else { OomVerdict::Fragmentation })
        } else if let Some(filled) = self.facts.number("filled").filter(|_| !self.has_room()) {
            // The pool is at most as large as this: a small one could not grow beside others.
            let most = used.bytes().saturating_mul(100) / (100 - filled.min(99));
            Some(if self.full_percent().is_some() || most < SMALL_POOL {
                OomVerdict::Reservation
            } else {
                OomVerdict::Size
            })
        } else if self.asks_for("results") || !self.holds_the_most() && (self.asks_little() || self.is_small_on_gpu()) {
            Some(OomVerdict::Reservation)
        } else if self.asks_for("temporaries") || self.smaller_gpu().is_some() || used.bytes() > LARGEST_GPU {
            Some(OomVerdict::Size)
        } else {
            None
        }
    }

    /// The percentage of its pool that a process's own arrays fill, by the bar of XLA's allocator, if that is most of it.
    pub(crate) fn full_percent(&self) -> Option<u64> {
        let fact = |name| self.facts.size(name).map(PrintedSize::bytes);
        let of_pool =
            || fact("pool_used")?.saturating_mul(100).checked_div(fact("pool")?).filter(|percent| *percent <= 100);
        self.facts.number("filled").or_else(of_pool).filter(|filled| *filled > HALF)
    }

    /// Whether a GPU is asked for a large part of what it may have.
    #[must_use]
    pub fn asks_much(&self) -> bool {
        self.used.as_ref().is_some_and(|used| used.bytes() > SMALL_POOL)
    }

    /// Whether one request is for more than a quarter of the device, or of today's largest GPU where no size is known: what
    /// one array takes, rather than the last of many.
    #[must_use]
    pub fn asks_for_a_quarter(&self) -> bool {
        let all = self.capacity.as_ref().map_or(LARGEST_GPU, PrintedSize::bytes);
        self.used.as_ref().is_some_and(|used| used.bytes() > all / 4)
    }

    /// Bytes of the memory of the message's device: as printed, else of the GPU or of a core of the TPU that the text names.
    ///
    /// ```
    /// let text = "On a free Colab GPU (T4): Out of memory while trying to allocate 1049100288 bytes.";
    /// assert_eq!(tilewise_oom::Message::parse(text)?.device_bytes(), Some(16 << 30));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn device_bytes(&self) -> Option<u64> {
        let of_tpu = |generation: Generation| generation.core_hbm_bytes().unwrap_or_else(|| generation.hbm_bytes());
        let of_name = match self.machine() {
            Some(UntiledMachine::Gpu | UntiledMachine::Unnamed) => self.job.gpu.as_ref().map(|gpu| gpu.bytes),
            None => self.generation.map(of_tpu).or(self.job.core.map(|core| core.bytes)),
            _ => None,
        };
        self.capacity.as_ref().map(PrintedSize::bytes).or(of_name)
    }

    /// The GPU that the text names, if all that the program needs is more than its memory.
    #[must_use]
    pub fn smaller_gpu(&self) -> Option<&Gpu> {
        let all = self.usage.as_ref().map(|usage| usage.total.bytes()).max(self.used.as_ref().map(PrintedSize::bytes));
        self.job.gpu.as_ref().filter(|gpu| self.capacity.is_none() && all.is_some_and(|all| all > gpu.bytes))
    }

    /// Whether a host was asked for more memory than any has, so that the size itself is damaged.
    pub(crate) fn has_damaged_size(&self) -> bool {
        /// Bytes that no host has.
        const LARGEST_HOST: u64 = 64 << 40;

        self.facts.has("damaged")
            || self.form == Form::Host && self.used.as_ref().is_some_and(|used| used.bytes() > LARGEST_HOST)
    }

    /// Whether figures tell of the pool or of what is free.
    fn has_room(&self) -> bool {
        self.room().is_some() || self.facts.has("free")
    }

    /// Whether a pool may grow by more than the request, and couldn't: the rest of the memory is taken.
    pub(crate) fn cannot_grow(&self) -> bool {
        let ungrown = self.facts.size("ungrown").map(PrintedSize::bytes);
        ungrown.zip(self.used.as_ref()).is_some_and(|(ungrown, used)| used.bytes() > 0 && ungrown >= used.bytes())
    }

    /// Whether most of a GPU's memory is free, more than a library's handle needs: what a pool of JAX's leaves is a quarter.
    pub(crate) fn has_free_gpu(&self) -> bool {
        let capacity = self.capacity.as_ref().map_or(0, PrintedSize::bytes);
        self.facts.size("free").is_some_and(|free| free.bytes() > SMALL_ON_GPU.max(capacity / 2))
    }

    /// Whether nearly all of a GPU is taken, by the driver's own figures: the pool of one process of JAX leaves a quarter,
    /// unless a setting tells otherwise.
    pub(crate) fn is_taken(&self) -> bool {
        let is_default = self.framework == Some(Framework::Jax) && self.job.pool.fraction.is_none();
        let capacity = self.capacity.as_ref().filter(|_| is_default);
        let free = self.facts.size("free").zip(capacity);
        free.is_some_and(|(free, all)| free.bytes() < all.bytes() / MOSTLY_FULL)
    }

    /// Whether all that the program needs is a small part of any GPU.
    fn is_small_on_gpu(&self) -> bool {
        let all = [self.used.as_ref(), self.usage.as_ref().map(|usage| &usage.total)];
        all.into_iter().flatten().map(PrintedSize::bytes).max().is_some_and(|bytes| bytes <= SMALL_ON_GPU)
    }

    /// Whether the request is that of a row of the table, such as `results`.
    pub(crate) fn asks_for(&self, row: &str) -> bool {
        let sizes = self.used.as_ref().zip(self.usage.as_ref().and_then(|usage| usage.get(row)));
        // The figures are rounded, and the allocator rounds up.
        sizes.is_some_and(|(used, size)| size.bytes().abs_diff(used.bytes()) <= used.bytes() / 128)
    }

    /// Bytes of the pool, or of the whole memory.
    fn room(&self) -> Option<u64> {
        let pool = self.facts.size("pool").map(PrintedSize::bytes).filter(|bytes| *bytes > 0);
        pool.or(self.capacity.as_ref().map(PrintedSize::bytes))
    }

    /// Whether the request is small, by itself or beside the pool: then others hold the memory.
    pub(crate) fn asks_little(&self) -> bool {
        let room = self.room();
        let asked = self.used.as_ref().map(PrintedSize::bytes);
        asked.is_some_and(|asked| asked <= SMALL || room.is_some_and(|room| asked <= room / SMALL_PART))
    }

    /// Whether PyTorch's own arrays take more than all else, as far as the message tells.
    fn holds_the_most(&self) -> bool {
        let fact = |name| self.facts.size(name).map(PrintedSize::bytes);
        fact("held").is_some_and(|held| held > 1 << 30 && held > fact("free").unwrap_or(0))
    }

    /// Rematerialization's warning in the same text. Its target is the memory less arguments and results.
    #[must_use]
    pub fn warned_of_rematerialization(&self) -> Option<&Self> {
        self.others.iter().find(|other| other.form == Form::Rematerialization)
    }

    fn left_by_arguments(&self) -> Option<u64> {
        self.warned_of_rematerialization()?.limit.as_ref().map(PrintedSize::bytes)
    }

    /// Whether a list without a headline is one kernel's.
    fn is_list_of_kernel(&self) -> bool {
        !self.entries.is_empty() && self.entries.iter().all(Entry::is_of_kernel)
    }

    /// Whether the used bytes exceed the limit, whatever their rounding.
    fn is_over(&self) -> bool {
        self.used.as_ref().zip(self.limit.as_ref()).is_some_and(|(used, limit)| used.low() > limit.high())
    }

    fn verdict_at_run_time(&self) -> OomVerdict {
        match (&self.used, &self.limit) {
            (Some(asked), Some(free)) if free.bytes() >= asked.bytes() => OomVerdict::Fragmentation,
            _ => OomVerdict::Reservation,
        }
    }

    /// Whether [autotuning](Form::Autotuning) failed for a convolution, which needs workspaces, or for lack of memory.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let text = "Autotuning failed for HLO: %gemm_fusion_dot = f64[6,128] fusion(x): No valid config found!";
    /// assert!(!Message::parse(text)?.lacks_workspace());
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn lacks_workspace(&self) -> bool {
        let is_of_convolution = || match self.facts.text("instruction") {
            Some(text) => text.contains("conv"),
            // XLA compares the results of algorithms of any operation.
            None => !self.facts.has("reference"),
        };
        self.used.is_some() || is_of_convolution()
    }

    /// The shape of an operand of an autotuned operation that takes as many bytes as are asked for: it is needed whatever the
    /// algorithm.
    #[must_use]
    pub fn operand(&self) -> Option<String> {
        /// Sizes are rounded up to whole blocks.
        const BLOCK: u64 = 256;
        let (asked, text) = (self.used.as_ref()?.bytes(), self.facts.text("instruction")?);
        let words = text.split(|c: char| c.is_whitespace() || c == '(').map(|word| word.trim_end_matches([',', ')']));
        let shapes = words.filter_map(|word| word.parse::<Shape>().ok());
        let mut written = shapes.map(|shape| WrittenShape::new(shape.without_layout().to_string()));
        let is_asked =
            |shape: &WrittenShape| shape.logical_bytes().is_some_and(|of| of.next_multiple_of(BLOCK) == asked);
        written.find(is_asked).map(|shape| shape.text)
    }

    /// Whether spilled registers take the missing bytes, where no array fills the memory alone, or are the largest part; in a list
    /// without sizes, the first entry.
    fn is_spilled(&self) -> bool {
        if self.entries.is_empty() {
            return self.named.spills;
        }
        if self.entries.iter().all(|entry| entry.size.is_none()) {
            return self.entries.first().is_some_and(Entry::is_spill);
        }
        let size = |entry: &Entry| entry.size.as_ref().map_or(0, PrintedSize::bytes);
        let all = self.used.as_ref().map_or(u64::MAX, PrintedSize::bytes);
        let (spilled, others) = self.entries.iter().fold((0_u64, 0_u64), |(spilled, others), entry| {
            let size = size(entry);
            if entry.is_spill() { (spilled.saturating_add(size), others) } else { (spilled, others.max(size)) }
        });
        let is_missing = self.budget().missing_bytes.is_some_and(|missing| spilled >= missing);
        // The kernel itself is listed as all that it needs.
        let others_alone =
            self.entries.iter().filter(|entry| !entry.is_spill()).map(size).filter(|size| *size < all).max();
        let is_full =
            self.limit.as_ref().zip(others_alone).is_some_and(|(limit, largest)| largest > limit.bytes() / 8 * 7);
        spilled > 0 && (spilled >= others || is_missing && !is_full)
    }

    fn verdict_on_hbm(&self) -> OomVerdict {
        let budget = self.budget();
        let padding = budget.padding_bytes.unwrap_or(0);
        // The arguments' elements alone exceed the memory.
        let arguments =
            budget.argument_bytes.map(|bytes| bytes.saturating_sub(budget.argument_padding_bytes.unwrap_or(0)));
        if arguments.zip(budget.capacity_bytes).is_some_and(|(arguments, capacity)| arguments > capacity) {
            return OomVerdict::Arguments;
        }
        let listed = || self.entries.iter().filter_map(|entry| entry.size.as_ref()).map(PrintedSize::bytes);
        let used = budget.used_bytes.unwrap_or_else(|| listed().fold(0, u64::saturating_add));
        let is_most = u128::from(padding) * 2 > u128::from(used);
        let is_padding = match budget.missing_bytes {
            Some(missing) => padding > 0 && padding >= missing || is_most,
            None => padding > 0 && u128::from(padding) * MUCH_PADDING >= u128::from(used),
        };
        if is_padding {
            return OomVerdict::Padding;
        }
        let fragmentation = budget.fragmentation_bytes.unwrap_or(0);
        if budget.missing_bytes.is_some_and(|missing| fragmentation > 0 && fragmentation >= missing) {
            return OomVerdict::Fragmentation;
        }
        let is_beheaded = budget.used_bytes.is_none() && self.is_beheaded();
        let is_told = budget.missing_bytes.is_some() || self.form != Form::Excerpt || used > 0 && !is_beheaded;
        if is_told { OomVerdict::Size } else { OomVerdict::Unknown }
    }

    /// Whether a list lacks its beginning, where the largest entries are.
    #[must_use]
    pub fn is_beheaded(&self) -> bool {
        let mut numbers = self.entries.iter().filter_map(|entry| entry.number).peekable();
        numbers.peek().is_some() && numbers.all(|number| number > 1)
    }

    /// Whether it tells what can be reserved at the bottom of memory, where programs are put; other free pieces lie above.
    #[must_use]
    pub fn is_at_the_bottom(&self) -> bool {
        self.facts.size("reserved").is_some() && self.contiguous.is_some()
    }
}
