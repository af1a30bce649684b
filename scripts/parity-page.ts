import { readFileSync } from 'node:fs'
import type { ParityRow, ParityStatus } from '../test/parity/parity-row.ts'
import { parityTable } from '../test/parity-table.ts'
import { generatedNote } from './markdown.ts'

const project = new URL('../test/parity/', import.meta.url)

const words: Readonly<Record<ParityStatus, string>> = { works: 'works', differs: '**differs**', later: 'later' }

/** The guide for people who come from the Python original: five steps, then the table that `test/parity.test.ts` runs. */
export function parityPage(): string {
  const rows = parityTable.flatMap((section) => section.rows)
  const count = (status: ParityStatus) => rows.filter((row) => row.status === status).length
  return `${[
    '# Coming from AWorld',
    '',
    generatedNote,
    '',
    'You have a project for AWorld Train in Python: an agent loop, an `agent.yaml`, a reward function, Parquet files and a configuration for verl. The words stay; the code becomes TypeScript, the data and the YAML stay as they are.',
    '',
    '## Move a project in five steps',
    '',
    '### 1. Install',
    '',
    'Node 22.19 or newer runs the TypeScript as it is. There is no Python, no CUDA and no compiler for the engine in the box.',
    '',
    '```sh',
    'npm install aworld-train @aworld-train/cli',
    '```',
    '',
    '### 2. Write the agent loop in TypeScript',
    '',
    'Before, `custom_agent_loop.py`:',
    '',
    '```python',
    pythonAgentLoop,
    '```',
    '',
    'After, `custom-agent-loop.ts`:',
    '',
    '```ts',
    source('gaia-agent-loop.ts'),
    '```',
    '',
    'Names are camelCase; options are taken in either spelling. An agent that uses the address of the loop is trained, agents with addresses of their own are frozen. Without a loop it is shorter: pass `new Agent({ … })` with no address to `AgentTrainer`, or any function `(task, context) => answer`.',
    '',
    '### 3. Point `agent.yaml` at it',
    '',
    '```yaml',
    '- name: gaia_agent',
    '  _target_: ./custom-agent-loop.ts#GaiaAgentLoop # was train.examples.….custom_agent_loop.GaiaAgentLoop',
    '```',
    '',
    '### 4. Write the reward in TypeScript',
    '',
    "The four parameters keep their order. The reward of GAIA is in the package: `export { gaiaRewardFunc } from 'aworld-train'`.",
    '',
    '```ts',
    source('reward.ts'),
    '```',
    '',
    '### 5. Train',
    '',
    'Data and configuration stay. `main.py` becomes `main.ts`:',
    '',
    '```ts',
    source('main.ts')
      .replace(/^import \{ fileURLToPath.*\n/, '')
      .replace(/ {2}baseDirectory:.*\n/, '')
      .replaceAll(/'(?:\.\.\/)+packages\/cli\/templates\/project\/data\/(\w+)\.jsonl'/g, "'./datasets/$1.parquet'"),
    '```',
    '',
    "`node main.ts` trains with the engine in the box, which is for small models on this machine's processor. Its `grpo_trainer.yaml` may be the one you have: blanks are filled from the options, keys that mean something are translated, the rest is reported once. The one thing to change is `actor_rollout_ref.model.path`, which must be a Hugging Face folder.",
    '',
    '## Every name',
    '',
    `${rows.length} rows: ${count('works')} work as there, ${count('differs')} differ, ${count('later')} come later.`,
    ...parityTable.flatMap(({ title, rows }) => ['', `### ${title}`, '', '| AWorld | here | |', '|---|---|---|', ...rows.map(toLine)]),
  ].join('\n')}\n`
}

function toLine({ theirs, ours, status, note }: ParityRow): string {
  return `| ${cell(theirs)} | ${cell(ours)} | ${words[status]}${note ? `. ${cell(note)}` : ''} |`
}

const cell = (text: string) => text.replaceAll('|', '\\|')

function source(name: string): string {
  return readFileSync(new URL(name, project), 'utf8').trimEnd()
}

const pythonAgentLoop = `class GaiaAgentLoop(AworldAgentLoop):
    def build_agents(self):
        gaia_env_config, gaia_env_servers = get_agent_tool_env_and_servers()
        return Agent(
            conf=AgentConfig(
                llm_base_url=self.get_llm_server_address(),
                llm_model_name=self.get_llm_server_model_name(),
                llm_api_key="dummy",
            ),
            name="gaia_super_agent",
            system_prompt="<your_system_prompt>",
            mcp_config=gaia_env_config,
            mcp_servers=gaia_env_servers,
        )`
