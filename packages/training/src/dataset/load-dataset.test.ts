import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { TrainingTask } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { datasetOverlap, loadDataset, requireDataset } from './load-dataset.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-dataset-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

const messagesOf = async (source: Parameters<typeof loadDataset>[0], options?: Parameters<typeof loadDataset>[1]) =>
  (await loadDataset(source, options)).problems.map(({ message }) => message.replaceAll(`${directory}/`, ''))

describe('loadDataset reads', () => {
  const expected = [
    { input: 'What is 1 + 1?', answer: '2' },
    { input: 'Name, a "colour"', answer: 'red\ngreen' },
  ]
  it.each([
    ['rows.jsonl', '{"question": "What is 1 + 1?", "answer": "2"}\r\n\n{"question": "Name, a \\"colour\\"", "answer": "red\\ngreen"}\n'],
    ['rows.json', '[{"prompt": "What is 1 + 1?", "answer": "2"}, {"prompt": "Name, a \\"colour\\"", "ground_truth": "red\\ngreen"}]'],
    [
      'data.json',
      '{"version": "1", "data": [{"input": "What is 1 + 1?", "target": "2"}, {"input": "Name, a \\"colour\\"", "label": "red\\ngreen"}]}',
    ],
    ['rows.csv', 'question,answer\r\nWhat is 1 + 1?,2\r\n"Name, a ""colour""","red\ngreen"\r\n'],
    ['bom.csv', '\ufeffquestion,answer\nWhat is 1 + 1?,2\n"Name, a ""colour""","red\ngreen"'],
    ['bom.jsonl', '\ufeff{"question": "What is 1 + 1?", "answer": "2"}\n{"question": "Name, a \\"colour\\"", "answer": "red\\ngreen"}'],
  ])('%s', async (name, content) => {
    const { tasks, answers, problems } = await loadDataset(file(name, content))
    expect(problems).toEqual([])
    expect(tasks.map(({ id, input }) => ({ input, answer: answers.get(id)!.groundTruth }))).toEqual(expected)
    for (const task of tasks) expect(TrainingTask.parse(task)).toEqual(task)
  })

  it('rows and async iterables', async () => {
    async function* rows() {
      yield { id: 7, question: 'a', answer: 1 }
      yield { id: 'x', question: 'b', answer: false }
    }
    const { tasks, answers } = await loadDataset(rows())
    expect(tasks.map(({ id }) => id)).toEqual(['7', 'x'])
    expect([...answers.values()].map(({ groundTruth }) => groundTruth)).toEqual([1, false])
    expect((await loadDataset([{ question: 'a', answer: 1 }])).tasks).toHaveLength(1)
  })

  it('the columns of training frameworks, chat messages included', async () => {
    const row = {
      data_source: 'gaia',
      prompt: [
        { role: 'system', content: 'Be short.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Which ' },
            { type: 'text', text: 'city?' },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a": 1}' } }] },
        { role: 'tool', content: 'Paris', tool_call_id: 'c1' },
      ],
      ability: 'geography',
      reward_model: { style: 'rule', ground_truth: 'Paris' },
      extra_info: { split: 'train', index: 3, hint: null },
      agent_name: 'gaia_agent',
    }
    const { tasks, answers, problems } = await loadDataset([row])
    expect(problems).toEqual([])
    expect(tasks[0]).toMatchObject({
      input: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Which city?' },
        { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'f', arguments: '{"a": 1}' }] },
        { role: 'tool', content: 'Paris', toolCallId: 'c1' },
      ],
      dataSource: 'gaia',
      extraInfo: { split: 'train', index: 3, ability: 'geography' },
      data: {},
    })
    expect(TrainingTask.parse(tasks[0])).toEqual(tasks[0])
    expect(answers.get(tasks[0]!.id)!.groundTruth).toBe('Paris')
  })

  it('JSON in the cells of a CSV file', async () => {
    const path = file(
      'chat.csv',
      'prompt,reward_model,extra_info\n"[{""role"": ""user"", ""content"": ""hi""}]","{""ground_truth"": 5}","{""kind"": ""a""}"\n',
    )
    const { tasks, answers } = await requireDataset(path)
    expect(tasks[0]).toMatchObject({ input: [{ role: 'user', content: 'hi' }], extraInfo: { kind: 'a' } })
    expect([...answers.values()][0]!.groundTruth).toBe(5)
  })

  it('integers beyond 2^53 exactly, as text, and numbers as numbers', async () => {
    const { answers } = await requireDataset(
      file('big.jsonl', '{"question": "a", "answer": 9007199254740993}\n{"question": "b", "answer": 1.5}\n'),
    )
    expect([...answers.values()].map(({ groundTruth }) => groundTruth)).toEqual(['9007199254740993', 1.5])
  })

  it('a chosen prompt column, files, and what is declared for the agent', async () => {
    const row = { question: 'no', text: 'yes', answer: 1, level: 2, file_name: 'a.pdf', data: { unit: 'kg', note: null } }
    const files = [file('a.pdf', 'pdf')]
    const { tasks } = await requireDataset([row], { promptKey: 'text', filesDirectory: directory })
    expect(tasks[0]).toMatchObject({ input: 'yes', data: { unit: 'kg' }, files, extraInfo: { level: 2 } })
    const csv = file('data.csv', 'prompt,answer,data\na,1,"{""unit"": ""kg""}"\nb,2,\n')
    expect((await requireDataset(csv)).tasks.map(({ data }) => data)).toEqual([{ unit: 'kg' }, {}])
  })

  it('files that lie in the folder of the dataset, wherever it is read from, and hashes their bytes', async () => {
    const path = file('gaia.jsonl', '{"prompt": "a", "answer": 1, "file_name": "sign.png"}\n')
    const row = { prompt: 'a', answer: 1, file_name: 'sign.png' }
    const sign = file('sign.png', 'image')
    const { tasks } = await requireDataset(path)
    expect(tasks[0]?.files).toEqual([sign])
    expect((await requireDataset([row], { filesDirectory: directory })).tasks[0]).toEqual(tasks[0])
    expect((await requireDataset([{ ...row, file_name: sign }], { filesDirectory: directory })).tasks[0]?.hash).toBe(tasks[0]?.hash)
    file('sign.png', 'other')
    const [changed] = (await requireDataset(path)).tasks
    expect([changed?.files, changed?.hash === tasks[0]?.hash]).toEqual([[sign], false])
  })

  it('files beside what the dataset is a link to, as in the cache of a hub', async () => {
    const [blobs, snapshot] = [join(directory, 'blobs'), join(directory, 'snapshots', 'main')]
    for (const folder of [blobs, snapshot]) mkdirSync(folder, { recursive: true })
    writeFileSync(join(blobs, '1f'), '{"prompt": "a", "answer": 1, "file_name": "sign.png"}')
    writeFileSync(join(blobs, '2e'), 'image')
    symlinkSync(join(blobs, '1f'), join(snapshot, 'metadata.jsonl'))
    symlinkSync(join(blobs, '2e'), join(snapshot, 'sign.png'))
    expect((await requireDataset(join(snapshot, 'metadata.jsonl'))).tasks[0]?.files).toEqual([join(snapshot, 'sign.png')])
  })

  it('the set-up of a workspace, which makes another task', async () => {
    const setup = { files: { 'src/main.py': 'print(1)' }, commands: ['git init'] }
    const { tasks } = await requireDataset([
      { prompt: 'a', answer: 1, setup },
      { prompt: 'a', answer: 1, setup: JSON.stringify(setup) },
      { prompt: 'a', answer: 1 },
    ])
    expect(tasks.map((task) => task.setup)).toEqual([setup, setup, undefined])
    expect(new Set(tasks.map(({ hash }) => hash)).size).toBe(2)
    const { problems } = await loadDataset([{ prompt: 'a', answer: 1, setup: { command: 'git init' } }])
    expect(problems).toMatchObject([{ column: 'setup', message: expect.stringContaining('"commands": [command]') }])
  })

  it("GAIA's rows: nothing but question and file reaches the task of the agent, and an answer `?` is none", async () => {
    const rows = [
      {
        task_id: 'c61d22de',
        Question: 'Which word is on the sign?',
        Level: 2,
        'Final answer': 'egalitarian',
        file_name: 'sign.png',
        'Annotator Metadata': { Steps: '1. Read the sign. 2. It says egalitarian.', 'Number of steps': '2' },
      },
      { task_id: '32f386b9', Question: 'And this one?', Level: 1, 'Final answer': '?', file_name: '', 'Annotator Metadata': null },
    ]
    const files = [file('sign.png', 'image')]
    const options = { answers: 'optional', filesDirectory: directory } as const
    const { tasks, answers, problems, notes } = await loadDataset(rows, { ...options, split: 'test' })
    expect(problems).toEqual([])
    const [{ extraInfo, ...declared }, unanswered] = tasks as [TrainingTask, TrainingTask]
    expect(JSON.stringify(declared)).not.toMatch(/egalitarian|Steps/)
    expect(declared).toMatchObject({ id: 'c61d22de', input: 'Which word is on the sign?', data: {}, files })
    expect(extraInfo).toEqual({ Level: 2, 'Annotator Metadata': rows[0]?.['Annotator Metadata'] })
    expect(unanswered.extraInfo).toEqual({ Level: 1 })
    expect([...answers.keys()]).toEqual(['c61d22de'])
    expect(notes).toEqual([
      '"Level", "Annotator Metadata" go to the reward as extra information, and not to the agent; what the agent may see stands in the column "data".',
    ])
    expect(await messagesOf(rows, { filesDirectory: directory })).toEqual([
      expect.stringMatching(/^the train rows, row 2: the row has no answer.*"\?" is none/),
    ])
  })

  it('columns of a row beside extra_info, which counts where both have one', async () => {
    const row = { question: 'a', answer: 1, kind: 'easy', level: 3, extra_info: { kind: 'hard' } }
    expect((await requireDataset([row])).tasks[0]?.extraInfo).toEqual({ kind: 'hard', level: 3 })
  })

  it('gives the same id and hash again, and no answer reaches a task', async () => {
    const rows = [{ question: 'a', answer: 'secret-1' }]
    const [first, second] = [await requireDataset(rows), await requireDataset(rows)]
    expect(second.tasks).toEqual(first.tasks)
    expect(JSON.stringify(first.tasks)).not.toContain('secret-1')
  })
})

