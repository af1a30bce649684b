import { existsSync, readdirSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { type ExportedModel, type ExportModelOptions, TrainError } from '@aworld-train/core'
import { runProcess } from '../../shared/environment/run-process.ts'
import { exportFolder } from '../../shared/process/export-folder.ts'
import { withBridge } from '../../shared/python-package.ts'
import { actorCheckpoint } from './checkpoints.ts'

/**
 * Writes a checkpoint of verl as a Hugging Face folder, which appears whole or not at all. Weights that verl saved in this form (`hf_model`
 * in `checkpoint.save_contents`) are copied; FSDP shards are merged by verl's own merger. Throws CHECKPOINT_CORRUPT if there is none,
 * CONFIG_INVALID if the folder is taken, and TRAINER_FAILED if the merger fails.
 */
export async function exportVerlModel(options: ExportModelOptions): Promise<ExportedModel> {
  const { python, checkpoints, target, model, dtype = 'keep', onLine, signal } = options
  const { step, directory } = actorCheckpoint(checkpoints, options.step)
  await exportFolder({ target, model }, async (temporary) => {
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
  })
  return { step, directory: target }
}

interface MergeRequest extends Pick<ExportModelOptions, 'python' | 'onLine' | 'signal'> {
  readonly args: readonly string[]
}

async function merge({ python, args, onLine, signal }: MergeRequest): Promise<void> {
  const { VERL_USE_EXTERNAL_MODULES: _, ...inherited } = process.env
  const env = { ...withBridge(inherited), CUDA_VISIBLE_DEVICES: '' }
  const { code, stderr, stdout } = await runProcess(python, args, { env, onLine, signal })
  if (code === 0) return
  const lastLine = (stderr.trim() || stdout.trim()).split('\n').at(-1) ?? ''
  throw new TrainError('TRAINER_FAILED', `verl's merger ended with ${code ?? 'a signal'}: ${lastLine}`, {
    details: { stderr: stderr.slice(-4_000) },
  })
}
