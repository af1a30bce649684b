import fc from 'fast-check'

/** A conversation without the form of any dialect. What is JSON is text: values would lose the spelling of numbers and the order of keys. */
export interface AnyConversation {
  readonly system: (SpelledMessage & { readonly role: 'system' | 'developer' }) | null
  readonly tools: readonly AnyTool[]
  readonly messages: readonly AnyMessage[]
  /** Strings are written with escapes wherever JSON allows them. */
  readonly escaped: boolean
}

export interface AnyTool {
  readonly name: string
  readonly description: string | null
  /** JSON of a schema. */
  readonly parameters: string
  readonly strict: boolean | null
}

export type AnyMessage = SpelledMessage | AssistantMessage | ResultMessage

interface Written {
  readonly content: string
  /** Which of the ways to write the same a dialect takes. */
  readonly way: number
}

export interface SpelledMessage extends Written {
  readonly role: 'user' | 'system' | 'developer'
  readonly name: string | null
}

export interface AssistantMessage extends Written {
  readonly role: 'assistant'
  readonly reasoning: string
  readonly calls: readonly AnyCall[]
}

export interface AnyCall {
  readonly id: string
  readonly name: string
  /** JSON of an object. */
  readonly arguments: string
}

export interface ResultMessage extends Written {
  readonly role: 'tool'
  readonly id: string
  readonly name: string | null
}

const words = [
  'plain words',
  'it’s "quoted" \\ \\n',
  'Ünïcödé',
  '漢字かな',
  'שלום',
  '{{ x }}',
  '<b>&amp;</b>',
  '/nothink',
  '007',
  'None',
  '{"a": 1.0}',
  '.',
]
const spaces = ['', ' ', '\n', '\n\n', '\t', '\r\n', '  ', '\u00a0', '\u0085', '\u2028', '\ufeff', '\u001f']
const exotic = ['🙂👩\u200d🚀', 'e\u0301', '\u202eabc', '\u0000', '\u007f', '\ud83d', '\ude42', '\u{10ffff}', 'ﬁ', 'ß', 'İ']
const markup = ['<think>', '</think>', '<|im_end|>', '</s>', '[INST]', '<tool_call>', '<|turn>', '<｜Assistant｜>', '<|"|>', '[TOOL_CALLS]']

const text = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...words) },
      fc.constantFrom(...spaces),
      fc.constantFrom(...exotic),
      fc.constantFrom(...markup),
    ),
    {
      maxLength: 4,
    },
  )
  .map((parts) => parts.join(''))
const mostlyNone = fc.oneof({ weight: 2, arbitrary: fc.constant('') }, text)
const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, arbitrary)

const number = fc.constantFrom(
  ...[
    '0',
    '-0',
    '-0.0',
    '0e0',
    '-1',
    '7',
    '1.0',
    '2.0',
    '2.50',
    '0.1',
    '0.1000000000000000055511151231257827',
    '100e-2',
    '3.14159',
    '1.0e3',
  ],
  ...[
    '1E5',
    '1e5',
    '1E-7',
    '1e-7',
    '1e-5',
    '1e16',
    '1e15',
    '1e22',
    '1E+2',
    '5e-324',
    '1.7976931348623157e308',
    '1e400',
    '-1e400',
    '1e-400',
  ],
  ...['9007199254740993', '12345678901234567890', '-98765432109876543210', '123456789012345678901234567890.0', '10000000000000000000000'],
)

const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('name', 'city', 'é', 'two words') },
  fc.constantFrom('9', '1', '10', '01', '-1', '', 'e\u0301', 'x"y', '\\', '🙂', '\ud83d', '\u0000', '\u2028'),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length'),
  fc.constantFrom('items', 'keys', 'get', 'values', 'type', 'properties', 'arguments', 'id', 'function', 'description'),
)

interface Spelling {
  readonly string: (value: string) => string
  readonly space: string
}

type Json = (spelling: Spelling) => string

/** Members as text; a name may stand twice. */
const objectOf = (value: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc
    .array(fc.tuple(name, value), { maxLength: 4 })
    .map(
      (members) => (spelling) =>
        `{${members.map(([key, each]) => `${spelling.string(key)}:${spelling.space}${each(spelling)}`).join(`,${spelling.space}`)}}`,
    )

const { value: anyJson } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    number.map(
      (digits): Json =>
        () =>
          digits,
    ),
    fc.constantFrom('null', 'true', 'false').map(
      (word): Json =>
        () =>
          word,
    ),
    text.map(
      (value): Json =>
        ({ string }) =>
          string(value),
    ),
    fc.array(tie('value'), { maxLength: 3 }).map(
      (items): Json =>
        (spelling) =>
          `[${items.map((item) => item(spelling)).join(`,${spelling.space}`)}]`,
    ),
    objectOf(tie('value')),
  ),
}))
const anyObject = objectOf(anyJson)

const typeName = fc.constantFrom('string', 'integer', 'number', 'boolean', 'array', 'object')

