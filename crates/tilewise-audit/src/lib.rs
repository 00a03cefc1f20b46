//! Finds padding waste in compiled TPU programs.
