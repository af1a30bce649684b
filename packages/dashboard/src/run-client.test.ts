import { randomBytes } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunClient } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { expect, it } from 'vitest'
import { createEmbeddedClient } from './embedded-client.ts'
import type { ExportedRun } from './export-data.ts'
import { exportRun } from './export-run.ts'
import { openFolder } from './folder-client.ts'
import { createHttpRuns } from './http-client.ts'
import { listRun } from './list-runs.ts'
import { openDashboard } from './open-dashboard.ts'
import { hostile, nameWith, writeRun } from './testing/write-run.ts'
import { writeSwarm } from './testing/write-swarm.ts'

/** The client of an exported file, read as a browser reads it. */
async function readExport(file: string): Promise<RunClient> {
  const html = await readFile(file, 'utf8')
  const textOf = (id: string) => new RegExp(`id="${id}">([^<]*)<`).exec(html)![1]!
  const { runs } = JSON.parse(textOf('data')) as { runs: ExportedRun[] }
  return createEmbeddedClient(runs[0]!, (part) => textOf(`part-${part}`))
}

it('answers alike from a folder, over HTTP and from an exported file', async () => {
  await using run = await writeRun({ text: hostile })
  const folder = await openFolder(run.path)
  const dashboard = await openDashboard({ runs: [run.path] })
  try {
    const file = join(run.below, 'run.html')
    expect(await exportRun([run.path], file)).toMatchObject({ rollouts: 14, whole: 14 })
    const { origin, searchParams } = new URL(dashboard.url)
    const others = [createHttpRuns(origin, searchParams.get('token')!).run(run.id), await readExport(file)]
    for (const other of others) {
      expect(await other.summary()).toEqual(plain(await folder.summary()))
      for (const query of [
        {},
        { split: 'train', step: 2 },
        { group: 'train/1/0' },
        { minReward: 1, kind: nameWith('hard', hostile) },
        { stopReason: 'failed' as const },
        { finishedAfter: 3, limit: 2 },
        { taskId: 'held-out-1' },
      ]) {
        const { next, ...page } = await other.rollouts(query)
        const { next: nextOfFolder, ...expected } = await folder.rollouts(query)
        expect(page).toEqual(plain(expected))
        expect(next === null).toBe(nextOfFolder === null)
      }
      for (const key of ['train/2/0/0', 'train/2/0/1', 'evaluation/before/0/0', 'nothing'])
        expect(await other.rollout(key)).toEqual(plain(await folder.rollout(key)))
      const { samples, workers } = await folder.health(0)
      expect(samples.map(({ calls }) => calls)).toEqual([0, 1, 2, 3])
      expect(workers.map(({ name, status }) => [name, status])).toEqual([
        ['gpu-1/0', 'connected'],
        [`gpu-2/0 ${hostile}`, 'lost'],
      ])
      for (const after of [0, samples[1]!.at, samples[3]!.at]) expect(await other.health(after)).toEqual(plain(await folder.health(after)))
    }
    const seen: string[] = []
    const followed = others[0]!.follow(0, AbortSignal.timeout(60_000))
    for await (const { event } of followed) {
      seen.push(event.type)
      if (event.type === 'run-end') break
    }
    expect(seen.filter((type) => type === 'rollout-end')).toHaveLength(14)
  } finally {
    await dashboard.close()
    folder.close()
  }
})

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

it('counts rewards, tokens and what became of them from the rollouts', async () => {
  await using run = await writeRun()
  const folder = await openFolder(run.path)
  try {
    const { steps, evaluations, ledger, rollouts, stopReasons, errors, status, repeated } = await folder.summary()
    expect({ status, rollouts, stopReasons }).toEqual({
      status: 'finished',
      rollouts: { queued: 0, running: 0, done: 14, cancelled: 0, interrupted: 0 },
      stopReasons: { completed: 13, failed: 1 },
    })
    expect([repeated.count, repeated.first.map(({ key, attempt }) => [key, attempt])]).toEqual([1, [['train/2/1/1', 1]]])
    expect(errors).toMatchObject([{ code: 'REWARD_FAILED', count: 1, rollout: 'train/2/0/1', source: null }])
    expect(steps.map(({ step, reward, groups, weightVersion }) => ({ step, reward, groups, weightVersion }))).toEqual([
      { step: 1, reward: 0.75, groups: { right: 1, mixed: 1, wrong: 0 }, weightVersion: 2 },
      { step: 2, reward: 0.75, groups: { right: 1, mixed: 1, wrong: 0 }, weightVersion: 3 },
    ])
    expect(evaluations.map(({ name, step, tasks, reward }) => ({ name, step, tasks, reward }))).toEqual([
      { name: 'before', step: 0, tasks: 3, reward: 1 / 3 },
      { name: 'after', step: 2, tasks: 3, reward: 2 / 3 },
    ])
    const rows = (await folder.rollouts({ limit: 100 })).rows
    expect(ledger.sampled).toBe(rows.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0))
    // Only the helper's tokens, which no step accounts for, are left.
    expect(ledger.unexplained).toBe(8 * 'help'.length)
    expect(ledger.sampled).toBe(
      ledger.trained + ledger.unexplained + Object.values(ledger.untrained).reduce((sum, tokens) => sum + tokens, 0),
    )
  } finally {
    folder.close()
  }
})

