export { Agent, type AgentOptions } from './agent.ts'
export { AgentConfig, type AgentConfigFields, type AgentConfigOptions } from './agent-config.ts'
export { toAgentProgram } from './agent-program.ts'
export { type AgentDefinition, defineAgents } from './define-agents.ts'
export type * from './hooks.ts'
export { type LoadAgentsOptions, type LoadedAgents, loadAgentsFromObject, loadAgentsFromYaml } from './load-agents.ts'
export type * from './program-types.ts'
export { RunConfig, type RunConfigOptions } from './run-config.ts'
export { createRunners, Runners, type RunnersOptions, type TaskInput, type TaskRunOptions } from './runners.ts'
export {
  GraphBuildType,
  type GroupAgentOptions,
  HandoffSwarm,
  ParallelizableAgent,
  SerialableAgent,
  TeamSwarm,
  WorkflowSwarm,
} from './swarm/aworld-shapes.ts'
export { type Group, parallel, type SwarmPart, serial } from './swarm/group.ts'
export type { EdgeCondition, SwarmEdge, SwarmEdgeOptions, SwarmEntry } from './swarm/layout.ts'
export { LoopableAgent, type LoopableAgentOptions, type LoopRun } from './swarm/loopable-agent.ts'
export type { AggregateFunction } from './swarm/swarm-types.ts'
export { Swarm, type SwarmOptions } from './swarm.ts'
export { Task, type TaskOptions, type TaskResponse, type TaskStatus } from './task.ts'
export { defineState, type Tool, type ToolContext, type ToolOptions, tool } from './tool.ts'
