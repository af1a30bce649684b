import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type BenchRow, type BenchSuite, keepsBound, resultName } from './suite.ts'

const suites: Readonly<Record<string, { description: string; load: () => Promise<BenchSuite> }>> = {
  learning: {
    description: 'held-out reward of the main example over ten seeds',
    load: async () => (await import('./suites/learning.ts')).learning,
  },
  trainers: {
    description: 'held-out reward of the main example with each trainer, and their curves in one picture',
    load: async () => (await import('./suites/trainers.ts')).trainers,
  },
  swarm: {
    description: 'a planner and its readers with two policies over ten seeds, beside one of them frozen, one policy, and one agent alone',
    load: async () => (await import('./suites/swarm.ts')).swarm,
  },
  engine: {
    description: 'training and sampling tokens per second beside PyTorch on the CPU',
    load: async () => (await import('./suites/engine.ts')).engine,
  },
  efficiency: {
    description: 'CPU and tokens of updates and of sampling, with what rows and prompts share computed once and many times',
    load: async () => (await import('./suites/efficiency.ts')).efficiency,
  },
  'token-in': {
    description: 'CPU of a call early and late in a conversation of 32,000 tokens',
    load: async () => (await import('./suites/token-in.ts')).tokenIn,
  },
  health: {
    description: 'how long /health takes while many clients send the largest prompts allowed',
    load: async () => (await import('./suites/health.ts')).health,
  },
  store: {
    description: 'reads of a run with 4,000 and 100,000 rollouts, and of a million events',
    load: async () => (await import('./suites/store.ts')).store,
  },
  dashboard: {
    description: 'the pages of the dashboard in Chromium: events to pixels, training beside them, 100,000 rollouts, 131,072 tokens',
    load: async () => (await import('./suites/dashboard.ts')).dashboard,
  },
  environment: {
    description: 'leases, commands and shells of the tool environment beside the plain SDK and a plain spawn',
    load: async () => (await import('./suites/environment.ts')).environment,
  },
  evaluation: {
    description: 'an evaluation of 480 rollouts beside the calls of its agents made directly, at answers of 500 and 50 ms',
    load: async () => (await import('./suites/evaluation.ts')).evaluation,
  },
  executor: {
    description:
      'speed-up over one rollout after another (a), with a worker killed (b), rollouts a second of each engine (c), steps with groups carried over beside the barrier (d), time to a reward with a slow tool (e), 100,000 short rollouts (rollouts), a pod for each of them (pods; builds Kubernetes once)',
    load: async () => (await import('./suites/executor.ts')).executor,
  },
  gateway: {
    description: 'CPU for a call beside a bare relay, haproxy, Portkey and LiteLLM; thousands of rollouts; memory',
    load: async () => (await import('./suites/gateway.ts')).gateway,
  },
}

const [name, ...args] = process.argv.slice(2)
const suite = name === undefined ? undefined : suites[name]
if (!suite) {
  const lines = Object.entries(suites).map(([each, { description }]) => `  npm run bench -- ${each.padEnd(10)} ${description}`)
  process.stderr.write(`${name === undefined ? 'Name a suite:' : `There is no suite "${name}"; choose one:`}\n${lines.join('\n')}\n`)
  process.exit(2)
}

const { rows, notes } = await (await suite.load()).run(args)
const width = Math.max(...rows.map(({ measure }) => measure.length))
for (const row of rows) {
  const { measure, unit, better, ours, peers } = row
  const cells = Object.entries(peers).map(([peer, value]) => `${peer} ${format(value.median)}  ratio ${format(value.ratio)}`)
  process.stdout.write(
    `${measure.padEnd(width)}  ${format(ours.median)} ${unit} [${format(ours.min)}, ${format(ours.max)}] (${better} is better)${cells.length > 0 ? `  ${cells.join('  ')}` : ''}${describeBound(row)}\n`,
  )
}
for (const note of notes) process.stdout.write(`${note}\n`)
const folder = fileURLToPath(new URL('results/', import.meta.url))
await mkdir(folder, { recursive: true })
await writeFile(
  `${folder}${resultName(name as string, args)}.json`,
  `${JSON.stringify({ version: 1, suite: name, node: process.version, platform: `${process.platform}-${process.arch}`, rows, notes }, null, 2)}\n`,
)

function describeBound(row: BenchRow): string {
  const kept = keepsBound(row)
  if (!row.bound || kept === null) return ''
  const { atMost, of } = row.bound
  return `  at most ${atMost}${of === undefined ? '' : ` x ${of}`}: ${kept ? 'kept' : 'NOT KEPT'}`
}

function format(value: number): string {
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}
