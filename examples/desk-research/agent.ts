import type { Tools } from 'aworld-train'
import type { ResearchTask } from './tasks.ts'

type Input = Readonly<Record<string, unknown>>

/** A call of a tool; what it asks for may come from the text of the call before it. */
type Step = readonly [tool: string, input: Input | ((text: string) => Input)]

interface Script {
  readonly steps: readonly Step[]
  /** Where the answer stands in the last text. */
  readonly answer: RegExp
}

/** How each task is done: where to look, and never what is found there. */
const scripts: Readonly<Record<string, Script>> = {
  csv: {
    steps: [['documents-csv-server__extract_csv_content', { file_path: 'harbours.csv' }]],
    answer: /tonnage: .*quartiles \S+, ([^,]+),/,
  },
  xlsx: {
    steps: [['documents-csv-server__extract_csv_content', { file_path: 'ferries.xlsx', include_statistics: false }]],
    answer: /Ostend \| (\d+)/,
  },
  docx: { steps: [['documents-docx-server__extract_docx_content', { file_path: 'minutes.docx' }]], answer: /Chair \| ([^|]+?) \|/ },
  pptx: { steps: [['documents-pptx-server__extract_pptx_content', { file_path: 'talk.pptx' }]], answer: /founded in (\d+)/ },
  pdf: {
    steps: [['documents-pdf-server__convert_document_to_markdown', { file_path: 'manual.pdf', offset: 1 }]],
    answer: /Serial number: (\S+)/,
  },
  txt: { steps: [['documents-txt-server__extract_text_content', { file_path: 'letter.txt' }]], answer: /meet at (.+?)\./ },
  page: { steps: [['readweb-server__read_url', { url: 'https://lighthouses.test/sule' }]], answer: /Height \| (\d+) m/ },
  search: {
    steps: [
      ['googlesearch-server__search_google', { query: 'Halden tide clock' }],
      ['readweb-server__read_url', (text) => ({ url: read(text, /(https:\S+)/) })],
    ],
    answer: /built by ([^.]+)\./,
  },
  wiki: { steps: [['wiki-server__get_article_content', { title: 'Teal Bridge' }]], answer: /opened in (\d+)/ },
  'wiki-history': {
    steps: [['wiki-server__get_article_history', { title: 'Teal Bridge', date: '2019-06-01' }]],
    answer: /has (\d+) spans/,
  },
  paper: {
    steps: [
      ['parxiv-server__search_papers', { query: 'ti:tidal' }],
      ['parxiv-server__get_paper_details', (text) => ({ paper_id: read(text, /^(\S+)/) })],
    ],
    answer: /Journal: (.+)/,
  },
  'paper-text': {
    steps: [
      ['parxiv-server__search_papers', { query: 'ti:tidal' }],
      ['parxiv-server__download_paper', (text) => ({ paper_id: read(text, /^(\S+)/), output_file_path: 'paper.pdf' })],
      ['documents-pdf-server__convert_document_to_markdown', { file_path: 'paper.pdf' }],
    ],
    answer: /drift of (\d+) seconds/,
  },
  archive: {
    steps: [
      ['wayback-server__list_archived_versions', { url: 'https://lighthouses.test/tickets', to_date: '2015' }],
      [
        'wayback-server__get_archived_content',
        (text) => ({ url: 'https://lighthouses.test/tickets', timestamp: read(text, /^(2015\d+)/m) }),
      ],
    ],
    answer: /costs (\d+) crowns/,
  },
  download: {
    steps: [
      ['download-server__download_file', { url: 'https://lighthouses.test/depths.csv', output_file_path: 'depths.csv' }],
      ['documents-csv-server__extract_csv_content', { file_path: 'depths.csv' }],
    ],
    answer: /depth: .*maximum (\d+)/,
  },
  code: {
    steps: [
      [
        'intelligence-code-server__run_code',
        { language: 'bash', code: 'sum=0\nfor number in $(cat numbers.txt); do sum=$((sum + number * number)); done\necho "sum: $sum"' },
      ],
    ],
    answer: /sum: (\d+)/,
  },
  terminal: {
    steps: [
      ['terminal-server__execute_command', { command: "cut -d ' ' -f 1 access.log | sort > addresses.txt" }],
      ['terminal-server__execute_command', { command: 'uniq -c addresses.txt | sort -n | tail -n 1' }],
    ],
    answer: /\d+ (\d+\.\d+\.\d+\.\d+)/,
  },
  image: { steps: [['media-image-server__extract_text_ocr', { file_path: 'sign.png' }]], answer: /^\S+ (\S+)/ },
  sound: { steps: [['media-audio-server__extract_audio_metadata', { file_path: 'bell.wav' }]], answer: /^(\S+) s of/ },
  film: {
    steps: [
      ['media-video-server__extract_keyframes', { video_path: 'film.gif', target_time: 1.5, window_size: 0 }],
      ['media-image-server__extract_text_ocr', (text) => ({ file_path: read(text, /^(.+), at/) })],
    ],
    answer: /^(.+)$/m,
  },
  form: {
    steps: [
      ['browser-server__browser_navigate', { url: 'https://lighthouses.test/ferry' }],
      ['browser-server__browser_type', { target: 'input', text: 'Halden', submit: true }],
      ['browser-server__browser_wait_for', { text: 'crowns' }],
      ['browser-server__browser_snapshot', {}],
    ],
    answer: /costs (\d+) crowns/,
  },
}

/** Does a task as its script says. It resolves with its final answer, and with the text of every tool. */
export async function research({ id }: ResearchTask, tools: Tools, signal: AbortSignal): Promise<{ answer: string; texts: string[] }> {
  const { steps, answer } = scripts[id]!
  const texts: string[] = []
  for (const [name, input] of steps) {
    const result = await tools.call({ name, arguments: typeof input === 'function' ? input(texts.at(-1) ?? '') : input }, signal)
    texts.push(result.content)
  }
  return { answer: `<answer>${read(texts.at(-1) ?? '', answer)}</answer>`, texts }
}

/** What the pattern finds; nothing where it does not match. */
const read = (text: string, pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