describe('loadDataset names', () => {
  it.each([
    ['empty.jsonl', '', ['empty.jsonl: the file is empty; it needs at least one row.']],
    ['blank.csv', ' \n', ['blank.csv: the file is empty; it needs at least one row.']],
    ['list.json', '[]', ['list.json: there are no rows; give at least one.']],
    ['text.txt', 'x', [/text.txt: "\.txt" is no format of a dataset; use \.jsonl/]],
    ['cut.jsonl', '{"question": "a", "answer": 1}\n{"question": "b", "ans', [/cut.jsonl, row 2: this line is not JSON .* truncated/]],
    ['cut.json', '[{"question": "a", "answer": 1}, {"ques', [/cut.json: the file is not JSON .* truncated/]],
    ['cut.csv', 'question,answer\na,"unclosed', [/cut.csv, row \d: this is not CSV .* truncated/]],
    ['short.csv', 'question,answer\na,1\nb\n', [/short.csv, row 2: this is not CSV/]],
    ['object.json', '{"a": 1}', ['object.json: the file holds no list of rows; put the rows in a JSON array.']],
    [
      'scalars.jsonl',
      '1\n"x"\nnull\n[1]\n',
      [/row 1: the row is a number/, /row 2: the row is text/, /row 3: the row is null/, /row 4: the row is a list/],
    ],
    ['utf16.jsonl', Buffer.from('\ufeff{"question": "a"}', 'utf16le'), ['utf16.jsonl: the file is UTF-16; save it as UTF-8.']],
    [
      'latin1.csv',
      Buffer.concat([Buffer.from('question,answer\na,b\nc,'), Buffer.of(0xe9, 0x0a)]),
      [/latin1.csv: the file is not valid UTF-8 \(line 3\)/],
    ],
    ['broken.parquet', 'PAR1 this is none', [/broken.parquet: the file is not readable Parquet/]],
    [
      'prompt.jsonl',
      '{"promt": "a", "answer": 1}',
      [/prompt.jsonl, row 1: the row has no prompt; add a column "prompt". Did you mean "promt"\?/],
    ],
    ['none.jsonl', '{"question": "a"}', [/row 1: the row has no answer; add a column "answer"/]],
    [
      'null.jsonl',
      '{"question": "a", "answer": null}\n{"question": "b", "answer": " "}',
      [/row 1: the row has no answer/, /row 2: the row has no answer/],
    ],
    ['number.jsonl', '{"question": 5, "answer": 1}', [/row 1, column "question": the prompt is neither text nor a list of messages/]],
    [
      'role.jsonl',
      '{"prompt": [{"role": "robot", "content": "a"}], "answer": 1}',
      [/message 1 of the prompt has the role "robot"; use system/],
    ],
    [
      'sft.jsonl',
      '{"messages": [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}], "answer": "2"}',
      [/row 1, column "messages": the prompt ends with a message of the assistant, which would tell the agent its answer; take it out/],
    ],
    ['blank.jsonl', '{"input": " ", "question": "", "answer": 1}', [/row 1, column "input": the prompt is empty/]],
    ['nouser.jsonl', '{"prompt": [{"role": "system", "content": "a"}], "answer": 1}', [/the prompt has no message of the user with text/]],
    [
      'data.jsonl',
      '{"question": "a", "answer": 1, "data": "b"}',
      [/row 1, column "data": it is text, not an object of what the agent may see/],
    ],
    ['extra.jsonl', '{"question": "a", "answer": 1, "extra_info": 5}', [/row 1, column "extra_info": it is a number, not an object/]],
    [
      'ids.jsonl',
      '{"id": "t", "question": "a", "answer": 1}\n{"id": "t", "question": "b", "answer": 1}',
      [/row 2: the task id "t" stands in row 1 already/],
    ],
    ['id.jsonl', '{"id": {}, "question": "a", "answer": 1}', [/row 1, column "id": the id is an object/]],
    ['head.csv', 'question,question,\n1,2,3\n', [/head.csv, column "question": this column stands twice/, /column 3 has no name/]],
  ])('%s', async (name, content, expected) => {
    const messages = await messagesOf(file(name, content))
    for (const [i, message] of expected.entries()) expect(messages[i]).toMatch(message)
  })

  it('files of rows that do not lie in the folder of the dataset, links resolved', async () => {
    const folder = join(directory, 'data')
    mkdirSync(join(folder, 'deep'), { recursive: true })
    const secret = file('secret', 'x')
    symlinkSync(secret, join(folder, 'link.pdf'))
    symlinkSync(directory, join(folder, 'out'))
    writeFileSync(join(folder, 'in.pdf'), 'x')
    const names = ['../secret', '/etc/hostname', secret, 'link.pdf', 'out/secret', 'gone.pdf', 'deep', 'https://x.test/a.pdf', 'in.pdf']
    const rows = names.map((name) => ({ prompt: 'a', answer: 1, file_name: name }))
    const expected = names
      .slice(0, -1)
      .map(
        (name, index) =>
          `row ${index + 1}, column "file_name": "${name}" is no file in ${folder}, links resolved; put the file there, or take it out of the row.`,
      )
    writeFileSync(join(folder, 'rows.json'), JSON.stringify(rows))
    const messages = async (...input: Parameters<typeof loadDataset>) =>
      (await loadDataset(...input)).problems.map(({ message }) => message)
    expect(await messages(join(folder, 'rows.json'))).toEqual(expected.map((message) => `${join(folder, 'rows.json')}, ${message}`))
    expect(await messages(rows, { filesDirectory: folder })).toEqual(expected.map((message) => `the train rows, ${message}`))
    expect((await loadDataset(rows)).problems).toHaveLength(rows.length)
    const [list] = await messages([{ prompt: 'a', answer: 1, files: ['in.pdf', '../secret'] }], { filesDirectory: folder })
    expect(list).toContain('column "files": "../secret" is no file in')
  })

  it('a missing file', async () => {
    expect(await messagesOf(join(directory, 'gone.jsonl'))).toEqual(['gone.jsonl: there is no such file; correct the path.'])
  })

  it('an iterable that breaks', async () => {
    async function* rows() {
      yield { question: 'a', answer: 1 }
      throw new Error('connection lost')
    }
    expect(await messagesOf(rows())).toEqual(['the train rows: reading stopped after row 1 (connection lost).'])
  })

  it('every problem at once, up to a bound, with file, row and column', async () => {
    const path = file('bad.jsonl', '{"question": "a"}\n'.repeat(50))
    const { problems } = await loadDataset(path, { maxProblems: 3 })
    expect(problems).toHaveLength(4)
    expect(problems[0]).toEqual({ file: path, row: 1, column: null, message: expect.stringContaining('no answer') })
    expect(problems[3]!.message).toContain('and 47 more')
    await expect(requireDataset(path)).rejects.toMatchObject({ code: 'DATASET_INVALID' })
  })

  it('no missing answer where answers are optional', async () => {
    const { tasks, answers, problems } = await loadDataset([{ question: 'a' }], { answers: 'optional' })
    expect([tasks.length, answers.size, problems]).toEqual([1, 0, []])
  })
})

