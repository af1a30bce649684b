import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { questionOf } from './elements.ts'
import { packageFile, runHarness } from './run-harness.ts'

const config = (baseUrl: string, model: string) => `
model = ${JSON.stringify(model)}
model_provider = "policy"
check_for_update_on_startup = false
[model_providers.policy]
name = "policy"
base_url = ${JSON.stringify(baseUrl)}
env_key = "POLICY_KEY"
wire_api = "responses"
supports_websockets = false
[analytics]
enabled = false
`

/** Codex over Responses. Its commands run as they are: train it where the machine itself is the sandbox. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const printed = await runHarness((home) => ({
    command: process.execPath,
    args: [
      packageFile('@openai/codex/bin/codex.js'),
      ...['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '--json', questionOf(task)],
    ],
    env: { CODEX_HOME: home, POLICY_KEY: apiKey },
    home: { 'config.toml': config(baseUrl, model) },
    signal,
  }))
  return lastMessage(printed)
}

interface CodexEvent {
  readonly item?: { readonly type: string; readonly text?: string }
}

const lastMessage = (printed: string): string | null =>
  printed
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => (JSON.parse(line) as CodexEvent).item)
    .findLast((item) => item?.type === 'agent_message')?.text ?? null
