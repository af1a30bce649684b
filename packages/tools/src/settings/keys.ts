import { modelRoles } from '../tool-server.ts'

/** A variable of the environment's `.env`. */
export interface SettingKey {
  readonly name: string
  /** Its purpose in one line, for the template and the reference. */
  readonly purpose: string
  /** Its value in the template. A placeholder counts as not set. */
  readonly template: string
  /** The reason why a key of AWorld's file has no effect here, which a person is told. */
  readonly unused?: string
}

const placeholder = (name: string) => `<YOUR_${name}>`
const key = (name: string, purpose: string, unused?: string): SettingKey => ({
  name,
  purpose,
  template: placeholder(name),
  ...(unused !== undefined && { unused }),
})

const rolePurposes: Readonly<Record<(typeof modelRoles)[number], string>> = {
  browseruse: 'model that drives the browser for browser_use',
  code: 'model that writes Python for generate_python_code',
  think: 'model that complex_problem_reasoning asks',
  guard: 'model that guarding_reasoning_process asks',
  audio: 'model that transcribes',
  image: 'model that looks at images',
  video: 'model that looks at videos',
}
const modelParts = ['BASE_URL', 'MODEL_NAME', 'API_KEY'] as const

/** Every key that is read, in the order of the template. */
export const settingKeys: readonly SettingKey[] = [
  key('JINA_API_KEY', 'reader of pages', 'pages are read by readweb-server itself'),
  key('TAVILY_API_KEY', 'search and page extraction by Tavily'),
  key('GOOGLE_API_KEY', "Google's Custom Search, which ends on 2027-01-01"),
  key('GOOGLE_CSE_ID', "identifier of Google's search engine"),
  { name: 'SEARXNG_BASE_URL', purpose: 'a SearXNG instance of your own, in place of the two above', template: '' },
  key('DATALAB_API_KEY', "Datalab's conversion of PDF", 'PDF is read by documents-pdf-server itself'),
  key('E2B_API_KEY', 'code in the cloud', 'code runs in the workspace of its rollout'),
  {
    name: 'BROWSER_CDP_URL',
    purpose: 'a browser elsewhere, by its address for the DevTools protocol (http:// or ws://), in place of one in each workspace',
    template: '',
  },
  { name: 'CONTACT', purpose: 'your address or page, which Wikimedia asks for: without it 10 requests a minute', template: '' },
  ...['GOOGLE', 'TAVILY', 'WIKIPEDIA', 'ARXIV', 'WAYBACK'].map((service) => ({
    name: `${service}_BASE_URL`,
    purpose: 'a mirror or a stand-in of that service, in place of its own address',
    template: '',
  })),
  ...modelParts.map((part) => key(`MCP_LLM_${part}`, 'the model that the roles below use')),
  ...modelRoles.flatMap((role) =>
    modelParts.map((part) => ({
      name: `${role.toUpperCase()}_LLM_${part}`,
      purpose: rolePurposes[role],
      template: `\${MCP_LLM_${part}}`,
    })),
  ),
]

/** The text of `.env_template`. */
export function settingsTemplate(): string {
  let above = ''
  const lines = settingKeys.map(({ name, template, purpose, unused }) => {
    const note = `# ${purpose}${unused === undefined ? '' : `; not used: ${unused}`}\n`
    const line = `${note === above ? '' : `\n${note}`}${name}=${template}\n`
    above = note
    return line
  })
  return `# Keys of the tool environment. None is needed to start it: a tool without its key says so when it is called.\n${lines.join('')}`
}
