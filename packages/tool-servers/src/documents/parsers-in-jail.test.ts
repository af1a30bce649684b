import { openParserJail } from '@aworld-train/sandbox'
import { describeParsers } from '../testing/describe-parsers.ts'

describeParsers('a Node without permissions', () => openParserJail({ isolation: 'node' }))
