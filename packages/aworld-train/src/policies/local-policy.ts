import { displayPath } from '@aworld-train/core'
import { createLocalEngine, probeMachine } from '@aworld-train/engines/local'
import type { LocalConfig } from '@aworld-train/training'
import type { Policy, PolicyKind, PolicyPlace } from './policy.ts'

/** The policy in the box. */
export const localPolicy: PolicyKind = {
  choose: (config, _extension, _model, place) => ({ settings: null, open: (model) => open(model, config, place) }),
}

async function open(model: string, config: LocalConfig, place?: PolicyPlace): Promise<Policy> {
  const { simd } = config.engine
  const { concurrency, training } = config
  await using stack = new AsyncDisposableStack()
  const threads = place ? sharedThreads(config.engine.threads ?? (await probeMachine()).threads, place) : config.engine.threads
  const options = { model, name: place?.name, simd, maxRows: concurrency, ...(threads === null ? {} : { threads }) }
  const local = stack.adopt(await createLocalEngine(options), (each) => each.close())
  const reference =
    training.klCoefficient === 0 || place?.trainable === false
      ? undefined
      : stack.adopt(await createLocalEngine({ model, simd, threads: 1, maxRows: 1 }), (each) => each.close())
  const { engine, learner, tier, config: shape } = local
  const owned = stack.move()
  return {
    engine,
    learner,
    reference: reference?.learner,
    tier,
    details: {
      policy: `${displayPath(model)}: ${shape.layers} layers, width ${shape.hiddenSize}, vocabulary ${shape.vocabularySize}, context ${shape.contextLength}`,
      engine: `WebAssembly, ${tier.simd} SIMD, ${tier.threads} ${tier.threads === 1 ? 'thread' : 'threads'}`,
    },
    saveModel: (directory) => local.saveModel(directory),
    close: () => owned.disposeAsync(),
  }
}

/** A sentence where there are fewer threads than policies. */
export const threadNotes = ({ engine: { threads }, policies }: LocalConfig): string[] => {
  const count = Object.keys(policies).length
  if (threads === null || threads >= count) return []
  return [`engine.threads is ${threads}, and each of the ${count} policies takes a thread of its own, so that ${count} compute.`]
}

/**
 * The threads of one of several policies: all of them together take no more than there are, and each takes one at least. An update lasts as
 * long as that of the policy with the most rows: of the source readers, with two threads, 0.4 s instead of the 0.3 s that one pool for all
 * could take, in a step of 4 s.
 */
const sharedThreads = (threads: number, { index, count }: PolicyPlace): number =>
  Math.max(1, Math.floor(threads / count) + (index < threads % count ? 1 : 0))
