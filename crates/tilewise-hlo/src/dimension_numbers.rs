//! Attributes about dimensions: XLA's dimension numbers, limits, padding and windows.
//!
//! Each is read here, and nowhere else, as XLA's parser reads it (xla/hlo/parser/hlo_parser.cc). An attribute that a
//! text leaves out, or spells otherwise, is `None`.

use crate::{Instruction, Opcode, attributes::Attributes};

/// The dimensions of a `dot`'s operands that are batched and summed over: XLA's `DotDimensionNumbers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DotDimensions {
    /// `lhs_batch_dims`
    pub lhs_batch: Vec<usize>,
    /// `rhs_batch_dims`, in the order of those of the left operand.
    pub rhs_batch: Vec<usize>,
    /// `lhs_contracting_dims`
    pub lhs_contracting: Vec<usize>,
    /// `rhs_contracting_dims`, in the order of those of the left operand.
    pub rhs_contracting: Vec<usize>,
}

/// The roles of the dimensions of one array of a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvolutionArray {
    /// The batch of the input and of the output; of the kernel, its output features.
    pub batch: usize,
    /// The features of the input and of the output; of the kernel, its input features.
    pub feature: usize,
    /// The spatial dimensions, by their number.
    pub spatial: Vec<usize>,
}

/// The roles of the dimensions of a convolution's arrays: XLA's `ConvolutionDimensionNumbers` with the counts of
/// groups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvolutionDimensions {
    /// The left operand.
    pub input: ConvolutionArray,
    /// The right operand.
    pub kernel: ConvolutionArray,
    /// The result.
    pub output: ConvolutionArray,
    /// `feature_group_count`, at least 1.
    pub feature_groups: u64,
    /// `batch_group_count`, at least 1.
    pub batch_groups: u64,
}

/// The dimensions of a `gather` or a `scatter`, which are each other's inverse: XLA's `GatherDimensionNumbers` and
/// `ScatterDimensionNumbers`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedDimensions {
    /// The dimensions of a gather's result, or of a scatter's updates, that are within a slice: `offset_dims`,
    /// `update_window_dims`.
    pub offset: Vec<usize>,
    /// The dimensions of the operand that slices lack, since they have one index there: `collapsed_slice_dims`,
    /// `inserted_window_dims`.
    pub collapsed: Vec<usize>,
    /// The dimensions of the operand that are batched with those of the indices: `operand_batching_dims`, `input_batching_dims`.
    pub operand_batch: Vec<usize>,
    /// The batched dimensions of the indices, in that order: `start_indices_batching_dims`,
    /// `scatter_indices_batching_dims`.
    pub indices_batch: Vec<usize>,
    /// The indexed dimensions of the operand: `start_index_map`, `scatter_dims_to_operand_dims`.
    pub indexed: Vec<usize>,
    /// The dimension of the indices along which the numbers of one index lie; the indices' rank if each is one number.
    pub index_vector: usize,
    /// The bounds of a gather's slices, by dimension of the operand; empty for a scatter.
    pub slice_sizes: Vec<u64>,
}

/// The indices that a `slice` takes along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceLimits {
    /// The first index.
    pub start: u64,
    /// One past the last index.
    pub limit: u64,
    /// The distance from one index to the next, at least 1.
    pub stride: u64,
}

impl SliceLimits {
    /// The number of indices it takes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.limit.saturating_sub(self.start).div_ceil(self.stride.max(1))
    }
}

/// The padding that a `pad` adds along a dimension; a negative number cuts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Padding {
    /// Elements before the first.
    pub low: i64,
    /// Elements after the last.
    pub high: i64,
    /// Elements between two.
    pub interior: i64,
}

/// A window along one dimension: XLA's `WindowDimension`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowDimension {
    /// The number of elements it takes.
    pub size: u64,
    /// The distance from one place of the window to the next.
    pub stride: i64,
    /// Padding before the first element.
    pub pad_low: i64,
    /// Padding after the last one.
    pub pad_high: i64,
    /// The distance from one element of the input to the next, with holes between them.
    pub base_dilation: i64,
    /// The distance from one element of the window to the next, with holes between them.
    pub window_dilation: i64,
    /// Whether the window is applied in reverse.
    pub is_reversed: bool,
}

