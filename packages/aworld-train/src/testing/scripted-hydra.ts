/** Stands for `python -m aworld_train_bridge.verl.resolve_config` in tests: answers with the excerpt of verl's tree. */
import { parseOverride } from '../../../trainer-verl/src/config/hydra-override.ts'
import { excerptOfVerl, readWithExcerpt } from '../../../trainer-verl/src/testing/excerpt-of-verl.ts'

const { version, defaults, resolved } = excerptOfVerl
const requests = JSON.parse(process.argv[2] as string) as Record<string, never>[]
const answers = await Promise.all(
  requests.map(async (request) => {
    if ('overrides' in request) {
      const keys = (request['overrides'] as string[]).map(parseOverride).filter((each) => typeof each !== 'string')
      const composed = await excerptOfVerl.compose(keys.map(({ path, value }) => ({ path, value, origin: 'user', why: '' })))
      return { version, ...composed }
    }
    const { parsed, values } = await readWithExcerpt(null, request as never)
    return { version, defaults, resolved, parsed, values, errors: [] }
  }),
)
process.stdout.write(JSON.stringify(answers))
