import { didYouMean, TrainError } from '@aworld-train/core'
import { TrainerProcessor, type TrainerProcessorClass } from './trainer-processor.ts'

/** Trainer classes by name. The owner of the registry passes it on. */
export interface TrainerRegistry {
  readonly processors: Map<string, TrainerProcessorClass>
}

export function createTrainerRegistry(entries: Iterable<readonly [string, TrainerProcessorClass]> = []): TrainerRegistry {
  const registry: TrainerRegistry = { processors: new Map() }
  for (const [name, processor] of entries) registerProcessor(registry, name, processor)
  return registry
}

/** Adds a trainer. Throws CONFIG_INVALID for a name that is taken or a class that is no TrainerProcessor. */
export function registerProcessor(registry: TrainerRegistry, trainEngineName: string, trainType: TrainerProcessorClass): void {
  if (typeof trainEngineName !== 'string' || trainEngineName.trim() === '') {
    throw new TrainError('CONFIG_INVALID', 'A trainer needs a name; pass a non-empty string as trainEngineName.')
  }
  if (typeof trainType !== 'function' || !(trainType.prototype instanceof TrainerProcessor)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `Trainer "${trainEngineName}" is not a class that extends TrainerProcessor; pass the class itself.`,
    )
  }
  if (registry.processors.has(trainEngineName)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `A trainer named "${trainEngineName}" is registered already; unregister it first or use another name.`,
    )
  }
  registry.processors.set(trainEngineName, trainType)
}

/** Removes a trainer. Returns whether there was one. */
export function unregisterProcessor(registry: TrainerRegistry, trainEngineName: string): boolean {
  return registry.processors.delete(trainEngineName)
}

/** Creates the named trainer. TRAINER_UNKNOWN lists the existing names. */
export function createProcessor(registry: TrainerRegistry, trainEngineName: string, runPath: string): TrainerProcessor {
  const processor = registry.processors.get(trainEngineName)
  if (processor) return new processor(runPath)
  const names = [...registry.processors.keys()]
  const list = names.map((name) => `"${name}"`).join(', ') || 'none'
  throw new TrainError(
    'TRAINER_UNKNOWN',
    `There is no trainer "${trainEngineName}" (known: ${list}).${didYouMean(trainEngineName, names)} Register a processor under that name, or set trainEngineName: 'local'.`,
    { details: { trainEngineName, known: names } },
  )
}