impl<'m> Instruction<'m> {
    /// `dimensions={0,2}`: of a `transpose`, `broadcast`, `reduce`, `concatenate`, `sort`, `reverse`, of collectives and others.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("t = f32[3,2]{1,0} transpose(f32[2,3]{1,0} a), dimensions={1,0}")?;
    /// assert_eq!(module.instructions().next().unwrap().dimensions(), Some(vec![1, 0]));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn dimensions(&self) -> Option<Vec<usize>> {
        numbers(self.attribute("dimensions")?)
    }

    /// The dimension along which an `iota` counts.
    #[must_use]
    pub fn iota_dimension(&self) -> Option<usize> {
        self.attribute("iota_dimension").map_or(Some(0), |text| text.parse().ok())
    }

    /// The element that a `get-tuple-element` takes.
    #[must_use]
    pub fn tuple_index(&self) -> Option<usize> {
        self.attribute("index")?.trim().parse().ok()
    }

    /// The target of a `custom-call`.
    #[must_use]
    pub fn custom_call_target(&self) -> Option<&'m str> {
        Some(self.attribute("custom_call_target")?.trim_matches('"'))
    }

    /// The bounds of a `dynamic-slice`.
    #[must_use]
    pub fn dynamic_slice_sizes(&self) -> Option<Vec<u64>> {
        numbers(self.attribute("dynamic_slice_sizes")?)
    }

    /// The lengths of an `fft` along the last dimensions.
    #[must_use]
    pub fn fft_length(&self) -> Option<Vec<u64>> {
        numbers(self.attribute("fft_length")?)
    }

    /// The limits of a `slice`, by dimension.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("s = f32[4,3] slice(f32[8,9] a), slice={[0:4], [2:9:3]}")?;
    /// let limits = module.instructions().next().unwrap().slice_limits().unwrap();
    /// assert_eq!((limits[1].start, limits[1].limit, limits[1].stride, limits[1].size()), (2, 9, 3, 3));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn slice_limits(&self) -> Option<Vec<SliceLimits>> {
        let of_dimension = |text: &str| {
            let mut numbers = text.strip_prefix('[')?.strip_suffix(']')?.split(':').map(|it| it.trim().parse().ok());
            let (start, limit) = (numbers.next()??, numbers.next()??);
            Some(SliceLimits { start, limit, stride: numbers.next().unwrap_or(Some(1))?.max(1) })
        };
        listed(self.attribute("slice")?)?.map(of_dimension).collect()
    }

    /// The padding of a `pad`, by dimension.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("p = f32[5,7] pad(f32[4,3] a, f32[] z), padding=0_1x1_1_1")?;
    /// let padding = module.instructions().next().unwrap().padding().unwrap();
    /// assert_eq!((padding[0].high, padding[1].low, padding[1].interior), (1, 1, 1));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn padding(&self) -> Option<Vec<Padding>> {
        padding(self.attribute("padding")?)
    }

    /// The window of a `convolution`, `reduce-window` or `select-and-scatter`, by its dimensions: those of a convolution are the
    /// spatial ones.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let text = "c = f32[8,4] convolution(a, b), window={size=3x3 stride=2x1 pad=1_1x0_0}, dim_labels=b01f_01io->b01f";
    /// let window = Module::parse(text)?.instructions().next().unwrap().window().unwrap();
    /// assert_eq!((window[0].size, window[0].stride, window[0].pad_low, window[1].base_dilation), (3, 2, 1, 1));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Vec<WindowDimension>> {
        window(self.attribute("window")?)
    }

    /// The dimensions of a `dot`; `None` if the text leaves out the contracting ones.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("d = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}")?;
    /// let dot = module.instructions().next().unwrap().dot_dimensions().unwrap();
    /// assert_eq!((&dot.lhs_contracting[..], &dot.rhs_contracting[..], &dot.lhs_batch[..]), (&[1][..], &[0][..], &[][..]));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn dot_dimensions(&self) -> Option<DotDimensions> {
        DotDimensions::read(self.attributes())
    }

    /// The dimensions of a `convolution`.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("c = f32[8,9,5] convolution(a, b), window={size=1}, dim_labels=bf0_io0->b0f")?;
    /// let found = module.instructions().next().unwrap().convolution_dimensions().unwrap();
    /// assert_eq!((found.input.batch, found.input.feature, &found.input.spatial[..]), (0, 1, &[2][..]));
    /// assert_eq!((found.kernel.feature, found.kernel.batch, found.output.feature), (0, 1, 2));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn convolution_dimensions(&self) -> Option<ConvolutionDimensions> {
        let (inputs, output) = self.attribute("dim_labels")?.split_once("->")?;
        let (input, kernel) = inputs.split_once('_')?;
        let groups = |name: &str| self.attribute(name).map_or(Some(1), |text| text.parse::<u64>().ok());
        Some(ConvolutionDimensions {
            input: convolution_array(input, 'b', 'f')?,
            kernel: convolution_array(kernel, 'o', 'i')?,
            output: convolution_array(output, 'b', 'f')?,
            feature_groups: groups("feature_group_count")?.max(1),
            batch_groups: groups("batch_group_count")?.max(1),
        })
    }

    /// The dimensions of a `gather`.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let text = "g = f32[5,4] gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
    ///             index_vector_dim=1, slice_sizes={1,4}";
    /// let gather = Module::parse(text)?.instructions().next().unwrap().gather_dimensions().unwrap();
    /// assert_eq!((&gather.offset[..], &gather.indexed[..], &gather.slice_sizes[..]), (&[1][..], &[0][..], &[1, 4][..]));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn gather_dimensions(&self) -> Option<IndexedDimensions> {
        IndexedDimensions::read(self.attributes(), &GATHER).filter(|found| !found.slice_sizes.is_empty())
    }

    /// The operand of a `gather` or a `scatter` that has the indices. A scatter may have several inputs before them and as many
    /// updates behind them, as of the two halves of complex numbers.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let indices = |text| Module::parse(text).map(|module| module.instructions().next().unwrap().indices_operand());
    /// assert_eq!(indices("g = f32[5,4] gather(table, rows)")?, Some(1));
    /// assert_eq!(indices("s = (f32[8], f32[8]) scatter(re, im, rows, of_re, of_im)")?, Some(2));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn indices_operand(&self) -> Option<usize> {
        match self.opcode() {
            Opcode::Gather => Some(1),
            Opcode::Scatter => Some(self.operands().count().checked_sub(1)? / 2),
            _ => None,
        }
    }

    /// The dimensions of a `scatter`.
    #[must_use]
    pub fn scatter_dimensions(&self) -> Option<IndexedDimensions> {
        IndexedDimensions::read(self.attributes(), &SCATTER)
    }
}

