import { tinkerPolicy } from './tinker-policy.ts'

/** Sections of a configuration that belong to one policy each; the others take no notice of them. */
export const policySections: readonly string[] = [tinkerPolicy].flatMap(({ extension }) => extension?.section ?? [])