it('shows a rollout that runs with the turns so far, and a rollout that comes while it is open', async () => {
  await using run = await writeRun({ isLive: true })
  const folder = await openFolder(run.path)
  try {
    const ofEarlierProcess = { ledger: { sampled: 1 }, times: { wallMs: 1 }, tokenReport: { unparsed: { 'call-invalid': 7 } }, curve: [] }
    await writeFile(join(run.path, 'report.json'), JSON.stringify(ofEarlierProcess))
    await run.store.setState('warnings', [{ code: 'CONFIG_NOTE', count: 3, messages: ['Mind the gap.', 'And the step.'] }])
    expect(await folder.summary()).toMatchObject({
      warnings: [{ code: 'CONFIG_NOTE', count: 3, message: 'Mind the gap.' }],
      status: 'running',
      rollouts: { running: 1, done: 11 },
      evaluations: [{ name: 'before' }],
      times: null,
      unparsed: { byKind: {}, rollouts: [] },
    })
    expect(listRun('run', run.path)).toMatchObject({ problem: null, status: 'running', steps: 2, rollouts: 12, before: 1 / 3, after: null })
    const trace = await folder.rollout('train/3/0/0')
    expect(trace?.row.status).toBe('running')
    expect(trace?.invocations.map(({ agent, turns }) => [agent, turns.length])).toEqual([['solver', 1]])
    await run.store.queue({ ...run.store.rollout('train/3/0/0')!.request, key: 'train/3/0/1' })
    expect(await folder.summary()).toMatchObject({ rollouts: { queued: 1, running: 1, done: 11 } })
  } finally {
    folder.close()
  }
})

it('says of each token where it came from, what it was given and what the trainer gave it', async () => {
  await using run = await writeRun()
  const folder = await openFolder(run.path)
  try {
    const trace = (await folder.rollout('train/1/0/1'))!
    const [first, second] = trace.invocations[0]!.turns
    const texts = (ids: readonly number[]) => ids.map((id) => trace.vocabularies['policy']![id]).join('')
    expect(texts(first!.promptIds)).toBe('<|im_start|>user\nWhat is task-0? six<|im_end|>')
    expect(first!.promptOrigins.filter((origin) => origin === 'user')).toHaveLength('What is task-0? six'.length)
    expect(texts(second!.promptIds.filter((_, at) => second!.promptOrigins[at] === 'tool'))).toBe('six')
    expect(texts(second!.completionIds)).toBe('six 0')
    expect(second!.unparsed).toEqual(['call-invalid'])
    expect([second!.isTrained, second!.advantage, second!.trainerLogprobs]).toEqual([true, -0.7, [-0.11, -0.11, -0.11, -0.11, -0.11]])
    expect(trace.invocations[1]!.turns[0]).toMatchObject({ isTrained: false, advantage: null, reason: null })
  } finally {
    folder.close()
  }
})

it('writes an id that is half a character as its byte', async () => {
  await using run = await writeRun({ text: 'Grüße 👋' })
  const folder = await openFolder(run.path)
  try {
    const vocabulary = (await folder.rollout('train/1/0/0'))!.vocabularies['policy']!
    const texts = [...Buffer.from('ü👋r')].map((id) => vocabulary[id])
    expect(texts).toEqual(['\\xc3', '\\xbc', '\\xf0', '\\x9f', '\\x91', '\\x8b', 'r'])
  } finally {
    folder.close()
  }
})

it('reads the tokens of each policy in its own words, while a rollout runs, after it and in a file', async () => {
  for (const isLive of [true, false]) {
    await using run = await writeRun({ hasReader: true, isLive })
    const folder = await openFolder(run.path)
    try {
      const key = isLive ? 'train/3/0/0' : 'train/1/0/0'
      const file = join(run.below, 'run.html')
      if (!isLive) await exportRun([run.path], file)
      for (const client of isLive ? [folder] : [folder, await readExport(file)]) {
        const trace = (await client.rollout(key))!
        const spoken = trace.invocations.map(({ policy, turns }) => [
          policy,
          turns[0]!.completionIds.map((id) => trace.vocabularies[policy]![id]).join(''),
        ])
        expect(spoken).toEqual([
          ['policy', '<tool_call>'],
          ['reader', 'help'],
        ])
        expect(trace.invocations[1]!.turns[0]!.promptOrigins).toEqual(['user', 'user', 'user'])
      }
    } finally {
      folder.close()
    }
  }
})

