// @module-tag quick
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RolloutRequest, RunReport } from '@aworld-train/core'
import { createRolloutClient } from '@aworld-train/rollout'
import { readRun } from '@aworld-train/store'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../support/process-group.ts'
import { repository, runCli } from '../support/run-cli.ts'
import { selfSigned } from '../support/self-signed.ts'
import { type StartedCommand, startCommand } from '../support/start-command.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { makeProject, openTrainer, type ProjectChanges } from '../support/tiny-project.ts'

let folder: string
let model: string
let project: string
/** A training of `readingAgent` in one process. */
let inProcess: Awaited<ReturnType<typeof train>>
const started: StartedCommand[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-worker-'))
  model = await makeTinyModel(join(folder, 'model'))
  project = (await makeProject(folder, model)).folder
  // Waits for a file, then asks the policy; says in which process it runs.
  await writeFile(
    join(project, 'gated-agent.ts'),
    `import { existsSync } from 'node:fs'
export async function agent(task, { policy, signal }) {
  if (process.env.WORKER_TOKEN) throw new Error('an agent and its tools can read the token of the coordinator')
  while (!existsSync(new URL('./open', import.meta.url))) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    signal.throwIfAborted()
  }
  const { baseUrl, apiKey, model } = policy()
  const messages = [{ role: 'user', content: task.input }]
  const response = await fetch(baseUrl + '/chat/completions', {
    method: 'POST',
    headers: { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages }),
    signal,
  })
  if (!response.ok) throw new Error(await response.text())
  return { answer: String(process.pid), messages: [] }
}
`,
  )
  inProcess = await train({ files: { 'agent.ts': readingAgent } })
})
afterEach(() => {
  vi.unstubAllEnvs()
  for (const command of started.splice(0)) command.process.kill('SIGKILL')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const start = (...args: Parameters<typeof startCommand>) => {
  const command = startCommand(...args)
  started.push(command)
  return command
}

const rollout = (key: string): RolloutRequest => ({
  version: 1,
  key,
  task: { version: 1, id: 'task-10', hash: 'h', input: 'Is 10 even?', data: {}, dataSource: 'parity', extraInfo: {} },
  group: 'g',
  sample: 0,
  split: 'train',
  policy: 'policy',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 6, stop: [], seed: 0 },
  limits: {},
})

it('agents of serve run in worker processes; one that is killed loses nothing, and one that is told to stop finishes first', async () => {
  const config = {
    gateway: { port: 0 },
    models: { policy: { kind: 'local', path: '../model', simd: 'plain', threads: 1 } },
    sampling: { maxTokens: 6 },
    clients: null,
    recording: 'recorded',
    rollouts: {
      port: 0,
      agent: './gated-agent.ts#agent',
      token: 'the-token',
    },
    executor: { engineName: 'external', token: { env: 'WORKER_TOKEN' }, graceMs: 200 },
  }
  await writeFile(join(project, 'serve.yaml'), JSON.stringify(config))
  const env = { WORKER_TOKEN: 'the-token-of-workers' }
  const serve = start(['serve', '--config', join(project, 'serve.yaml')], { env })
  await serve.says('Ctrl-C ends\n')
  const url = /^rollouts +(\S+)\/v1/m.exec(serve.shown())![1]!
  expect(serve.shown()).toContain(`aworld-train worker --coordinator ${url} --agent ./gated-agent.ts#agent --token-env WORKER_TOKEN\n`)
  const options = ['worker', '--coordinator', url, '--agent', './gated-agent.ts#agent', '--token-env', 'WORKER_TOKEN']
  const work = (...more: string[]) => start([...options, ...more], { cwd: project, env })

  const [first, second] = [work('--slots', '2', '--name', 'first'), work('--slots', '2')]
  await Promise.all([first.says('worker first: connected'), second.says('connected')])
  const client = createRolloutClient({ url, token: 'the-token' })
  for (const key of ['a', 'b', 'c', 'd', 'e']) await client.submit(rollout(key))
  await expect.poll(async () => (await client.get('d')).status).toBe('running')

  const refused = [
    [work('--name', 'first', '--wait', '0'), 2, 'Another worker named "first" is connected'],
    [start([...options.slice(0, -1), 'OTHER'], { cwd: project, env: { OTHER: 'wrong' } }), 2, 'does not take this token'],
    [start([...options.slice(0, -1), 'NONE'], { cwd: project, env }), 2, 'NONE, which --token-env names, is not set'],
    [start([...options, '--agent', './none.ts#agent'], { cwd: project, env }), 2, 'none.ts'],
    [
      start([...options, '--agent', './agent.ts#agent'], { cwd: project, env }),
      2,
      'has another agent than its coordinator: its worker has no gated-agent.ts',
    ],
    [start([...options, '--coordinator', 'machine:8090'], { cwd: project, env }), 2, 'is no address'],
    [start([...options, '--coordinator', 'http://127.0.0.1:9', '--wait', '0'], { cwd: project, env }), 3, 'does not answer'],
  ] as const
  for (const [command, code, message] of refused) {
    expect([await command.ended, command.shown()]).toEqual([code, expect.stringContaining(message)])
  }

  first.process.kill('SIGKILL')
  await expect.poll(() => serve.shown()).toContain('Worker "first" is gone with 2 of its attempts')
  const run = readRun(join(project, 'recorded', 'rollouts'))
  const rows = () => run.health(0).workers.map(({ name, status, slots, lostAttempts }) => [name, status, slots, lostAttempts])
  const other = await expect
    .poll(rows)
    .toContainEqual(['first', 'lost', 2, 2])
    .then(() => rows().find(([name]) => name !== 'first')![0])
  expect(rows()).toContainEqual([other, 'connected', 2, 0])
  const gatewayUrl = /^gateway +(\S+)/m.exec(serve.shown())![1]!
  for (const [port, headers] of [
    [gatewayUrl, {}],
    [url, { authorization: 'Bearer the-token' }],
  ] as const) {
    const metrics = await (await fetch(`${port}/metrics`, { headers })).text()
    for (const line of ['processes{status="connected"} 1', 'processes{status="lost"} 1', 'slots 2', 'lost_attempts 2'])
      expect(metrics).toContain(`aworld_train_worker_${line}\n`)
  }
  second.process.kill('SIGTERM')
  await second.says('finishing what it has')
  const third = work('--slots', '8', '--signal-exit-code', '143')
  await third.says('connected')
  await writeFile(join(project, 'open'), '')
  const states = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => client.get(key, { waitMs: 30_000 })))
  for (const state of states)
    expect(state).toMatchObject({ status: 'done', episode: { stopReason: expect.stringMatching(/completed|truncated/) } })
  const pids = states.map(({ episode }) => Number(episode!.answer))
  expect(new Set(pids)).toEqual(new Set([second.process.pid, third.process.pid]))
  expect(states.map(({ episode }) => episode!.attempt).sort()).toEqual([0, 0, 0, 1, 1])
  const again = states.flatMap(({ episode }) => (episode!.attempt === 1 ? episode!.rollout : []))
  for (const key of again) {
    const [lost, last] = run.attempts(key)
    expect(lost).toMatchObject({ attempt: 0, worker: 'first', error: { code: 'WORKER_LOST' } })
    expect(last).toMatchObject({ attempt: 1, worker: expect.not.stringMatching('first'), error: null, turns: 1 })
  }
  run.close()
  expect(await second.ended).toBe(0)
  third.process.kill('SIGTERM')
  expect(await third.ended).toBe(143)
  await client.close()
  serve.process.kill('SIGTERM')
  expect(await serve.ended).toBe(0)
}, 600_000)

