//! Numeric and yes-or-no queries about shapes, as in XLA's `ShapeUtil`.

use crate::{ArrayShape, ElementKind, ElementType, Error, ErrorKind, Shape, ShapeKind, TileDimension, checked};
use alloc::{format, vec, vec::Vec};

impl ArrayShape {
    /// The stride of each dimension in bytes, dimension 0 first, for elements of their type's natural size: as in XLA,
    /// tiles and `E(n)` are ignored. For strides with tiles, see [`Tiled::digits_of`](crate::Tiled::digits_of).
    ///
    /// # Errors
    /// [`ErrorKind::MissingLayout`], [`ErrorKind::UnboundedDimension`], [`ErrorKind::Overflow`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "bf16[5,8,10]{1,2,0}".parse()?;
    /// assert_eq!(shape.as_array().expect("an array").byte_strides()?, [160, 2, 16]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ByteStrides")]
    pub fn byte_strides(&self) -> Result<Vec<u64>, Error> {
        let layout = self
            .layout()
            .ok_or_else(|| Error::new(ErrorKind::MissingLayout, "strides follow from a layout, and none is written"))?;
        let mut strides = vec![0; self.rank()];
        let mut stride = Some(u64::from(self.element_type().natural_bytes()));
        for &dimension in layout.minor_to_major() {
            strides[dimension] =
                stride.ok_or_else(|| Error::new(ErrorKind::Overflow, "a stride is above 2^63 − 1 bytes"))?;
            let bound = self.dimensions()[dimension].bound().ok_or_else(|| {
                Error::new(
                    ErrorKind::UnboundedDimension,
                    format!("dimension {dimension} is `?`: its size is known when the program runs"),
                )
            })?;
            stride = stride.and_then(|stride| checked::product([stride, bound].into_iter()));
        }
        Ok(strides)
    }

    /// Whether a dimension is the most major of those whose size isn't 1.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`], [`ErrorKind::MissingLayout`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[1,16,279]{2,1,0}".parse()?;
    /// let array = shape.as_array().expect("an array");
    /// assert!(array.is_effectively_most_major_dimension(1)? && !array.is_effectively_most_major_dimension(2)?);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "IsEffectivelyMostMajorDimension")]
    pub fn is_effectively_most_major_dimension(&self, dimension: usize) -> Result<bool, Error> {
        if dimension >= self.rank() {
            return Err(crate::edit::no_dimension(dimension, self.rank()));
        }
        if self.layout().is_none() {
            return Err(Error::new(
                ErrorKind::MissingLayout,
                "which dimension is major follows from a layout, and none is written",
            ));
        }
        // XLA counts a bound, also of a dynamic dimension.
        let before = self.major_to_minor().take_while(|&major| major != dimension);
        Ok(before.into_iter().all(|major| self.dimensions()[major].bound() == Some(1)))
    }

    /// The number of rows of a vector that share a word, if its layout interleaves rows: 2 for
    /// `bf16[1024]{0:T(1024)(128)(2,1)}`; else `None`.
    ///
    /// ```
    /// let shape: tilewise::Shape = "bf16[1024]{0:T(1024)(128)(2,1)}".parse()?;
    /// assert_eq!(shape.as_array().expect("an array").packed_factor_for_1d_interleaved_array(), Some(2));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "PackedFactorFor1DInterleavedArray")]
    #[must_use]
    pub fn packed_factor_for_1d_interleaved_array(&self) -> Option<u64> {
        let [_, _, last] = self.layout()?.tiles() else { return None };
        match last.dimensions() {
            [factor, _] if self.rank() == 1 => TileDimension::size(*factor),
            _ => None,
        }
    }
}

impl Shape {
    /// The size of a value in bytes, XLA's `ByteSizeOf`: for an array its elements without padding, with `E(n)`; for a
    /// tuple its table of pointers; for a token 0; for an opaque value a pointer.
    ///
    /// # Errors
    /// [`ErrorKind::UnboundedDimension`], [`ErrorKind::Overflow`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[256], s32[], token[])".parse()?;
    /// assert_eq!(shape.byte_size_of(8)?, 24);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ByteSizeOf")]
    #[doc(alias = "ByteSizeOfTupleIndexTable")]
    pub fn byte_size_of(&self, pointer_bytes: u64) -> Result<u64, Error> {
        match self.kind() {
            ShapeKind::Token => Ok(0),
            ShapeKind::Opaque => Ok(pointer_bytes),
            ShapeKind::Array(array) | ShapeKind::Buffer(array) => {
                let bounds = array.dimensions().iter().map(|dimension| dimension.bound());
                let bounds: Option<Vec<u64>> = bounds.collect();
                let bounds = bounds.ok_or_else(|| {
                    Error::new(ErrorKind::UnboundedDimension, "the size of `?` is known when the program runs")
                })?;
                let elements = checked::product(bounds.into_iter());
                let bytes = elements.and_then(|elements| checked::bytes(elements, array.stored_bits()));
                bytes.ok_or_else(|| Error::new(ErrorKind::Overflow, "the array is above 2^63 − 1 bytes"))
            }
            ShapeKind::Tuple => {
                let count = u64::try_from(self.elements().count()).ok();
                count
                    .and_then(|count| checked::product([count, pointer_bytes].into_iter()))
                    .ok_or_else(|| Error::new(ErrorKind::Overflow, "the tuple's table is above 2^63 − 1 bytes"))
            }
        }
    }

