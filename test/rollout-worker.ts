import type { Message, RunStore } from '@aworld-train/core'
import { openRunStore, resolveRun } from '@aworld-train/store'
// The module and not the package: the rest of it takes almost half of the start of a process, and the test starts a dozen.
import { createRolloutRunner } from '../packages/rollout/src/rollout-runner.ts'
import { memoryEnvironment } from '../packages/rollout/src/testing/memory-environment.ts'
import { memoryGateway } from '../packages/rollout/src/testing/memory-gateway.ts'
import { exactReward, program, rolloutRequest } from '../packages/rollout/src/testing/rollout-fixtures.ts'

/**
 * The same command over and over: resumes or starts a run below RUNS, runs rollouts of three turns in groups of eight and trains
 * each group in a step. Says `path PATH`, each write as it is acknowledged, and `end`.
 */
const [runPath, count] = process.argv.slice(2) as [string, string]
const manifest = { name: 'worker', configurationHash: 'hash' }
const { path } = await resolveRun({ runPath, ...manifest })
const store = await openRunStore({ path, manifest })
console.log(`path ${path}`)

const telling: RunStore = {
  ...store,
  async appendTurn(rollout, attempt, agent, turn) {
    await store.appendTurn(rollout, attempt, agent, turn)
    console.log(`turn ${rollout} ${attempt} ${turn.index}`)
  },
  async finish(episode) {
    await store.finish(episode)
    console.log(`result ${episode.rollout} ${episode.attempt}`)
  },
}
const gateway = memoryGateway((_messages, _session, call) => ({ content: call < 2 ? 'thinking' : 'yes', delayMs: 1 }))
const runner = createRolloutRunner({
  program: program(async (_, context) => {
    const messages: Message[] = [{ role: 'user', content: 'Go on.' }]
    for (let turn = 0; turn < 3; turn++) messages.push(await gateway.call(context.policy(), messages, context.signal))
    return { answer: messages.at(-1)!.content, messages }
  }),
  gateway,
  environment: memoryEnvironment(),
  reward: exactReward(),
  store: telling,
  answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
})

const groups = Number(count) / 8
for (let step = 0; step < groups; step++) {
  const requests = Array.from({ length: 8 }, (_, sample) => rolloutRequest(`train/${step}/${sample}`, { sample }))
  const episodes = await runner.runAll(requests, new AbortController().signal)
  if (store.steps().some((other) => other.step === step)) continue
  const rollouts = episodes.map(({ rollout }) => rollout)
  await store.commitStep({ step, weightVersion: step + 1, rollouts, metrics: {}, checkpoint: null })
  console.log(`step ${step} ${rollouts.join(' ')}`)
}
await runner.close()
await store.complete()
await store.close()
console.log('end')