/** What a training came to, and what it printed. */
async function train(changes: ProjectChanges, env: Readonly<Record<string, string>> = {}) {
  const made = await makeProject(folder, model, changes)
  const { code, stdout, stderr } = await runCli(['train', made.folder, '--dashboard', 'off'], {
    deadlineMs: 120_000,
    env,
  })
  const [path] = await made.runs()
  if (code !== 0 || path === undefined) return { code, stderr, runs: (await made.runs()).length }
  const report = JSON.parse(await readFile(join(path, 'report.json'), 'utf8')) as RunReport
  const weights = await readFile(join(path, report.checkpoints.at(-1)!, 'model.safetensors'))
  const run = readRun(path)
  const rewards = run.rolloutRows().rows.map(({ key, reward, stopReason, sampledTokens }) => [key, reward, stopReason, sampledTokens])
  const attempts = Math.max(...run.rolloutRows().rows.map(({ attempt }) => attempt))
  run.close()
  return {
    code,
    folder: made.folder,
    report,
    attempts,
    output: stdout + stderr,
    result: { weights: createHash('sha256').update(weights).digest('hex'), rewards: rewards.sort() },
  }
}

/** Kills the process that it runs in, once in its life, where that is not the coordinator. */
const killingAgent = `import { existsSync, writeFileSync } from 'node:fs'
export async function agent(task, context) {
  const mark = new URL('./killed', import.meta.url)
  if (process.argv[1].includes('worker-process') && !existsSync(mark)) {
    writeFileSync(mark, '')
    process.kill(process.pid, 'SIGKILL')
  }
  const { baseUrl, apiKey, model } = context.policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal: context.signal })
  const { choices } = await response.json()
  return { answer: choices[0].message.content, messages: [] }
}
`

