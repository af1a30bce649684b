import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RunReport } from '@aworld-train/core'
import { AgentTrainer } from 'aworld-train'
import definition from '../../examples/source-readers/aworld-train.config.ts'
import { type Variant, warmUps } from './variants.ts'

const example = join(import.meta.dirname, '../../examples/source-readers')

/** Reports of a variant, from seed 1 on. */
export interface Trained {
  readonly name: string
  readonly title: string
  readonly reports: readonly RunReport[]
}

/** The report that a training left in the folder, or that of one which begins or goes on there. */
export async function trainOnce(folder: string, name: string, { model, change }: Variant, seed: number): Promise<RunReport> {
  const kept = join(folder, `${name}-${seed}.json`)
  if (!existsSync(kept)) {
    const changes = change(model ? await modelIn(folder, model) : '')
    const runPath = join(folder, `${name}-${seed}`)
    const trainer = new AgentTrainer({ ...definition, ...changes, baseDirectory: example, seed, runPath, onEvent() {} })
    await writeFile(`${kept}.new`, JSON.stringify(await trainer.train()))
    await rename(`${kept}.new`, kept)
    await rm(runPath, { recursive: true, force: true })
  }
  return RunReport.parse(JSON.parse(await readFile(kept, 'utf8')))
}

/** A folder with the model, which is made once for all contexts. */
async function modelIn(folder: string, { name, context }: NonNullable<Variant['model']>): Promise<string> {
  const made = join(folder, `model-${name}`)
  const unfinished = `${made}.new`
  if (!existsSync(made)) {
    await rm(unfinished, { recursive: true, force: true })
    await warmUps[name]({
      directory: unfinished,
      seed: 1,
      simd: 'plain',
      threads: null,
      signal: new AbortController().signal,
      onProgress(done, total) {
        if (done % 50 === 0) process.stdout.write(`model-${name}  ${done} of ${total} steps of its warm-up\n`)
      },
    })
    await rename(unfinished, made)
  }
  const model = `${made}-${context}`
  await cp(made, model, { recursive: true })
  const config = JSON.parse(await readFile(join(made, 'config.json'), 'utf8'))
  await writeFile(join(model, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: context }))
  return model
}

/** A name for what the trainings are made of: another example or variant has another. */
export async function digestOf(folders: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const folder of folders) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile() && !/\.md$|^page\.ts$/.test(entry.name))
    const paths = files.map(({ parentPath, name }) => join(parentPath, name)).toSorted()
    for (const path of paths) hash.update(`${path}\n`).update(await readFile(path))
  }
  return hash.digest('hex').slice(0, 12)
}
