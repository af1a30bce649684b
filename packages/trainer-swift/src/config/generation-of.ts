import type { SwiftFields } from './swift-config.ts'

/** Prompts of one generation of rollouts, and the updates that it is trained in. */
export function generationOf(fields: SwiftFields): { readonly prompts: number; readonly updates: number } {
  const accumulated = numberAt(fields, 'gradient_accumulation_steps', 1)
  const batch = numberAt(fields, 'per_device_train_batch_size', 1)
  const perGeneration = numberAt(fields, 'steps_per_generation', numberAt(fields, 'generation_batch_size', batch * accumulated) / batch)
  return {
    prompts: (batch * perGeneration) / numberAt(fields, 'num_generations', 8),
    updates: (numberAt(fields, 'num_iterations', 1) * perGeneration) / accumulated,
  }
}

/** A field that is a number, or ms-swift's default. */
export const numberAt = (fields: SwiftFields, name: string, fallback: number) =>
  typeof fields[name] === 'number' ? (fields[name] as number) : fallback
