import type { ModelConfig } from '../model-config.ts'
import type { ParameterTable } from '../parameter-table.ts'

export interface Float64Model {
  readonly model: ModelConfig
  readonly table: ParameterTable
  readonly parameters: Float64Array
  readonly temperature: number
}

/** Logprobs of every token of a row by a second implementation of the model, in float64; index 0 is 0. */
export function float64Logprobs({ model, table, parameters, temperature }: Float64Model, ids: Int32Array): Float64Array {
  const { hiddenSize, heads, kvHeads, headDim, intermediateSize, vocabularySize, rmsNormEps, ropeTheta, qkNorm } = model
  const norm = (row: Float64Array, weight: number): Float64Array => {
    const inverse = 1 / Math.sqrt(row.reduce((sum, value) => sum + value * value, 0) / row.length + rmsNormEps)
    return row.map((value, i) => value * inverse * parameters[weight + i]!)
  }
  const times = (row: Float64Array, weight: number, size: number): Float64Array =>
    Float64Array.from({ length: size }, (_, o) => row.reduce((sum, value, i) => sum + value * parameters[weight + o * row.length + i]!, 0))
  const rotate = (row: Float64Array, position: number): Float64Array => {
    const half = headDim / 2
    return row.map((value, i) => {
      const angle = position / ropeTheta ** ((2 * (i % half)) / headDim)
      return value * Math.cos(angle) + (i < half ? -row[i + half]! : row[i - half]!) * Math.sin(angle)
    })
  }
  const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0)
  const plus = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value + b[i]!)

  let rows: Float64Array[] = Array.from(ids, (id) =>
    parameters.slice(table.embedding + id * hiddenSize, table.embedding + (id + 1) * hiddenSize),
  )
  for (const layer of table.layers) {
    const parts = rows.map((row, position) => {
      const fused = times(norm(row, layer.inputNorm), layer.qkv, (heads + 2 * kvHeads) * headDim)
      return Array.from({ length: heads + 2 * kvHeads }, (_, index) => {
        const part = fused.slice(index * headDim, (index + 1) * headDim)
        if (index >= heads + kvHeads) return part
        return rotate(qkNorm ? norm(part, index < heads ? layer.queryNorm : layer.keyNorm) : part, position)
      })
    })
    rows = rows.map((row, position) => {
      const mixed = Array.from({ length: heads }, (_, head) => {
        const key = heads + Math.floor(head / (heads / kvHeads))
        const seen = parts.slice(0, position + 1)
        const weights = softmax(Float64Array.from(seen, (part) => dot(parts[position]![head]!, part[key]!) / Math.sqrt(headDim)))
        return Float64Array.from({ length: headDim }, (_, i) =>
          seen.reduce((sum, part, at) => sum + weights[at]! * part[key + kvHeads]![i]!, 0),
        )
      })
      const middle = plus(times(Float64Array.from(mixed.flatMap((part) => [...part])), layer.output, hiddenSize), row)
      const gated = times(norm(middle, layer.postNorm), layer.gateUp, 2 * intermediateSize)
      const active = gated.slice(0, intermediateSize).map((gate, i) => (gate / (1 + Math.exp(-gate))) * gated[intermediateSize + i]!)
      return plus(times(active, layer.down, hiddenSize), middle)
    })
  }
  return Float64Array.from(ids, (id, position) => {
    if (position === 0) return 0
    const logits = times(norm(rows[position - 1]!, table.finalNorm), table.head, vocabularySize)
    return Math.log(softmax(logits.map((logit) => logit / temperature))[id]!)
  })
}

function softmax(logits: Float64Array): Float64Array {
  const greatest = Math.max(...logits)
  const powers = logits.map((logit) => Math.exp(logit - greatest))
  const total = powers.reduce((sum, power) => sum + power, 0)
  return powers.map((power) => power / total)
}
