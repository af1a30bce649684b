import { TrainError } from '@aworld-train/core'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'

interface RunConfigFields {
  /** Engine that runs the tasks; `local` is this process. */
  readonly engineName?: string | undefined
  /** Tasks that run at once. Default: `defaultConcurrency`. */
  readonly workerNum?: number | undefined
  /** Whether tasks run one after another, in order. */
  readonly sequenceDependent?: boolean | undefined
  readonly reuseProcess?: boolean | undefined
  readonly respCarryContext?: boolean | undefined
  readonly jobName?: string | undefined
  /** A launcher of your own, as `./launcher.ts#createLauncher`. */
  readonly cls?: unknown
  /** Address of the engine. */
  readonly address?: string | undefined
  /** Tasks that one worker runs at once. */
  readonly slots?: number | undefined
  /** Resources that each worker needs of its machine, in the engine's own terms. */
  readonly resources?: Readonly<Record<string, unknown>> | undefined
  /** Variables that each worker gets. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

export type RunConfigOptions = EitherCase<RunConfigFields>

const optionNames = [
  'engineName',
  'workerNum',
  'sequenceDependent',
  'reuseProcess',
  'respCarryContext',
  'jobName',
  'cls',
  'address',
  'slots',
  'resources',
  'env',
]
const withoutEffect = ['inLocal', 'eventBus', 'tracer']

/** AWorld's names of engines that start workers elsewhere. */
const distributedEngines: readonly string[] = ['ray', 'spark', 'k8s', 'kubernetes']

/** Tasks that run at once if `workerNum` is not set. */
const defaultConcurrency = 16

/** Settings of where and how tasks run. Keys are in camelCase or snake_case. */
export class RunConfig {
  readonly engineName: string
  readonly workerNum: number | undefined
  readonly sequenceDependent: boolean
  readonly reuseProcess: boolean
  readonly respCarryContext: boolean
  readonly jobName: string
  readonly cls: unknown
  readonly address: string | undefined
  readonly slots: number | undefined
  readonly resources: Readonly<Record<string, unknown>> | undefined
  readonly env: Readonly<Record<string, string>> | undefined

  constructor(input: RunConfigOptions = {}) {
    const { options } = readNamedOptions(input, { owner: 'RunConfig', optionNames, withoutEffect })
    this.engineName = String(options['engineName'] ?? 'local')
    this.workerNum = readCount('workerNum', options['workerNum'])
    this.slots = readCount('slots', options['slots'])
    this.sequenceDependent = options['sequenceDependent'] === true
    this.reuseProcess = options['reuseProcess'] !== false
    this.respCarryContext = options['respCarryContext'] !== false
    this.jobName = String(options['jobName'] ?? 'aworld_job')
    this.cls = options['cls']
    this.address = options['address'] as string | undefined
    this.resources = options['resources'] as RunConfig['resources']
    this.env = options['env'] as RunConfig['env']
  }

  /** Number of tasks that run at once in this process. Throws CONFIG_INVALID if the engine is another one or has workers. */
  concurrency(): number {
    if (this.engineName !== 'local' || this.cls !== undefined) {
      const what = this.cls === undefined ? `engineName ${describeValue(this.engineName)}` : 'a "cls" of your own'
      throw distributedEngines.includes(this.engineName)
        ? liveAgents(what, 'use engineName "local"')
        : new TrainError('CONFIG_INVALID', `RunConfig: ${what}: Runners start no workers; use engineName "local".`)
    }
    if (!this.reuseProcess) throw liveAgents('reuseProcess false', 'leave it out')
    const { slots, resources, env, address } = this
    for (const [name, value] of Object.entries({ slots, resources, env, address })) {
      if (value === undefined) continue
      const remedy = name === 'slots' ? 'leave it out, and set workerNum to the tasks that run at a time' : 'leave it out'
      throw new TrainError('CONFIG_INVALID', `RunConfig: "${name}" is for workers, and Runners start none; ${remedy}.`)
    }
    return this.sequenceDependent ? 1 : (this.workerNum ?? defaultConcurrency)
  }
}

function liveAgents(what: string, remedy: string): TrainError {
  const elsewhere = 'run rollouts of an agent in a module with "executor" of a training or of "aworld-train serve"'
  return new TrainError(
    'CONFIG_INVALID',
    `RunConfig: ${what}: tasks of Runners have live agents, which no other process can have; ${remedy}, or ${elsewhere}.`,
  )
}

function readCount(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (Number.isInteger(value) && Number(value) >= 1) return value as number
  throw new TrainError('CONFIG_INVALID', `RunConfig: "${name}" is ${describeValue(value)}; give a whole number of at least 1.`)
}