it('a training whose agents run in child processes, one of which is killed, has the same rewards and the same weights', async () => {
  const workers = await train({ files: { 'agent.ts': killingAgent }, config: { executor: { workerNum: 2, slots: 3 } } })
  expect(workers.result).toEqual(inProcess.result)
  expect([inProcess.attempts, workers.attempts]).toEqual([0, 1])
  const rollouts = inProcess.result!.rewards.length
  const { rollouts: lastly, attempts } = workers.report!.counts
  expect([inProcess.report!.counts.attempts, lastly]).toEqual([rollouts, rollouts])
  expect(attempts).toBeGreaterThan(rollouts)
  expect(inProcess.output).toContain(`counts   ${rollouts} rollouts, `)
  expect(workers.output).toContain(`counts   ${rollouts} rollouts in ${attempts} attempts, `)
  expect(workers.output).toMatch(/Worker "local-\d" ended by SIGKILL and is started again/)
  expect(workers.report?.ledger).toMatchObject({ unexplained: 0 })
})

/** A launcher of a user: child processes, without another start. */
const ownLauncher = `
import { spawn } from 'node:child_process'
export function createLauncher({ workerNum, worker, options }) {
  const children = []
  return {
    plan: async () => ['by hand'],
    async start() {
      for (let index = 0; index < workerNum; index++) {
        const { command: [file, ...args], env } = worker(options.prefix + index)
        children.push(spawn(file, args, { stdio: ['pipe', 'ignore', 'inherit'], env: { PATH: process.env.PATH, ...env } }))
      }
    },
    async scale() {},
    status: async () => [],
    async stop() {
      await Promise.all(children.map((child) => new Promise((resolve) => child.once('close', resolve).kill())))
    },
  }
}
`
/** Answers in a worker only where that has a variable; writes down when it begins and when it ends. */
const readingAgent = `import { appendFileSync } from 'node:fs'
const note = (what, id) => appendFileSync(new URL('./order', import.meta.url), what + ' ' + id + '\\n')
export async function agent(task, context) {
  if (process.argv[1].includes('worker-process') && process.env.GREETING !== 'Hi.') throw new Error('no greeting')
  const id = crypto.randomUUID()
  note('begin', id)
  const { baseUrl, apiKey, model } = context.policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal: context.signal })
  const { choices } = await response.json()
  note('end', id)
  return { answer: choices[0].message.content, messages: [] }
}
`