    /// Whether a value of this shape, whose dynamic dimensions have become sizes, may stand where the other is expected: each of its
    /// arrays with a dynamic dimension has bounds that are at most the other's, and its tuples are the other's. An array without one
    /// passes, as in XLA.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape = |text: &str| text.parse::<Shape>();
    /// assert!(shape("f32[<=3,5]")?.dynamic_shape_is_compatible(&shape("f32[<=8,5]")?));
    /// assert!(!shape("(f32[<=9])")?.dynamic_shape_is_compatible(&shape("(f32[<=8])")?));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DynamicShapeIsCompatible")]
    #[doc(alias = "DynamicArrayShapeIsCompatible")]
    #[must_use]
    pub fn dynamic_shape_is_compatible(&self, bounded: &Self) -> bool {
        self.subshapes().all(|(path, part)| {
            let Some(other) = bounded.subshape(&path) else { return false };
            let is_tuple = |shape: &Self| matches!(shape.kind(), ShapeKind::Tuple);
            let is_dynamic = part.dimensions().iter().any(|dimension| dimension.is_dynamic());
            match (is_tuple(&part), is_tuple(&other)) {
                (true, true) => true,
                (false, false) => !is_dynamic || fits(&part, &other),
                _ => false,
            }
        })
    }
}

/// Whether the ranks are equal and each bound is at most the other's; `?` is the least, as in XLA.
fn fits(array: &Shape, bounded: &Shape) -> bool {
    let (own, others) = (array.dimensions(), bounded.dimensions());
    own.len() == others.len() && own.iter().zip(others).all(|(own, other)| own.bound() <= other.bound())
}

impl ElementType {
    /// The higher-precision type of the two: complex before real, then the wider range, then more significand digits,
    /// then more bits, then signed before unsigned. If all are equal, as for `pred` and `u1`, where XLA aborts, `self`.
    ///
    /// ```
    /// use tilewise::ElementType;
    ///
    /// assert_eq!(ElementType::F16.higher_precision(ElementType::Bf16), ElementType::Bf16);
    /// assert_eq!(ElementType::S32.higher_precision(ElementType::U32), ElementType::S32);
    /// ```
    #[doc(alias = "HigherPrecisionElementType")]
    #[must_use]
    pub fn higher_precision(self, other: Self) -> Self {
        if other.precision() > self.precision() { other } else { self }
    }

    /// Whether the other type is the [higher one](Self::higher_precision) of both, or the same.
    ///
    /// ```
    /// use tilewise::ElementType;
    ///
    /// assert!(ElementType::Bf16.can_upcast(ElementType::F32) && !ElementType::F32.can_upcast(ElementType::S64));
    /// ```
    #[doc(alias = "ElementCanUpcast")]
    #[must_use]
    pub fn can_upcast(self, to: Self) -> bool {
        self.higher_precision(to) == to
    }

    /// The sort key of types, XLA's `HigherPrecisionType`.
    fn precision(self) -> (bool, i32, i32, u32, bool) {
        let component = match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        };
        let (range, digits) = component.range_and_digits().unwrap_or((i32::MIN, i32::MIN));
        let is_complex = self.kind() == ElementKind::Complex;
        (is_complex, range, digits, component.bits(), component.kind() == ElementKind::Signed)
    }

    /// For a floating-point type, the least exponent of 2 that it can't represent, and the digits of its significand,
    /// as defined in the OCP's specification of 8-bit numbers and IEEE 754.
    fn range_and_digits(self) -> Option<(i32, i32)> {
        Some(match self {
            Self::F4e2m1fn => (3, 2),
            Self::F6e2m3fn => (3, 4),
            Self::F6e3m2fn => (5, 3),
            Self::F8e3m4 => (4, 5),
            Self::F8e4m3 | Self::F8e4m3fnuz => (8, 4),
            Self::F8e4m3fn => (9, 4),
            Self::F8e4m3b11fnuz => (5, 4),
            Self::F8e5m2 | Self::F8e5m2fnuz => (16, 3),
            Self::F8e8m0fnu => (128, 1),
            Self::F16 => (16, 11),
            Self::Bf16 => (128, 8),
            Self::F32 => (128, 24),
            Self::F64 => (1024, 53),
            _ => return None,
        })
    }
}
