#![doc = include_str!("../README.md")]
#![allow(non_camel_case_types, reason = "C's names")]

mod error;
mod pointers;

// The header has them in this order.
mod layout;

mod index;

mod slice;

mod relayout;

mod reshard;

pub use error::{tw_code, tw_error};
pub use index::{tw_layout_index_of, tw_layout_indices, tw_layout_offset_of, tw_layout_offsets};
pub use layout::{
    tw_layout, tw_layout_clone, tw_layout_default, tw_layout_dimensions, tw_layout_free, tw_layout_from_layout_proto,
    tw_layout_from_pjrt, tw_layout_from_proto, tw_layout_logical_bytes, tw_layout_parse, tw_layout_physical_bytes,
    tw_layout_physical_elements, tw_layout_pjrt, tw_layout_rank, tw_layout_row_major, tw_layout_same_bytes,
    tw_layout_stored_bits, tw_layout_text, tw_layout_with_order, tw_pjrt_tiled, tw_version,
};
pub use relayout::{
    TW_LEAVE_PADDING, tw_cost, tw_relayout, tw_relayout_cost, tw_relayout_destination_bytes, tw_relayout_free,
    tw_relayout_new, tw_relayout_new_with, tw_relayout_run, tw_relayout_run_part, tw_relayout_source_bytes,
    tw_relayout_text,
};
pub use reshard::{
    tw_copy, tw_reshard, tw_reshard_copies, tw_reshard_copy_bounds, tw_reshard_devices, tw_reshard_free,
    tw_reshard_new, tw_reshard_run, tw_reshard_shard,
};
pub use slice::{tw_order, tw_run, tw_slice, tw_slice_describe, tw_slice_runs, tw_slice_runs_strided};
