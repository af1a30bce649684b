import { expect, test } from 'vitest'
import { compileTemplate } from './chat-template.ts'

test.each([
  '{{ 1 < 2 < 3 }}',
  '{{ 1 == 1 in [1] }}',
  '{% if a == b != c %}{% endif %}',
  '{{ [1 < 2 < 3] }}',
  '{{ a == b not in c }}',
  '{% for x in a if x < 2 < 3 %}{% endfor %}',
])('a chain of comparisons is refused: %s', (source) => {
  expect(() => compileTemplate(source, {})).toThrow('a chain of comparisons is not supported')
})

test.each([
  '{{ (1 == 1) != (2 == 2) }}',
  '{{ 1 < 2 and 2 < 3 or 3 < 4 }}',
  '{% for x in [1] if x in [1] %}{% endfor %}',
  '{% for x in [1] %}{% if x not in [2] and x in [1] %}{% endif %}{% endfor %}',
  '{{ [1 < 2, 2 < 3] }}{{ {1: 1 < 2, 2: 2 < 3} }}',
  '{{ 1 if 1 < 2 else 2 < 3 }}{{ not 1 < 2 }}',
  '{% set x = 1 < 2 %}{{ dict(a=1 < 2, b=2 < 3) }}',
  '{{ not 1 in [1] }}',
])('comparisons that are none are read: %s', (source) => {
  expect(() => compileTemplate(source, {})).not.toThrow()
})
