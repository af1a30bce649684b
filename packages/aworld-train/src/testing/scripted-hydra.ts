/** Replaces `python -m aworld_train_bridge.verl.resolve_config` in tests. It answers with the excerpt of verl's tree. */
import { createInterface } from 'node:readline'
import { parseOverride } from '../../../trainers/src/verl/config/hydra-override.ts'
import { excerptOfVerl, readWithExcerpt } from '../../../trainers/src/verl/testing/excerpt-of-verl.ts'

const { version, defaults, resolved } = excerptOfVerl
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Record<string, never>
  process.stdout.write(`${JSON.stringify({ version, ...(await answerTo(request)) })}\n`)
}

async function answerTo(request: Record<string, never>) {
  if ('overrides' in request) {
    const keys = (request['overrides'] as string[]).map(parseOverride).filter((each) => typeof each !== 'string')
    return await excerptOfVerl.compose(keys.map(({ path, value }) => ({ path, value, origin: 'user', why: '' })))
  }
  const { parsed, values } = await readWithExcerpt(null, request as never)
  return { defaults, resolved, parsed, values, errors: [] }
}
