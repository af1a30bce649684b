import { TrainError } from '@aworld-train/protocol'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'

interface RunConfigFields {
  /** Where tasks run; `local` is this process. */
  readonly engineName?: string | undefined
  /** Tasks at a time; absent: see `defaultConcurrency`. */
  readonly workerNum?: number | undefined
  /** One task after another, in order. */
  readonly sequenceDependent?: boolean | undefined
  readonly reuseProcess?: boolean | undefined
  readonly respCarryContext?: boolean | undefined
  readonly jobName?: string | undefined
  readonly cls?: unknown
}

export type RunConfigOptions = EitherCase<RunConfigFields>

const optionNames = ['engineName', 'workerNum', 'sequenceDependent', 'reuseProcess', 'respCarryContext', 'jobName', 'cls']
const withoutEffect = ['inLocal', 'eventBus', 'tracer']

/** Engine names of AWorld that start workers elsewhere. */
const distributedEngines: readonly string[] = ['ray', 'spark', 'k8s', 'kubernetes']

/** Tasks that run at a time when `workerNum` is not set. */
const defaultConcurrency = 16

/** Where and how tasks run. Keys in camelCase or snake_case. */
export class RunConfig {
  readonly engineName: string
  readonly workerNum: number | undefined
  readonly sequenceDependent: boolean
  readonly reuseProcess: boolean
  readonly respCarryContext: boolean
  readonly jobName: string
  readonly cls: unknown

  constructor(input: RunConfigOptions = {}) {
    const { options } = readNamedOptions(input, { owner: 'RunConfig', optionNames, withoutEffect })
    this.engineName = String(options['engineName'] ?? 'local')
    this.workerNum = readWorkerNum(options['workerNum'])
    this.sequenceDependent = options['sequenceDependent'] === true
    this.reuseProcess = options['reuseProcess'] !== false
    this.respCarryContext = options['respCarryContext'] !== false
    this.jobName = String(options['jobName'] ?? 'aworld_job')
    this.cls = options['cls']
  }

  /** How many tasks run at a time in this process; throws CONFIG_INVALID where the engine is another one. */
  concurrency(): number {
    if (this.engineName !== 'local' || this.cls !== undefined) {
      const what = this.cls === undefined ? `engineName ${describeValue(this.engineName)}` : 'a "cls" of your own'
      const hint = distributedEngines.includes(this.engineName) ? ' is known but not yet' : ' is not'
      throw new TrainError('CONFIG_INVALID', `RunConfig: ${what}${hint} supported by Runners; use engineName "local".`)
    }
    return this.sequenceDependent ? 1 : (this.workerNum ?? defaultConcurrency)
  }
}

function readWorkerNum(value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (Number.isInteger(value) && Number(value) >= 1) return value as number
  throw new TrainError('CONFIG_INVALID', `RunConfig: "workerNum" is ${describeValue(value)}; give a whole number of at least 1.`)
}
