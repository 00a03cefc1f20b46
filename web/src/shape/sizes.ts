// What an array takes, as the core answers.

export interface Sizes {
  element_type: string;
  stored_bits: number;
  dimensions: number[];
  physical_dimensions: number[];
  physical_elements: number;
  logical_bytes: number;
  physical_bytes: number;
  padding_bytes: number;
  expansion: number;
  causes: string[];
  memory_space_name: string;
  padded: [number, number][];
}
