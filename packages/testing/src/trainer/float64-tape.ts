/** A matrix of doubles in row-major order, with the gradient that `backward` leaves. */
export interface Matrix {
  readonly rows: number
  readonly columns: number
  readonly data: Float64Array
  readonly gradient: Float64Array
}

/**
 * The operations of a transformer in double precision, and their derivatives in reverse. They are slow, short, and independent of any
 * kernel.
 */
export function createTape() {
  const steps: (() => void)[] = []

  const matrix = (rows: number, columns: number, data = new Float64Array(rows * columns)): Matrix => ({
    rows,
    columns,
    data,
    gradient: new Float64Array(data.length),
  })

  /** The rows of `table` at `ids`. */
  function embed(table: Matrix, ids: readonly number[]): Matrix {
    const { columns } = table
    const out = matrix(ids.length, columns)
    for (const [row, id] of ids.entries()) out.data.set(table.data.subarray(id * columns, (id + 1) * columns), row * columns)
    steps.push(() => {
      for (const [row, id] of ids.entries())
        for (let i = 0; i < columns; i++) table.gradient[id * columns + i]! += out.gradient[row * columns + i]!
    })
    return out
  }

  /** x · weightᵀ, the weight as [out, in]. */
  function linear(x: Matrix, weight: Matrix): Matrix {
    const { rows, columns: width } = x
    const out = matrix(rows, weight.rows)
    for (let row = 0; row < rows; row++)
      for (let o = 0; o < weight.rows; o++) {
        let sum = 0
        for (let i = 0; i < width; i++) sum += x.data[row * width + i]! * weight.data[o * width + i]!
        out.data[row * weight.rows + o] = sum
      }
    steps.push(() => {
      for (let row = 0; row < rows; row++)
        for (let o = 0; o < weight.rows; o++) {
          const slope = out.gradient[row * weight.rows + o]!
          if (slope === 0) continue
          for (let i = 0; i < width; i++) {
            x.gradient[row * width + i]! += slope * weight.data[o * width + i]!
            weight.gradient[o * width + i]! += slope * x.data[row * width + i]!
          }
        }
    })
    return out
  }

  function add(a: Matrix, b: Matrix): Matrix {
    const out = matrix(
      a.rows,
      a.columns,
      a.data.map((value, i) => value + b.data[i]!),
    )
    steps.push(() => {
      for (const [i, slope] of out.gradient.entries()) {
        a.gradient[i]! += slope
        b.gradient[i]! += slope
      }
    })
    return out
  }

  /** silu(gate) · up. */
  function gated(gate: Matrix, up: Matrix): Matrix {
    const sigmoid = gate.data.map((value) => 1 / (1 + Math.exp(-value)))
    const out = matrix(
      gate.rows,
      gate.columns,
      gate.data.map((value, i) => value * sigmoid[i]! * up.data[i]!),
    )
    steps.push(() => {
      for (const [i, slope] of out.gradient.entries()) {
        const s = sigmoid[i]!
        gate.gradient[i]! += slope * up.data[i]! * (s + gate.data[i]! * s * (1 - s))
        up.gradient[i]! += slope * gate.data[i]! * s
      }
    })
    return out
  }

  /** Root-mean-square norm of each group of `weight.columns` neighbours: a row, or a head of it. */
  function norm(x: Matrix, weight: Matrix, epsilon: number): Matrix {
    const width = weight.columns
    const out = matrix(x.rows, x.columns)
    const scales = new Float64Array(x.data.length / width)
    for (let group = 0; group < scales.length; group++) {
      const at = group * width
      let sum = 0
      for (let i = 0; i < width; i++) sum += x.data[at + i]! ** 2
      scales[group] = 1 / Math.sqrt(sum / width + epsilon)
      for (let i = 0; i < width; i++) out.data[at + i] = x.data[at + i]! * scales[group]! * weight.data[i]!
    }
    steps.push(() => {
      for (const [group, scale] of scales.entries()) {
        const at = group * width
        let along = 0
        for (let i = 0; i < width; i++) along += out.gradient[at + i]! * weight.data[i]! * x.data[at + i]!
        for (let i = 0; i < width; i++) {
          const slope = out.gradient[at + i]!
          weight.gradient[i]! += slope * x.data[at + i]! * scale
          x.gradient[at + i]! += scale * (slope * weight.data[i]! - (x.data[at + i]! * scale ** 2 * along) / width)
        }
      }
    })
    return out
  }

  /** Rotary positions (arXiv 2104.09864) as Hugging Face applies them: the first half of a head with the second. */
  function rotate(x: Matrix, headDim: number, theta: number): Matrix {
    const half = headDim / 2
    const turn = (from: Float64Array, to: Float64Array, direction: 1 | -1) => {
      for (let at = 0; at < from.length; at += headDim)
        for (let i = 0; i < half; i++) {
          const angle = direction * Math.floor(at / x.columns) * theta ** (-i / half)
          const [a, b] = [from[at + i]!, from[at + half + i]!]
          to[at + i]! += a * Math.cos(angle) - b * Math.sin(angle)
          to[at + half + i]! += b * Math.cos(angle) + a * Math.sin(angle)
        }
    }
    const out = matrix(x.rows, x.columns)
    turn(x.data, out.data, 1)
    steps.push(() => turn(out.gradient, x.gradient, -1))
    return out
  }

  /** Causal attention. Query heads share the key heads in equal groups. */
  function attend(q: Matrix, k: Matrix, v: Matrix, headDim: number): Matrix {
    const heads = q.columns / headDim
    const shared = heads / (k.columns / headDim)
    const out = matrix(q.rows, q.columns)
    const scale = 1 / Math.sqrt(headDim)
    const dot = (a: Float64Array, at: number, b: Float64Array, from: number) => {
      let sum = 0
      for (let i = 0; i < headDim; i++) sum += a[at + i]! * b[from + i]!
      return sum
    }
    const weights = new Map<number, Float64Array>()
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < q.rows; row++) {
        const at = row * q.columns + head * headDim
        const key = (other: number) => other * k.columns + Math.floor(head / shared) * headDim
        const scores = Float64Array.from({ length: row + 1 }, (_, other) => scale * dot(q.data, at, k.data, key(other)))
        const largest = scores.reduce((most, score) => Math.max(most, score), Number.NEGATIVE_INFINITY)
        const exponents = scores.map((score) => Math.exp(score - largest))
        const total = exponents.reduce((sum, each) => sum + each, 0)
        const softmax = exponents.map((each) => each / total)
        weights.set(at, softmax)
        for (const [other, weight] of softmax.entries())
          for (let i = 0; i < headDim; i++) out.data[at + i]! += weight * v.data[key(other) + i]!
      }
    steps.push(() => {
      for (const [at, softmax] of weights) {
        const head = (at % q.columns) / headDim
        const key = (other: number) => other * k.columns + Math.floor(head / shared) * headDim
        const slopes = softmax.map((_, other) => dot(out.gradient, at, v.data, key(other)))
        const mean = slopes.reduce((sum, slope, other) => sum + slope * softmax[other]!, 0)
        for (const [other, weight] of softmax.entries()) {
          const slope = weight * (slopes[other]! - mean) * scale
          for (let i = 0; i < headDim; i++) {
            v.gradient[key(other) + i]! += weight * out.gradient[at + i]!
            q.gradient[at + i]! += slope * k.data[key(other) + i]!
            k.gradient[key(other) + i]! += slope * q.data[at + i]!
          }
        }
      }
    })
    return out
  }

  /** log softmax(logits / temperature) at the id of each row. */
  function logprobs(logits: Matrix, ids: readonly number[], temperature: number): Matrix {
    const { columns } = logits
    const out = matrix(ids.length, 1)
    const softmaxes = ids.map((id, row) => {
      const scaled = logits.data.slice(row * columns, (row + 1) * columns).map((logit) => logit / temperature)
      const largest = scaled.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)
      const total = scaled.reduce((sum, value) => sum + Math.exp(value - largest), 0)
      out.data[row] = scaled[id]! - largest - Math.log(total)
      return scaled.map((value) => Math.exp(value - largest) / total)
    })
    steps.push(() => {
      for (const [row, softmax] of softmaxes.entries()) {
        const slope = out.gradient[row]! / temperature
        if (slope === 0) continue
        for (let i = 0; i < columns; i++) logits.gradient[row * columns + i]! += slope * (Number(i === ids[row]) - softmax[i]!)
      }
    })
    return out
  }

  return {
    matrix,
    embed,
    linear,
    add,
    gated,
    norm,
    rotate,
    attend,
    logprobs,
    /** Adds the gradients of outputs to those of all their inputs. It may be called once. */
    backward() {
      for (const step of steps.splice(0).reverse()) step()
    },
  }
}
