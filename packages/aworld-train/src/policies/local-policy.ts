import { displayPath } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engines/local'
import type { LocalConfig } from '@aworld-train/training'
import type { Policy, PolicyKind } from './policy.ts'

/** The policy in the box. */
export const localPolicy: PolicyKind = {
  choose: (config) => ({ settings: null, open: (model) => open(model, config) }),
}

async function open(model: string, { engine: { simd, threads }, concurrency, training }: LocalConfig): Promise<Policy> {
  await using stack = new AsyncDisposableStack()
  const options = { model, simd, maxRows: concurrency, ...(threads === null ? {} : { threads }) }
  const local = stack.adopt(await createLocalEngine(options), (each) => each.close())
  const reference =
    training.klCoefficient === 0
      ? undefined
      : stack.adopt(await createLocalEngine({ model, simd, threads: 1, maxRows: 1 }), (each) => each.close())
  const { engine, learner, tier, config } = local
  const owned = stack.move()
  return {
    engine,
    learner,
    reference: reference?.learner,
    tier,
    details: {
      policy: `${displayPath(model)}: ${config.layers} layers, width ${config.hiddenSize}, vocabulary ${config.vocabularySize}, context ${config.contextLength}`,
      engine: `WebAssembly, ${tier.simd} SIMD, ${tier.threads} threads`,
    },
    saveModel: (directory) => local.saveModel(directory),
    close: () => owned.disposeAsync(),
  }
}
