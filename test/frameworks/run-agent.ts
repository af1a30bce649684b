import {
  type RolloutContext,
  type TokenReport,
  TrainError,
  type TrainingTask,
  type Trajectory,
  type Turn,
  tokenReport,
} from '@aworld-train/core'
import { inject } from 'vitest'
import type { Framework } from './frameworks.ts'
import type { Policy } from './start-policy.ts'

export interface AgentRun {
  readonly answer: string | null
  readonly turns: readonly Turn[]
  readonly trajectories: readonly Trajectory[]
  readonly report: TokenReport
  /** Requests that reached the gateway. */
  readonly calls: number
}

/** White space around the question: a client that takes it away between two calls begins a branch. */
const task: TrainingTask = {
  version: 1,
  id: 'gold-iron',
  hash: '0',
  input: ' What are the numbers of gold and iron? \n',
  data: {},
  dataSource: 'elements',
  extraInfo: {},
}

const noTools = () => {
  throw new TrainError('AGENT_INVALID', 'These agents have tools of their own.')
}

/** Runs an agent of a framework on one task in a session of its own. */
export async function runAgent(
  { gateway }: Policy,
  framework: Pick<Framework, 'load'>,
  stream: boolean,
  timeoutMs = 60_000,
): Promise<AgentRun> {
  const session = gateway.open({
    rollout: 'rollout',
    attempt: 0,
    taskId: task.id,
    sample: 0,
    policy: 'policy',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 },
    agents: [{ name: 'agent', trainable: true }],
  })
  const program = await framework.load({ stream, python: inject('python') })
  const context: RolloutContext = {
    rollout: 'rollout',
    attempt: 0,
    task,
    signal: AbortSignal.timeout(timeoutMs),
    limits: {},
    policy: (name = 'agent') => session.endpoint(name),
    file: async () => noTools(),
    tools: async () => noTools(),
    runTool: async () => noTools(),
    state: async () => noTools(),
    invoke: noTools,
  }
  try {
    const { answer } = await program.run(task, context)
    const trajectories = await session.close()
    const { calls } = gateway.counts()
    return { answer, trajectories, turns: trajectories[0]?.turns ?? [], report: tokenReport(trajectories, gateway.counts()), calls }
  } finally {
    await session.close()
    await program.close()
  }
}
