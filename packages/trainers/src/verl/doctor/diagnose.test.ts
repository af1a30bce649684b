import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnoseConfig } from '../../shared/training/diagnose.ts'
import type { VerlConfigSource } from '../config/verl-config.ts'
import { readWithExcerpt } from '../testing/excerpt-of-verl.ts'
import { readConfig, verlTrainer } from '../verl-trainer.ts'
import { attentionOf } from './check-machine.ts'
import { needsOf } from './judge-start.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-config-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** verl's trainer, with the excerpt of verl in place of an installed one. */
const trainer = {
  ...verlTrainer,
  readConfig: (source: string | object | undefined, options: Parameters<typeof readConfig>[1]) =>
    readConfig(source as VerlConfigSource, options, readWithExcerpt),
}

async function diagnose(config: string | object, python: string | null = '/python') {
  const { checks, plan } = await diagnoseConfig(trainer, { config, projectDirectory: folder, python, env: {} })
  return { checks, plan: plan as Awaited<ReturnType<typeof verlTrainer.plan>> | null }
}

const sound = {
  data: { train_batch_size: 32, max_prompt_length: 512, max_response_length: 512 },
  actor_rollout_ref: {
    model: { path: './model' },
    actor: { ppo_mini_batch_size: 32, ppo_micro_batch_size_per_gpu: 4, optim: { lr: 1e-6 } },
    rollout: { name: 'vllm', n: 8, log_prob_micro_batch_size_per_gpu: 4 },
  },
  trainer: { n_gpus_per_node: 4, nnodes: 1, logger: ['console'], total_epochs: 1, save_freq: 20 },
}

describe('diagnoseConfig', () => {
  it('has no problem with a sound configuration, asks for no data, and says what it needs of the machine', async () => {
    const { checks, plan } = await diagnose(sound)
    expect(checks.filter(({ level }) => level === 'problem')).toEqual([])
    expect(needsOf(plan!)).toEqual({ device: 'cuda', gpus: 4 })
  })

  it('runs no launch script, and says how to get the overrides of one', async () => {
    await writeFile(join(folder, 'run.sh'), `touch ${join(folder, 'made')}\npython3 -m verl.trainer.main_ppo trainer.nnodes=1\n`)
    const { checks } = await diagnose('./run.sh')
    expect(checks.filter(({ level }) => level === 'problem')).toContainEqual(
      expect.objectContaining({ message: expect.stringMatching(/^run\.sh: this is a script.*bash -c .*overrides\.txt/s) }),
    )
    expect(existsSync(join(folder, 'made'))).toBe(false)
  })

  it('names a trap before a GPU is used', async () => {
    const rollout = { ...sound.actor_rollout_ref.rollout, n: 1 }
    const { checks } = await diagnose({
      ...sound,
      actor_rollout_ref: { ...sound.actor_rollout_ref, rollout },
      algorithm: { adv_estimator: 'grpo' },
    })
    expect(checks).toContainEqual({
      name: 'config',
      level: expect.stringMatching(/problem|warning/),
      message: expect.stringMatching(/rollout\.n is 1/),
    })
  })

  it('reads how long a conversation may be from the folder of the model', async () => {
    await mkdir(join(folder, 'model'), { recursive: true })
    await writeFile(join(folder, 'model/config.json'), JSON.stringify({ max_position_embeddings: 256 }))
    const { checks } = await diagnose(sound)
    expect(
      checks
        .filter(({ level }) => level !== 'ok')
        .map(({ message }) => message)
        .join('\n'),
    ).toMatch(/256/)
    await rm(join(folder, 'model'), { recursive: true })
  })

  it('says what cannot be read, and asks nothing of the machine then', async () => {
    const { checks, plan } = await diagnose(join(folder, 'nowhere.yaml'))
    expect(checks).toEqual([{ name: 'config', level: 'problem', message: expect.stringMatching(/nowhere\.yaml: there is no such file/) }])
    expect(plan).toBeNull()
  })

  it('says what it left out where no verl is installed', async () => {
    const { checks, plan } = await diagnose(sound, null)
    expect(checks).toEqual([
      { name: 'config', level: 'warning', message: expect.stringMatching(/no verl .* only AWorld Train's own keys/) },
    ])
    expect(plan).toBeNull()
  })

  it('warns of FlashAttention where GPUs train and it is not installed', async () => {
    const ask = async (config: object, installed: string | null) => {
      const { plan } = await diagnose(config)
      return attentionOf(plan!, { packages: { 'flash-attn': installed } }).map(({ level, message }) => `${level}: ${message.slice(0, 60)}`)
    }
    expect(await ask(sound, null)).toEqual([expect.stringMatching(/^warning: verl asks for FlashAttention/)])
    expect(await ask(sound, '2.8.3')).toEqual([])
    const model = { ...sound.actor_rollout_ref.model, override_config: { attn_implementation: 'sdpa' } }
    expect(await ask({ ...sound, actor_rollout_ref: { ...sound.actor_rollout_ref, model } }, null)).toEqual([])
  })
})
