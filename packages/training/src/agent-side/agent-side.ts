import {
  type AnswerKey,
  type EpisodeReader,
  type RolloutWriter,
  type RunEvent,
  type RunProgress,
  type SubmissionStore,
  TrainError,
} from '@aworld-train/core'
import type { Gateway } from '@aworld-train/gateway'
import {
  type ChannelServer,
  type ChannelServerOptions,
  createChannelAnswers,
  createChannelServer,
  createRolloutRunner,
  createRolloutServer,
  createRolloutService,
  type InProcessRolloutRunner,
  type RolloutRunnerOptions,
  type RolloutServer,
  type RolloutServerOptions,
  type RolloutService,
  type RolloutServiceLimits,
  registerWorkerMetrics,
} from '@aworld-train/rollout'
import type { LocalConfig } from '../config/local-config.ts'
import { concurrencyOf } from '../executor/find-launcher.ts'

/** Answers that are known before a rollout is submitted. */
export interface KnownAnswers {
  /** Source of the answers, for messages. */
  readonly source: string
  readonly byTask: ReadonlyMap<string, AnswerKey>
}

export interface AgentSideOptions extends Omit<RolloutRunnerOptions, 'answerKey' | 'onEvent'> {
  /** The program of an Agent or a Swarm may hold connections; they are closed with the runner. */
  readonly program: RolloutRunnerOptions['program'] & { close?(): Promise<void> }
  /** It also shows the metrics of workers. */
  readonly gateway: RolloutRunnerOptions['gateway'] & Pick<Gateway, 'registry'>
  /** `null` where no answers are known. */
  readonly answers: KnownAnswers | null
  readonly onEvent: (event: RunEvent) => void
}

/** The settings of a configuration for the runner of rollouts. */
export const runnerSettings = ({
  executor,
  reward,
  concurrency,
}: Pick<LocalConfig, 'executor' | 'reward' | 'concurrency'>): Pick<
  RolloutRunnerOptions,
  'scoreUnfinished' | 'concurrency' | 'maxLosses'
> => ({
  scoreUnfinished: reward.unfinished,
  concurrency: concurrencyOf(executor, concurrency),
  maxLosses: executor.maxLosses,
})

/** Opens the runner of an agent's rollouts in its environment; `stack` closes it. */
export function openAgentSide(stack: AsyncDisposableStack, options: AgentSideOptions): InProcessRolloutRunner {
  stack.defer(async () => await options.program.close?.())
  return stack.adopt(createRunner(options, noAnswer), (each) => each.close())
}

/** The files that clients and trainer clients may name in a task. */
export interface TaskFiles {
  /** Source of the files, for messages. */
  readonly source: string
  /** The file at a path; `null` for a path that is not allowed. */
  fileOf(path: string): string | null
}

export interface ServedAgentSideOptions extends AgentSideOptions {
  readonly store: RolloutWriter & SubmissionStore & EpisodeReader & Pick<RunProgress, 'getState' | 'setState'>
  readonly serviceLimits?: Partial<RolloutServiceLimits> | undefined
  /** The files that tasks may name. Default: all. */
  readonly taskFiles?: TaskFiles | undefined
  /** Options of the channel to a trainer client; `null` where there is none. A trainer client scores where there is no reward on this side. */
  readonly channel: Omit<ChannelServerOptions, 'service' | 'store' | 'answers' | 'reward'> | null
  readonly server: Omit<RolloutServerOptions, 'service' | 'channel'>
}

export interface ServedAgentSide {
  readonly runner: InProcessRolloutRunner
  readonly service: RolloutService
  readonly server: RolloutServer
  /** `null` without a channel. */
  readonly channel: ChannelServer | null
}

/** Opens the agent side as `openAgentSide` does, and serves its rollouts to clients, and to a trainer client. */
export async function serveAgentSide(stack: AsyncDisposableStack, options: ServedAgentSideOptions): Promise<ServedAgentSide> {
  const { program, store, reward, answers, taskFiles, onEvent } = options
  stack.defer(async () => await program.close?.())
  const rowAnswers = createChannelAnswers()
  const opened = Promise.withResolvers<InProcessRolloutRunner>()
  const service = stack.adopt(
    createRolloutService({
      store,
      limits: options.serviceLimits,
      check({ task }) {
        const withheld = taskFiles && task.files?.find((path) => taskFiles.fileOf(path) === null)
        if (withheld !== undefined) {
          const message = `Task "${task.id}" names ${JSON.stringify(withheld)}, which is no file below the folders of ${taskFiles!.source}; add its folder there, or correct the path.`
          throw new TrainError('ROLLOUT_INVALID', message)
        }
        if (reward === null || answers === null || answers.byTask.has(task.id) || rowAnswers.has(task.id)) return
        const message = `Task "${task.id}" is not in ${answers.source}, so its reward would know no answer; add the task there, or submit one of its ${answers.byTask.size} tasks.`
        throw new TrainError('ROLLOUT_INVALID', message)
      },
      openRunner(tell) {
        const onRolloutEvent = (event: RunEvent) => {
          onEvent(event)
          tell(event)
        }
        const runner = createRunner({ ...options, onEvent: onRolloutEvent }, rowAnswers.answerKey)
        opened.resolve(runner)
        return runner
      },
    }),
    (each) => each.close(),
  )
  const channel =
    options.channel &&
    stack.adopt(
      createChannelServer({
        ...options.channel,
        service,
        store,
        answers: rowAnswers,
        reward: reward === null ? 'native' : 'service',
      }),
      (each) => each.close(),
    )
  const runner = await opened.promise
  const workers = options.server.workers && { ...options.server.workers, rows: () => runner.workers.rows() }
  const server = stack.adopt(
    await createRolloutServer({ ...options.server, service, ...(channel && { channel }), ...(workers && { workers }) }),
    (each) => each.close(),
  )
  return { runner, service, server, channel }
}

const noAnswer = (taskId: string): AnswerKey => ({ version: 1, taskId, groundTruth: null })

/** Creates the runner. The answer to a task comes from `answerOf`, or from `answers` where that has none. */
function createRunner({ answers, ...options }: AgentSideOptions, answerOf: (taskId: string) => AnswerKey): InProcessRolloutRunner {
  const runner = createRolloutRunner({
    ...options,
    answerKey(taskId) {
      const answer = answerOf(taskId)
      return answer.groundTruth === null ? (answers?.byTask.get(taskId) ?? answer) : answer
    },
  })
  if (options.workers) registerWorkerMetrics(options.gateway.registry, () => runner.workers.rows())
  return runner
}
