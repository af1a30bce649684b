import { z } from 'zod'

/** Token ids: an array of integers on the wire and on disk, an Int32Array in memory. */
export const TokenIds = z.codec(
  z.array(z.int().min(0)),
  z.custom<Int32Array>((value) => value instanceof Int32Array, 'Expected an Int32Array.'),
  {
    decode: (ids) => Int32Array.from(ids),
    encode: (ids) => Array.from(ids),
  },
)

/** Log-probabilities (natural log): an array of numbers on the wire, a Float32Array in memory. */
export const Logprobs = z.codec(
  z.array(z.number()),
  z.custom<Float32Array>((value) => value instanceof Float32Array, 'Expected a Float32Array.'),
  {
    decode: (values) => Float32Array.from(values),
    encode: (values) => Array.from(values),
  },
)

/** 0 or 1 for each token: an array on the wire, a Uint8Array in memory. */
export const LossMask = z.codec(
  z.array(z.int().min(0).max(1)),
  z.custom<Uint8Array>((value) => value instanceof Uint8Array, 'Expected a Uint8Array.'),
  {
    decode: (values) => Uint8Array.from(values),
    encode: (values) => Array.from(values),
  },
)

/** From token `fromToken` of a completion on, the policy had weights `version`. */
export const WeightVersionSpan = z.strictObject({
  fromToken: z.int().min(0),
  version: z.int().min(0),
})
export type WeightVersionSpan = z.infer<typeof WeightVersionSpan>

/** Marks a completion that an update fell into at an unknown token. Weights between these versions sampled it. */
export const MixedVersions = z.strictObject({ lowest: z.int().min(0), highest: z.int().min(0) })
export type MixedVersions = z.infer<typeof MixedVersions>
