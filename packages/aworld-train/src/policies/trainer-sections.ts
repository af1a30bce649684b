import { pythonTrainers } from '../python-trainers.ts'
import { tinkerPolicy } from './tinker-policy.ts'

/** Keys at the top of a configuration that belong to one trainer each, so that one configuration serves several. */
export const trainerSections: readonly string[] = [
  ...pythonTrainers.map(({ name }) => name),
  ...[tinkerPolicy].flatMap(({ extension }) => extension?.section ?? []),
]
