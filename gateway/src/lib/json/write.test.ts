import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { JsonValue } from './json.ts'
import { writeJsonSteps } from './write.ts'

function written(value: Parameters<typeof writeJsonSteps>[0]): string {
  const steps = writeJsonSteps(value)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value.toString()
  }
}

const { value: anyJson } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1.5, 1e21, '"\\é漢😀\n'.repeat(20_000), `x${'😀'.repeat(70_000)}`),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.string(), tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
}))

it('equals JSON.stringify', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      if (written(value) !== JSON.stringify(value)) throw new Error('differs')
    }),
    { numRuns: 60 },
  )
})

it('preserves raw numbers, and omits undefined members', () => {
  const value = { a: JSON.rawJSON('12345678901234567890'), b: undefined }
  expect(written(value)).toBe('{"a":12345678901234567890}')
})

it('takes steps of about 64 KiB', () => {
  let count = 0
  const steps = writeJsonSteps({ a: 'x'.repeat(640_000), b: Array.from({ length: 50_000 }, () => 'words ') })
  while (!steps.next().done) count += 1
  expect(count).toBeGreaterThan(20)
})
