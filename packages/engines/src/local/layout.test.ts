import { describe, expect, it } from 'vitest'
import { Arena } from './arena.ts'
import { smallModel } from './goldens/trainer.ts'
import { createLayout, type Layout, type LayoutOptions, trainingScratch } from './layout.ts'
import { modelConfigProblems } from './model-config.ts'
import { createParameterTable } from './parameter-table.ts'

const options: LayoutOptions = {
  model: smallModel(),
  threads: 3,
  shards: 4,
  microBatchTokens: 64,
  batchTokens: 1_000,
  batchRows: 50,
  sampling: { rows: 4, stepTokens: 16 },
}

/** Named pieces of memory with the bytes that their users touch. */
function pieces(layout: Layout): { name: string; start: number; end: number }[] {
  const { batch, parameterBytes, options: layoutOptions } = layout
  const [tokens, rows] = [4 * layout.batchCapacity.occurrences, 4 * layoutOptions.batchRows]
  const all: [string, number, number][] = [
    ['control', layout.control, 256],
    ['settings', layout.settings, 256],
    ['shardResults', layout.shardResults, layoutOptions.shards * 64],
    ['chunkSums', layout.chunkSums, layout.chunks * 8],
    ['parameters', layout.parameters, parameterBytes],
    ['firstMoment', layout.firstMoment, parameterBytes],
    ['secondMoment', layout.secondMoment, parameterBytes],
    ['gradients', layout.gradients, parameterBytes * layoutOptions.shards],
    ['packed', layout.packed.address, layout.packed.bytes],
    ['cosines', layout.cosines, layoutOptions.model.contextLength * layoutOptions.model.headDim * 2],
    ['sines', layout.sines, layoutOptions.model.contextLength * layoutOptions.model.headDim * 2],
    ...(['rowStarts', 'pathStarts', 'passes'] as const).map((name): [string, number, number] => [name, batch[name], rows + 4]),
    ['shared', batch.shared, rows],
    ['shardPasses', batch.shardPasses, 4 * (layoutOptions.shards + 1)],
    ['occurrences', batch.occurrences, tokens + 4],
    ...(['tokens', 'weights', 'rolloutLogprobs', 'advantages', 'referenceLogprobs', 'logprobs', 'paths'] as const).map(
      (name): [string, number, number] => [name, batch[name], tokens],
    ),
    ['scratch', layout.scratch, layout.scratchBytes * layoutOptions.threads],
  ]
  return all.map(([name, start, bytes]) => ({ name, start, end: start + bytes })).sort((a, b) => a.start - b.start)
}

describe('the layout', () => {
  it('gives every piece memory of its own, inside the memory and above its first page', () => {
    const layout = createLayout(options)
    const all = pieces(layout)
    expect(all[0]!.start).toBeGreaterThanOrEqual(65_536)
    all.forEach(({ name, end }, i) => {
      expect(all[i + 1]?.start ?? layout.pages * 65_536, `end of ${name}`).toBeGreaterThanOrEqual(end)
    })
  })

  it('is a pure function of its options, which survive the way to a worker', () => {
    expect(createLayout(structuredClone(options))).toEqual(createLayout(options))
  })

  it('keeps each thread within its own scratch', () => {
    const layout = createLayout(options)
    for (let thread = 0; thread < options.threads; thread++) {
      const start = layout.scratch + thread * layout.scratchBytes
      const { gemm, attention, layers, head } = trainingScratch(layout, thread)
      for (const address of [gemm, attention, layers[0]!.input, layers[0]!.projected]) expect(address).toBeGreaterThanOrEqual(start)
      expect(head.coefficients).toBeLessThan(start + layout.scratchBytes)
    }
  })

  it('refuses to hand out memory beyond its end', () => {
    const arena = new Arena(0, 128)
    expect(arena.take(100)).toBe(0)
    expect(() => arena.take(1)).toThrow(RangeError)
  })
})

describe('the parameter table', () => {
  it('names the tensors of a Qwen3 checkpoint, without gaps', () => {
    const model = smallModel({ layers: 1, tieWordEmbeddings: false })
    const { parameters, count } = createParameterTable(model)
    expect(parameters.map(({ name, shape }) => `${name} [${shape}]`)).toMatchInlineSnapshot(`
      [
        "model.embed_tokens.weight [37,24]",
        "model.layers.0.input_layernorm.weight [24]",
        "model.layers.0.self_attn.q_proj.weight [32,24]",
        "model.layers.0.self_attn.k_proj.weight [16,24]",
        "model.layers.0.self_attn.v_proj.weight [16,24]",
        "model.layers.0.self_attn.q_norm.weight [8]",
        "model.layers.0.self_attn.k_norm.weight [8]",
        "model.layers.0.self_attn.o_proj.weight [24,32]",
        "model.layers.0.post_attention_layernorm.weight [24]",
        "model.layers.0.mlp.gate_proj.weight [20,24]",
        "model.layers.0.mlp.up_proj.weight [20,24]",
        "model.layers.0.mlp.down_proj.weight [24,20]",
        "model.norm.weight [24]",
        "lm_head.weight [37,24]",
      ]
    `)
    let offset = 0
    for (const parameter of parameters) {
      expect(parameter.offset).toBe(offset)
      offset += parameter.size
    }
    expect(offset).toBe(count)
  })

  it('shares the embedding with the head when the two are tied', () => {
    expect(createParameterTable(smallModel()).head).toBe(createParameterTable(smallModel()).embedding)
  })
})

it('a shape that the kernels cannot run is named, with every problem at once', () => {
  expect(modelConfigProblems(smallModel())).toEqual([])
  expect(modelConfigProblems(smallModel({ hiddenSize: 30, heads: 3, headDim: 12, ropeTheta: -1, layers: 0 }))).toEqual([
    'hiddenSize is 30; it must be a positive multiple of 4.',
    'layers is 0; it must be a positive integer.',
    'headDim is 12; it must be a positive multiple of 8.',
    'heads (3) is not a multiple of kvHeads (2).',
    'ropeTheta is -1; it must be positive.',
  ])
})
