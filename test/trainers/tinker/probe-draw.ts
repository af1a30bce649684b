import type { TinkerEngine } from '@aworld-train/engines/tinker'

/**
 * The largest change of a row's logprobs by an update with its publish, and then by the first draw, which is to change none: a service
 * may draw from an older path by loading that into the weights that are trained, and then samples and trains the same stale ones.
 * The first, since SkyRL loads a path only where it is another than the one before.
 */
export async function probeDraw({ engine, learner }: TinkerEngine): Promise<{ readonly byUpdate: number; readonly byDraw: number }> {
  const tokenIds = Int32Array.from({ length: 12 }, (_, at) => at + 5)
  const promptTokenIds = tokenIds.slice(0, 4)
  const score = async () => (await learner.logprobs([tokenIds], 1))[0]!
  const difference = (from: Float32Array, to: Float32Array) => Math.max(...from.map((value, at) => Math.abs(value - to[at]!)))
  const first = await score()
  await learner.update({
    samples: [
      {
        version: 2,
        tokenIds,
        lossMask: Uint8Array.from(tokenIds, (_, at) => Number(at >= promptTokenIds.length)),
        rolloutLogprobs: first,
        weightVersions: [{ fromToken: 0, version: 0 }],
        reward: 1,
        advantage: 1,
        group: 'probe',
        agent: 'probe',
        trajectory: 'probe',
        policy: 'probe',
        provenance: { rollout: 'probe', attempt: 0, taskId: 'probe', sample: 0, turns: [0] },
      },
    ],
    loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.2, klCoefficient: 0, entropyCoefficient: 0, aggregation: 'token-mean' },
    optimizer: { learningRate: 1e-2, betas: [0.9, 0.95], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 },
  })
  await learner.publish()
  const published = await score()
  await engine.generate(
    {
      promptTokenIds,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 },
      random: { seed: 1, task: 'probe', sample: 0, turn: 0 },
      affinity: 'probe',
    },
    new AbortController().signal,
  )
  return { byUpdate: difference(first, published), byDraw: difference(published, await score()) }
}
