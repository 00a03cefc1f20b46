//! Findings in messages about a TPU's kernels: their memory, and code that Mosaic refuses.

use tilewise::{Shape, tpu::Generation};
use tilewise_oom::{BlockSize, Frame, OptionChange, PrintedSize, Server, WindowKind};

/// An option of a library, with a value that makes its kernel need less.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedOption {
    /// The option's name.
    pub name: String,
    /// Its value in the text.
    pub from: Option<u64>,
    /// The way to change it.
    pub change: OptionChange,
    /// The value to be, if one is known to be enough.
    pub to: Option<u64>,
}

/// Arrays that a kernel holds in VMEM whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WholeArrays {
    /// Bytes of all, or of one that alone exceeds each TPU's memory.
    pub bytes: u64,
    /// Whether no TPU has as much.
    pub exceeds_all: bool,
    /// Rows and columns of the largest, and rows of a block with which all blocks, double-buffered, take half of the limit.
    pub rows: Option<[u64; 3]>,
}

/// A kernel's use of its own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockFinding {
    /// A block is too large.
    Window {
        /// The kind of window.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The block, as printed.
        block: String,
        /// The block's bounds after division; `None` if they are unknown.
        smaller: Option<Vec<u64>>,
        /// The divisor of each block.
        parts: u64,
        /// Blocks in memory at once.
        buffers: u32,
        /// Bytes of these.
        bytes: u64,
        /// Number of the kernel's input and output windows.
        windows: usize,
        /// The library's names of the divided bound: all parameters of that size.
        parameters: Vec<String>,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// The kernel's own scratch is too large.
    Scratch {
        /// The shape, as printed.
        shape: String,
        /// Bytes it takes.
        bytes: u64,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel of a library.
    Library {
        /// Its name; empty where only its blocks are known.
        kernel: String,
        /// Its block sizes; empty if the message has no sizes.
        sizes: Vec<BlockSize>,
        /// The divisor of each with which it surely fits.
        parts: u64,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// Options of the library that has the kernel.
    Options {
        /// The library; empty for options of the job's own that may size the kernel.
        library: String,
        /// These, with the values that make the difference.
        options: Vec<ChangedOption>,
        /// Numbers of the text that multiply to what is too large, and the bytes of an element.
        product: Option<(Vec<u64>, u64)>,
    },
    /// A kernel that the compiler generated from an operation.
    Fusion {
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel without listed blocks.
    Unlisted {
        /// The arrays that it holds whole, if that is why it needs too much.
        whole: Option<WholeArrays>,
        /// The percentage by which it has to shrink, if known.
        shrink: Option<u64>,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
        /// Whether the text calls the kernel the writer's.
        is_own: bool,
        /// The library whose file has the kernel.
        library: Option<&'static str>,
    },
    /// An operand lies in SMEM.
    ScalarOperand {
        /// The kind of window.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The array's shape, if known.
        shape: Option<Shape>,
        /// Bytes it takes.
        bytes: u64,
        /// Bytes of SMEM.
        limit: u64,
    },
    /// Tables of pages and lengths lie in SMEM.
    ScalarTables {
        /// The largest array, and its bytes.
        largest: Option<(Shape, u64)>,
        /// Bytes of SMEM.
        limit: u64,
        /// The percentage by which all of it has to shrink, if known.
        shrink: Option<u64>,
        /// Rows and columns of the largest array before, and as many of each as leave room alone.
        enough: Option<[[u64; 2]; 2]>,
        /// The server whose kernel it is.
        server: Option<Server>,
    },
    /// The SparseCore's program is too large for HBM.
    SparseCoreInHbm,
    /// A SparseCore takes too much at once.
    SparseCore(SparseCoreProgram),
    /// Values did not fit into registers.
    Spills {
        /// Spilled bytes; 0 if they aren't listed.
        bytes: u64,
        /// Whether the message names a fusion of the compiler's, and no kernel.
        is_of_fusion: bool,
        /// The line of a traceback that calls an operation which compilers unroll.
        operation: Option<Frame>,
    },
}

/// A limit that can be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelLimit {
    /// The limit to set, in bytes.
    pub raised: u64,
    /// The present limit.
    pub limit: PrintedSize,
    /// The highest limit in bytes that the generation honours; `None` if it is unknown.
    pub cap: Option<(Generation, u64)>,
    /// Whether it is a kernel's limit, not that of an instruction of the compiler's; `None` if unknown.
    pub is_kernel: Option<bool>,
    /// Whether the limit is surely a setting.
    pub is_setting: bool,
    /// Whether Pallas's parameters of the kernel set it, whatever the framework.
    pub is_of_pallas: bool,
}

/// A kernel that can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MosaicFinding {
    /// A block that isn't a multiple of the tile.
    Block {
        /// The block's owner, such as `inputs[0]`; empty if unknown.
        of: String,
        /// Rows and lanes of the tile.
        tile: [u64; 2],
        /// The nearest allowed block, and the array; `None` if the message lacks either.
        legal: Option<[Vec<Option<u64>>; 2]>,
        /// Whether the array has one dimension.
        is_flat: bool,
    },
    /// One row at a time, by one dimension more in the array and in the block.
    OneRow {
        /// The array's bounds with that dimension.
        array: Vec<Option<u64>>,
        /// The block's bounds with that dimension.
        block: Vec<Option<u64>>,
    },
    /// An index that is always a multiple.
    Multiple {
        /// The dimension that it indexes; `None` if unknown.
        dimension: Option<u64>,
        /// The number that it is a multiple of.
        multiple: u64,
    },
    /// An index that isn't always a multiple.
    WholeTile {
        /// The required multiple.
        multiple: u64,
    },
    /// A slice that doesn't end where a tile does.
    Slice {
        /// The sliced dimension.
        dimension: u64,
        /// The required multiple.
        multiple: u64,
        /// Its size, and the next multiple; `None` if unknown.
        size: Option<[u64; 2]>,
    },
    /// A kernel for a SparseCore, on a TPU without one.
    NoSparseCore,
    /// Operands of a type that the matrix unit can't read.
    Cast,
    /// Strided rows of an array with more than 128 numbers in a row.
    StridedLanes {
        /// Numbers in a row.
        lanes: Option<u64>,
    },
    /// Strided rows of elements narrower than 32 bits.
    StridedNarrow,
    /// An operand whose layout isn't the kernel's.
    OperandLayout(OperandLayout),
    /// A matrix product whose dimensions don't fill tiles, or aren't the multiples that the message names.
    MatmulShape {
        /// The dimensions to pad; empty if unknown.
        short: Vec<ShortDimension>,
    },
    /// An element type that a kernel's operations don't have on this TPU.
    ElementType {
        /// Its name in MLIR.
        name: String,
    },
    /// More than one element of SMEM at once.
    ScalarLoads,
    /// A primitive of JAX that has no lowering for TPU kernels.
    Primitive {
        /// Its name.
        name: String,
    },
    /// An operation that is not implemented.
    Rewrite {
        /// Its name; `None` if unknown.
        operation: Option<String>,
        /// Whether it is on predicates, by MLIR's types.
        is_of_mask: bool,
        /// Whether an operand or a result has fewer than two dimensions; `None` without MLIR's types.
        is_flat: Option<bool>,
        /// Whether elements have fewer than 32 bits; `None` without MLIR's types.
        is_narrow: Option<bool>,
    },
    /// A kernel that JAX wrote in another version than the compiler reads.
    Versions,
    /// The message names no operation, layout or type to change.
    Report,
    /// A kernel in a program that is divided between devices.
    Partitioned,
}

/// An operand whose layout isn't the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperandLayout {
    /// The operand's number.
    pub operand: Option<u64>,
    /// The array in the kernel's layout and in XLA's; `None` if the message lacks either.
    pub layouts: Option<Box<[Shape; 2]>>,
    /// Whether it has no elements.
    pub is_empty: bool,
}

/// A dimension of a matrix product that fills no tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShortDimension {
    /// The dimension.
    pub dimension: MatmulDimension,
    /// Its size.
    pub size: u64,
    /// The next size that fills tiles.
    pub padded: u64,
}

/// A dimension of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulDimension {
    /// The contracted one.
    Contracted,
    /// The rows of the left operand and of the result.
    Rows,
    /// The columns of the right operand and of the result.
    Columns,
}

/// A program of a SparseCore's, as far as a message names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SparseCoreProgram {
    /// A look-up in an embedding table.
    Table {
        /// Whether the part that no row of the table takes is too large alone, which grows with the samples.
        is_of_samples: bool,
    },
    /// A collective that the compiler offloaded, by its operation: `all-gather`.
    Collective(&'static str),
    /// One that has another name, such as a kernel's.
    Named(String),
    /// Unknown.
    Unknown,
}
