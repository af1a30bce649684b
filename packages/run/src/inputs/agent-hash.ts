import { stableHash } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { bytesHash } from './input-hashes.ts'
import type { LoadedAgent } from './loaded-agent.ts'

/**
 * Tells whether two machines have the same agent: the bytes of the files that name it, and what it declares. Modules that
 * these import are not looked at. Throws CONFIG_INVALID for a live object, which no other process can have.
 */
export function agentHash({ program, files }: Pick<LoadedAgent, 'program' | 'files'>): string {
  if (files.length === 0) {
    throw new TrainError(
      'CONFIG_INVALID',
      'The agent is a live object, which no other process can have; export it from a module and name that, as ./agent.ts#agent, or run agents in this process (executor.engineName "local" without workerNum).',
    )
  }
  const agents = program.agents.map(({ name, trainable, model, functions }) => ({ name, trainable, model, functions }))
  return stableHash({ files: files.map(bytesHash), agents }).slice(0, 16)
}