/** Whether each rollout of `readingAgent` ended before the next began. */
async function ranInTurn(project: string): Promise<boolean> {
  const lines = (await readFile(join(project, 'order'), 'utf8')).trimEnd().split('\n')
  return lines.every((line, index) => (index % 2 === 0 ? line.startsWith('begin ') : line === lines[index - 1]!.replace('begin', 'end')))
}

it('a training takes a launcher of its own, an address for its workers and one rollout at a time', async () => {
  const port = await freePort()
  const workers = await train({
    files: { 'agent.ts': readingAgent, 'launcher.ts': ownLauncher },
    config: {
      executor: {
        ...{ cls: './launcher.ts#createLauncher', workerNum: 2, slots: 3, sequenceDependent: true },
        ...{ env: { GREETING: 'Hi.' }, options: { prefix: 'own-' } },
      },
      gateway: { host: '0.0.0.0', insecure: true, port, publicUrl: `http://127.0.0.2:${port}` },
    },
  })
  expect(workers.result, workers.stderr).toEqual(inProcess.result)
  expect(workers.output).toContain(`http://127.0.0.2:${port}`)
  expect([await ranInTurn(inProcess.folder!), await ranInTurn(workers.folder!)]).toEqual([false, true])
})

it('a training takes its workers, and the calls of their agents, over TLS', async () => {
  const { cert, key } = selfSigned('localhost')
  const port = await freePort()
  const gateway = { host: '0.0.0.0', tls: { cert: './cert.pem', key: './key.pem' }, port, publicUrl: `https://localhost:${port}` }
  const authority = join(folder, 'authority.pem')
  await writeFile(authority, cert)
  const workers = await train(
    {
      files: { 'agent.ts': readingAgent, 'cert.pem': cert, 'key.pem': key },
      config: { executor: { workerNum: 2, slots: 3, env: { GREETING: 'Hi.' } }, gateway },
    },
    { NODE_EXTRA_CA_CERTS: authority },
  )
  expect(workers.result, workers.stderr).toEqual(inProcess.result)
})

it('a training takes workers that somebody else starts, as a server does', async () => {
  const port = await freePort()
  const files = { 'agent.ts': readingAgent }
  const there = await makeProject(folder, model, { files })
  const env = { WORKER_TOKEN: 'the-token-of-workers' }
  const options = ['--coordinator', `http://127.0.0.1:${port}`, '--agent', './agent.ts#agent', '--token-env', 'WORKER_TOKEN']
  const worker = start(['worker', ...options, '--slots', '3'], { cwd: there.folder, env })
  const executor = { engineName: 'external', token: { env: 'WORKER_TOKEN' }, port }
  const workers = await train({ files, config: { executor } }, env)
  expect(workers.result, workers.stderr).toEqual(inProcess.result)
  expect(workers.output).toContain(`Start workers where you like: aworld-train worker ${options.join(' ')}`)
  worker.process.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
})

it('a certificate that workers do not trust ends the training with what to do', async () => {
  const { cert, key } = selfSigned('localhost')
  const port = await freePort()
  const gateway = { host: '0.0.0.0', tls: { cert: './cert.pem', key: './key.pem' }, port, publicUrl: `https://localhost:${port}` }
  const files = { 'agent.ts': readingAgent, 'cert.pem': cert, 'key.pem': key }
  const { code, stderr } = await train({ files, config: { executor: { workerNum: 1 }, gateway } })
  expect([code, stderr]).toEqual([2, expect.stringMatching(/has no certificate that this worker trusts: .*Name the file of its authority/)])
})

