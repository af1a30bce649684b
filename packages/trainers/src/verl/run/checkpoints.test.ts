import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { actorCheckpoint, checkpointSteps, resumableStep } from './checkpoints.ts'
import { exportVerlModel } from './export-model.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'awt-run-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function writeCheckpoint(directory: string, step: number, files: Readonly<Record<string, string>> = {}): void {
  const actor = join(directory, `global_step_${step}`, 'actor')
  mkdirSync(join(actor, 'huggingface'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(actor, name), text)
}

describe('the checkpoints of verl', () => {
  it('are resumed from where verl itself would', () => {
    const directory = folder()
    expect([resumableStep(directory), checkpointSteps(directory)]).toEqual([0, []])
    for (const step of [2, 10, 4]) writeCheckpoint(directory, step)
    expect([resumableStep(directory), checkpointSteps(directory)]).toEqual([0, [2, 4, 10]])
    writeFileSync(join(directory, 'latest_checkpointed_iteration.txt'), '4')
    expect(resumableStep(directory)).toBe(4)
    expect(actorCheckpoint(directory)).toEqual({ step: 4, directory: join(directory, 'global_step_4', 'actor') })
    expect(actorCheckpoint(directory, 10).step).toBe(10)
    expect(() => actorCheckpoint(directory, 3)).toThrow(/no checkpoint of step 3; there are those of the steps 2, 4, 10/)
    writeFileSync(join(directory, 'latest_checkpointed_iteration.txt'), '6')
    expect(resumableStep(directory)).toBe(0)
  })

  it('are exported as they are where verl saved a model, with the tokenizer that the training began with', async () => {
    const directory = folder()
    writeCheckpoint(directory, 1, { 'huggingface/model.safetensors': 'weights', 'huggingface/tokenizer.json': 'rewritten' })
    writeFileSync(join(directory, 'latest_checkpointed_iteration.txt'), '1')
    const model = folder()
    writeFileSync(join(model, 'tokenizer.json'), 'own')
    const target = join(folder(), 'exported')
    const exported = await exportVerlModel({ python: 'python3', checkpoints: directory, target, model })
    expect(exported).toEqual({ step: 1, directory: target })
    expect(readFileSync(join(target, 'model.safetensors'), 'utf8')).toBe('weights')
    expect(readFileSync(join(target, 'tokenizer.json'), 'utf8')).toBe('own')
    await expect(exportVerlModel({ python: 'python3', checkpoints: directory, target })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    })
  })

  it('that cannot be exported say why, and leave nothing', async () => {
    const directory = folder()
    writeCheckpoint(directory, 1, { 'huggingface/config.json': '{}' })
    const target = join(directory, 'exported')
    const request = { python: 'python3', checkpoints: directory, step: 1, target }
    await expect(exportVerlModel(request)).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      message: expect.stringContaining('hf_model'),
    })
    writeCheckpoint(directory, 1, { 'fsdp_config.json': '{}' })
    await expect(exportVerlModel(request)).rejects.toMatchObject({
      code: 'TRAINER_FAILED',
      message: expect.stringMatching(/verl's merger ended with 1/),
    })
    expect(checkpointSteps(directory)).toEqual([1])
    expect(() => readFileSync(join(target, 'config.json'))).toThrow()
  })
})
