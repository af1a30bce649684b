import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { toStoreError } from './store-error.ts'

/**
 * Copies the tokenizer of a Hugging Face folder into the run at `path`, once, so that its tokens can be read without the model. Each of several
 * policies has a folder of its own.
 */
export async function keepTokenizer(path: string, model: string, policy: string | null = null): Promise<void> {
  const directory = join(path, 'tokenizer', policy ?? '')
  try {
    await mkdir(directory, { recursive: true })
    for (const name of ['tokenizer_config.json', 'tokenizer.json']) {
      const [from, to] = [join(model, name), join(directory, name)]
      if (existsSync(to) || !existsSync(from)) continue
      const temporary = `${to}.${process.pid}.tmp`
      await copyFile(from, temporary)
      await rename(temporary, to)
    }
  } catch (error) {
    throw toStoreError(error, path)
  }
}
