import { expect, it } from 'vitest'
import { textLines } from './text-lines.ts'

it('text lines have time, level, message and fields, with quotes where needed', () => {
  const line = {
    ...{ level: 'info', time: '2026-01-01T00:00:00.000Z', msg: 'request' },
    ...{ path: '/a', agent: 'a b\n', status: 200, guards: [{ guard: 'x' }], none: null },
  }
  expect(textLines(`${JSON.stringify(line)}\nnot JSON\n`)).toBe(
    '2026-01-01T00:00:00.000Z INFO request path=/a agent="a b\\n" status=200 guards=[{"guard":"x"}] none=null\nnot JSON\n',
  )
})