it.each([
  [5, 'the number 5'],
  [true, 'true'],
  [null, 'null'],
  [{ question: 'a' }, 'an object with the keys question'],
  [() => [], 'a function'],
  [Promise.resolve([]), 'a promise'],
])('loadDataset names a dataset that is none (%j)', async (source, what) => {
  expect(await messagesOf(source as never, { split: 'test' })).toEqual([
    `the test rows: the dataset is ${what}; pass a path, a list of rows, or an async iterable of rows.`,
  ])
})

describe('several files', () => {
  const row = (question: string) => `${JSON.stringify({ question, answer: 1 })}\n`
  const inputsOf = async (source: Parameters<typeof loadDataset>[0]) => (await requireDataset(source)).tasks.map(({ input }) => input)

  function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
    const folder = mkdtempSync(join(directory, 'shards-'))
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
    return folder
  }

  it('are texts packed by gzip too, whatever their format', async () => {
    expect(await inputsOf(file('a.jsonl.gz', gzipSync(row('a'))))).toEqual(['a'])
    expect(await inputsOf(file('a.csv.gz', gzipSync('question,answer\na,1\n')))).toEqual(['a'])
    expect(await inputsOf(file('a.json.gz', gzipSync(`[${row('a')}]`)))).toEqual(['a'])
    const cut = file('cut.jsonl.gz', gzipSync(row('a')).subarray(0, -12))
    expect(await messagesOf(cut)).toEqual([expect.stringMatching(/^cut.jsonl.gz: the file is not readable gzip/)])
    expect(await messagesOf(file('a.parquet.gz', 'x'))).toEqual([expect.stringMatching(/"\.parquet\.gz" is no format/)])
  })

  it('are a folder of shards, in the order of their numbers, and a list of paths in its own', async () => {
    const shards = folderOf({ 'part-10.jsonl': row('c'), 'part-9.jsonl': row('a') + row('b'), 'README.md': '# x' })
    expect(await inputsOf(shards)).toEqual(['a', 'b', 'c'])
    expect(await inputsOf([file('z.jsonl', row('z')), file('y.csv', 'question,answer\ny,1\n'), shards])).toEqual(['z', 'y', 'a', 'b', 'c'])
  })

  it('have ids of their own for equal rows, files in their own folders, and problems by their names', async () => {
    const [first, second] = ['first', 'second'].map((name) => {
      const folder = folderOf({ 'a.txt': name, 'rows.jsonl': '{"question": "a", "answer": 1, "file_name": "a.txt"}\n' })
      return join(folder, 'rows.jsonl')
    }) as [string, string]
    const { tasks } = await requireDataset([first, second])
    expect(tasks.map(({ files }) => files)).toEqual([first, second].map((path) => [join(path, '..', 'a.txt')]))
    expect(tasks.map(({ id }) => id.slice(0, 8))).toEqual(['train-1-', 'train-2-'])
    expect(new Set(tasks.map(({ hash }) => hash)).size).toBe(2)
    const rows = '{"id": "x", "question": "a", "answer": 1}\n'
    const twice = [file('one.jsonl', rows), file('two.jsonl', `\n${rows}{"question": "b"}`)]
    expect(await messagesOf(twice)).toEqual([
      expect.stringMatching(/^two.jsonl, row 2: the task id "x" stands in row 1 of one.jsonl already/),
      expect.stringMatching(/^two.jsonl, row 3: the row has no answer/),
    ])
  })

  it('are no shards of one dataset where their names differ in more than numbers, or where some are missing', async () => {
    const splits = folderOf({ 'train.jsonl': row('a'), 'test.jsonl': row('b') })
    expect(await messagesOf(splits)).toEqual([
      expect.stringMatching(/no shards of one dataset \(test.jsonl, train.jsonl\); name one, or list/),
    ])
    const missing = folderOf({ 'train-00000-of-00003.jsonl': row('a'), 'train-00001-of-00003.jsonl': row('b') })
    expect(await messagesOf(missing)).toEqual([expect.stringMatching(/holds 2 of 3 shards; add the others/)])
  })

  it('are not those of a hub, which is never asked', async () => {
    expect(await messagesOf(join(directory, 'openai/gsm8k'))).toEqual([
      'openai/gsm8k: there is no such file; correct the path. Hubs are never asked for a dataset: download it, and name its file or folder.',
    ])
  })
})

