import { createRunners as createAgentRunners, type RunnersOptions, type Runners as RunnersShape } from '@aworld-train/agent'
import { runInSlots } from '@aworld-train/rollout'
import { createEnvironment } from './environment.ts'

/**
 * Creates runners over an environment; the scheduler of rollouts runs their tasks. Without an environment, agents with an `mcpConfig` are
 * refused.
 */
export function createRunners(options: RunnersOptions = {}): RunnersShape {
  return createAgentRunners({ runInSlots, ...options })
}

/** Runners whose agents may have MCP servers. Each call opens an environment of its own and closes it. */
export const Runners: RunnersShape = {
  run: ((...input: Parameters<RunnersShape['run']>) => withEnvironment((runners) => runners.run(...input))) as RunnersShape['run'],
  syncRun: ((...input: Parameters<RunnersShape['run']>) => withEnvironment((runners) => runners.run(...input))) as RunnersShape['run'],
  runTask: (...input) => withEnvironment((runners) => runners.runTask(...input)),
  execTasks: (...input) => withEnvironment((runners) => runners.execTasks(...input)),
  serialExecTasks: (...input) => withEnvironment((runners) => runners.serialExecTasks(...input)),
}

/** Runs tasks, several at a time. Resolves to responses by task id. */
export const execTasks: RunnersShape['execTasks'] = Runners.execTasks

/** Runs tasks in order. The answer of one is the input of the next. */
export const serialExecTasks: RunnersShape['serialExecTasks'] = Runners.serialExecTasks

async function withEnvironment<Value>(use: (runners: RunnersShape) => Promise<Value>): Promise<Value> {
  const environment = createEnvironment()
  try {
    return await use(createRunners({ environment }))
  } finally {
    await environment.close()
  }
}
