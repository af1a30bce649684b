import { existsSync, readFileSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import { Agent, type AgentFunction, loadAgentsFromYaml, Swarm, toAgentProgram } from '@aworld-train/agent'
import { type AgentProgram, errorMessage, TrainError } from '@aworld-train/core'
import { type LoadedAgent, loadExport, parseExportPath } from '@aworld-train/training'
import { parse } from 'yaml'
import { AworldAgentLoop, policyAddress } from '../aworld/agent-loop.ts'
import { buildAgents, isAgentLoopClass, refuseOtherLoop } from '../aworld/build-agents.ts'

/** Values that `AgentTrainer` takes as its agent. A path is a module (`./agent.ts#name`) or an agent.yaml. */
export type TrainableAgent = Agent | Swarm | AgentFunction | AgentProgram | AworldAgentLoop | (new () => AworldAgentLoop) | string

/** Converts any agent source to a program. AGENT_INVALID or MODULE_INVALID describe the error. */
export async function loadAgent(source: TrainableAgent, baseDirectory: string): Promise<LoadedAgent> {
  if (typeof source !== 'string') return { program: await toProgram(source), directory: baseDirectory, module: null, files: [] }
  const file = resolve(baseDirectory, source.split('#')[0] as string)
  if (['.yaml', '.yml'].includes(extname(file))) return await loadYaml(file)
  refusePython(source)
  return { program: await toProgram(await loadExport(source, baseDirectory)), directory: dirname(file), module: source, files: [file] }
}

async function toProgram(value: unknown): Promise<AgentProgram> {
  refuseOtherLoop(value)
  if (isAgentLoopClass(value) || value instanceof AworldAgentLoop)
    return toAgentProgram(await buildAgents(value), { policyBaseUrls: [policyAddress] })
  if (value instanceof Agent || value instanceof Swarm) return toAgentProgram(value)
  if (typeof value === 'function') return toAgentProgram(value as AgentFunction)
  if (isProgram(value)) return value
  throw new TrainError(
    'AGENT_INVALID',
    `${describe(value)} is not an agent; pass an Agent, a Swarm, a function (task, context) => answer, a class that extends AworldAgentLoop, or a path.`,
  )
}

function refusePython(path: string): void {
  if (!/\.py(?:#|$)/.test(path)) return
  throw new TrainError(
    'AGENT_INVALID',
    `The agent ${path} is a module of Python; write its build_agents() as buildAgents() of a class in TypeScript that extends AworldAgentLoop, and name ./file.ts#Class.`,
  )
}

async function loadYaml(file: string): Promise<LoadedAgent> {
  if (!existsSync(file)) throw new TrainError('AGENT_INVALID', `There is no agent file ${file}.`)
  const directory = dirname(file)
  let document: unknown
  try {
    document = parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new TrainError('AGENT_INVALID', `${file} is not YAML: ${errorMessage(cause)}`, { cause })
  }
  const target = targetOf(document, file)
  if (target !== null) {
    refusePython(target)
    const program = await toProgram(await loadExport(target, directory))
    return { program, directory, module: target, files: [file, parseExportPath(target, directory).file] }
  }
  const { source } = await loadAgentsFromYaml(file)
  return { program: toAgentProgram(source, { policyBaseUrls: [policyAddress] }), directory, module: null, files: [file] }
}

/** The `_target_` in the seeds' agent.yaml, which is a list of `{name, _target_}` or one such map, or the `module` of a rendered one. */
function targetOf(document: unknown, file: string): string | null {
  const entries = Array.isArray(document) ? document : [document]
  const targets = entries.filter(
    (entry): entry is Readonly<Record<string, unknown>> => typeof entry === 'object' && entry !== null && '_target_' in entry,
  )
  if (targets.length === 0) {
    if (document === null || document === undefined || Array.isArray(document)) {
      throw new TrainError('AGENT_INVALID', `${file} names no agent; give it an entry with "_target_: ./file.ts#Export".`)
    }
    return null
  }
  if (targets.length > 1) throw new TrainError('AGENT_INVALID', `${file} names ${targets.length} agent loops; keep the one to train.`)
  const [{ name: _name, _target_, module, ...rest }] = targets as [Readonly<Record<string, unknown>>]
  const isRendered = typeof _target_ === 'string' && _target_.startsWith('aworld_train_bridge.')
  const target = isRendered ? module : _target_
  if (isRendered && typeof module !== 'string')
    throw new TrainError('AGENT_INVALID', `${file} names no module of the agent; export it from one, and train it as ./file.ts#Export.`)
  const [unread] = isRendered ? [] : Object.keys(rest)
  if (unread !== undefined)
    throw new TrainError('AGENT_INVALID', `"${unread}" beside "_target_" in ${file} has no effect; set it in buildAgents().`)
  if (typeof target !== 'string' || target === '')
    throw new TrainError('AGENT_INVALID', `"_target_" in ${file} is not a path; write ./file.ts#Export.`)
  if (/^[\w.]+$/.test(target) && !/\.[cm]?[jt]s$/.test(target)) {
    throw new TrainError(
      'AGENT_INVALID',
      `"_target_: ${target}" in ${file} is a Python name; write the TypeScript class, as in ./custom-agent-loop.ts#${target.split('.').at(-1)}.`,
    )
  }
  return target
}

function isProgram(value: unknown): value is AgentProgram {
  return (
    typeof value === 'object' &&
    value !== null &&
    Array.isArray((value as AgentProgram).agents) &&
    typeof (value as AgentProgram).run === 'function'
  )
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object'
    ? `An object with the keys ${Object.keys(value).join(', ') || '(none)'}`
    : `${typeof value} ${JSON.stringify(value)}`
}