describe('columns of one thing', () => {
  const inputOf = async (row: Record<string, unknown>) => (await requireDataset([{ answer: 1, ...row }])).tasks[0]?.input

  it('are read by the first that has a value', async () => {
    const row = {
      input: '',
      question: 'a',
      id: null,
      task_id: 't',
      answer: '?',
      target: 5,
      files: [],
      file_name: '',
      extra_info: '',
      extraInfo: { k: 1 },
    }
    const { tasks, answers, warnings } = await loadDataset([row])
    expect([tasks[0], answers.get('t')?.groundTruth, warnings]).toMatchObject([{ id: 't', input: 'a', extraInfo: { k: 1 } }, 5, []])
  })

  it('are named where they differ and one of them is dropped, the chosen column of the prompt included', async () => {
    const rows = [
      { prompt: 'a', question: 'b', answer: 1, target: 2, id: 'x', task_id: 'x', reward_model: { ground_truth: 1 } },
      { prompt: 'c', answer: 1, label: 1, uid: 'y', data_source: 's', dataSource: 't' },
    ]
    expect((await loadDataset(rows)).warnings).toEqual([
      '"question" is not read, since "prompt" comes before it, and "target" is not read, since "reward_model" comes before it, and "dataSource" is not read, since "data_source" comes before it; leave out what is not meant, or give it a name of its own.',
    ])
    const chosen = await loadDataset([{ prompt: 'a', text: 'b', answer: 1 }], { promptKey: 'text' })
    expect([chosen.tasks[0]?.input, chosen.warnings]).toEqual(['b', [expect.stringContaining('"prompt" is not read, since "text" comes')]])
    const { problems } = await loadDataset([{ prompt: 'a', text: null, answer: 1 }], { promptKey: 'text' })
    expect(problems).toMatchObject([{ column: 'text', message: expect.stringContaining('the row has no prompt') }])
  })

  it("are joined where they are Alpaca's: what to do, and what to do it with", async () => {
    const rows = [
      { instruction: 'Translate to French.', input: 'Good day.', answer: 'Bonjour.' },
      { instruction: 'Name a colour.', input: '', answer: 'red' },
      { instruction: 'Name a colour.', prompt: 'Name a tree.', input: 'Good day.', answer: 'oak' },
    ]
    const { tasks, warnings } = await loadDataset(rows.slice(0, 2))
    expect([tasks.map(({ input }) => input), warnings]).toEqual([['Translate to French.\n\nGood day.', 'Name a colour.'], []])
    expect((await loadDataset(rows.slice(2))).warnings).toEqual([expect.stringMatching(/"input" is not read.*"instruction" is not read/)])
  })

  it.each(['[1, 2, 3]', '{"a": 1}', '[]', '["user"]', '[{"a": 1}]', '{"role": "user", "content": "x"}'])(
    'text that is JSON stays text: %s',
    async (text) => {
      expect([await inputOf({ prompt: text }), await inputOf({ messages: [{ role: 'user', content: text }] })]).toEqual([
        text,
        [{ role: 'user', content: text }],
      ])
      const csv = file('text.csv', `prompt,answer\n"${text.replaceAll('"', '""')}",1\n`)
      expect((await requireDataset(csv)).tasks[0]?.input).toBe(text)
    },
  )
})

it('datasetOverlap finds tasks of equal prompt, answer and extra_info, whatever their ids and wherever they stood', async () => {
  const train = await requireDataset([{ id: 'a', question: 'same', answer: 1, extra_info: { split: 'train', index: 0, level: 2 } }])
  const test = await requireDataset([
    { id: 'b', prompt: [{ role: 'user', content: 'same' }], answer: 1, level: 2, extra_info: { split: 'test', index: 7 } },
    { id: 'c', question: 'same', answer: 2, extra_info: { level: 2 } },
    { id: 'd', question: 'same', answer: 1, extra_info: { level: 3 } },
    { id: 'e', question: 'other', answer: 1, extra_info: { level: 2 } },
    { id: 'f', question: 'same', answer: 1, extra_info: { level: 2 }, data: { unit: 'kg' } },
  ])
  expect(datasetOverlap(train, test).map(({ id }) => id)).toEqual(['b'])
})
