import { drivenTrainers } from '../driven-trainers.ts'
import { tinkerPolicy } from './tinker-policy.ts'

/** Keys at the top of a configuration that belong to one trainer each, so that one configuration serves several. */
export const trainerSections: readonly string[] = [
  ...drivenTrainers.map(({ name }) => name),
  ...[tinkerPolicy].flatMap(({ extension }) => extension?.section ?? []),
]
