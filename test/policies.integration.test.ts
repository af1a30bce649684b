// What a training has beside its policies holds with two of them as with one.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PolicyLoss, RunEvent, RunReport } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject, openTrainer, type TinyProject, taskLines } from './support/tiny-project.ts'

const names = ['lead', 'reader']
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'policies-'))
  for (const [index, name] of names.entries()) await makeTinyModel(join(folder, name), { seed: 5 + index })
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

/** A reader whose answer a lead reads; in rollouts whose key begins as the file `alone` says, the reader works by itself. */
const agentText = `import { existsSync, readFileSync } from 'node:fs'

async function run(task, { rollout, policy, signal }) {
  const ask = async (agent, content) => {
    const { baseUrl, apiKey, model } = policy(agent)
    const response = await fetch(baseUrl + '/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
      signal,
    })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()).choices[0].message.content
  }
  const page = await ask('reader', task.input)
  const alone = new URL('./alone', import.meta.url)
  const isAlone = existsSync(alone) && rollout.startsWith(readFileSync(alone, 'utf8'))
  const answer = isAlone ? page : await ask('lead', task.input + page)
  return { answer, messages: [{ role: 'assistant', content: answer }] }
}
export const agent = { agents: ['lead', 'reader'].map((name) => ({ name, trainable: true, policy: name })), run }
`

/** Twelve rollouts of three groups a step, with a score that varies whatever tiny models say. */
const projectOf = (training: object = {}, files: Readonly<Record<string, string>> = {}, threads = 2) =>
  makeProject(folder, '', {
    definition: { rewardFunc: './reward.ts#score' },
    config: {
      model: undefined,
      policies: { lead: { path: join(folder, 'lead') }, reader: { path: join(folder, 'reader'), learningRate: 0.01 } },
      engine: { threads, simd: 'plain' },
      training: { promptsPerStep: 3, learningRate: 5e-3, ...training },
      evaluation: { before: false },
      concurrency: 4,
    },
    files: {
      'agent.ts': agentText,
      'reward.ts': 'export const score = (source: string, answer: string) => (answer.length % 3) / 2\n',
      'train.jsonl': `${taskLines(6)}\n`,
      ...files,
    },
  })

async function train(project: TinyProject, { stopAfter, loss }: { stopAfter?: number; loss?: PolicyLoss } = {}) {
  const controller = new AbortController()
  const events: RunEvent[] = []
  const onEvent = (event: RunEvent) => {
    events.push(event)
    if (event.type === 'step-end' && event.step === stopAfter) controller.abort(new Error('enough'))
  }
  const definition = (await import(join(project.folder, 'aworld-train.config.ts'))).default
  const config = loss && { ...definition.config, training: { ...definition.config.training, loss } }
  const trainer = await openTrainer(project, { onEvent, ...(config && { config }) })
  try {
    const report = await trainer.train(controller.signal)
    expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
    return { report: report as RunReport, events, error: null }
  } catch (error) {
    return { report: null, events, error }
  }
}

const trained = async (...input: Parameters<typeof train>) => {
  const { report, error } = await train(...input)
  if (!report) throw error
  // Both policies learn in every step.
  for (const { metrics } of report.curve)
    for (const name of names) expect(metrics[`policy/${name}/gradNorm`], JSON.stringify(metrics)).toBeGreaterThan(0)
  return report.curve.map(
    ({ metrics }) =>
      (metric: string) =>
        metrics[metric]!,
  )
}

const fileOf = async ({ runs }: TinyProject, ...path: string[]) => readFileSync(join((await runs())[0]!, 'checkpoints', ...path))

/** Weights and optimiser of both policies in every checkpoint. */
async function hashesOf(project: TinyProject): Promise<Record<string, string>> {
  const [run] = await project.runs()
  const hashes: Record<string, string> = {}
  for (const step of readdirSync(join(run!, 'checkpoints')).sort())
    for (const name of names)
      for (const file of ['model.safetensors', 'optimizer.safetensors'])
        hashes[join(step, name, file)] = createHash('sha256')
          .update(await fileOf(project, step, name, file))
          .digest('hex')
  return hashes
}

it('trains two policies on groups ahead of their step, with the logprobs of each checked by weight version', async () => {
  const { report, error } = await train(await projectOf({ steps: 4, maxStaleness: 1 }))
  expect(error).toBeNull()
  // Which groups a step has is a matter of time.
  const most = (metric: string) => Math.max(...report!.curve.flatMap(({ metrics }) => metrics[metric] ?? []))
  expect(most('staleness')).toBeGreaterThan(0)
  expect(most('truncatedRatios')).toBeGreaterThanOrEqual(0)
  expect(most('maxLogprobDifference')).toBeLessThan(1e-4)
  for (const name of names) expect(most(`policy/${name}/gradNorm`)).toBeGreaterThan(0)
})

it('keeps each policy near its own start', async () => {
  const [first, second] = await trained(await projectOf({ klCoefficient: 0.1 }))
  for (const name of names) {
    expect(first!(`policy/${name}/kl`)).toBeLessThan(1e-9)
    expect(second!(`policy/${name}/kl`)).toBeGreaterThan(1e-9)
  }
})

it('asks a loss of one’s own for the rows of one policy at a time', async () => {
  const loss: PolicyLoss = (rows) =>
    rows.map(({ logprobs, sample }) => ({
      loss: 0,
      gradient: Array.from(logprobs, () => -sample.advantage! / rows.length),
      metrics: { ofLead: sample.policy === 'lead' ? 1 : 0 },
    }))
  for (const metric of await trained(await projectOf(), { loss })) {
    expect(metric('policy/lead/loss/ofLead')).toBe(1)
    expect(metric('policy/reader/loss/ofLead')).toBe(0)
  }
})

