import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { repository } from '../support/run-cli.ts'
import { accessTo, clientPackages, sources, type TestNamespace } from './cluster.ts'
import { freePorts } from './control-plane.ts'

const { createNamespace, kubectl, pushProject } = accessTo(inject('cluster'))

const example = join(repository, 'examples/periodic-table')

let folder: string
let namespace: TestNamespace
let image: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-kubernetes-example-'))
  // Where a project finds the client of Kubernetes, which this suite has installed.
  await symlink(clientPackages, join(folder, 'node_modules'))
  namespace = await createNamespace(folder)
  image = pushProject(folder, example)
})
afterAll(async () => {
  await kubectl('delete', 'namespace', namespace.name, '--wait=false')
  await rm(folder, { recursive: true, force: true })
})

/** The main example with another place for its agents, in a project of its own. */
async function makeProject(name: string, config: object): Promise<string> {
  const project = join(folder, name)
  await mkdir(project)
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules'))
  await writeFile(
    join(project, 'aworld-train.config.ts'),
    `import definition from ${JSON.stringify(`${example}/aworld-train.config.ts`)}
const { config, ...rest } = definition
export default { ...rest, baseDirectory: ${JSON.stringify(example)}, runPath: ${JSON.stringify(join(project, 'runs'))}, config: { ...config, ...${JSON.stringify(config)} } }
`,
  )
  return project
}

/** Trains with the rights of the coordinator's account; `disturb` is called at the end of the first step. */
async function train(project: string, disturb: () => Promise<void> = async () => {}) {
  const args = [join(repository, 'packages/cli/src/main.ts'), 'train', project, '--seed', '11', '--dashboard', 'off', '--json']
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...sources, KUBECONFIG: namespace.kubeconfig },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  while (!output.includes('"step-end"') && child.exitCode === null) await sleep(100)
  if (child.exitCode === null) await disturb()
  expect(await ended, output).toBe(0)
  const [name] = await readdir(join(project, 'runs'))
  const path = join(project, 'runs', name!)
  const report = JSON.parse(await readFile(join(path, 'report.json'), 'utf8')) as RunReport
  const checkpoint = join(path, report.checkpoints.at(-1)!, 'model.safetensors')
  const run = readRun(path)
  const rows = run.rolloutRows({ limit: 100_000 }).rows
  const result = {
    weights: createHash('sha256')
      .update(await readFile(checkpoint))
      .digest('hex'),
    rewards: Object.fromEntries(rows.map(({ key, reward, stopReason }) => [key, [reward, stopReason]])),
    losses: run.steps().map(({ metrics }) => metrics['loss']),
  }
  const attempts = rows.filter(({ attempt }) => attempt > 0).length
  run.close()
  return { result, report, attempts, output }
}

it('the workers of the main example run as a Job; one pod killed and one evicted change no reward, no loss and no weight', async () => {
  const inProcess = await train(await makeProject('in-process', {}))
  const [port] = await freePorts(1)
  const executor = {
    engineName: 'k8s',
    workerNum: 3,
    slots: 43,
    resources: { requests: { cpu: '0.5', memory: '200Mi' }, limits: { memory: '2Gi' } },
    options: { image, agent: './agent.ts#agent' },
  }
  // The pods of the test are processes of this machine; those of a cluster would need another address.
  const gateway = { port, publicUrl: `http://127.0.0.1:${port}` }
  let killed = 0
  const pods = await train(await makeProject('kubernetes', { executor, gateway }), async () => {
    const [first, second] = (await namespace.get<{ metadata: { name: string } }>('pods')).map(({ metadata }) => metadata.name)
    process.kill(-(await namespace.pid(first!)), 'SIGKILL')
    await namespace.evict(second!)
    killed = 2
  })
  expect(killed).toBe(2)
  expect(pods.attempts).toBeGreaterThan(0)
  expect(pods.result).toEqual(inProcess.result)
  expect(pods.report.ledger).toMatchObject({ unexplained: 0 })
  expect(await Promise.all(['jobs', 'pods', 'secrets'].map((kind) => namespace.get(kind)))).toEqual([[], [], []])
}, 1_200_000)
