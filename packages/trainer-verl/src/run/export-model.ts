import { existsSync, readdirSync } from 'node:fs'
import { chmod, copyFile, cp, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ExportedModel, ExportModelOptions } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { bridgeDirectory, runProcess } from '@aworld-train/python-bridge'
import { actorCheckpoint } from './checkpoints.ts'

/** Files of a tokenizer, which training does not change; a library that reads and writes them may. */
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
 * Writes a checkpoint of verl as a Hugging Face folder, which appears whole or not at all: weights that verl saved as such
 * (`hf_model` in `checkpoint.save_contents`) are copied, FSDP shards are merged by verl's own merger. CHECKPOINT_CORRUPT where
 * there is none, CONFIG_INVALID where the folder is taken, TRAINER_FAILED where the merger fails.
 */
export async function exportVerlModel(options: ExportModelOptions): Promise<ExportedModel> {
  const { python, checkpoints, target, model, dtype = 'keep', onLine, signal } = options
  if (existsSync(target) && (await readdir(target)).length > 0)
    throw new TrainError('CONFIG_INVALID', `${target} is there and not empty; name another folder.`)
  const { step, directory } = actorCheckpoint(checkpoints, options.step)
  const temporary = await mkdtemp(join(dirname(target), `.${basename(target)}-`))
  try {
    const saved = join(directory, 'huggingface')
    if (existsSync(saved) && readdirSync(saved).some((name) => name.endsWith('.safetensors')))
      await cp(saved, temporary, { recursive: true })
    else if (existsSync(join(directory, 'fsdp_config.json'))) {
      const args = ['-m', 'aworld_train_bridge.verl.export_model', '--actor', directory, '--target', temporary, '--dtype', dtype]
      await merge({ python, args, onLine, signal })
    } else {
      throw new TrainError(
        'CHECKPOINT_CORRUPT',
        `${directory} holds neither FSDP shards nor a Hugging Face model; with Megatron add hf_model to actor_rollout_ref.actor.checkpoint.save_contents, or run python -m verl.model_merger merge --backend megatron.`,
      )
    }
    if (model !== undefined) {
      for (const name of tokenizerFiles) if (existsSync(join(model, name))) await copyFile(join(model, name), join(temporary, name))
    }
    await rm(target, { recursive: true, force: true })
    // A temporary folder is readable by its owner alone, and the model shall not be.
    await chmod(temporary, 0o755)
    await rename(temporary, target)
    return { step, directory: target }
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

interface MergeRequest extends Pick<ExportModelOptions, 'python' | 'onLine' | 'signal'> {
  readonly args: readonly string[]
}

async function merge({ python, args, onLine, signal }: MergeRequest): Promise<void> {
  const { VERL_USE_EXTERNAL_MODULES: _, ...inherited } = process.env
  const env = { ...inherited, PYTHONPATH: [bridgeDirectory, inherited['PYTHONPATH']].filter(Boolean).join(':'), CUDA_VISIBLE_DEVICES: '' }
  const { code, stderr, stdout } = await runProcess(python, args, { env, onLine, signal })
  if (code === 0) return
  const lastLine = (stderr.trim() || stdout.trim()).split('\n').at(-1) ?? ''
  throw new TrainError('TRAINER_FAILED', `verl's merger ended with ${code ?? 'a signal'}: ${lastLine}`, {
    details: { stderr: stderr.slice(-4_000) },
  })
}
