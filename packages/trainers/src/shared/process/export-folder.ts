import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { TrainError } from '@aworld-train/core'

/** Files of a tokenizer. Training does not change them, but a library that reads and writes them may. */
const tokenizerFiles = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'generation_config.json',
] as const

/**
 * Writes a model folder that appears whole or not at all: `write` fills a temporary one beside it. Tokenizer and template are those of
 * `model`, the folder that the training began with. Throws CONFIG_INVALID if `target` is taken.
 */
export async function exportFolder(
  { target, model }: { readonly target: string; readonly model?: string | undefined },
  write: (directory: string) => Promise<void>,
): Promise<void> {
  if (existsSync(target) && (await readdir(target)).length > 0)
    throw new TrainError('CONFIG_INVALID', `${target} is there and not empty; name another folder.`)
  const temporary = await mkdtemp(join(dirname(target), `.${basename(target)}-`))
  try {
    await write(temporary)
    if (model !== undefined) {
      for (const name of tokenizerFiles) if (existsSync(join(model, name))) await copyFile(join(model, name), join(temporary, name))
    }
    await rm(target, { recursive: true, force: true })
    // Only its owner can read a temporary folder, but others should be able to read the model.
    await chmod(temporary, 0o755)
    await rename(temporary, target)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}
