/** Origin of a verl key's value. */
export type KeyOrigin = 'user' | 'default' | 'derived'

/** One of verl's keys with its value: plain JSON, or text with `${…}` that OmegaConf resolves. */
export interface VerlKey {
  /** Dotted path, such as `actor_rollout_ref.rollout.n`. */
  readonly path: string
  readonly value: unknown
  /** The value with its references replaced, if it has any and verl is installed. */
  readonly resolved?: unknown
  readonly origin: KeyOrigin
  /** For `user`, the place of the key; for `derived`, the reason for its value. */
  readonly why: string
}
