// Prints what the probe says here, and which tier is taken.
import { openSandbox, probeBubblewrap } from '@aworld-train/sandbox'

const probe = await probeBubblewrap()
const sandbox = await openSandbox()
console.log(JSON.stringify({ ...probe, tier: sandbox.tier, notices: sandbox.notices }))
await sandbox.close()
