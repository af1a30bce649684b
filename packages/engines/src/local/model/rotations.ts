import type { Views } from '../arena.ts'
import type { Layout } from '../layout.ts'

/** Fills the tables of angles. Products are rounded to float32 where Hugging Face's code rounds them, so that long contexts agree. */
export function fillRotations({ model, cosines, sines }: Layout, { f32 }: Views): void {
  const half = model.headDim / 2
  for (let j = 0; j < half; j++) {
    const power = Math.fround(model.ropeTheta ** Math.fround((2 * j) / model.headDim))
    const frequency = Math.fround(1 / power)
    for (let position = 0; position < model.contextLength; position++) {
      const angle = Math.fround(position * frequency)
      f32[cosines / 4 + position * half + j] = Math.cos(angle)
      f32[sines / 4 + position * half + j] = Math.sin(angle)
    }
  }
}
