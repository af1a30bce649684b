import type { ModelConfig } from '../src/local/model-config.ts'

const common = { ropeTheta: 10_000, rmsNormEps: 1e-6, tieWordEmbeddings: true, qkNorm: true, contextLength: 2_048 } as const
const heads = (count: number): Pick<ModelConfig, 'heads' | 'kvHeads' | 'headDim'> => ({ heads: count, kvHeads: count, headDim: 32 })

/** The model of the main example, and the two that are measured beside PyTorch. Names are their numbers of parameters. */
export const shapes: Readonly<Record<string, ModelConfig>> = {
  '0.23M': { ...common, ...heads(3), vocabularySize: 97, hiddenSize: 96, layers: 2, intermediateSize: 256 },
  '1.1M': { ...common, ...heads(4), vocabularySize: 512, hiddenSize: 128, layers: 4, intermediateSize: 512 },
  '6.4M': { ...common, ...heads(8), vocabularySize: 512, hiddenSize: 256, layers: 6, intermediateSize: 1_024 },
}
