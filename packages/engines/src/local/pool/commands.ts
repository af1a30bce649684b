import { applyCommand } from '../learner/apply-command.ts'
import { gradientCommand } from '../learner/gradient-command.ts'
import { logprobsCommand } from '../learner/logprobs-command.ts'
import { packCommand } from '../learner/pack-command.ts'
import { decodeCommand } from '../sampler/decode-command.ts'
import { publishCommand } from '../sampler/publish-command.ts'
import type { Command } from './worker-context.ts'

/** Every command of the pool. To add one, add a row here; its arguments and results are in the arena. */
export const commands = {
  pack: packCommand,
  gradient: gradientCommand,
  apply: applyCommand,
  logprobs: logprobsCommand,
  decode: decodeCommand,
  publish: publishCommand,
} as const satisfies Record<string, Command>

export type CommandName = keyof typeof commands
export const commandNames = Object.keys(commands) as readonly CommandName[]
