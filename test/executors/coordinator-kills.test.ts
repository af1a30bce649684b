// @module-tag quick
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, type RolloutRequest, type RunReport } from '@aworld-train/core'
import { createRolloutClient } from '@aworld-train/rollout'
import { readRun } from '@aworld-train/store'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { checkHistory } from '../../packages/store/src/testing/check-history.ts'
import { freePort } from '../support/process-group.ts'
import { repository, runCli } from '../support/run-cli.ts'
import { type StartedCommand, startCommand } from '../support/start-command.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { makeProject, type TinyProject } from '../support/tiny-project.ts'

const seed = Number(process.env['COORDINATOR_KILLS_SEED'] ?? Date.now() % 1_000_000)
/** Numbers from 0 to below 1 that the seed gives, one for each place. */
const drawn = (place: number) => createHash('sha256').update(`${seed} ${place}`).digest().readUInt32LE() / 2 ** 32
const kills = 3

let folder: string
let model: string
const started: StartedCommand[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-coordinator-kills-'))
  model = await makeTinyModel(join(folder, 'model'))
})
afterEach(() => {
  for (const command of started.splice(0)) command.process.kill('SIGKILL')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const start = (...args: Parameters<typeof startCommand>) => {
  const command = startCommand(...args)
  started.push(command)
  return command
}

/** Asks the policy three times, with a while between, and answers with the file of its task and the number of its attempt. */
const readingAgent = `export async function agent(task, { policy, file, signal, attempt }) {
  const page = String(await file(task.files[0]))
  const { baseUrl, apiKey, model } = policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
  for (let turn = 0; turn < 3; turn++) {
    const response = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal })
    if (!response.ok) throw new Error(await response.text())
    await response.text()
    await new Promise((resolve) => setTimeout(resolve, task.data.waitMs))
  }
  return { answer: page + ' ' + attempt, messages: [] }
}
`

const rollout = (index: number): RolloutRequest => ({
  ...{ version: 1, key: `r${index}`, group: `r${index}`, sample: 0, split: 'train', policy: 'policy', limits: {} },
  task: {
    ...{ version: 1, id: `task-${index}`, hash: 'h', input: `Is ${index} even?`, dataSource: 'parity', extraInfo: {} },
    ...{ data: { waitMs: Math.round(50 + 200 * drawn(100 + index)) }, files: ['pages/first.txt'] },
  },
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 6, stop: [], seed: 0 },
})

/** The folder of a machine that has the agent of a project, and nothing else of it. */
async function makeMachine(name: string): Promise<string> {
  const machine = join(folder, name)
  await mkdir(machine)
  await symlink(join(repository, 'node_modules'), join(machine, 'node_modules'))
  await writeFile(join(machine, 'package.json'), '{ "type": "module", "private": true }\n')
  await writeFile(join(machine, 'agent.ts'), readingAgent)
  return machine
}

it(`a server that is killed ${kills} times while workers run loses no rollout and mixes no attempts; workers come back by themselves (COORDINATOR_KILLS_SEED=${seed})`, async () => {
  const project = (await makeProject(folder, model, { files: { 'agent.ts': readingAgent, 'pages/first.txt': 'page one' } })).folder
  const [gatewayPort, port] = [await freePort(), await freePort()]
  const config = {
    gateway: { port: gatewayPort },
    models: { policy: { kind: 'local', path: '../model', simd: 'plain', threads: 1 } },
    sampling: { maxTokens: 6 },
    ...{ clients: null, recording: 'recorded' },
    rollouts: {
      port,
      agent: './agent.ts#agent',
      taskFiles: ['./pages'],
      token: 'the-token',
    },
    executor: { engineName: 'external', token: { env: 'WORKER_TOKEN' } },
  }
  await writeFile(join(project, 'serve.yaml'), JSON.stringify(config))
  const env = { WORKER_TOKEN: 'the-token-of-workers' }
  const serve = async () => {
    const command = start(['serve', '--config', join(project, 'serve.yaml')], { env })
    await command.says('Ctrl-C ends\n')
    return command
  }
  let server = await serve()
  const url = `http://127.0.0.1:${port}`
  const workers = await Promise.all(
    ['first', 'second'].map(async (name) =>
      start(
        [
          'worker',
          '--coordinator',
          url,
          '--agent',
          './agent.ts#agent',
          '--token-env',
          'WORKER_TOKEN',
          '--name',
          name,
          '--slots',
          '4',
          '--away',
          '120',
        ],
        {
          ...{ cwd: await makeMachine(name), env },
        },
      ),
    ),
  )
  await Promise.all(workers.map((worker) => worker.says('connected')))
  await using stack = new AsyncDisposableStack()
  const client = stack.adopt(createRolloutClient({ url, token: 'the-token', retries: 12 }), (each) => each.close())
  const requests = Array.from({ length: 40 }, (_, index) => rollout(index))
  for (const request of requests) await client.submit(request)
  const path = join(project, 'recorded', 'rollouts')
  for (let kill = 0; kill < kills; kill++) {
    await expect.poll(async () => (await client.get(`r${8 * kill + 7}`)).status, { interval: 20 }).toMatch(/running|done/)
    await sleep(400 * drawn(kill))
    server.process.kill('SIGKILL')
    expect(await server.ended).toBe('SIGKILL')
    expect(checkHistory(path, [])).toEqual([])
    server = await serve()
    await expect.poll(() => workers.map((worker) => worker.shown().match(/connected/g)?.length)).toEqual([kill + 2, kill + 2])
  }
  const states = await Promise.all(requests.map(({ key }) => client.get(key, { waitMs: 60_000 })))
  // An old attempt ends with an error where its coordinator is away; no such result counts.
  for (const { status, episode } of states)
    expect([status, episode?.stopReason, episode?.answer]).toEqual([
      'done',
      expect.stringMatching(/completed|truncated/),
      `page one ${episode?.attempt}`,
    ])
  expect(Math.max(...states.map(({ episode }) => episode!.attempt))).toBeGreaterThan(0)
  for (const worker of workers) {
    expect(worker.process.exitCode).toBe(null)
    worker.process.kill('SIGTERM')
    expect(await worker.ended, worker.shown()).toBe(0)
  }
  server.process.kill('SIGTERM')
  expect(await server.ended).toBe(0)
  expect(checkHistory(path, [])).toEqual([])
  const run = readRun(path)
  expect(run.counts()).toMatchObject({ rollouts: 40, finished: 40 })
  expect(run.supersededTokens()).toBeGreaterThan(0)
  run.close()
})

/** What a training came to. */
async function resultOf(project: TinyProject) {
  const [path, ...others] = await project.runs()
  expect(others).toEqual([])
  const report = JSON.parse(await readFile(join(path!, 'report.json'), 'utf8')) as RunReport
  const weights = await readFile(join(path!, report.checkpoints.at(-1)!, 'model.safetensors'))
  const run = readRun(path!)
  const rewards = run.rolloutRows().rows.map(({ key, reward, stopReason, sampledTokens }) => [key, reward, stopReason, sampledTokens])
  run.close()
  return { report, result: { weights: createHash('sha256').update(weights).digest('hex'), rewards: rewards.sort() } }
}

/** Child processes of a process, by its own table. */
const childrenOf = async (pid: number): Promise<number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')).split(' ').filter(Boolean).map(Number)

it(`a training that is killed ${kills} times with its workers goes on to the same rewards and weights, and leaves no worker (COORDINATOR_KILLS_SEED=${seed})`, async () => {
  const config = { training: { steps: 6 } }
  const undisturbed = await makeProject(folder, model, { config })
  const whole = await runCli(['train', undisturbed.folder, '--dashboard', 'off'], { deadlineMs: 400_000 })
  expect(whole.code, whole.stderr).toBe(0)
  const project = await makeProject(folder, model, { config: { ...config, executor: { workerNum: 2, slots: 3 } } })
  const children: number[] = []
  for (let kill = 0; kill < kills; kill++) {
    let left = 1 + Math.floor(16 * drawn(10 + kill))
    let found = Promise.resolve()
    const { signal, stderr } = await runCli(['train', project.folder, '--dashboard', 'off', '--json'], {
      deadlineMs: 400_000,
      onLine(line, child) {
        if (!line.includes('"rollout-end"') || --left !== 0) return
        found = childrenOf(child.pid!).then((pids) => {
          children.push(...pids)
          child.kill('SIGKILL')
        })
      },
    })
    await found
    expect([left <= 0, signal], stderr).toEqual([true, 'SIGKILL'])
    await expect.poll(() => children.filter(isRunning)).toEqual([])
  }
  expect(children.length).toBeGreaterThanOrEqual(2 * kills)
  const last = await runCli(['train', project.folder, '--dashboard', 'off'], { deadlineMs: 400_000 })
  expect(last.code, last.stderr).toBe(0)
  const { result, report } = await resultOf(project)
  expect(result).toEqual((await resultOf(undisturbed)).result)
  expect(report.ledger).toMatchObject({ unexplained: 0 })
})
