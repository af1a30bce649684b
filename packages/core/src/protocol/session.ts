import { z } from 'zod'
import { AgentEndpoint } from './attempt.ts'
import { ErrorRecord, Trajectory } from './episode.ts'
import { Sampling } from './sampling.ts'

const hourMs = 3_600_000

/** Asks a gateway for the URLs of one attempt, for agents that run anywhere and in any language. */
export const SessionOpening = z.strictObject({
  /** Name of the record. Default: random. */
  rollout: z.string().min(1).max(512).optional(),
  attempt: z.int().min(0).default(0),
  /** With `sample`, part of the random key: equal ones sample equal tokens. Default: the rollout's name. */
  taskId: z.string().min(1).max(512).optional(),
  sample: z.int().min(0).default(0),
  /** Model for agents without one of their own. Default: the gateway's default. */
  policy: z.string().min(1).optional(),
  sampling: Sampling.extend({ maxTokens: z.int().min(1).default(1024) }).prefault({}),
  agents: z
    .array(z.strictObject({ name: z.string().min(1).max(512), trainable: z.boolean().default(true), model: z.string().min(1).optional() }))
    .min(1)
    .max(256)
    .default([{ name: 'agent', trainable: true }]),
  maxTurns: z.int().min(1).optional(),
  /** Tokens sampled over all turns. */
  maxTokens: z.int().min(1).optional(),
  /** US dollars spent on frozen models. */
  maxCost: z.number().min(0).optional(),
  maxFrozenTokens: z.int().min(0).optional(),
  /** Milliseconds after which the URLs end by themselves. */
  timeoutMs: z
    .int()
    .min(1)
    .max(24 * hourMs)
    .default(hourMs),
})
export type SessionOpening = z.infer<typeof SessionOpening>

/** An open session: the address and key for each agent's client. A `baseUrl` is an address and a secret in one. */
export const SessionOpened = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  /** Unix milliseconds. */
  expiresAt: z.number(),
  agents: z.record(z.string(), AgentEndpoint),
})
export type SessionOpened = z.infer<typeof SessionOpened>

/** The record of a session: partial while it is open, final once it is closed. */
export const SessionRecord = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  status: z.enum(['open', 'expired', 'closed']),
  rollout: z.string(),
  attempt: z.int().min(0),
  trajectories: z.array(Trajectory),
  /** The first limit or policy failure of the session; `null` if there was none. */
  failure: ErrorRecord.nullable(),
})
export type SessionRecord = z.infer<typeof SessionRecord>
