import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startBridgeService } from './start-bridge-service.ts'
import type { TrainWorker } from './train-worker.ts'

const model = fileURLToPath(new URL('../../../examples/periodic-table/model', import.meta.url))

async function writeTasks(file: string, count: number, content: (index: number) => string): Promise<string> {
  const lines = Array.from({ length: count }, (_, index) => ({
    id: `t${index}`,
    row: { prompt: [{ role: 'user', content: content(index) }], dataSource: 'toy', rewardModel: null, extraInfo: {}, index, columns: {} },
  }))
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

export interface TrainedLine {
  readonly step: number
  readonly keys: readonly { readonly key: string; readonly maskTokens: number }[]
  readonly rowsPadded: number
  readonly maxLogprobDifference: number | null
}

export interface Training {
  readonly path: string
  train(incarnation: string, configuration?: Readonly<Record<string, unknown>>, fault?: string): ReturnType<TrainWorker['train']>
  ledger<Line>(incarnation: string, name: string): Promise<Line[]>
  metrics(): Promise<{ readonly step: number; readonly data: Readonly<Record<string, number>> }[]>
  [Symbol.asyncDispose](): Promise<void>
}

export interface TrainingOptions {
  /** Folder that gets one of the training. */
  readonly folder: string
  readonly worker: TrainWorker
  /** What the framework's configuration says of every training. */
  readonly configuration?: Readonly<Record<string, unknown>>
  /** Fields of peft, for a framework whose plan has them. */
  readonly lora?: Readonly<Record<string, unknown>> | null
  /** The text of a training task by its place. */
  readonly content?: (index: number) => string
  /** What else bridge-service.ts is started with. */
  readonly setting?: Readonly<Record<string, unknown>>
}

/** Eight tasks to train and three to evaluate, the service that rolls them out, and a framework that trains on the main example's model. */
export async function openTraining(options: TrainingOptions): Promise<Training> {
  const { folder, worker, configuration: general = {}, lora = null, content = (index: number) => `task ${index}`, setting } = options
  const path = await mkdtemp(join(folder, 'training-'))
  const serviceOptions = { path: join(path, 'run'), port: 0, token: 't', directory: model, turns: 2, rows: 'last', reward: 'length' }
  const service = await startBridgeService({ ...serviceOptions, ...setting })
  const tasks = {
    train: await writeTasks(join(path, 'train.jsonl'), 8, content),
    test: await writeTasks(join(path, 'test.jsonl'), 3, content),
  }
  const read = async <Line>(file: string) =>
    (await readFile(file, 'utf8').catch(() => ''))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
  return {
    path,
    train: (incarnation, configuration = {}, fault) =>
      worker.train({
        fault,
        metrics: join(path, 'metrics.jsonl'),
        plan: {
          model,
          configuration: {
            max_steps: 2,
            num_generations: 4,
            per_device_train_batch_size: 8,
            max_completion_length: 160,
            learning_rate: 1e-3,
            save_strategy: 'no',
            ...general,
            ...configuration,
          },
          lora,
          tasks,
          evaluation: { samples: 2 },
          maxPromptTokens: 200,
          logprobTolerance: 1e-4,
          checkpoints: join(path, 'checkpoints'),
        },
        environment: {
          AWORLD_TRAIN_CHANNEL: service.url,
          AWORLD_TRAIN_CHANNEL_TOKEN: 't',
          AWORLD_TRAIN_RUN: 'demo',
          AWORLD_TRAIN_INCARNATION: incarnation,
          AWORLD_TRAIN_RUN_PATH: path,
        },
      }),
    async ledger<Line>(incarnation: string, name: string) {
      const directory = join(path, 'ledger', incarnation)
      const files = (await readdir(directory).catch(() => [])).filter((file) => file.startsWith(`${name}-`))
      return (await Promise.all(files.map((file) => read<Line>(join(directory, file))))).flat()
    },
    metrics: () => read(join(path, 'metrics.jsonl')),
    [Symbol.asyncDispose]: () => service.close(),
  }
}

/** By a task's place: every second one throws, makes no call of a model, or has a prompt that no row holds. */
export const everySecondFails = (index: number): string =>
  index % 2 ? ['This throws.', 'This asks nothing.', 'long '.repeat(200)][((index - 1) / 2) % 3]! : `task ${index}`

/** Tokens of lines of the ledger. */
export const total = (lines: readonly { readonly tokens: number }[]) => lines.reduce((sum, { tokens }) => sum + tokens, 0)
