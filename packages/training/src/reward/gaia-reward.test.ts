import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { gaiaRewardFunc } from './gaia-reward.ts'
import { normalizeNumberStr, normalizeStr, questionScorer, splitString } from './question-scorer.ts'

type Golden = readonly [name: string, args: readonly unknown[], result: unknown]

const goldens = JSON.parse(readFileSync(new URL('../goldens/gaia-goldens.json', import.meta.url), 'utf8')) as Golden[]

const functions: Record<string, (...args: never[]) => unknown> = {
  normalize_number_str: normalizeNumberStr,
  normalize_str: normalizeStr,
  split_string: splitString,
  question_scorer: questionScorer,
  gaia_reward_func: gaiaRewardFunc,
}

/** Encodes values that JSON cannot express as the golden script does. */
function encode(run: () => unknown): unknown {
  try {
    const value = run()
    if (typeof value !== 'number' || Number.isFinite(value)) return value
    return { float: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' }
  } catch (error) {
    return { error: (error as Error).name }
  }
}

describe('the GAIA reward', () => {
  for (const name of Object.keys(functions)) {
    it(`answers as the Python text does: ${name}`, () => {
      const rows = goldens.filter(([each]) => each === name)
      expect(rows.length).toBeGreaterThan(100)
      for (const [, args, result] of rows) {
        expect({ args, result: encode(() => functions[name]!(...(args as never[]))) }).toEqual({ args, result })
      }
    })
  }
})