impl DotDimensions {
    pub(crate) fn read(attributes: Attributes<'_>) -> Option<Self> {
        let mut found = Self::default();
        let mut is_written = false;
        for attribute in attributes {
            let list = match attribute.name {
                "lhs_batch_dims" => &mut found.lhs_batch,
                "rhs_batch_dims" => &mut found.rhs_batch,
                "lhs_contracting_dims" => &mut found.lhs_contracting,
                "rhs_contracting_dims" => &mut found.rhs_contracting,
                _ => continue,
            };
            is_written |= attribute.name == "lhs_contracting_dims";
            *list = numbers(attribute.value)?;
        }
        is_written.then_some(found)
    }
}

/// The names of the attributes of a gather, or of a scatter, in the order of [`IndexedDimensions`].
type IndexedNames = [&'static str; 5];

const GATHER: IndexedNames =
    ["offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map"];

const SCATTER: IndexedNames = [
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
];

impl IndexedDimensions {
    fn read(attributes: Attributes<'_>, names: &IndexedNames) -> Option<Self> {
        let mut lists: [Vec<usize>; 5] = Default::default();
        let (mut index_vector, mut slice_sizes) = (None, Vec::new());
        for attribute in attributes {
            match attribute.name {
                "index_vector_dim" => index_vector = attribute.value.parse().ok(),
                "slice_sizes" => slice_sizes = numbers(attribute.value)?,
                name => {
                    let Some(at) = names.iter().position(|known| *known == name) else { continue };
                    *lists.get_mut(at)? = numbers(attribute.value)?;
                }
            }
        }
        let [offset, collapsed, operand_batch, indices_batch, indexed] = lists;
        let index_vector = index_vector?;
        Some(Self { offset, collapsed, operand_batch, indices_batch, indexed, index_vector, slice_sizes })
    }

    /// The dimensions of an operand of this rank that slices have.
    #[must_use]
    pub fn kept(&self, rank: usize) -> Vec<usize> {
        (0..rank).filter(|at| !self.collapsed.contains(at) && !self.operand_batch.contains(at)).collect()
    }

    /// Pairs of dimensions: one of a result, or of updates, of this rank that isn't within a slice, and its counterpart
    /// in the indices.
    #[must_use]
    pub fn batch(&self, rank: usize) -> Vec<(usize, usize)> {
        let of_result = (0..rank).filter(|at| !self.offset.contains(at));
        let of_indices = |number: usize| if number < self.index_vector { number } else { number + 1 };
        of_result.enumerate().map(|(number, at)| (at, of_indices(number))).collect()
    }
}

fn convolution_array(labels: &str, batch: char, feature: char) -> Option<ConvolutionArray> {
    let place = |label: char| labels.chars().position(|at| at == label);
    let spatial = (0..).map_while(|number| place(char::from_digit(number, 10)?));
    Some(ConvolutionArray { batch: place(batch)?, feature: place(feature)?, spatial: spatial.collect() })
}

/// `{size=3x3 pad=1_1x0_0}`
fn window(text: &str) -> Option<Vec<WindowDimension>> {
    let fields = text.trim().strip_prefix('{')?.strip_suffix('}')?.split_whitespace();
    let field = |name: &str| fields.clone().find_map(|field| field.split_once('=').filter(|(known, _)| *known == name));
    let parts = |name: &str| field(name).map(|(_, value)| value.split('x'));
    // A window of no dimension is `{}`.
    let Some(sizes) = parts("size") else { return Some(Vec::new()) };
    let number = |name: &str, at: usize| {
        parts(name).map_or(Some(1), |mut parts| parts.nth(at)?.parse::<i64>().ok()).map(|number| number.max(1))
    };
    let of_dimension = |(at, size): (usize, &str)| {
        let padding = parts("pad").map_or(Some((0, 0)), |mut parts| {
            let (low, high) = parts.nth(at)?.split_once('_')?;
            Some((low.parse().ok()?, high.parse().ok()?))
        });
        let (pad_low, pad_high) = padding?;
        Some(WindowDimension {
            size: size.parse().ok()?,
            stride: number("stride", at)?,
            pad_low,
            pad_high,
            base_dilation: number("lhs_dilate", at)?,
            window_dilation: number("rhs_dilate", at)?,
            is_reversed: parts("rhs_reversal").and_then(|mut parts| parts.nth(at)) == Some("1"),
        })
    };
    sizes.enumerate().map(of_dimension).collect()
}

/// `0_1x2_0_1`
pub(crate) fn padding(text: &str) -> Option<Vec<Padding>> {
    let of_dimension = |text: &str| {
        let mut numbers = text.split('_').map(|number| number.trim().parse().ok());
        let (low, high) = (numbers.next()??, numbers.next()??);
        Some(Padding { low, high, interior: numbers.next().unwrap_or(Some(0))? })
    };
    text.split('x').map(of_dimension).collect()
}

/// `{0,2}`
pub(crate) fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    listed(text)?.map(|number| number.parse().ok()).collect()
}

fn listed(text: &str) -> Option<impl Iterator<Item = &str>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    Some(inside.split(',').map(crate::scan::trim).filter(|part| !part.is_empty()))
}