it('leaves tokens out of a file that would be too large, and carries all numbers', async () => {
  await using run = await writeRun({ longTokens: 200_000 })
  const file = join(run.below, 'run.html')
  const { whole, rollouts } = await exportRun([run.path], file, 3_000)
  expect([whole, rollouts]).toEqual([2, 14])
  const client = await readExport(file)
  expect((await client.rollouts({ limit: 100 })).rows).toHaveLength(14)
  expect(await client.rollout('train/1/0/0')).toBeNull()
  // Rollouts that errors and findings link to come first.
  const carried = await Promise.all(['train/2/0/0', 'train/2/0/1', 'train/2/1/1'].map(async (key) => (await client.rollout(key)) !== null))
  expect(carried).toEqual([false, true, true])
})

it('writes what can be read of a run with damaged tokens to a file', async () => {
  await using run = await writeRun()
  const segments = join(run.path, 'segments')
  for (const name of await readdir(segments))
    await writeFile(join(segments, name), Buffer.alloc((await stat(join(segments, name))).size, 7))
  const file = join(run.below, 'run.html')
  expect(await exportRun([run.path], file)).toMatchObject({ rollouts: 14, whole: 0, damaged: 14 })
  const client = await readExport(file)
  expect((await client.summary()).evaluations.map(({ reward }) => reward)).toEqual([1 / 3, 2 / 3])
  expect(await client.rollout('train/1/0/0')).toBeNull()
})

it('gives images half the room of an exported file, and leaves out those of a rollout that would take more', async () => {
  const image = (size: number) => ({ mimeType: 'image/png' as const, data: randomBytes(size).toString('base64') })
  const returned = { content: '[image image/png]', isError: false, images: [image(3_000), image(3_000)] }
  await using run = await writeRun({ returned })
  const imagesIn = async (maxBytes: number) => {
    const file = join(run.below, 'run.html')
    const { whole } = await exportRun([run.path], file, maxBytes)
    const trace = (await (await readExport(file)).rollout('train/1/0/0'))!
    expect(trace.toolCalls.map(({ content }) => content)).toEqual(['[image image/png]'])
    return [whole, trace.toolCalls[0]!.images?.length ?? 0]
  }
  expect(await imagesIn(40_000)).toEqual([14, 2])
  // Two images are 8,000 characters.
  expect(await imagesIn(15_000)).toEqual([14, 0])
})

it.each([
  ['another version', '{"version":1,"name":"old","createdAt":1,"configurationHash":""}', 'STORE_VERSION'],
  ['a torn manifest', '{"version":', 'STORE_CORRUPT'],
])('names what is wrong with a run of %s, and lists the others', async (_, manifest, code) => {
  await using good = await writeRun({ name: 'good' })
  await using bad = await writeRun({ name: 'bad' })
  await writeFile(join(bad.path, 'manifest.json'), manifest)
  const dashboard = await openDashboard({ runs: [good.path, bad.path] })
  try {
    const { origin, searchParams } = new URL(dashboard.url)
    const runs = createHttpRuns(origin, searchParams.get('token')!)
    const listed = await runs.list()
    expect(listed.find(({ id }) => id === good.id)).toMatchObject({ problem: null, rollouts: 14 })
    expect(listed.find(({ id }) => id === bad.id)?.problem).toEqual(expect.any(String))
    await expect(runs.run(bad.id).summary()).rejects.toMatchObject({ code })
  } finally {
    await dashboard.close()
  }
})

it('names rollouts with a call that did not parse', async () => {
  await using run = await writeRun()
  const reader = readRun(run.path)
  expect([reader.unparsed(1), reader.unparsed(20).length]).toEqual([['evaluation/before/1/0'], 4])
  reader.close()
})

it('says what to do where the file cannot be written', async () => {
  await using run = await writeRun()
  await expect(exportRun([run.path], join(run.below, 'nowhere', 'run.html'))).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})

it('reads from the ids of a running rollout who asked for whom, whatever the agents are called', async () => {
  for (const text of ['six', hostile]) {
    await using run = await writeRun({ isLive: true })
    const [planner, reader, helper] = ['planner', 'reader', 'helper'].map((name) => nameWith(name, text))
    const key = await writeSwarm(run.store, { isRunning: true, text })
    const folder = await openFolder(run.path)
    const { invocations } = (await folder.rollout(key))!
    const starts = Object.fromEntries(invocations.map(({ id, startedBy }) => [id, startedBy]))
    expect(starts).toEqual({
      [planner!]: [],
      ...Object.fromEntries(
        [0, 1, 2].map((call) => [`${reader}:${planner}.0.${call}`, [{ trajectory: planner, turn: 0, toolCall: `call_0_0_${call}` }]]),
      ),
      [`${helper}:${reader}:${planner}.0.1.0.0`]: [{ trajectory: `${reader}:${planner}.0.1`, turn: 0, toolCall: 'call_2_0_0' }],
    })
    folder.close()
  }
})