it('updates each policy for every few prompts in every pass, and counts each token once', async () => {
  const project = await projectOf({ promptsPerUpdate: 1, passes: 2, dropZeroVariance: false })
  const steps = await trained(project)
  for (const metric of steps) {
    expect(metric('updates')).toBe(6)
    expect(metric('policy/lead/trainedTokens') + metric('policy/reader/trainedTokens')).toBe(metric('trainedTokens'))
  }
  for (const name of names) {
    const checkpoint = JSON.parse(String(await fileOf(project, 'step-000002', name, 'checkpoint.json')))
    expect(checkpoint.step).toBe(12)
  }
})

it('ends a run in which the update of one policy is not finite, publishes none, and goes on by the same command', async () => {
  const files = {
    'loss.ts': `import { existsSync } from 'node:fs'
export const loss = (rows) => rows.map(({ logprobs, sample: { policy, provenance, advantage } }) => {
  const isBad = policy === 'reader' && provenance.rollout.startsWith('train/2/') && existsSync(new URL('./bad', import.meta.url))
  return { loss: 0, gradient: Array.from(logprobs, () => isBad ? 3e38 : -advantage / rows.length) }
})
`,
  }
  const training = { steps: 3, loss: './loss.ts#loss' }
  const whole = await projectOf(training, files)
  await trained(whole)
  const project = await projectOf(training, { ...files, bad: '' })
  const { error, events } = await train(project)
  expect(error).toMatchObject({ code: 'TRAINER_NOT_FINITE', message: expect.stringContaining('Policy "reader": ') })
  // The weights that the run started from, and those of step 1.
  expect(events.filter(({ type }) => type === 'weights-updated')).toHaveLength(2)
  expect(events.filter(({ type }) => type === 'step-end')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'failed' })
  rmSync(join(project.folder, 'bad'))
  await trained(project)
  expect(await hashesOf(project)).toEqual(await hashesOf(whole))
})

it('leaves a policy that has no sample in a step as it is, also after a resume', async () => {
  const files = { alone: 'train/2/' }
  const whole = await projectOf({ steps: 3 }, files)
  const { report } = await train(whole)
  const hashes = await hashesOf(whole)
  for (const file of ['model.safetensors', 'optimizer.safetensors']) {
    expect(hashes[join('step-000002', 'lead', file)]).toBe(hashes[join('step-000001', 'lead', file)])
    expect(hashes[join('step-000003', 'lead', file)]).not.toBe(hashes[join('step-000002', 'lead', file)])
    expect(hashes[join('step-000002', 'reader', file)]).not.toBe(hashes[join('step-000001', 'reader', file)])
  }
  expect(report!.curve[1]!.metrics).toHaveProperty('policy/reader/gradNorm')
  expect(report!.curve[1]!.metrics).not.toHaveProperty('policy/lead/gradNorm')
  const versions = await Promise.all(
    names.map(async (name) => JSON.parse(String(await fileOf(whole, 'step-000003', name, 'checkpoint.json'))).weightVersion),
  )
  expect(versions[0]).toBe(versions[1])
  // Its second start repeats the step from the checkpoint before, where the one policy is behind the other.
  const stopped = await projectOf({ steps: 3 }, files)
  expect((await train(stopped, { stopAfter: 2 })).report).toBeNull()
  rmSync(join((await stopped.runs())[0]!, 'checkpoints', 'step-000002'), { recursive: true })
  const resumed = await train(stopped)
  expect(resumed.events.find(({ type }) => type === 'run-start')).toMatchObject({ resumedFromStep: 2 })
  expect(resumed.report!.curve.map(({ reward }) => reward)).toEqual(report!.curve.map(({ reward }) => reward))
  expect(await hashesOf(stopped)).toEqual(Object.fromEntries(Object.entries(hashes).filter(([place]) => !place.startsWith('step-000002'))))
})

it('shares threads out among the policies, and says where there are too few', async () => {
  const threadsOf = async (threads: number) => {
    const { report, events } = await train(await projectOf({ steps: 1 }, {}, threads))
    const notes = events.flatMap((event) => (event.type === 'warning-raised' && event.code === 'CONFIG_NOTE' ? [event.message] : []))
    return { tier: report!.tier, notes }
  }
  const tierOf = (lead: number, reader: number) => ({ lead: { threads: lead }, reader: { threads: reader } })
  expect(await threadsOf(3)).toMatchObject({ tier: tierOf(2, 1), notes: [] })
  const note = 'engine.threads is 1, and each of the 2 policies takes a thread of its own, so that 2 compute.'
  expect(await threadsOf(1)).toMatchObject({ tier: tierOf(1, 1), notes: [note] })
})

it('goes on from the checkpoint before where that of one policy is damaged', async () => {
  const whole = await projectOf({ steps: 3 })
  await trained(whole)
  const stopped = await projectOf({ steps: 3 })
  await train(stopped, { stopAfter: 2 })
  const damaged = join((await stopped.runs())[0]!, 'checkpoints', 'step-000002', 'reader', 'optimizer.safetensors')
  writeFileSync(damaged, readFileSync(damaged).subarray(0, -1))
  const { events, error } = await train(stopped)
  expect(error).toBeNull()
  const warning = events.find((event) => event.type === 'warning-raised' && event.code === 'CHECKPOINT_CORRUPT')
  expect(warning).toMatchObject({ message: expect.stringContaining(`Policy "reader": `) })
  expect(String((warning as { message: string }).message)).toContain(damaged)
  const last = ([place]: readonly [string, string]) => place.startsWith('step-000003')
  expect(Object.entries(await hashesOf(stopped)).filter(last)).toEqual(Object.entries(await hashesOf(whole)).filter(last))
})
