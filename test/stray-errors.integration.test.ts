import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { episodesOf, makeProject } from './support/tiny-project.ts'

let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stray-errors-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** An agent that asks its model, then does what its task is for. */
const agentText = (top: string, then: string) => `${top}
export async function agent(task, context) {
  const { baseUrl, apiKey, model } = context.policy()
  const headers = { authorization: \`Bearer \${apiKey}\`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const response = await fetch(\`\${baseUrl}/chat/completions\`, { method: 'POST', headers, body, signal: context.signal })
  const { choices } = await response.json()
  ${then}
  return { answer: choices[0].message.content, messages: [] }
}
`

/** Leaves behind what client libraries do: in three tasks while they run, in the fourth after its end and outside of any rollout. */
const strays = agentText(
  `import { createServer, get } from 'node:http'

let isShared = false
setInterval(() => {
  if (!isShared) return
  isShared = false
  throw new Error('stray of the module')
}, 1).unref()

const hangUp = createServer((_, response) => response.socket.destroy()).listen(0)
hangUp.unref()

const strays = {
  'task-10': () => void Promise.reject(new Error('stray rejection')),
  'task-11': () => setTimeout(() => { throw new Error('stray timer') }, 1),
  'task-12': () => get({ port: hangUp.address().port }),
}
`,
  `if (task.id === 'task-13') {
    isShared = true
    setTimeout(() => { throw new Error('stray of the past') }, 1)
  } else {
    strays[task.id]()
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
  }`,
)

const changes = {
  files: { 'agent.ts': strays },
  definition: { agent: './agent.ts#agent' },
  config: { training: { steps: 1, promptsPerStep: 4, samplesPerPrompt: 2 }, limits: { timeoutMs: 20_000 } },
}

test.each([
  { place: 'this process', executor: {} },
  { place: 'child processes', executor: { executor: { workerNum: 2, slots: 4 } } },
])(
  'what agents in $place leave unhandled is charged to their rollouts, and the training ends well',
  async ({ executor }) => {
    const project = await makeProject(folder, model, { ...changes, config: { ...changes.config, ...executor } })
    const { code, stderr, stdout } = await runCli(['train', project.folder, '--json'])
    expect(code, stdout + stderr).toBe(0)
    const ends = (await episodesOf(project)).map(
      ({ taskId, stopReason, error }) => `${taskId} ${error?.message.match(/stray \w+|hang up/)?.[0] ?? stopReason}`,
    )
    expect([...new Set(ends)].sort()).toEqual(['task-10 stray rejection', 'task-11 stray timer', 'task-12 hang up', 'task-13 completed'])
    const reported = stdout + stderr
    expect(reported).toMatch(/Rollout .*train\/1\/\d\/\d.*, which has ended, left an error that nobody handled: stray of the past/)
    expect(reported).toContain('Code of no rollout that is known left an error that nobody handled: stray of the module')
    const [run] = await project.runs()
    const report = JSON.parse(await readFile(join(run!, 'report.json'), 'utf8')) as RunReport
    expect([report.status, report.counts.episodesByStopReason]).toEqual(['finished', { failed: 6, completed: 2 }])
  },
  60_000,
)

test('an agent that ends the process of its training is told how to resume', async () => {
  const agent = `export async function agent() { process.exit(7) }\n`
  const project = await makeProject(folder, model, { ...changes, files: { 'agent.ts': agent } })
  const { code, stderr } = await runCli(['train', project.folder])
  expect([code, stderr]).toEqual([7, expect.stringMatching(/to resume .*\n.*aworld-train.* train /)])
})

test.each(['process.exit(3)', "process.kill(process.pid, 'SIGSEGV')"])(
  'a rollout that ends its worker by %s costs itself alone, and is found',
  async (end) => {
    const agent = agentText('', `if (task.id === 'task-11') ${end}`)
    const config = { ...changes.config, executor: { workerNum: 2, slots: 4, graceMs: 300, maxLosses: 2 } }
    const project = await makeProject(folder, model, { ...changes, config, files: { 'agent.ts': agent } })
    const { code, stdout, stderr } = await runCli(['train', project.folder, '--json'])
    expect(code, stdout + stderr).toBe(0)
    const ends = (await episodesOf(project)).map(({ taskId, stopReason, error }) => `${taskId} ${error?.code ?? stopReason}`)
    expect([...new Set(ends)].sort()).toEqual(['task-10 completed', 'task-11 WORKER_LOST', 'task-12 completed', 'task-13 completed'])
    const [run] = await project.runs()
    const { counts } = JSON.parse(await readFile(join(run!, 'report.json'), 'utf8')) as RunReport
    expect(counts.losses).toBeGreaterThanOrEqual(4)
  },
)