it('the launcher of the guide starts steps of srun under sbatch, which closes standard input, and starts one again that dies', async () => {
  const guide = await readFile(join(repository, 'docs/3.guides/clusters.md'), 'utf8')
  const [, launcher] = /`launcher\.ts`:\n\n```ts\n(.*?)```/s.exec(guide)!
  const bin = join(folder, 'slurm')
  await mkdir(bin)
  const mark = join(bin, 'died')
  // Standard input of a step is that of its srun, as with SLURM's own.
  const srun = `#!/bin/sh\nshift 2\nif [ ! -e '${mark}' ]; then : > '${mark}'; exit 1; fi\nexec "$@"\n`
  await writeFile(join(bin, 'srun'), srun, { mode: 0o755 })
  const executor = { cls: './launcher.ts#createLauncher', workerNum: 2, slots: 3, env: { GREETING: 'Hi.' } }
  const workers = await train(
    { files: { 'agent.ts': readingAgent, 'launcher.ts': launcher! }, config: { executor } },
    { PATH: `${bin}:${process.env['PATH']}` },
  )
  expect(workers.result, workers.stderr).toEqual(inProcess.result)
  expect(workers.output).toMatch(/srun of worker "slurm-\d" ended with 1 and is started again/)
})

it.each([
  [
    'an unknown engine',
    { executor: { engineName: 'externla' } },
    {},
    'executor.engineName is "externla": must be one of local, ray, spark, k8s, external. Did you mean "external"?',
  ],
  [
    'Ray that is not there',
    { executor: { engineName: 'ray', address: 'http://127.0.0.1:9' } },
    {},
    'Ray does not answer at http://127.0.0.1:9 (connect ECONNREFUSED 127.0.0.1:9); start a cluster with "ray start --head"',
  ],
  [
    'Ray elsewhere, and a gateway on loopback',
    { executor: { engineName: 'ray', address: 'http://head:8265' } },
    {},
    'executor.engineName "ray" starts workers on other machines, and gateway.host is 127.0.0.1, which they do not reach; set gateway.host',
  ],
  [
    'Spark without Java',
    { executor: { engineName: 'spark' } },
    {},
    /There is no Java at \S+\/bin\/java, where JAVA_HOME leads, and Spark runs on it; install Java 17/,
  ],
  ['no workers', { executor: { workerNum: 0 } }, {}, 'executor.workerNum'],
  [
    'workers of others without a token',
    { executor: { engineName: 'external' } },
    {},
    'executor.engineName "external" needs executor.token, such as { env: WORKER_TOKEN }',
  ],
  ['a launcher that is not there', { executor: { cls: './none.ts#create' } }, {}, 'There is no module'],
  [
    'a launcher that is no function',
    { executor: { cls: './agent.ts#create' } },
    { 'agent.ts': "export const create = 'ray'\nexport const agent = async () => ({ answer: 'a', messages: [] })\n" },
    'executor.cls "./agent.ts#create" is no function',
  ],
  [
    'resources of child processes',
    { executor: { workerNum: 1, resources: { num_cpus: 1 } } },
    {},
    'executor.resources: engine "local" starts',
  ],
  ['a gateway that anybody could listen to', { gateway: { host: '0.0.0.0' } }, {}, 'without encryption'],
] as const)('%s: the training ends with the reason, and leaves no run', async (_, config, files, message) => {
  vi.stubEnv('JAVA_HOME', folder)
  const made = await makeProject(folder, model, { config, files })
  const ended = openTrainer(made).then((trainer) => trainer.train())
  await expect(ended).rejects.toMatchObject({
    boundary: 'config',
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  })
  expect(await made.runs()).toEqual([])
})

it('a module that workers cannot load: the training ends with the reason', async () => {
  const agent = `if (process.argv[1].includes('worker-process')) throw new Error('no GPU here')
export const agent = async () => ({ answer: 'a', messages: [] })
`
  const { code, stderr } = await train({ config: { executor: { workerNum: 1 } }, files: { 'agent.ts': agent } })
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/Worker "local-0" cannot run: it ended with code 2, and printed: .*no GPU here/),
  ])
})
