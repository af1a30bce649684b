import fc from 'fast-check'
import { expect, it } from 'vitest'
import { UntrainedReason } from '../protocol/token-ledger.ts'
import { createLedger } from './token-ledger.ts'

const entries = fc.array(fc.tuple(fc.constantFrom(...UntrainedReason.options), fc.nat(1000)))

it('explains exactly the tokens it was told of', () => {
  fc.assert(
    fc.property(entries, fc.nat(1000), fc.integer({ min: -5, max: 5 }), (untrained, trained, lost) => {
      const ledger = createLedger()
      for (const [reason, tokens] of untrained) ledger.add(reason, tokens)
      const total = untrained.reduce((sum, [, tokens]) => sum + tokens, trained)
      expect(ledger.toLedger({ sampled: Math.max(0, total + lost), trained }).unexplained).toBe(Math.max(0, total + lost) - total)
    }),
  )
})

it('goes on from a saved ledger as if it had never stopped', () => {
  fc.assert(
    fc.property(entries, fc.nat(20), (untrained, cut) => {
      const whole = createLedger()
      const first = createLedger()
      for (const [reason, tokens] of untrained) whole.add(reason, tokens)
      for (const [reason, tokens] of untrained.slice(0, cut)) first.add(reason, tokens)
      first.addVarianceGroup({ sampled: 5, trained: 4 })
      whole.addVarianceGroup({ sampled: 5, trained: 4 })
      const second = createLedger(first.toLedger({ sampled: 0, trained: 0 }))
      for (const [reason, tokens] of untrained.slice(cut)) second.merge({ [reason]: tokens })
      const counted = { sampled: 9, trained: 3 }
      expect(second.toLedger(counted)).toEqual(whole.toLedger(counted))
    }),
  )
})
