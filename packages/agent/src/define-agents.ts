import { type AgentDeclaration, isRecord, TrainError } from '@aworld-train/core'
import { createFunctionProgram } from './agent-program.ts'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'
import type { AgentFunction, ClosableAgentProgram } from './program-types.ts'

/** An agent of a program that runs its agents itself. One without `model` is trained unless `trainable` is false. */
export interface AgentDefinition extends Partial<Omit<AgentDeclaration, 'name' | 'randomKey'>> {}

const optionNames = [
  'trainable',
  'model',
  'policy',
  'mcpConfig',
  'mcpServers',
  'hiddenTools',
  'functions',
  'definitions',
] satisfies (keyof AgentDefinition)[]

/**
 * Makes a program of several agents that `run` runs itself, in any framework: `context.policy(name)` is where the model of an agent is, and
 * `context.policy(name, place)` has a record for each time that it works. `place` is any name, or the id of the tool call that asked.
 */
export function defineAgents(agents: Readonly<Record<string, EitherCase<AgentDefinition>>>, run: AgentFunction): ClosableAgentProgram {
  if (typeof run !== 'function')
    throw new TrainError('AGENT_INVALID', `defineAgents got ${describeValue(run)} to run; pass a function (task, context) => answer.`)
  if (!isRecord(agents))
    throw new TrainError(
      'AGENT_INVALID',
      `defineAgents got ${describeValue(agents)} as its agents; name each, such as { lead: {}, reader: {} }.`,
    )
  const declarations = Object.entries(agents).map(([name, options]): AgentDeclaration => {
    const definition: AgentDefinition = readNamedOptions(options, { owner: `Agent "${name}"`, optionNames }).options
    return { name, trainable: definition.model === undefined, randomKey: 'prompt', ...definition }
  })
  if (declarations.length === 0)
    throw new TrainError('AGENT_INVALID', 'defineAgents names no agent; name each in its first argument, such as { lead: {}, reader: {} }.')
  return createFunctionProgram(declarations, run)
}
