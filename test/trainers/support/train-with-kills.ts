import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { expect } from 'vitest'
import { repository } from '../../support/run-cli.ts'

export interface ProjectOptions {
  /** Folder in `examples`. Default: the main example. */
  readonly example?: string
  /** Stands over the example's configuration. */
  readonly changes?: object
  readonly config?: Readonly<Record<string, unknown>>
}

/** An example with another place for its agents, in a project of its own. */
export async function makeProject(project: string, executor: object, steps: number, options: ProjectOptions = {}): Promise<string> {
  const { changes = {}, config = {} } = options
  await mkdir(project)
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules'))
  const example = join(repository, 'examples', options.example ?? 'periodic-table')
  await writeFile(
    join(project, 'aworld-train.config.ts'),
    `import definition from ${JSON.stringify(`${example}/aworld-train.config.ts`)}
const { config, ...rest } = definition
const training = { ...config.training, ...${JSON.stringify(config['training'] ?? {})}, steps: ${steps} }
const evaluation = { ...config.evaluation, before: false, greedy: false }
export default { ...rest, baseDirectory: ${JSON.stringify(example)}, runPath: ${JSON.stringify(join(project, 'runs'))}, ...${JSON.stringify(changes)}, config: { ...config, ...${JSON.stringify(config)}, training, evaluation, executor: ${JSON.stringify(executor)} } }
`,
  )
  return project
}

/** Children of a process, or of one of its threads, that run workers. */
export async function workersOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const lists = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')))
  const children = lists.flatMap((list) => list.split(' ')).filter(Boolean)
  const commands = await Promise.all(children.map((child) => readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')))
  return children.filter((_, index) => commands[index]!.includes('worker-process')).map(Number)
}

export interface WorkerKills {
  readonly kills: number
  /** Steps that end before the first kill, and from one kill to the next. */
  readonly stepsBetween: number
}

/** Trains; meanwhile kills workers. */
export async function trainWithKills(project: string, { kills, stepsBetween }: WorkerKills = { kills: 0, stepsBetween: 1 }) {
  const child = spawn(
    process.execPath,
    [join(repository, 'packages/cli/src/main.ts'), 'train', project, '--seed', '11', '--dashboard', 'off', '--json'],
    {
      env: { ...process.env, AWORLD_TRAIN_SIMD: 'plain', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  let killed = 0
  let nextStep = stepsBetween
  const seen = new Set<number>()
  while (killed < kills && child.exitCode === null) {
    await sleep(50)
    const steps = output.split('"step-end"').length - 1
    const victim = steps >= nextStep ? (await workersOf(child.pid!)).find((pid) => !seen.has(pid)) : undefined
    if (victim === undefined) continue
    seen.add(victim)
    process.kill(victim, 'SIGKILL')
    killed++
    nextStep = steps + stepsBetween
  }
  expect(await ended, output).toBe(0)
  const [name] = await readdir(join(project, 'runs'))
  const path = join(project, 'runs', name!)
  const report = JSON.parse(await readFile(join(path, 'report.json'), 'utf8')) as RunReport
  const checkpoint = join(path, report.checkpoints.at(-1)!)
  const files = (await readdir(checkpoint, { recursive: true })).filter((file) => file.endsWith('.safetensors')).toSorted()
  const hashes = files.map(async (file) => [
    file,
    createHash('sha256')
      .update(await readFile(join(checkpoint, file)))
      .digest('hex'),
  ])
  const run = readRun(path)
  const rows = run.rolloutRows({ limit: 100_000 }).rows
  const result = {
    /** Hashes of weights and optimiser, of each policy. */
    weights: Object.fromEntries(await Promise.all(hashes)),
    rewards: Object.fromEntries(rows.map(({ key, reward, stopReason }) => [key, [reward, stopReason]])),
    losses: run.steps().map(({ metrics }) => metrics['loss']),
    rollouts: run.steps().map(({ rollouts }) => rollouts),
  }
  const attempts = rows.filter(({ attempt }) => attempt > 0).length
  run.close()
  return { path, result, report, killed, attempts, output }
}
