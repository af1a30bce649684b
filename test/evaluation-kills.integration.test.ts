import { test } from 'vitest'
import { evaluateWithKills } from './support/evaluate-with-kills.ts'

const seed = Number(process.env['EVALUATION_KILLS_SEED'] ?? Date.now() % 1_000_000)

test(`an evaluation killed three times reports what an undisturbed one does (EVALUATION_KILLS_SEED=${seed})`, () =>
  evaluateWithKills(3, seed))
