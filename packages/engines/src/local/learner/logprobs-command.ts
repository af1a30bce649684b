import { forward } from '../model/forward.ts'
import { runHead, selectPositions } from '../model/head.ts'
import { createPassContext, passOf } from '../model/pass.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import { setting } from './settings.ts'

/** Writes the logprob of every token but the first of each row to `batch.logprobs`. */
export function logprobsCommand(worker: WorkerContext): void {
  const { layout, views } = worker
  const context = createPassContext(worker)
  const passes = views.i32[layout.batch.header / 4]!
  const inverseTemperature = views.f64[layout.settings / 8 + setting.inverseTemperature]!
  const stats = context.scratch.head.stats / 4
  const logprobs = layout.batch.logprobs / 4
  const onBlock = (tokens: readonly number[]): void => {
    tokens.forEach((token, i) => {
      views.f32[logprobs + token] = views.f32[stats + 4 * i + 2]!
    })
  }
  for (let index = worker.nextTask(); index < passes; index = worker.nextTask()) {
    const batch = passOf(worker, index)
    const tokens = selectPositions(context, batch, () => true)
    if (tokens.length === 0) continue
    forward(context, batch, tokens.length)
    runHead(context, tokens, { inverseTemperature, onBlock })
  }
}
