import type { RolloutList, RolloutRow, RolloutTrace, RunClient, RunSummary } from '@aworld-train/core'
import { clientOf, isAnswered, isTrained, readAll, useLoaded } from './data.ts'
import { type Group, groupsOf } from './groups-of.ts'
import { route } from './route.ts'

/** A rollout with its group: samples of the task in a step, or evaluations of the task. */
interface RolloutView {
  /** `null` if there is none, or if the file does not contain it. */
  readonly trace: RolloutTrace | null
  readonly group: Group | null
  readonly error: string | null
  /** False while it is being read for the first time. */
  readonly isRead: boolean
}

/** Reads both before anything is shown, so that nothing moves when the second arrives. */
export function useRollout(key: string, summary: Pick<RunSummary, 'evaluations'> | null, run = route.value.run): RolloutView {
  const loaded = useLoaded(
    `${run} rollout ${key}`,
    () => readRollout(clientOf(run), key),
    (read) => {
      const { trace, list } = read
      return trace?.row.split !== 'train' || !isTrained(list)
    },
  )
  const { value, error } = loaded
  const group = value && groupsOf(value.list, summary?.evaluations).find(({ rows }) => rows.some((row) => row.key === key))
  return { trace: value?.trace ?? null, group: group ?? null, error, isRead: isAnswered(loaded) }
}

async function readRollout(run: RunClient, key: string): Promise<{ trace: RolloutTrace | null; list: RolloutList }> {
  const trace = await run.rollout(key)
  if (trace) return { trace, list: await readAll(run, groupQuery(trace.row)) }
  // Our keys end with the number of the sample and begin with the name of their group.
  const list = await readAll(run, { group: key.split('/').slice(0, -1).join('/') })
  const row = list.rows.find((each) => each.key === key)
  return { trace, list: row ? await readAll(run, groupQuery(row)) : list }
}

const groupQuery = ({ split, group, taskId }: RolloutRow) => (split === 'train' ? { group } : { taskId, split })
