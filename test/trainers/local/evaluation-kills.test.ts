// An evaluation killed in the middle of anything reports what it reports undisturbed.
import { it } from 'vitest'
import { evaluateWithKills } from '../../support/evaluate-with-kills.ts'

const seed = Number(process.env['EVALUATION_KILLS_SEED'] ?? Date.now() % 1_000_000)

it(`twenty kills at random change no report and ask again only for what was under way (EVALUATION_KILLS_SEED=${seed})`, () =>
  evaluateWithKills(20, seed))
