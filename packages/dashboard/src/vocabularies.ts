import type { InvocationTrace } from '@aworld-train/core'

/** Texts of token ids, by policy and id. */
export type Vocabularies = Readonly<Record<string, Readonly<Record<number, string>>>>

/** Texts of the tokens in invocations. `textOf` has those of the policies. */
export function vocabulariesOf(
  invocations: readonly InvocationTrace[],
  textOf: (policy: string, id: number) => string | null | undefined,
): Vocabularies {
  const vocabularies: Record<string, Record<number, string>> = {}
  for (const { policy, turns } of invocations) {
    vocabularies[policy] ??= {}
    const vocabulary = vocabularies[policy]
    for (const { promptIds, completionIds } of turns)
      for (const id of [...promptIds, ...completionIds]) {
        const text = vocabulary[id] ?? textOf(policy, id)
        if (text != null) vocabulary[id] = text
      }
  }
  return vocabularies
}

/** Adds the texts of `from` to those of `into`. */
export function mergeVocabularies(into: Record<string, Record<number, string>>, from: Vocabularies): void {
  for (const [policy, vocabulary] of Object.entries(from)) into[policy] = { ...into[policy], ...vocabulary }
}
