import { isRecord, TrainError } from '@aworld-train/core'
import { Agent, type AgentOptions } from '../agent.ts'
import { describeValue, type EitherCase, readNamedOptions, toCamelCase } from '../named-options.ts'

/** One run of a loop. */
export interface LoopRun {
  /** The answer of this run. */
  readonly answer: string
  /** How many times the agent has answered, this run among them. */
  readonly runTimes: number
}

interface LoopFields {
  /** Most runs of the loop; required. After the last one the workflow goes on with its answer. */
  readonly maxRunTimes?: number | undefined
  /** Name of the agent that gets the answer and runs again: this one, or one before it in the workflow. Default: this one. */
  readonly loopPoint?: string | undefined
  /** Chooses the loop point after each run. */
  readonly loopPointFinder?: ((agent: LoopableAgent, run: LoopRun) => string | Promise<string>) | undefined
  /** Ends the loop where it returns true. */
  readonly stopFunc?: ((agent: LoopableAgent, run: LoopRun) => boolean | Promise<boolean>) | undefined
}

export type LoopableAgentOptions = AgentOptions & EitherCase<LoopFields>

const optionNames = ['maxRunTimes', 'loopPoint', 'loopPointFinder', 'stopFunc'] satisfies (keyof LoopFields)[]

/** An agent that has its part of a workflow run again, until `stopFunc` says so or it has run `maxRunTimes` times. */
export class LoopableAgent extends Agent {
  readonly maxRunTimes: number
  readonly loopPoint: string | undefined
  readonly loopPointFinder: LoopFields['loopPointFinder']
  readonly stopFunc: LoopFields['stopFunc']

  constructor(input: LoopableAgentOptions) {
    const entries = isRecord(input) ? Object.entries(input) : []
    const isOwn = ([key]: [string, unknown]) => optionNames.some((name) => name === toCamelCase(key))
    super(isRecord(input) ? Object.fromEntries(entries.filter((entry) => !isOwn(entry))) : input)
    const owner = `LoopableAgent "${this.name}"`
    const { options } = readNamedOptions(Object.fromEntries(entries.filter(isOwn)), { owner, optionNames })
    const { maxRunTimes, loopPoint, loopPointFinder, stopFunc } = options
    if (!Number.isInteger(maxRunTimes) || Number(maxRunTimes) < 1) {
      throw new TrainError(
        'CONFIG_INVALID',
        `${owner}: "maxRunTimes" is ${describeValue(maxRunTimes)}, so that the loop may have no end; give a whole number of at least 1.`,
      )
    }
    if (loopPoint !== undefined && (typeof loopPoint !== 'string' || loopPoint === ''))
      throw new TrainError('CONFIG_INVALID', `${owner}: "loopPoint" must be the name of an agent, and is ${describeValue(loopPoint)}.`)
    for (const [name, value] of Object.entries({ loopPointFinder, stopFunc })) {
      if (value !== undefined && typeof value !== 'function')
        throw new TrainError('CONFIG_INVALID', `${owner}: "${name}" must be a function, and is ${describeValue(value)}.`)
    }
    this.maxRunTimes = maxRunTimes as number
    this.loopPoint = loopPoint as string | undefined
    this.loopPointFinder = loopPointFinder as LoopFields['loopPointFinder']
    this.stopFunc = stopFunc as LoopFields['stopFunc']
  }
}
