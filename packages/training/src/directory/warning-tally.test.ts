import { expect, it } from 'vitest'
import { createWarningTally } from './warning-tally.ts'

it('counts warnings by kind and keeps the first messages of each', () => {
  const tally = createWarningTally()
  const warn = (code: string, message: string) => tally.read({ type: 'warning-raised', at: 0, code, message })
  for (let attempt = 0; attempt < 9; attempt++) warn('TOOL_TIMEOUT', `attempt ${attempt}`)
  warn('CONFIG_NOTE', 'a key without effect')
  tally.read({ type: 'weights-updated', at: 0, weightVersion: 1 })
  expect(tally.warnings()).toEqual([
    { code: 'TOOL_TIMEOUT', count: 9, messages: ['attempt 0', 'attempt 1', 'attempt 2', 'attempt 3', 'attempt 4'] },
    { code: 'CONFIG_NOTE', count: 1, messages: ['a key without effect'] },
  ])
})

it('goes on from what earlier processes of the run warned of, but for notes that every one makes', () => {
  const tally = createWarningTally([
    { code: 'TOOL_TIMEOUT', count: 9, messages: ['first'] },
    { code: 'CONFIG_NOTE', count: 1, messages: ['a key without effect'] },
  ])
  for (const code of ['CONFIG_NOTE', 'TOOL_TIMEOUT']) tally.read({ type: 'warning-raised', at: 0, code, message: 'again' })
  expect(tally.warnings()).toEqual([
    { code: 'TOOL_TIMEOUT', count: 10, messages: ['first', 'again'] },
    { code: 'CONFIG_NOTE', count: 1, messages: ['again'] },
  ])
})
