// SwiGLU (Shazeer 2020): silu(gate) * up, silu(x) = x * sigmoid(x). Gate and up stand side by side in one row.
import { expRow, F, NEGATED } from './simd'

/** out[j] = exp(-gate[j]), of one row. */
function expOfNegated(gate: usize, out: usize, bytes: usize): void {
  const unused = f32x4.splat(0)
  expRow(NEGATED, gate, out, bytes, unused, unused)
}

/** The sigmoid, from exp(-x). */
// @ts-ignore: decorator
@inline
function sigmoid(exp: v128, one: v128): v128 {
  return f32x4.div(one, f32x4.add(one, exp))
}

export function swiGlu(rows: i32, width: i32, gateUp: usize, out: usize): void {
  const bytes = <usize>width * F
  const one = f32x4.splat(1.0)
  for (let i = 0; i < rows; i++, gateUp += 2 * bytes, out += bytes) {
    expOfNegated(gateUp, out, bytes)
    for (let j: usize = 0; j < bytes; j += 16) {
      const gate = v128.load(gateUp + j)
      const up = v128.load(gateUp + bytes + j)
      v128.store(out + j, f32x4.mul(f32x4.mul(gate, sigmoid(v128.load(out + j), one)), up))
    }
  }
}

export function swiGluBackward(rows: i32, width: i32, gateUp: usize, dOut: usize, dGateUp: usize, out: usize): void {
  const bytes = <usize>width * F
  const one = f32x4.splat(1.0)
  for (let i = 0; i < rows; i++, gateUp += 2 * bytes, dGateUp += 2 * bytes, dOut += bytes, out += bytes) {
    expOfNegated(gateUp, out, bytes)
    for (let j: usize = 0; j < bytes; j += 16) {
      const gate = v128.load(gateUp + j)
      const up = v128.load(gateUp + bytes + j)
      const gradient = v128.load(dOut + j)
      const s = sigmoid(v128.load(out + j), one)
      const silu = f32x4.mul(gate, s)
      const slope = f32x4.mul(s, f32x4.add(one, f32x4.mul(gate, f32x4.sub(one, s))))
      v128.store(out + j, f32x4.mul(silu, up))
      v128.store(dGateUp + j, f32x4.mul(f32x4.mul(gradient, up), slope))
      v128.store(dGateUp + bytes + j, f32x4.mul(gradient, silu))
    }
  }
}
