// A shape, as the core answers: `tilewise show --format json`, and what the page shows beside it.

export interface Shown {
  shape: string;
  /// The arrays of a tuple.
  leaves?: { shape_index: number[]; shape: string }[];
  element_type: string;
  dimensions: number[];
  minor_to_major: number[];
  memory_space_name: string;
  /// Null where there are no sizes.
  physical_dimensions: number[] | null;
  logical_bytes: number;
  physical_bytes: number;
  padding_bytes: number;
  expansion: number;
  sizes_unavailable?: { message: string };
  parts: Part[];
  causes: string[];
}

/// A part of the notation, and what it means.
export interface Part {
  start: number;
  end: number;
  kind: "type" | "dimension" | "order" | "tile" | "attribute";
  number: number | null;
  /// Of a tile that merges no dimensions.
  elements: number | null;
  meaning: string;
}

export interface Generation {
  name: string;
  hbm_bytes: number;
}
