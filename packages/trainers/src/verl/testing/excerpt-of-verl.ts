import { setAt } from '@aworld-train/training'
import { parseOverride } from '../config/hydra-override.ts'
import type { InstalledVerl, ReadKeys, WrittenKeys } from '../config/installed-verl.ts'
import { isGroup } from '../config/verl-keys.ts'
import defaults from './verl-defaults.json' with { type: 'json' }

/**
 * Replaces the installed verl in tests that have none: the part of verl 0.9.1's tree that rules and checks read, without references, with
 * keys merged into it. `test/trainers/verl/config.test.ts` compares it with the real one.
 */
export const excerptOfVerl: InstalledVerl = {
  version: '0.9.1',
  defaults,
  resolved: defaults,
  async compose(keys) {
    const tree = structuredClone(defaults) as Record<string, unknown>
    for (const { path, value } of keys) if (!isGroup(path)) setAt(tree, path.split('.'), structuredClone(value))
    return { tree, errors: [] }
  },
}

/** Reads keys as `readWithVerl` does. */
export async function readWithExcerpt(_python: string | null, { keys, texts }: WrittenKeys): Promise<ReadKeys> {
  const overrides = texts.map((text) => parseOverride(text)).filter((each) => typeof each !== 'string')
  return {
    verl: excerptOfVerl,
    parsed: overrides.map(({ value }) => value),
    values: { ...keys, ...Object.fromEntries(overrides.map(({ path, value }) => [path, value])) },
    errors: [],
  }
}
