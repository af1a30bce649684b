import { fileURLToPath } from 'node:url'
import { Agent } from '@aworld-train/agent'

export const systemPrompt = 'Go on until you are done.'
export const toolServer = fileURLToPath(new URL('./tool-server.ts', import.meta.url))

/** An agent whose engine and whose tool take their time by the plan in its task. */
export const agent = new Agent({
  name: 'agent',
  systemPrompt,
  maxTurns: 100,
  mcpConfig: { mcpServers: { steps: { command: process.execPath, args: [toolServer], stateless: true } } },
})
