import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readScript } from './read-script.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-script-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const read = (text: string, options: { arguments?: string[]; environment?: Record<string, string> } = {}) =>
  readScript(text, { file: '/project/run.sh', arguments: [], environment: {}, directory, ...options })
const keys = (text: string, options?: Parameters<typeof read>[1]) => {
  const script = read(text, options)
  expect(script.problems).toEqual([])
  return script.arguments.map((each) => each.text)
}
const main = 'python3 -m verl.trainer.main_ppo'

describe('a launch script', () => {
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: shell text
  it.each([
    ['variables', `a=1\nb="$a/x"\n${main} k.a=$a k.b="\${b}y"`, ['k.a=1', 'k.b=1/xy']],
    ['a default', `n=\${N:-\${M:-4}}\n${main} k=$n`, ['k=4']],
    ['arithmetic', `p=3\n${main} k=$(( (p + 2) * 4 / 3 ))`, ['k=6']],
    ['a list of files', `f=/d/a.parquet\nf="['$f']"\n${main} k="$f"`, ["k=['/d/a.parquet']"]],
    ['a list of overrides', `A=(\n  k.a=1 # first\n  "k.b=x y"\n)\nA+=(k.c=3)\n${main} "\${A[@]}"`, ['k.a=1', 'k.b=x y', 'k.c=3']],
    ['continued lines', `${main} \\\n  k.a=1 \\\n  k.b=2`, ['k.a=1', 'k.b=2']],
    ['words that an unquoted variable falls into', `o="k.a=1 k.b=2"\n${main} $o`, ['k.a=1', 'k.b=2']],
    ['a condition that holds', `if [ -n "x" ]; then\n  a=1\nelse\n  a=2\nfi\n${main} k=$a`, ['k=1']],
    ['a folder that is not there', `m=/nowhere\nif [ ! -d "$m" ]; then\n  m=Qwen/Qwen3-4B\nfi\n${main} k=$m`, ['k=Qwen/Qwen3-4B']],
    ['its own folder', `here=$(cd "$(dirname "\${BASH_SOURCE[0]}")" && pwd)\n${main} k=$here/x`, ['k=/project/x']],
    ['what goes to a log', `${main} k=1 2>&1 | tee log.txt`, ['k=1']],
    ['variables before the command', `WANDB_MODE=offline ${main} k=1`, ['k=1']],
    ['another interpreter and file', '/opt/python -u /x/main_ppo.py k=1', ['k=1']],
    ['functions, which are not run', `stop() {\n  echo "$1"\n  exit 2\n}\n[ -d / ] || stop "no"\n${main} k=1`, ['k=1']],
    ['what is never used and cannot be known', `id=$(uuidgen)\nport=\${X##*:}\nif [ "$port" = 1 ]; then y=2; fi\n${main} k=1`, ['k=1']],
  ])('is read with %s', (_, text, expected) => expect(keys(text)).toEqual(expected))
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: shell text

  it('takes variables of the environment and arguments of its own', () => {
    expect(keys(`n=\${N:-4}\n${main} k.n=$n "$@"`, { environment: { N: '8' }, arguments: ['k.m=1', 'k.t=x y'] })).toEqual([
      'k.n=8',
      'k.m=1',
      'k.t=x y',
    ])
  })

  it('says which overrides ran together for want of a blank, and reads them apart', () => {
    const script = read(`${main} a.b="x"\\\nc.d="y"\\\ne.f=z`)
    expect(script.arguments.map(({ text }) => text)).toEqual(['a.b=x', 'c.d=y', 'e.f=z'])
    expect(script.notes.join()).toMatch(/a blank is missing .* 2 lines.*a\.b, c\.d, e\.f/)
  })

  it('exports for verl', () => {
    expect(read(`export A=1 B=two\nC=3\nexport C\n${main} k=1`).exports).toEqual({ A: '1', B: 'two', C: '3' })
  })

  it.each([
    [`${main} k=$(nproc)`, /line 1: \$\(nproc\) is only known when it runs/],
    [`x=$(nproc)\n${main} k=$x`, /line 2: \$x: \$\(nproc\) is only known/],
    [`if curl -s x; then\n  a=1\nfi\n${main} k=$a`, /line 4: \$a: "if curl -s x" is only known/],
    [`for i in 1 2; do\n${main} k=$i\ndone`, /line 1: "for"/],
    [`${main} k="a`, /not closed/],
    ['echo nothing', /it starts no trainer/],
    [`${main} k=1\n${main} k=2`, /line 2: a second training command/],
    [`${main} k=\${N:?give N}`, /N is not set: give N/],
  ])('%j is a problem', (text, message) => expect(read(text).problems.join('\n')).toMatch(message))
})
