import type { DatabaseSync } from 'node:sqlite'
import type { SampleSummary, StepSample } from '@aworld-train/core'
import { fromLittleEndian, toLittleEndian } from './little-endian.ts'

/** Prepares the write of the rows of a step, each with the id of its rollout. */
export function createSampleWrites(
  database: DatabaseSync,
): (step: number, samples: readonly (readonly [id: number, StepSample])[]) => void {
  const insert = database.prepare('INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  return (step, samples) => {
    for (const [position, [id, { agent, trajectory, turns, tokens, advantage, reason, trainerLogprobs }]] of samples.entries())
      insert.run(
        step,
        position,
        id,
        agent,
        trajectory,
        JSON.stringify(turns),
        tokens,
        advantage,
        reason,
        trainerLogprobs && toLittleEndian(trainerLogprobs),
      )
  }
}

export type SampleTokens = Pick<StepSample, 'agent' | 'reason' | 'tokens'>

export interface SampleReads {
  /** The rows of a step, of a rollout, or of a rollout in a step. */
  rows(filter: { step?: number | undefined; rollout?: string | undefined }): StepSample[]
  /** The rows of these rollouts, without the logprobs, which are most of their bytes. */
  of(rollouts: readonly string[]): SampleSummary[]
  /** Tokens of the rows of a step for each agent and reason. */
  tokens(step: number): SampleTokens[]
  /** Tokens of the rows of all steps. */
  allTokens(): SampleTokens[]
}

export function createSampleReads(database: DatabaseSync): SampleReads {
  const summary = 's.step, r.key, s.agent, s.trajectory, s.turns, s.tokens, s.advantage, s.reason'
  const columns = `${summary}, s.trainer_logprobs AS logprobs`
  const from = 'FROM samples s JOIN rollouts r ON r.id = s.rollout'
  const ofStep = database.prepare(`SELECT ${columns} ${from} WHERE s.step = ? ORDER BY s.position`)
  const ofRollout = database.prepare(`SELECT ${columns} ${from} WHERE r.key = ? ORDER BY s.step, s.position`)
  // CROSS JOIN keeps the order: first the named rollouts, then only their rows.
  const ofRollouts = database.prepare(
    `SELECT ${summary} FROM json_each(?) AS named CROSS JOIN rollouts r ON r.key = named.value CROSS JOIN samples s ON s.rollout = r.id ORDER BY s.step, s.position`,
  )
  const tokensWhere = (filter: string) =>
    database.prepare(`SELECT agent, reason, sum(tokens) AS tokens FROM samples ${filter} GROUP BY agent, reason`)
  const tokensOfStep = tokensWhere('WHERE step = ?')
  const tokensOfAll = tokensWhere('')
  return {
    rows({ step, rollout }) {
      const rows = (rollout === undefined ? ofStep.all(step ?? null) : ofRollout.all(rollout)) as unknown as SampleRow[]
      return rows.filter((row) => step === undefined || row.step === step).map(fromRow)
    },
    of: (rollouts) => (ofRollouts.all(JSON.stringify(rollouts)) as unknown as SummaryRow[]).map(toSummary),
    tokens: (step) => tokensOfStep.all(step) as unknown as SampleTokens[],
    allTokens: () => tokensOfAll.all() as unknown as SampleTokens[],
  }
}

interface SummaryRow extends Pick<StepSample, 'step' | 'agent' | 'trajectory' | 'tokens' | 'advantage' | 'reason'> {
  readonly key: string
  readonly turns: string
}
interface SampleRow extends SummaryRow {
  readonly logprobs: Uint8Array | null
}

const toSummary = ({ key, turns, ...row }: SummaryRow): SampleSummary => ({ rollout: key, ...row, turns: JSON.parse(turns) as number[] })

function fromRow({ logprobs, ...row }: SampleRow): StepSample {
  return {
    ...toSummary(row),
    trainerLogprobs: logprobs && fromLittleEndian(logprobs, new Float32Array(logprobs.length / 4)),
  }
}
