import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Turn, trainedLength } from '@aworld-train/core'
import { type RunReader, readRun } from '@aworld-train/store'
import { LocalConfig } from '@aworld-train/training'
import definition from '../../examples/periodic-table/aworld-train.config.ts'
import { commandsOf } from '../../packages/engines/src/local/learner/batch-writer.ts'
import { distinctRows, layOutRows } from '../../packages/engines/src/local/learner/fold-rows.ts'
import { assembleBatch } from '../../packages/training/src/loop/assemble-batch.ts'
import { learningRateAt } from '../../packages/training/src/loop/learning-rate.ts'
import { updatePolicy } from '../../packages/training/src/loop/update-policy.ts'
import { cpuOf, inTurns, openTrainers } from './learners.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const project = join(root, 'examples/periodic-table')
export const exampleModel = join(project, 'model')

/** Trains the main example with a learner that folds and one that does not, and repeats the updates of the first run with both. */
export async function runExample(seed: number) {
  const runPath = await mkdtemp(join(tmpdir(), 'bench-efficiency-'))
  try {
    const command = await inTurns(seed, (folds) => train(seed, folds, join(runPath, `${folds}`)))
    const [name] = await readdir(join(runPath, 'true'))
    const run = readRun(join(runPath, 'true', name!))
    try {
      return { command, ...(await repeatUpdates(run)), ...countSampled(run) }
    } finally {
      run.close()
    }
  } finally {
    await rm(runPath, { recursive: true, force: true })
  }
}
export type ExampleRun = Awaited<ReturnType<typeof runExample>>

/** Trains as `npm start` does; resolves to the seconds of CPU of the command with its children. */
async function train(seed: number, folds: boolean, runPath: string): Promise<number> {
  const hook = folds ? [] : ['--import', new URL('without-folding.ts', import.meta.url).href]
  const command = [...hook, join(root, 'packages/cli/src/main.ts'), 'train', project, '--seed', `${seed}`, '--run-path', runPath]
  const child = spawn('sh', ['-c', '"$@" >&2 && times', 'sh', process.execPath, ...command], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  // `times` prints user and system of the shell and then of its children, such as 0m1.5s.
  const times = [...text.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds))
  if (times.length !== 4) throw new Error(`The main example failed: ${command.join(' ')}`)
  return times[2]! + times[3]!
}

/** Seconds of CPU of all updates of a run, and the tokens of their rows: as they are forwarded, and each prefix once. */
async function repeatUpdates(run: RunReader) {
  const own = definition.config as { readonly training: object; readonly sampling: object }
  const { training, sampling } = LocalConfig.parse({ training: own.training, sampling: own.sampling })
  await using trainers = await openTrainers(exampleModel)
  const updates = { folded: 0, unfolded: 0 }
  const trained = { folded: 0, unfolded: 0, distinct: 0 }
  for (const { step, rollouts } of run.steps()) {
    const episodes = Map.groupBy(
      rollouts.map((key) => run.episode(key)!),
      ({ group }) => group,
    )
    const { groups } = assembleBatch([...episodes.values()], training)
    const rows = groups.flat().map((sample) => sample.tokenIds.subarray(0, trainedLength(sample)))
    if (rows.length === 0) continue
    const learningRate = learningRateAt(step, run.steps().length, training)
    const spent = await inTurns(step, (folds) => {
      const { learner } = trainers.of(folds)
      return cpuOf(() => updatePolicy({ learner, groups, settings: training, learningRate, temperature: sampling.temperature }))
    })
    for (const name of ['folded', 'unfolded'] as const) {
      const { layout } = trainers.of(name === 'folded').pool
      const passes = { shards: layout.options.shards, passTokens: layout.passTokens }
      for (const command of commandsOf(rows, layout)) trained[name] += layOutRows(command, passes).tokens.length
      updates[name] += spent[name] / 1000
    }
    trained.distinct += distinctTokens(rows)
  }
  return { updates, trained }
}

/** Positions that the sampler computed for rollouts that train, and each prefix once by the version of its weights; and the first prompts. */
function countSampled(run: RunReader) {
  const turns = [...run.episodes({ split: 'train' })].flatMap(({ trajectories }) => trajectories.flatMap((each) => each.turns))
  const versionOf = (turn: Turn): number => turn.weightVersions[0]!.version
  const sampled = { computed: 0, distinct: 0 }
  for (const ofVersion of Map.groupBy(turns, versionOf).values()) {
    // Nothing is computed after the last token.
    const rows = ofVersion.map((turn) => Int32Array.from([...turn.promptTokenIds, ...turn.completionTokenIds.slice(0, -1)]))
    sampled.computed += ofVersion.reduce((sum, { usage }, i) => sum + rows[i]!.length - usage.cachedTokens, 0)
    sampled.distinct += distinctTokens(rows)
  }
  const first = Math.min(...turns.map(versionOf))
  const begun = turns.filter((turn) => turn.index === 0 && versionOf(turn) === first)
  return { sampled, prompts: begun.map((turn) => turn.promptTokenIds) }
}

const distinctTokens = (rows: readonly Int32Array[]): number =>
  distinctRows(rows).reduce((sum, { tokens, common }) => sum + tokens.length - common, 0)
