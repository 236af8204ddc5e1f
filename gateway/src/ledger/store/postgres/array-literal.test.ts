import { expect, it } from 'vitest'
import { arrayLiteral } from './array-literal.ts'

it('joins the values of a column', () => {
  expect(
    arrayLiteral(
      [
        ['a', 1],
        ['{b},', -2.5],
        [null, null],
      ],
      0,
    ),
  ).toBe('{"a","{b},",null}')
  expect(
    arrayLiteral(
      [
        ['a', 1],
        ['{b},', -2.5],
        [null, null],
      ],
      1,
    ),
  ).toBe('{1,-2.5,null}')
})

it('escapes quotes and backslashes only', () => {
  expect(arrayLiteral([['"'], ['\\n'], ['\n\t\u2028é\u0001'], ['null'], ['']], 0)).toBe(
    '{"\\"","\\\\n","\n\t\u2028é\u0001","null",""}',
  )
})
