// Prints what the probe says here, and which tier is taken.
import { openParserJail, openSandbox, probeBubblewrap } from '@aworld-train/tools/sandbox'

const probe = await probeBubblewrap()
const sandbox = await openSandbox()
const parsers = await openParserJail()
console.log(JSON.stringify({ ...probe, tier: sandbox.tier, notices: sandbox.notices, parsers: parsers.notices[0] }))
await parsers.close()
await sandbox.close()
