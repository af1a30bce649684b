import { harmony } from './harmony.ts'
import { gemmaCalls, pythonicCalls } from './literal-calls.ts'
import { namedJson } from './named-json.ts'
import type { ToolCallSyntax } from './syntax.ts'
import { bareJson, jsonList, taggedJson } from './tagged-json.ts'
import { keyValueTags, xmlParameters } from './tagged-values.ts'

/** Mistral's v3 to v7: `[TOOL_CALLS]` and an array whose members have ids. */
const mistralList = jsonList({ name: 'mistral-list', open: '[TOOL_CALLS]', close: null })

/** Mistral's v11 and later: `[TOOL_CALLS]name[ARGS]{…}`, in v11 with `[CALL_ID]` between. */
const mistralArgs = namedJson({
  name: 'mistral-args',
  open: '[TOOL_CALLS]',
  close: null,
  separator: '[ARGS]',
  head: /^\s*(?<name>[^[\]{}]+?)(?:\[CALL_ID\](?<id>[^[\]]+))?\s*$/,
  opening: (name) => `[TOOL_CALLS]${name === null ? '' : `${name}[ARGS]`}`,
})

const deepSeekMarkers = {
  open: '<｜tool▁call▁begin｜>',
  close: '<｜tool▁call▁end｜>',
  around: ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'],
} as const
const deepSeekOpening = deepSeekMarkers.around[0] + deepSeekMarkers.open

/** DeepSeek V3 and R1: type, name and fenced JSON. */
const deepSeekFenced = namedJson({
  name: 'deepseek-fenced',
  ...deepSeekMarkers,
  separator: '```json',
  head: /^\s*function<｜tool▁sep｜>(?<name>[^\n<>`]+?)\s*$/,
  tail: '```',
  opening: (name) => `${deepSeekOpening}function<｜tool▁sep｜>${name === null ? '' : `${name}\n\`\`\`json\n`}`,
})

/** DeepSeek V3.1: name and JSON. */
const deepSeekPlain = namedJson({
  name: 'deepseek-plain',
  ...deepSeekMarkers,
  separator: '<｜tool▁sep｜>',
  head: /^\s*(?<name>[^\n<>`]+?)\s*$/,
  opening: (name) => `${deepSeekOpening}${name === null ? '' : `${name}<｜tool▁sep｜>`}`,
})

/** Kimi K2: an id that holds the name, and JSON. */
const kimi = namedJson({
  name: 'kimi',
  open: '<|tool_call_begin|>',
  close: '<|tool_call_end|>',
  around: ['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>'],
  separator: '<|tool_call_argument_begin|>',
  head: /^\s*(?<id>(?:functions\.)?(?<name>(?!functions\.:)[^\s:<>]+):\d+)\s*$/,
  opening: (name) => `<|tool_calls_section_begin|><|tool_call_begin|>functions.${name === null ? '' : `${name}:`}`,
})

/** All supported syntaxes of tool calls. The probe finds a model's row by the text that its template prints. */
export const toolCallSyntaxes: readonly ToolCallSyntax[] = [
  harmony,
  taggedJson,
  xmlParameters({ name: 'xml-parameters', open: '<tool_call>', close: '</tool_call>' }),
  keyValueTags,
  xmlParameters({ name: 'seed-parameters', open: '<seed:tool_call>', close: '</seed:tool_call>' }),
  mistralList,
  mistralArgs,
  deepSeekFenced,
  deepSeekPlain,
  kimi,
  gemmaCalls,
  jsonList({ name: 'nemotron-list', open: '<TOOLCALL>', close: '</TOOLCALL>' }),
  jsonList({ name: 'phi-list', open: '<|tool_call|>', close: '<|/tool_call|>' }),
  jsonList({ name: 'granite-list', open: '<|tool_call|>', close: null }),
  jsonList({ name: 'granite-tag-list', open: '<tool_call>', close: null }),
  jsonList({ name: 'command-list', open: '<|START_ACTION|>', close: '<|END_ACTION|>', keys: ['tool_name', 'parameters'] }),
  pythonicCalls({ name: 'pythonic-tagged', open: '<|tool_call_start|>', close: '<|tool_call_end|>' }),
  pythonicCalls({ name: 'pythonic', open: null, close: null }),
  bareJson,
]
