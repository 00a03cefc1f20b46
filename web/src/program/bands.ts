// Which pieces have which colour: those of a line, or of a layer.

import { stands, type Audit, type Timeline } from "./data";
import { aliveAt, byOwner, type Row } from "./rows";

/// Colours of lines or layers; behind them that of all others.
export const TILES = 8;

/// Numbers that all bands over all moments may be together.
const LARGEST = 2_000_000;

/// Whose colours pieces have.
export type Colouring = "lines" | "layers";

export interface Bands {
  /// How many there are; the last is that of all others.
  count: number;
  /// The band of each piece.
  of: Uint16Array;
  /// Of a band, which of the tiles' colours it has.
  tile: (band: number) => number;
  /// What has which colour.
  legend: { name: string; tile: number }[];
}

export function bands(audit: Audit, timeline: Timeline, colouring: Colouring): Bands {
  const { owner, layer } = timeline.pieces;
  if (colouring === "lines") {
    const lines = largest(audit, timeline);
    const numbers = new Map(lines.map((line, at) => [line, at]));
    const of = timeline.owners.map((line) => numbers.get(line) ?? TILES);
    return { count: TILES + 1, of: Uint16Array.from(owner, (owner) => of[owner] ?? TILES), tile: (band) => band, legend: lines.map((name, tile) => ({ name, tile })) };
  }
  // Where they are very many, neighbours are together.
  const layers = timeline.layers.length;
  const count = Math.min(layers, Math.max(TILES, Math.floor(LARGEST / Math.max(timeline.moments, 1))));
  const band = (layer: number) => (layer < layers ? Math.floor((layer * count) / layers) : count);
  const tile = (band: number) => (band === count ? TILES : band % TILES);
  const few = layers <= 2 * TILES ? timeline.layers : [...timeline.layers.slice(0, TILES), `… ${timeline.layers.at(-1)}`];
  return { count: count + 1, of: Uint16Array.from(layer, band), tile, legend: few.map((name, at) => ({ name, tile: tile(band(name.startsWith("…") ? layers - 1 : at)) })) };
}

/// The lines that hold enough at the peak to be seen.
function largest(audit: Audit, timeline: Timeline): string[] {
  const alive = aliveAt(audit, timeline, timeline.peak_moment ?? 0);
  const total = alive.reduce((sum, row) => sum + row.bytes, 0);
  const held = byOwner(alive.filter((row) => !stands(row)));
  return held.filter((row) => row.bytes * 200 >= total).slice(0, TILES).map((row) => row.owner);
}

/// The colour of a row, as a CSS variable's name.
export type Paint = (row: Row) => string;

/// The colours that rows have in a picture of these bands; those of what stands where there is none.
export function paint(bands: Bands | null): Paint {
  const one = (row: Row) => {
    if (row.role !== "" && stands(row)) return "--resident";
    const tiles = new Set(row.pieces.map((piece) => bands?.tile(bands.of[piece]!)));
    const [tile = TILES] = tiles;
    return tiles.size > 1 || tile === TILES ? "--other" : `--tile-${tile}`;
  };
  return (row) => {
    const colors = new Set((row.rows ?? [row]).map(one));
    return colors.size === 1 ? [...colors][0]! : "--other";
  };
}
