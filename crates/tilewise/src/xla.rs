#![doc = include_str!("xla_functions.md")]
