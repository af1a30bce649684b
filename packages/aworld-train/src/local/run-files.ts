import { readFileSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { writeParquet } from '@aworld-train/training'
import { stringify } from 'yaml'
import type { LocalPlan } from './plan.ts'

/** Writes what a person finds in a run directory under AWorld's names: agent.yaml, final_trainer.yaml, train_data.parquet, test_data.parquet. */
export async function writeRunFiles(path: string, plan: LocalPlan): Promise<void> {
  const agents = plan.program.agents.map(({ name, trainable }) => ({
    name,
    trainable,
    ...(plan.agentModule ? { module: plan.agentModule } : {}),
  }))
  await writeFile(join(path, 'agent.yaml'), stringify(agents))
  await writeFile(join(path, 'final_trainer.yaml'), stringify({ ...plan.config, seed: plan.seed }))
  await writeParquet(plan.train.tasks, plan.train.answers, join(path, 'train_data.parquet'))
  if (plan.validation) await writeParquet(plan.validation.tasks, plan.validation.answers, join(path, 'validation_data.parquet'))
  if (plan.test) await writeParquet(plan.test.tasks, plan.test.answers, join(path, 'test_data.parquet'))
}

/** Removes what a killed process was still writing in the run: temporary files, and a model that was not finished. */
export async function removeUnfinished(path: string): Promise<void> {
  for (const name of await readdir(path)) {
    if (/\.\d+\.tmp$|^\.model-/.test(name)) await rm(join(path, name), { recursive: true, force: true })
  }
}

/** Versions of the packages, of Node and of the platform. */
export function runVersions(): Record<string, string> {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return { 'aworld-train': manifest.version, node: process.version.slice(1), platform: `${process.platform}-${process.arch}` }
}

/** A path as a person would type it from here. */
export function displayPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short && !short.startsWith('..') ? short : path
}
