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

it.each(['tools/call', 'tasks/result', 'tasks/get', 'prompts/get', 'resources/read'])(
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

describe('input of a repeated request', () => {
  const guarded = guardTexts({ request: [masking], response: [] }, systemClock)
  const params = {
    uri: 'secret',
    inputResponses: {
      secret: { action: 'accept', content: { type: 'secret', data: ['secret'] } },
      sampled: { role: 'assistant', content: { type: 'image', data: 'secret', mimeType: 'secret' } },
      text: { role: 'assistant', content: { type: 'text', text: 'a secret' } },
    },
  }

  it.each(['tools/call', 'prompts/get', 'resources/read', 'tasks/update'])(
    'is checked: %s',
    async (method) => {
      const request = { method, target: 't', item: undefined, params: JSON.stringify(params), text: '{}' }
      const verdict = await guarded.onRequest?.(fixtureExchange(), request)
      expect(verdict).toMatchObject({ kind: 'replace' })
      expect(JSON.parse(verdict?.kind === 'replace' ? verdict.text : '{}')).toEqual({
        uri: 'secret',
        inputResponses: {
          secret: { action: 'accept', content: { type: '-', data: ['-'] } },
          sampled: params.inputResponses.sampled,
          text: { role: 'assistant', content: { type: 'text', text: 'a -' } },
        },
      })
    },
  )
})
