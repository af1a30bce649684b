import { openParserJail } from '../sandbox/parser/open-parser-jail.ts'
import { describeParsers } from '../testing/describe-parsers.ts'

describeParsers('a Node without permissions', () => openParserJail({ isolation: 'node' }))
