import { describe, expect, it } from 'vitest'
import { verlPython } from './version-rules.ts'

const { judge: judgePython, inspected } = verlPython

const complete: Record<string, string | null> = {
  verl: '0.9.1',
  torch: '2.13.0+cu130',
  ray: '2.60.0',
  transformers: '5.10.4',
  tensordict: '0.10.0',
  numpy: '2.4.6',
  pyarrow: '26.0.1',
  'hydra-core': '1.3.8',
  transferqueue: '0.1.11',
  cachetools: '8.0.0',
  fastapi: '0.165.0',
  uvicorn: '0.54.0',
  aiohttp: '3.14.5',
  vllm: null,
  sglang: null,
  'flash-attn': null,
}

describe('judgePython', () => {
  it('has nothing against the versions that are tested, and looks at each of them', () => {
    expect(judgePython({ version: '3.11.7', packages: complete })).toEqual([])
    expect([...inspected].sort()).toEqual(Object.keys(complete).sort())
  })

  it.each([
    ['3.9.18', 'error', /Python 3\.9\.18 .* 3\.10, 3\.11 or 3\.12; run "aworld-train setup verl"/],
    ['3.13.0', 'error', /Python 3\.13\.0/],
    ['3.13.0rc1', 'error', /Python 3\.13\.0rc1/],
    ['3.10.0', undefined, undefined],
    ['3.12.12', undefined, undefined],
  ])('Python %s: %s', (version, level, message) => {
    const problems = judgePython({ version, packages: complete })
    expect(problems.map((problem) => problem.level)).toEqual(level === undefined ? [] : [level])
    if (message) expect(problems[0]?.message).toMatch(message)
  })

  it.each([
    ['0.8.0', 'error', /verl 0\.8\.0 is older than 0\.9.*install verl==0\.9\.1/],
    ['0.9.0rc1', 'error', /older/],
    ['0.9.1', undefined, undefined],
    ['0.9.0', 'warning', /verl 0\.9\.0 was not tested, 0\.9\.1 was/],
    ['0.9.12', 'warning', /not tested/],
    ['0.10.0.dev0', 'warning', /not tested/],
    ['1.0', 'warning', /not tested/],
  ])('verl %s: %s', (verl, level, message) => {
    const problems = judgePython({ version: '3.11.7', packages: { ...complete, verl } })
    expect(problems.map((problem) => problem.level)).toEqual(level === undefined ? [] : [level])
    if (message) expect(problems[0]?.message).toMatch(message)
  })

  it.each([
    ['transferqueue', null, /TransferQueue is missing.*pip install "TransferQueue==0\.1\.11"/],
    ['cachetools', null, /pip install "cachetools"/],
    ['torch', null, /torch is missing/],
    ['transformers', '4.57.1', /transformers 4\.57\.1 does not fit.*>=5\.5\.3,<5\.11/],
    ['transformers', '5.11.0', /does not fit/],
    ['tensordict', '0.9.1', /does not fit/],
    ['numpy', '1.26.4', /numpy>=2\.0"/],
  ])('refuses %s %s', (name, version, message) => {
    const problems = judgePython({ version: '3.11.7', packages: { ...complete, [name]: version } })
    expect(problems).toEqual([{ level: 'error', about: name, message: expect.stringMatching(message) }])
  })

  it('leaves what a newer verl requires to that verl', () => {
    const problems = judgePython({ version: '3.11.7', packages: { ...complete, verl: '0.11.0', transformers: '6.0.0' } })
    expect(problems.map(({ level }) => level)).toEqual(['warning'])
  })

  it('says nothing but that verl is missing when it is', () => {
    expect(judgePython({ version: '3.11.7', packages: {} }).map(({ about }) => about)).toEqual(['verl'])
  })
})
