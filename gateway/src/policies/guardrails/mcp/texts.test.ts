import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { systemClock } from '../../../lib/clock.ts'
import type { Guard } from '../guard.ts'
import { guardTexts } from './texts.ts'

const masking: Guard = {
  ...{ name: 'masking', audit: false, failOpen: false, allowsUnknown: true, scopes: undefined },
  meter: { checked() {} },
  check: ({ texts }) => ({
    kind: 'modify',
    contents: texts.map(({ content }) => content.replaceAll('secret', '-')),
  }),
}

const checked = guardTexts({ request: [], response: [masking] }, systemClock)

it.each(['tools/call', 'tasks/result', 'prompts/get', 'resources/read'])(
  'results of %s are checked',
  (method) => {
    expect(checked.checksResult?.(method)).toBe(true)
  },
)

describe('errors', () => {
  const request = { method: 'tools/call', target: 't', item: undefined, params: undefined, text: '{}' }
  const verdictOf = (error: string) => checked.onError?.(fixtureExchange(), request, error)

  it('have texts in their message and data', async () => {
    const error = '{"code":-32603.0, "message":"a secret","data":{"type":["secret",1e400]}}'
    expect(await verdictOf(error)).toEqual({ kind: 'replace', text: error.replaceAll('secret', '-') })
  })

  it('that are unreadable are refused', async () => {
    expect(await verdictOf('"secret"')).toMatchObject({ kind: 'refuse', status: 503 })
    expect(await verdictOf('{"message":"a","message":"b"}')).toMatchObject({ kind: 'refuse' })
  })

  it('that are null have no texts', () => {
    expect(verdictOf('null')).toBeUndefined()
  })
})
