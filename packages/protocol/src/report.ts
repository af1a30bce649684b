import { z } from 'zod'
import { Sampling } from './sampling.ts'
import { TokenLedger } from './token-ledger.ts'
import { TokenReport } from './token-report.ts'

/** Mean reward over the tasks of an evaluation, with a 95 % interval, which lies in [0, 1] where all rewards do. */
export const EvaluationResult = z.strictObject({
  name: z.string(),
  step: z.int(),
  tasks: z.int(),
  /** Of all tasks. */
  rollouts: z.int(),
  /** Rollouts without a result or a reward, which count as reward 0. */
  failed: z.int(),
  reward: z.number(),
  interval: z.tuple([z.number(), z.number()]),
  sampling: Sampling,
  byKind: z.record(z.string(), z.strictObject({ rollouts: z.int(), reward: z.number() })),
})
export type EvaluationResult = z.infer<typeof EvaluationResult>

/** What a run leaves in `report.json`: what the terminal said, for programs. */
export const RunReport = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  path: z.string(),
  status: z.enum(['finished', 'stopped', 'failed']),
  seed: z.int(),
  engine: z.string(),
  tier: z.record(z.string(), z.unknown()),
  before: EvaluationResult.nullable(),
  after: EvaluationResult.nullable(),
  greedyBefore: EvaluationResult.nullable(),
  greedyAfter: EvaluationResult.nullable(),
  curve: z.array(z.strictObject({ step: z.int(), reward: z.number(), metrics: z.record(z.string(), z.number()) })),
  ledger: TokenLedger.nullable(),
  /** Over the calls of all processes of the run. */
  tokenReport: TokenReport.optional(),
  /**
   * Over all processes of the run; a killed process may lack what it counted in its last half second. Calls are counted on both
   * sides of each wire: `agent` counts those of rollouts with a result, `gateway` and `engine` those of superseded attempts too.
   */
  counts: z.strictObject({
    rollouts: z.int(),
    /** Of rollouts with a result: more than these where some began again. Reports from before it was counted lack it. */
    attempts: z.int().optional(),
    /** Attempts that were lost with their workers, and begun again. Reports from before it was counted lack it. */
    losses: z.int().optional(),
    episodesByStopReason: z.record(z.string(), z.int()),
    modelCalls: z.strictObject({ agent: z.int(), gateway: z.int(), engine: z.int() }),
    /**
     * `asked` counts the calls in answers of models, and `agent` those that agents made here: of these, `environment` went to servers,
     * which counted `servers`, and `functions` were answered in the process. Calls that an agent of another framework runs by itself are in `asked` alone.
     */
    toolCalls: z.strictObject({ asked: z.int(), agent: z.int(), environment: z.int(), functions: z.int(), servers: z.int().nullable() }),
  }),
  /** Over all processes of the run; no time is counted while none of them works. What is in no other phase is in `other`. */
  times: z.strictObject({ wallMs: z.number(), cpuMs: z.number(), phasesMs: z.record(z.string(), z.number()) }),
  checkpoints: z.array(z.string()),
  /** By kind, over all processes of the run: how often, and the first messages. */
  warnings: z.array(z.strictObject({ code: z.string(), count: z.int().min(1), messages: z.array(z.string()).min(1) })).default([]),
  versions: z.record(z.string(), z.string()),
})
export type RunReport = z.infer<typeof RunReport>
