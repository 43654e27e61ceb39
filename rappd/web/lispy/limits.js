/** Limits of a LisPy program; the same as in `agents/runtimes/lispy/limits.py`. */

export const PUBLISHED = Object.freeze({
  max_steps: 100_000,
  max_call_depth: 128,
  max_reader_depth: 256,
  max_source_bytes: 1 << 20,
  max_collection_items: 100_000,
  max_output_bytes: 1 << 20,
  max_cells: 1_000_000,
  max_integer_bits: 65_536,
});

/** Default maximum for the limits of an image from elsewhere. */
export const CEILING = Object.freeze({
  max_steps: 100_000_000,
  max_call_depth: 10_000,
  max_reader_depth: 1_000,
  max_source_bytes: 1 << 24,
  max_collection_items: 1_000_000,
  max_output_bytes: 1 << 24,
  max_cells: 10_000_000,
  max_integer_bits: 1 << 18,
});

/** The limits in `given`, the rest as published. Throws RangeError for a wrong name or number. */
export function limitsOf(given) {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(PUBLISHED, name)) throw new RangeError(`there is no limit ${name}`);
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be a whole number`);
  }
  return Object.freeze({ ...PUBLISHED, ...given });
}

/** True if no limit is above that in `ceiling`. */
export const within = (limits, ceiling) =>
  Object.keys(PUBLISHED).every((name) => limits[name] <= ceiling[name]);
