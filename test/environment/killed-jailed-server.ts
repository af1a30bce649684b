// Opens a jailed server that has started two processes, says so, and waits to be killed; says why where it does not start.
import { setTimeout as sleep } from 'node:timers/promises'
import { createEnvironment, type TrainError } from 'aworld-train'

const [script, time] = process.argv.slice(2)
const { signal } = new AbortController()
const environment = createEnvironment({ warmProcesses: 0 })
const lease = environment.lease({ rollout: 'rollout', attempt: 0, sample: 0, task: { id: 'task' } })
const mcpConfig = { mcpServers: { shell: { command: 'node', args: [script!], sandbox: true } } }
try {
  const tools = await lease.tools({ agent: 'agent', mcpConfig }, signal)
  const command = `(setsid sleep ${time} >/dev/null 2>&1 &); sleep ${time} >/dev/null 2>&1 & sleep 0.1`
  await tools.call({ name: 'run', arguments: { command } }, signal)
  console.log('ready')
  await sleep(60_000)
} catch (error) {
  const { code, message } = error as TrainError
  console.log(JSON.stringify({ code, message }))
  await environment.close()
}
