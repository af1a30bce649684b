import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import type { ModelConfig } from '../model-config.ts'
import { makeTinyFolder, tinyShape } from '../testing/tiny-model.ts'
import { createVocabularyTokenizer } from '../tokenizer/vocabulary-tokenizer.ts'
import { initModel } from './init-model.ts'
import { fromHuggingFaceConfig, loadModelConfig, toHuggingFaceConfig } from './model-files.ts'
import { readSafetensors } from './safetensors.ts'

const tokenizer = createVocabularyTokenizer({ specialTokens: ['<|im_end|>'], pieces: [] })
const options = { config: { ...tinyShape, hiddenSize: 64 }, tokenizer, chatTemplate: 'x', seed: 3 }

describe('a fresh model', () => {
  it('has normal weights of the asked deviation, smaller where they write into the residual stream, and norms of 1', async () => {
    await using home = await makeTinyFolder()
    await initModel(home.path('fresh'), options)
    const { tensors } = await readSafetensors(join(home.path('fresh'), 'model.safetensors'))
    const deviation = (name: string): number => {
      const { data } = tensors.get(name)!
      return Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length)
    }
    expect(deviation('model.embed_tokens.weight')).toBeCloseTo(0.05, 3)
    expect(deviation('model.layers.1.mlp.down_proj.weight')).toBeCloseTo(0.035, 2)
    expect(deviation('model.layers.0.self_attn.o_proj.weight')).toBeCloseTo(0.035, 2)
    const { data } = tensors.get('model.embed_tokens.weight')!
    expect(data.reduce((sum, x) => sum + x, 0) / data.length).toBeCloseTo(0, 3)
    expect(data.filter((x) => Math.abs(x) > 0.1).length / data.length).toBeCloseTo(0.0455, 2)
    expect(new Set(data).size).toBeGreaterThan(data.length * 0.99)
    expect(new Set(tensors.get('model.norm.weight')!.data)).toEqual(new Set([1]))
  })

  it('has the same bytes for the same seed, and others for another', async () => {
    await using home = await makeTinyFolder()
    const bytes = async (name: string, seed: number): Promise<string> => {
      await initModel(home.path(name), { ...options, seed })
      return (await readFile(join(home.path(name), 'model.safetensors'))).toString('hex')
    }
    const first = await bytes('a', 3)
    expect(await bytes('b', 3)).toBe(first)
    expect(await bytes('c', 4)).not.toBe(first)
  })

  it('is refused for an impossible shape or an unknown stop token, and leaves no folder', async () => {
    await using home = await makeTinyFolder()
    await expect(initModel(home.path('bad'), { ...options, config: { ...tinyShape, heads: 3 } })).rejects.toThrow(
      'heads (3) is not a multiple',
    )
    await expect(initModel(home.path('bad'), { ...options, stopTokens: ['<end>'] })).rejects.toThrow('no token "<end>"')
    await expect(loadModelConfig(home.path('bad'))).rejects.toBeInstanceOf(TrainError)
  })
})

describe('config.json', () => {
  const shapes: ModelConfig[] = [
    { ...tinyShape, vocabularySize: 272 },
    { ...tinyShape, vocabularySize: 272, qkNorm: false, tieWordEmbeddings: false, ropeTheta: 1e6, kvHeads: 4 },
  ]

  it.each(shapes)('gives the same shape back ($qkNorm)', (shape) => {
    expect(fromHuggingFaceConfig(toHuggingFaceConfig(shape, [257], 257), 'config.json')).toEqual(shape)
  })

  it('is read as transformers 4 and 5 write it', () => {
    const { rope_parameters: _, ...older } = toHuggingFaceConfig(shapes[1]!, [1, 2], null)
    const { rope_theta: __, ...newer } = toHuggingFaceConfig(shapes[1]!, [1, 2], null)
    expect(fromHuggingFaceConfig(older, 'config.json').ropeTheta).toBe(1e6)
    expect(fromHuggingFaceConfig(newer, 'config.json').ropeTheta).toBe(1e6)
    const { head_dim: ___, num_key_value_heads: ____, ...llama } = toHuggingFaceConfig({ ...shapes[1]!, hiddenSize: 64 }, [], null)
    expect(fromHuggingFaceConfig(llama, 'config.json')).toMatchObject({ headDim: 16, kvHeads: 4 })
  })

  it.each([
    [{ model_type: 'gpt2' }, 'model_type is "gpt2"'],
    [{ hidden_size: undefined }, 'hidden_size is undefined'],
    [{ attention_bias: true }, 'biases cannot run'],
    [{ rope_parameters: { rope_type: 'yarn' } }, 'rope type "yarn"'],
    [{ use_sliding_window: true }, 'sliding-window'],
    [{ hidden_act: 'gelu' }, 'hidden_act is "gelu"'],
    [{ head_dim: 6 }, 'headDim is 6'],
  ])('with %j is refused', (change, reason) => {
    expect(() => fromHuggingFaceConfig({ ...toHuggingFaceConfig(shapes[0]!, [], null), ...change }, 'x/config.json')).toThrow(reason)
    expect(() => fromHuggingFaceConfig({ ...toHuggingFaceConfig(shapes[0]!, [], null), ...change }, 'x/config.json')).toThrow(
      'x/config.json',
    )
  })
})
