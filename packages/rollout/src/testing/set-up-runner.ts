import type { AgentTask, Message, RolloutContext, RunEvent } from '@aworld-train/core'
import type { RolloutRunnerOptions } from '../rollout-options.ts'
import { createRolloutRunner } from '../rollout-runner.ts'
import { memoryEnvironment } from './memory-environment.ts'
import { memoryGateway, type Saying } from './memory-gateway.ts'
import { memoryStore } from './memory-store.ts'
import { exactReward, program } from './rollout-fixtures.ts'

const user: Message = { role: 'user', content: 'Go on.' }

export interface RunnerSetup extends Partial<RolloutRunnerOptions> {
  readonly say?: (messages: readonly Message[], session: { attempt: number; taskId: string }, call: number) => Saying
  readonly agent: (
    context: RolloutContext,
    ask: (messages?: readonly Message[]) => Promise<Message>,
    task: AgentTask,
  ) => Promise<string | null>
}

/** A runner whose policy answers as `say` does, and whose only agent acts as `agent` does. */
export function setUpRunner({ say = () => ({ content: 'yes' }), agent, ...options }: RunnerSetup) {
  const gateway = memoryGateway(say)
  const environment = memoryEnvironment()
  const store = memoryStore()
  const events: RunEvent[] = []
  const runner = createRolloutRunner({
    program: program(async (task, context) => {
      const ask = async (messages: readonly Message[] = [user]) => gateway.call(context.policy(), messages, context.signal)
      return { answer: await agent(context, ask, task), messages: [] }
    }),
    gateway,
    environment,
    reward: exactReward(),
    store,
    answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
    abandonAfterMs: 30,
    onEvent: (event) => events.push(event),
    ...options,
  })
  return { gateway, environment, store, events, runner }
}

/** An agent that asks its policy once. */
export const askOnce: RunnerSetup['agent'] = async (_, ask) => (await ask()).content
