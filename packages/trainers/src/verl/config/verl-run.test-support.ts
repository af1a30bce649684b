import type { PlanInputs } from '@aworld-train/core'
import { bridgeDirectory } from '../../shared/python-package.ts'

/** A run of 64 training and 8 test rows whose agent is a module. */
export function verlRun(parts: Partial<PlanInputs> = {}): PlanInputs {
  const path = parts.path ?? '/runs/gaia'
  return {
    path,
    name: 'gaia',
    agent: { name: 'gaia_agent', module: '/project/custom-agent-loop.ts#GaiaAgentLoop', directory: '/project', source: null },
    train: { path: `${path}/train_data.parquet`, rows: 64 },
    test: { path: `${path}/test_data.parquet`, rows: 8 },
    reward: null,
    bridgeDirectory,
    ...parts,
  }
}
