// @module-tag quick
import { openParserJail } from '@aworld-train/sandbox'
import { expect, test } from 'vitest'
import { describeParserJail } from '../../packages/sandbox/src/testing/describe-parser-jail.ts'
import { describePageParsers } from '../../packages/tool-servers/src/testing/describe-page-parsers.ts'
import { describeParsers } from '../../packages/tool-servers/src/testing/describe-parsers.ts'

describeParserJail('bubblewrap')
describeParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))
describePageParsers('bubblewrap', () => openParserJail({ isolation: 'bubblewrap' }))

test('bubblewrap is what parsers run in by themselves', async () => {
  const jail = await openParserJail()
  expect(jail.notices).toEqual([])
  await jail.close()
})
