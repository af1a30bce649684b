import { valueAt } from '@aworld-train/training'
import { batchTraps } from './batch-traps.ts'
import { groupTraps } from './group-traps.ts'
import { samplingTraps } from './sampling-traps.ts'
import { trainerTraps } from './trainer-traps.ts'
import type { Trap, TrapContext } from './trap.ts'
import { valueTraps } from './value-traps.ts'

/** Every check over a resolved configuration, by name. */
export const traps: readonly Trap[] = [...valueTraps, ...batchTraps, ...samplingTraps, ...groupTraps, ...trainerTraps]

export interface FoundTrap {
  readonly name: string
  readonly severity: Trap['severity']
  readonly message: string
}

/** Finds the traps in a resolved configuration. If a value is not valid for its key, only that is reported. */
export function findTraps(parts: Omit<TrapContext, 'at' | 'number'>): FoundTrap[] {
  const at = (path: string) => valueAt(parts.tree, path)
  const context: TrapContext = { ...parts, at, number: (path) => Number(at(path) ?? 0) }
  const find = (those: readonly Trap[]) =>
    those.flatMap(({ name, severity, check }) => {
      const message = check(context)
      return message === null ? [] : [{ name, severity, message }]
    })
  const values = find(valueTraps)
  return values.length > 0 ? values : find(traps)
}

/** Messages of the traps, separated into errors and warnings. */
export function checkPlan(parts: Omit<TrapContext, 'at' | 'number'>): { readonly errors: string[]; readonly warnings: string[] } {
  const found = findTraps(parts)
  const of = (severity: Trap['severity']) => found.filter((trap) => trap.severity === severity).map(({ message }) => message)
  return { errors: of('error'), warnings: of('warning') }
}
