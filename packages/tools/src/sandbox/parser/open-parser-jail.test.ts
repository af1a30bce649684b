import { expect, test } from 'vitest'
import { describeParserJail } from '../testing/describe-parser-jail.ts'
import { openParserJail } from './open-parser-jail.ts'

describeParserJail('node')

test('a jail that is not bubblewrap says so, and why', async () => {
  const jail = await openParserJail({ isolation: 'node' })
  expect(jail.notices[0]).toBe('Parsers run in a Node without permissions, not in bubblewrap: it was not asked for.')
  await jail.close()
})