/** A schema of a parameter as people write them, with numbers where they stand in schemas. */
const { schema } = fc.letrec<{ plain: Json; schema: Json }>((tie) => ({
  schema: fc.oneof({ weight: 15, arbitrary: tie('plain') }, anyJson),
  plain: fc
    .record({
      type: typeName,
      nullable: fc.nat(9).map((n) => n === 0),
      description: fc.option(text),
      enum: rarely(fc.array(anyJson, { minLength: 1, maxLength: 3 })),
      default: rarely(anyJson),
      minimum: rarely(number),
      anyOf: rarely(fc.array(tie('schema'), { maxLength: 2, depthIdentifier: 'schema' })),
      inner: fc.option(fc.array(fc.tuple(name, tie('schema')), { maxLength: 2 }), {
        maxDepth: 2,
        depthSize: 'small',
        depthIdentifier: 'schema',
      }),
    })
    .map(
      ({ type, nullable, description, inner, ...rest }): Json =>
        (spelling) => {
          const { string } = spelling
          const members: string[] = rest.anyOf
            ? [`"anyOf": [${rest.anyOf.map((each) => each(spelling)).join(', ')}]`]
            : [`"type": ${nullable ? `["${type}", "null"]` : `"${type}"`}`]
          if (description !== null) members.push(`"description": ${string(description)}`)
          if (rest.enum !== null) members.push(`"enum": [${rest.enum.map((each) => each(spelling)).join(', ')}]`)
          if (rest.default !== null) members.push(`"default": ${rest.default(spelling)}`)
          if (rest.minimum !== null) members.push(`"minimum": ${rest.minimum}`)
          if (inner !== null && type === 'object') members.push(propertiesText(inner, spelling))
          if (inner?.[0] && type === 'array') members.push(`"items": ${inner[0][1](spelling)}`)
          return `{${members.join(', ')}}`
        },
    ),
}))

const propertiesText = (properties: readonly (readonly [string, Json])[], spelling: Spelling): string => {
  const members = properties.map(([key, each]) => `${spelling.string(key)}: ${each(spelling)}`)
  const first = properties[0] ? spelling.string(properties[0][0]) : ''
  return `"properties": {${members.join(', ')}}, "required": [${first}]`
}

const parameters = fc
  .record({
    properties: fc.array(fc.tuple(name, schema), { maxLength: 3 }),
    closed: rarely(fc.boolean()),
    more: rarely(anyJson),
  })
  .map(
    ({ properties, closed, more }): Json =>
      (spelling) => {
        const tail = `${closed === null ? '' : `, "additionalProperties": ${closed}`}${more === null ? '' : `, "x-more": ${more(spelling)}`}`
        return `{"type": "object", ${propertiesText(properties, spelling)}${tail}}`
      },
  )

const tool = fc.record({ description: fc.option(text, { freq: 6 }), parameters, strict: rarely(fc.boolean()) })
const written = { content: text, way: fc.nat(7), name: rarely(fc.constantFrom('look_up', 'Ada')) }
const call = fc.record({ name: fc.nat(2), arguments: anyObject, result: fc.record(written) })
const answerText = fc.record({ content: text, reasoning: mostlyNone, way: fc.nat(7) })
const step = fc.record({
  content: mostlyNone,
  reasoning: mostlyNone,
  way: fc.nat(7),
  calls: fc.array(call, { minLength: 1, maxLength: 2 }),
  swapped: fc.boolean(),
})
const instructed = fc.record({ role: fc.constantFrom('system' as const, 'system' as const, 'developer' as const), ...written })
const round = fc.record({
  instructed: rarely(instructed),
  user: fc.record(written),
  steps: fc.array(step, { maxLength: 2 }),
  answer: fc.option(answerText, { freq: 8 }),
})

/** Escapes what need not be escaped. */
const withEscapes = (value: string): string =>
  JSON.stringify(value).replace(/[\u007f-\uffff/]/g, (unit) =>
    unit === '/' ? '\\/' : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Conversations as agents have them, and as nobody has them. */
export const conversations: fc.Arbitrary<AnyConversation> = fc
  .record({
    system: fc.option(instructed),
    tools: fc.array(tool, { maxLength: 2 }),
    rounds: fc.array(round, { minLength: 1, maxLength: 3, size: 'small' }),
    end: fc.constantFrom('answer', 'user', 'user', 'result'),
    escaped: fc.boolean(),
    space: fc.constantFrom('', ' ', '\n\t'),
  })
  .map(({ system, tools, rounds, end, escaped, space }): AnyConversation => {
    const spelling: Spelling = { string: escaped ? withEscapes : JSON.stringify, space }
    const names = ['look_up', 'put'].slice(0, tools.length)
    const messages: AnyMessage[] = []
    let calls = 0
    for (const [index, { instructed: more, user, steps, answer }] of rounds.entries()) {
      const isLast = index === rounds.length - 1
      if (more) messages.push(more)
      messages.push({ role: 'user', ...user })
      for (const { calls: made, swapped, ...each } of names.length > 0 ? steps : []) {
        const numbered = made.map((one) => ({ ...one, id: `${['call_', 'toolu_', 'x'][calls % 3]}${calls++}` }))
        messages.push({
          role: 'assistant',
          ...each,
          calls: numbered.map(({ id, name: at, arguments: written }) => ({
            id,
            name: names[at % names.length]!,
            arguments: written(spelling),
          })),
        })
        const results = numbered.map(({ id, result }): ResultMessage => ({ role: 'tool', id, ...result }))
        messages.push(...(swapped ? results.reverse() : results))
      }
      if (answer && (!isLast || end === 'answer')) messages.push({ role: 'assistant', ...answer, calls: [] })
      else if (end === 'user' && messages.at(-1)?.role === 'tool') messages.push({ role: 'user', ...user })
    }
    const offeredTools = tools.map(({ parameters: written, ...each }, index) => ({
      ...each,
      name: names[index]!,
      parameters: written(spelling),
    }))
    return { system, tools: offeredTools, messages, escaped }
  })

/** JSON of a string, as `conversation` writes them. */
export const stringText = ({ escaped }: AnyConversation, value: string): string => (escaped ? withEscapes(value) : JSON.stringify(value))
