//! Element types: XLA's primitive types that an array can have.

use crate::{Error, ErrorKind, text};
use alloc::format;
use core::{fmt, str::FromStr};

/// The kind of a type's values, for display and for widening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementKind {
    /// `pred`.
    Predicate,
    /// `s1` … `s64`, two's complement.
    Signed,
    /// `u1` … `u64`.
    Unsigned,
    /// `f4e2m1fn` … `f64`, `bf16`.
    Float,
    /// `c64`, `c128`: two floats side by side.
    Complex,
}

macro_rules! element_types {
    ($($variant:ident $name:literal = $number:literal, $kind:ident $bits:literal;)+) => {
        /// The type of an array's elements: every array type of XLA's `PrimitiveType`.
        ///
        /// The discriminant is the number in `xla_data.proto`. Sizes are in bits; without an element size in the layout, an
        /// element is stored in [`natural_bits`](ElementType::natural_bits), whole bytes.
        ///
        /// ```
        /// use tilewise::ElementType;
        ///
        /// let t: ElementType = "bf16".parse()?;
        /// assert_eq!((t, t.bits(), t.to_string().as_str()), (ElementType::Bf16, 16, "bf16"));
        /// assert_eq!((ElementType::S4.bits(), ElementType::S4.natural_bits()), (4, 8));
        /// # Ok::<(), tilewise::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum ElementType {
            $(#[doc = concat!("`", $name, "`, ", stringify!($bits), " bits.")] $variant = $number,)+
        }

        impl ElementType {
            /// Every element type, in the order of XLA's documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// XLA's name of the type, such as `f8e4m3fn`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The kind of the type's values.
            #[must_use]
            pub const fn kind(self) -> ElementKind {
                match self { $(Self::$variant => ElementKind::$kind,)+ }
            }

            /// Bits of information in one element: 1 for `pred`, 4 for `s4`, 128 for `c128`.
            #[must_use]
            pub const fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)+ }
            }

            /// The type with this number in `xla_data.proto`'s `PrimitiveType`, if it is an array type.
            #[must_use]
            pub const fn from_proto_number(number: i32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }

            pub(crate) fn from_exact_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

element_types! {
    Pred "pred" = 1, Predicate 1;
    S1 "s1" = 30, Signed 1;
    S2 "s2" = 26, Signed 2;
    S4 "s4" = 21, Signed 4;
    S8 "s8" = 2, Signed 8;
    S16 "s16" = 3, Signed 16;
    S32 "s32" = 4, Signed 32;
    S64 "s64" = 5, Signed 64;
    U1 "u1" = 31, Unsigned 1;
    U2 "u2" = 27, Unsigned 2;
    U4 "u4" = 22, Unsigned 4;
    U8 "u8" = 6, Unsigned 8;
    U16 "u16" = 7, Unsigned 16;
    U32 "u32" = 8, Unsigned 32;
    U64 "u64" = 9, Unsigned 64;
    F4e2m1fn "f4e2m1fn" = 32, Float 4;
    F6e3m2fn "f6e3m2fn" = 35, Float 6;
    F6e2m3fn "f6e2m3fn" = 36, Float 6;
    F8e5m2 "f8e5m2" = 19, Float 8;
    F8e4m3 "f8e4m3" = 28, Float 8;
    F8e4m3fn "f8e4m3fn" = 20, Float 8;
    F8e4m3b11fnuz "f8e4m3b11fnuz" = 23, Float 8;
    F8e3m4 "f8e3m4" = 29, Float 8;
    F8e5m2fnuz "f8e5m2fnuz" = 24, Float 8;
    F8e4m3fnuz "f8e4m3fnuz" = 25, Float 8;
    F8e8m0fnu "f8e8m0fnu" = 33, Float 8;
    F16 "f16" = 10, Float 16;
    Bf16 "bf16" = 16, Float 16;
    F32 "f32" = 11, Float 32;
    F64 "f64" = 12, Float 64;
    C64 "c64" = 15, Complex 64;
    C128 "c128" = 18, Complex 128;
}

impl ElementType {
    /// Bits one element occupies where the layout gives no element size: [`bits`](Self::bits) rounded up to whole bytes.
    #[must_use]
    pub const fn natural_bits(self) -> u32 {
        self.bits().next_multiple_of(8)
    }

    /// Bytes one element occupies where the layout gives no element size (XLA's `ByteWidth`).
    #[must_use]
    pub const fn natural_bytes(self) -> u32 {
        self.natural_bits() / 8
    }

    /// The number of the type in `xla_data.proto`'s `PrimitiveType`.
    #[must_use]
    pub const fn proto_number(self) -> i32 {
        self as i32
    }

    /// Whether XLA allows the type as an index or pointer type of a sparse array: u8, u16, u32, u64.
    pub(crate) const fn is_index_type(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// The type of that name in any case: the documents write `F32`, XLA `f32`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::from_exact_name(name).or_else(|| Self::ALL.iter().copied().find(|t| t.name().eq_ignore_ascii_case(name)))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = Error;

    /// Reads XLA's name of a type, in any case.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownElementType`], with a suggestion where a known name is near.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::from_name(name).ok_or_else(|| text::unknown_element_type(name, 0..name.len()))
    }
}

/// The error for a type that [can't be](ElementType::is_index_type) an index or pointer type of a sparse array.
pub(crate) fn sparse_type_error(pointer: bool, found: impl fmt::Display) -> Error {
    let (kind, role) = match pointer {
        true => (ErrorKind::InvalidPointerType, "a pointer"),
        false => (ErrorKind::InvalidIndexType, "an index"),
    };
    Error::new(kind, format!("{role} type is u8, u16, u32 or u64, not {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip() {
        assert_eq!(ElementType::ALL.len(), 32);
        for &t in ElementType::ALL {
            assert_eq!(t.name().parse(), Ok(t));
            assert_eq!(t.name().to_ascii_uppercase().parse(), Ok(t));
            assert_eq!(ElementType::from_proto_number(t.proto_number()), Some(t));
        }
        assert_eq!(ElementType::from_proto_number(13), None, "tuple isn't an array type");
    }
}
