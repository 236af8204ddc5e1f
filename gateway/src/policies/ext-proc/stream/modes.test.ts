import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bodyModes } from '../wire/messages.ts'
import { type Modes, overrideModes, withDuplexTrailers } from './modes.ts'

const modes: Modes = {
  requestHeaders: true,
  responseHeaders: true,
  requestBody: 'none',
  responseBody: 'streamed',
  requestTrailers: false,
  responseTrailers: false,
}
const unset = { responseHeaders: 0, requestBody: 0, responseBody: 0, requestTrailers: 0, responseTrailers: 0 }

it('an override replaces the body modes, and others that it sets', () => {
  expect(overrideModes(modes, { ...unset, responseHeaders: 2, requestBody: 2 }, 'request')).toEqual({
    ...modes,
    responseHeaders: false,
    requestBody: 'buffered',
    responseBody: 'none',
  })
})

it('an override after the request does not change it', () => {
  const changed = overrideModes(
    modes,
    { ...unset, requestBody: 2, requestTrailers: 1, responseBody: 2 },
    'response',
  )
  expect(changed).toEqual({ ...modes, responseBody: 'buffered' })
})

it('full duplex demands trailers and is not overridden, for any override', () => {
  const number = fc.integer({ min: -1, max: 6 })
  const anyOverride = fc.record({
    responseHeaders: number,
    requestBody: number,
    responseBody: number,
    requestTrailers: number,
    responseTrailers: number,
  })
  const anyMode = fc.constantFrom(...bodyModes)
  fc.assert(
    fc.property(
      anyMode,
      anyMode,
      anyOverride,
      fc.constantFrom('request', 'response'),
      (a, b, override, after) => {
        const from = withDuplexTrailers({ ...modes, requestBody: a, responseBody: b })
        const to = overrideModes(from, override, after)
        for (const body of ['requestBody', 'responseBody'] as const)
          if (from[body] === 'fullDuplexStreamed') expect(to[body]).toBe('fullDuplexStreamed')
        if (to.requestBody === 'fullDuplexStreamed' || to.responseBody === 'fullDuplexStreamed')
          expect([to.requestTrailers, to.responseTrailers]).toEqual([true, true])
      },
    ),
  )
})
