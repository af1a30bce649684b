import type { EvaluationView, RolloutTrace, RunClient } from '@aworld-train/core'
import type { ExportedRows, ExportedRun, ExportedTraces } from './export-data.ts'
import { toPage } from './matches-query.ts'
import { vocabulariesOf } from './vocabularies.ts'

/** Reads the text of a part by its number. */
export type ReadPart = (part: number) => string

async function open<T>(base64: string): Promise<T> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  return (await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).json()) as T
}

/** A run in an exported file. */
export function createEmbeddedClient(run: ExportedRun, readPart: ReadPart): RunClient {
  const opened = new Map<number, Promise<unknown>>()
  function part<T>(number: number): Promise<T> {
    const promise = opened.get(number) ?? open<T>(readPart(number))
    opened.set(number, promise)
    return promise as Promise<T>
  }
  const lists = () => part<ExportedRows>(run.rows)

  return {
    summary: async () => run.summary,
    async rollouts(query) {
      const { rows, tasks, samples } = await lists()
      const page = toPage(rows, query)
      const keys = new Set(page.rows.map(({ key }) => key))
      return {
        ...page,
        tasks: Object.fromEntries(page.rows.flatMap(({ taskId }) => (tasks[taskId] ? [[taskId, tasks[taskId]]] : []))),
        samples: samples.filter(({ rollout }) => keys.has(rollout)),
      }
    },
    async rollout(key) {
      const { rows, tasks, parts, vocabularies } = await lists()
      const index = rows.findIndex((row) => row.key === key)
      const number = parts[index]
      if (number === undefined || number === null) return null
      const trace = (await part<ExportedTraces>(number))[key]
      if (!trace) return null
      const texts = vocabulariesOf(trace.invocations, (policy, id) => vocabularies[policy]?.[id])
      return { row: rows[index]!, task: tasks[rows[index]!.taskId] ?? null, ...trace, vocabularies: texts } satisfies RolloutTrace
    },
    evaluation: async () => (run.evaluation === null ? null : await part<EvaluationView>(run.evaluation)),
    async health(after) {
      const { samples, workers } = (await lists()).health
      return { samples: samples.filter(({ at }) => at > after), workers }
    },
    async *follow() {},
  }
}
