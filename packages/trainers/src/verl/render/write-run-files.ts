import { statSync } from 'node:fs'
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TrainerData } from '@aworld-train/core'
import type { VerlPlan } from '../config/verl-config.ts'
import { renderAgentYaml } from './agent-yaml.ts'
import { writeVerlDataset } from './dataset-files.ts'
import { renderFinalTrainer, sourceCopy } from './final-trainer.ts'
import { renderRunScript } from './run-script.ts'
import { renderServeYaml } from './serve-yaml.ts'

/** Names of the files in a run directory. */
const runFileNames = {
  agent: 'agent.yaml',
  agentSource: 'agent.source.yaml',
  trainer: 'final_trainer.yaml',
  train: 'train_data.parquet',
  test: 'test_data.parquet',
  script: 'run.sh',
  serve: 'serve.yaml',
} as const

/** Every text file of a run directory by name. */
export function renderRunFiles(plan: VerlPlan): Map<string, string> {
  const files = new Map<string, string>()
  const serve = renderServeYaml(plan, { isFolder: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true })
  const copy = sourceCopy(plan)
  if (plan.run.agent.source !== null) files.set(runFileNames.agentSource, plan.run.agent.source)
  files.set(runFileNames.agent, renderAgentYaml(plan.run))
  if (copy) files.set(copy.name, copy.text)
  files.set(runFileNames.trainer, renderFinalTrainer(plan))
  files.set(runFileNames.script, renderRunScript(plan))
  if (serve !== null) files.set(runFileNames.serve, serve)
  return files
}

/** Writes files to a run directory that a person can read and run by hand. Each file appears whole. Returns their names. */
export async function writeRunFiles(plan: VerlPlan, { train, test }: TrainerData): Promise<string[]> {
  const { path } = plan.run
  await mkdir(path, { recursive: true })
  const names: string[] = []
  for (const [name, text] of renderRunFiles(plan)) {
    const temporary = join(path, `${name}.${process.pid}.tmp`)
    // What the user set may hold secrets, such as the token or the variables of workers.
    await writeFile(temporary, text, { mode: 0o600 })
    if (name === runFileNames.script) await chmod(temporary, 0o755)
    await rename(temporary, join(path, name))
    names.push(name)
  }
  if (train) await writeVerlDataset(train, 'train', join(path, runFileNames.train))
  if (test) await writeVerlDataset(test, 'test', join(path, runFileNames.test))
  return [...names, ...(train ? [runFileNames.train] : []), ...(test ? [runFileNames.test] : [])]
}
