import { openParserJail } from '../sandbox/parser/open-parser-jail.ts'
import { describePageParsers } from '../testing/describe-page-parsers.ts'

describePageParsers('a Node without permissions', () => openParserJail({ isolation: 'node' }))
