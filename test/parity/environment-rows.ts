import assert from 'node:assert/strict'
import { serverAliases, toolServers } from '@aworld-train/tools'
import { Agent, createEnvironment, getAgentToolEnvAndServers, TrainError } from 'aworld-train'
import { withModelServer } from './parity-context.ts'
import type { ParityRow } from './parity-row.ts'

const documentedServers =
  'readweb-server,browseruse-server,documents-csv-server,documents-docx-server,documents-pptx-server,documents-pdf-server,documents-txt-server,download-server,intelligence-code-server,intelligence-think-server,intelligence-guard-server,media-audio-server,media-image-server,media-video-server,parxiv-server,terminal-server,wayback-server,wiki-server,googlesearch-server'

/** As a configuration writes it. */
const invitationCode = '$' + '{INVITATION_CODE}'

/** The tool environment. */
export const environmentRows: readonly ParityRow[] = [
  {
    theirs: '`config, servers = get_agent_tool_env_and_servers()`',
    ours: '`const { config, servers } = getAgentToolEnvAndServers()`, or `const [config, servers] = …`',
    status: 'works',
    note: 'Server `aworld-mcp`, type `streamable-http`, header `MCP_SERVERS` with the 19 names, three timeouts of 600 seconds.',
    check() {
      const { config, servers } = getAgentToolEnvAndServers({ variables: {} })
      assert.deepEqual(config.mcpServers, {
        'aworld-mcp': {
          type: 'streamable-http',
          url: 'http://localhost:8000/mcp',
          headers: { MCP_SERVERS: documentedServers },
          timeout: 600,
          sse_read_timeout: 600,
          client_session_timeout_seconds: 600,
        },
      })
      assert.deepEqual(servers, documentedServers.split(','))
      assert.deepEqual([...getAgentToolEnvAndServers({ variables: {} })], [config, servers])
    },
  },
  {
    theirs: '`MCP_SERVER_URL`; the documents show ports 8000 and 8080',
    ours: '`MCP_SERVER_URL`, else `http://localhost:8000/mcp`',
    status: 'works',
    check: () =>
      assert.equal(
        getAgentToolEnvAndServers({ variables: { MCP_SERVER_URL: 'http://h:8080/mcp' } }).config.mcpServers['aworld-mcp']?.url,
        'http://h:8080/mcp',
      ),
  },
  {
    theirs: '`MCP_SERVER_TOKEN`, documented and not read',
    ours: '`MCP_SERVER_TOKEN`: sent as `Authorization: Bearer …`',
    status: 'differs',
    check: () =>
      assert.equal(
        getAgentToolEnvAndServers({ variables: { MCP_SERVER_TOKEN: 't' } }).config.mcpServers['aworld-mcp']?.headers?.['Authorization'],
        'Bearer t',
      ),
  },
  {
    theirs: '`get_agent_tool_env_and_servers(tool_config={url, authorization, mcp_servers})`',
    ours: '`getAgentToolEnvAndServers({ url, token, servers })`',
    status: 'differs',
    check() {
      const { config, servers } = getAgentToolEnvAndServers({ url: 'http://h/mcp', token: 't', servers: ['wiki-server'], variables: {} })
      assert.deepEqual(servers, ['wiki-server'])
      assert.deepEqual(config.mcpServers['aworld-mcp']?.headers, { MCP_SERVERS: 'wiki-server', Authorization: 'Bearer t' })
    },
  },
  {
    theirs: 'the JSON that `start_env.sh` prints (`virtualpc-mcp-server`: url, headers, timeouts)',
    ours: '`mcpConfig: { mcpServers: thatJson }`',
    status: 'works',
    async check() {
      await withModelServer(async ({ baseUrl, requests }) => {
        const printed = {
          'virtualpc-mcp-server': {
            type: 'streamable-http' as const,
            url: `${baseUrl}/mcp`,
            headers: { Authorization: 'Bearer abc', MCP_SERVERS: 'readweb-server,browser-server' },
            timeout: 6000,
            sse_read_timeout: 6000,
            client_session_timeout_seconds: 6000,
          },
        }
        const agent = new Agent({ mcpConfig: { mcpServers: printed }, mcpServers: ['readweb-server', 'browser-server'] })
        await leaseHeaders(agent, {})
        assert.equal(requests[0]?.headers['authorization'], 'Bearer abc')
        assert.equal(requests[0]?.headers['mcp_servers'], 'readweb-server,browser-server')
      })
    },
  },
  {
    theirs: 'the hosted environment: headers `ENV_CODE` and `Authorization: Bearer $INVITATION_CODE`',
    ours: `the same \`mcpConfig\`, with \`${invitationCode}\` filled in from the environment`,
    status: 'works',
    async check() {
      await withModelServer(async ({ baseUrl, requests }) => {
        const gaia_server = {
          type: 'streamable-http' as const,
          url: `${baseUrl}/mcp`,
          timeout: 600,
          sse_read_timeout: 600,
          headers: { ENV_CODE: 'gaia', Authorization: `Bearer ${invitationCode}` },
        }
        const agent = new Agent({ mcp_config: { mcpServers: { gaia_server } }, mcp_servers: ['gaia_server'] })
        await leaseHeaders(agent, { INVITATION_CODE: 'invited' })
        assert.equal(requests[0]?.headers['env_code'], 'gaia')
        assert.equal(requests[0]?.headers['authorization'], 'Bearer invited')
      })
    },
  },
  {
    theirs: 'servers over stdio, `black_tool_actions`, `disabled`',
    ours: 'the same keys; a process of its own for every rollout, unless the server says `stateless: true`',
    status: 'differs',
    note: 'There all rollouts share one process.',
    async check() {
      const environment = createEnvironment()
      try {
        const lease = environment.lease({ rollout: 'r', attempt: 0, sample: 0, task: { id: 't' } })
        const mcpConfig = { mcpServers: { off: { command: 'nothing', disabled: true } } }
        const tools = await lease.tools({ agent: 'a', mcpConfig }, AbortSignal.timeout(10_000))
        assert.deepEqual(await tools.list(), [])
        await lease.close()
      } finally {
        await environment.close()
      }
    },
  },
  ...documentedServers.split(',').map((name): ParityRow => {
    const server = toolServers.find((each) => each.name === (serverAliases[name] ?? name))
    const tools = server?.tools ?? []
    return {
      theirs: `tool server \`${name}\``,
      ours: `the same name in \`aworld-train env start\`: ${tools.map((tool) => `\`${tool.name}\``).join(', ')}`,
      status: 'works',
      check() {
        assert(getAgentToolEnvAndServers({ variables: {} }).servers.includes(name))
        assert(tools.length > 0, `The environment has no tools of ${name}`)
      },
    }
  }),
]

/** Leases the tools of an agent from a server that speaks no MCP, so that only what was sent to it is left to see. */
async function leaseHeaders(agent: Agent, variables: Record<string, string>): Promise<void> {
  const environment = createEnvironment({ variables })
  const { mcpConfig, mcpServers } = agent
  try {
    const lease = environment.lease({ rollout: 'r', attempt: 0, sample: 0, task: { id: 't' } })
    await assert.rejects(lease.tools({ agent: 'a', mcpConfig: mcpConfig!, mcpServers }, AbortSignal.timeout(10_000)), TrainError)
  } finally {
    await environment.close()
  }
}
