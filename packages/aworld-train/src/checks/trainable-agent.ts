import { TrainError } from '@aworld-train/core'
import type { LoadedAgent } from '@aworld-train/training'
import { loadAgent, type TrainableAgent } from '../load/load-agent.ts'

/** Loads an agent with at least one trained part. Throws AGENT_INVALID if all parts are frozen. */
export async function loadTrainableAgent(source: TrainableAgent, baseDirectory: string): Promise<LoadedAgent> {
  const loaded = await loadAgent(source, baseDirectory)
  const { agents } = loaded.program
  if (agents.some(({ trainable }) => trainable)) return loaded
  throw new TrainError(
    'AGENT_INVALID',
    `No agent uses the policy in training: ${agents.map(({ name }) => name).join(', ')} have addresses of their own. Leave llmBaseUrl out of the one to train.`,
  )
}
