// Rows moved by index. Row widths are multiples of 4 floats.
import { F } from './simd'

export function zero(y: usize, n: usize): void {
  memory.fill(y, 0, n * F)
}

export function copy(to: usize, from: usize, n: usize): void {
  memory.copy(to, from, n * F)
}

export function gatherRows(rows: i32, d: i32, ids: usize, table: usize, out: usize): void {
  const bytes = <usize>d * F
  for (let i = 0; i < rows; i++, ids += 4, out += bytes) memory.copy(out, table + <usize>load<u32>(ids) * bytes, bytes)
}

export function scatterAddRows(rows: i32, d: i32, ids: usize, source: usize, table: usize): void {
  const bytes = <usize>d * F
  for (let i = 0; i < rows; i++, ids += 4, source += bytes) {
    const to = table + <usize>load<u32>(ids) * bytes
    for (let j: usize = 0; j < bytes; j += 16) {
      v128.store(to + j, f32x4.add(v128.load(to + j), v128.load(source + j)))
    }
  }
}
