import type { TinkerEngine } from '@aworld-train/engine-tinker'

/**
 * The largest change of a row's logprobs by an update with its publish, and then by one draw, which is to change none: a service may
 * draw from an older path by loading that into the weights that are trained, and then samples and trains the same stale ones.
 */
export async function probeDraw({ engine, learner }: TinkerEngine): Promise<{ readonly byUpdate: number; readonly byDraw: number }> {
  const promptTokenIds = Int32Array.of(5, 6, 7, 8)
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 }
  const draw = (turn: number) =>
    engine.generate(
      { promptTokenIds, sampling, random: { seed: 1, task: 'probe', sample: 0, turn }, affinity: 'probe' },
      new AbortController().signal,
    )
  const { tokenIds, logprobs } = await draw(0)
  const row = Int32Array.of(...promptTokenIds, ...tokenIds)
  const score = async () => (await learner.logprobs([row], 1))[0]!
  const difference = (from: Float32Array, to: Float32Array) => Math.max(...from.map((value, at) => Math.abs(value - to[at]!)))
  const first = await score()
  await learner.update({
    samples: [
      {
        version: 1,
        tokenIds: row,
        lossMask: Uint8Array.from(row, (_, at) => Number(at >= promptTokenIds.length)),
        rolloutLogprobs: Float32Array.of(...promptTokenIds.map(() => 0), ...logprobs),
        weightVersions: [{ fromToken: 0, version: engine.weightVersion() }],
        reward: 1,
        advantage: 1,
        group: 'probe',
        agent: 'probe',
        policy: 'probe',
        provenance: { rollout: 'probe', attempt: 0, taskId: 'probe', sample: 0, turns: [0] },
      },
    ],
    loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.2, klCoefficient: 0, entropyCoefficient: 0, aggregation: 'token-mean' },
    optimizer: { learningRate: 1e-2, betas: [0.9, 0.95], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 },
  })
  await learner.publish()
  const before = await score()
  await draw(1)
  return { byUpdate: difference(first, before), byDraw: difference(before, await score()) }
}
