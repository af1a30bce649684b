import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toYaml, writeParquet } from '@aworld-train/training'
import { stringify } from 'yaml'
import type { LocalPlan } from './plan.ts'

/**
 * Writes files for people to a run directory under AWorld's names: agent.yaml, final_trainer.yaml, train_data.parquet, test_data.parquet.
 */
export async function writeRunFiles(path: string, plan: LocalPlan): Promise<void> {
  const agents = plan.program.agents.map(({ name, trainable }) => ({
    name,
    trainable,
    ...(plan.agent.module ? { module: plan.agent.module } : {}),
  }))
  await writeFile(join(path, 'agent.yaml'), stringify(agents))
  await writeFile(join(path, 'final_trainer.yaml'), toYaml({ ...plan.config, seed: plan.seed }))
  await writeParquet(plan.train.tasks, plan.train.answers, join(path, 'train_data.parquet'))
  if (plan.validation) await writeParquet(plan.validation.tasks, plan.validation.answers, join(path, 'validation_data.parquet'))
  if (plan.test) await writeParquet(plan.test.tasks, plan.test.answers, join(path, 'test_data.parquet'))
}
