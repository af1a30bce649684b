import { openParserJail } from '@aworld-train/sandbox'
import { describePageParsers } from '../testing/describe-page-parsers.ts'

describePageParsers('a Node without permissions', () => openParserJail({ isolation: 'node' }))
