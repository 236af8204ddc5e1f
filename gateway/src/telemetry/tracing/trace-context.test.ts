import { randomFillSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTraceIds, readTraceContext, writeTraceContext } from './trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

describe('traceparent', () => {
  it.each<[string, string | string[], boolean | undefined]>([
    ['a sampled parent', `00-${traceId}-${spanId}-01`, true],
    ['an unsampled parent', `00-${traceId}-${spanId}-00`, false],
    ['further flags', `00-${traceId}-${spanId}-03`, true],
    ['a later version with more fields', `01-${traceId}-${spanId}-01-x`, true],
    ['version 00 with more fields', `00-${traceId}-${spanId}-01-x`, undefined],
    ['version ff', `ff-${traceId}-${spanId}-01`, undefined],
    ['upper case', `00-${traceId.toUpperCase()}-${spanId}-01`, undefined],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${spanId}-01`, undefined],
    ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`, undefined],
    ['two headers', [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-01`], undefined],
    ['text', 'garbage', undefined],
  ])('is read from %s', (_, traceparent, isSampled) => {
    expect(readTraceContext({ traceparent })?.isSampled).toBe(isSampled)
  })

  it('returns what was written, for every context', () => {
    const ids = createTraceIds((bytes) => void randomFillSync(bytes))
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.option(fc.constant('a=1,b=2'), { nil: undefined }),
        (isSampled, traceState) => {
          const context = { traceId: ids.traceId(), spanId: ids.spanId(), isSampled, traceState }
          const headers = {}
          writeTraceContext(headers, context)
          expect(readTraceContext(headers)).toEqual(context)
        },
      ),
    )
  })

  it('reads no value that is not a traceparent', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readTraceContext({ traceparent: text })).toBeUndefined()
      }),
    )
  })
})

describe('tracestate', () => {
  it.each<[string, string | string[], string | undefined]>([
    ['members', 'a=1,b=2', 'a=1,b=2'],
    ['several headers', ['a=1', 'b=2'], 'a=1,b=2'],
    ['more than 512 characters', `a=${'x'.repeat(512)}`, undefined],
    ['more than 32 members', Array.from({ length: 33 }, (_, index) => `a${index}=1`).join(','), undefined],
    ['a member without a value', 'a', undefined],
    ['control characters', 'a=1\u0001', undefined],
  ])('is read from %s', (_, tracestate, expected) => {
    const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate }
    expect(readTraceContext(headers)?.traceState).toBe(expected)
  })
})

it('ids are unique over refills of the pool', () => {
  const ids = createTraceIds((bytes) => void randomFillSync(bytes))
  expect(new Set(Array.from({ length: 1_000 }, ids.traceId)).size).toBe(1_000)
})
