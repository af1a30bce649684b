import { agentLoopRows, agentRows } from './parity/agent-rows.ts'
import { configRows } from './parity/config-rows.ts'
import { environmentRows } from './parity/environment-rows.ts'
import type { ParitySection } from './parity/parity-row.ts'
import { commandRows, runFolderRows } from './parity/run-rows.ts'
import { runnerRows } from './parity/runner-rows.ts'
import { rewardRows, trainerRows } from './parity/trainer-rows.ts'
import { verlRows } from './parity/verl-rows.ts'

/** Every name, default, file and command of AWorld Train's documents, and ours. The guide is made from it and `parity.test.ts` runs it. */
export const parityTable: readonly ParitySection[] = [
  { title: 'The trainer', rows: trainerRows },
  { title: 'Rewards and data', rows: rewardRows },
  { title: 'The agent loop', rows: agentLoopRows },
  { title: 'Agents and swarms', rows: agentRows },
  { title: 'Runners and tasks', rows: runnerRows },
  { title: 'Tools', rows: environmentRows },
  { title: 'Configuration', rows: configRows },
  { title: 'verl', rows: verlRows },
  { title: 'The run folder', rows: runFolderRows },
  { title: 'Commands', rows: commandRows },
]
