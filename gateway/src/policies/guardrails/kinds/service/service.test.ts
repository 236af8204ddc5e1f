import { describe, expect, it } from 'vitest'
import { jsonReply } from '../../../../../test/fixtures/guardrails.ts'
import { fixtureContext, fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { anywhere } from '../../../../net/egress/egress.ts'
import type { OutgoingRequest } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { compileAzureContentSafety } from '../azure-content-safety/azure-content-safety.ts'
import { parseEndpoint } from './endpoint.ts'
import { findFirst, piecesOf } from './pieces.ts'

describe('parseEndpoint', () => {
  it.each([
    ['api.example.com', { host: 'api.example.com:443', isTls: true, prefix: '' }],
    ['api.example.com:8443', { host: 'api.example.com:8443', isTls: true, prefix: '' }],
    ['https://api.example.com/base/', { host: 'api.example.com:443', isTls: true, prefix: '/base' }],
    ['http://127.0.0.1:9000', { host: '127.0.0.1:9000', isTls: false, prefix: '' }],
    ['https://[::1]:1', { host: '[::1]:1', isTls: true, prefix: '' }],
  ])('reads %s', (text, endpoint) => expect(parseEndpoint(text)).toEqual(endpoint))

  it.each(['', 'a b', 'ftp://a', 'https://user:pw@a', 'https://a?x=1', 'https://a#x', 'unix:/run/s', 'a:0'])(
    'refuses "%s"',
    (text) => expect(parseEndpoint(text)).toBeUndefined(),
  )
})

describe('piecesOf', () => {
  it('covers the text with overlaps and whole characters', () => {
    const text = '🙂a'.repeat(1_000)
    const pieces = piecesOf(text, 1_000)
    expect(pieces.every((piece) => piece.length <= 1_000 && piece.isWellFormed())).toBe(true)
    let covered = 0
    for (const piece of pieces) {
      const start = text.indexOf(piece, Math.max(0, covered - 201))
      expect(start).toBeLessThanOrEqual(covered)
      covered = start + piece.length
    }
    expect(covered).toBe(text.length)
    expect(piecesOf('short', 1_000)).toEqual(['short'])
  })
})

describe('findFirst', () => {
  it('returns the first result and asks no more after it', async () => {
    const asked: number[] = []
    const found = await findFirst([1, 2, 3, 4, 5, 6, 7, 8, 9], async (item) => {
      asked.push(item)
      return item === 2 ? 'two' : undefined
    })
    expect(found).toBe('two')
    expect(asked).toEqual([1, 2, 3, 4])
  })
})

describe('a guard of a cloud without a credential', () => {
  it('sends the identity of the environment to hosts of the cloud only', async () => {
    const environment = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'c', AZURE_CLIENT_SECRET: 's' }
    const sentTo = async (endpoint: string) => {
      const sent: OutgoingRequest[] = []
      const context: CompileContext = {
        ...fixtureContext(),
        environment,
        egress: { of: () => ({ ...anywhere, identityHosts: 'any' }), document: anywhere },
        send: async (request) => {
          sent.push(request)
          const isToken = request.origin.includes('login.microsoftonline.com')
          const body = isToken
            ? { access_token: 'entra-token', expires_in: 3600 }
            : { categoriesAnalysis: [] }
          return jsonReply(body)
        },
      }
      const { check } = compileAzureContentSafety(
        { endpoint, analyzeText: {} },
        { rejection: { status: 403, body: '', headers: {} }, limits: { maxConnections: 1, keepAliveMs: 1 } },
        context,
      )
      const texts = [{ role: 'user', content: 'fine' }]
      await Promise.resolve(check({ texts, exchange: fixtureExchange(), replyHeaders: undefined })).catch(
        () => {},
      )
      return sent.map(({ origin, headers }) => `${origin} ${headers['authorization'] ?? ''}`)
    }
    expect(await sentTo('a.cognitiveservices.azure.com')).toContain(
      'https://a.cognitiveservices.azure.com:443 Bearer entra-token',
    )
    expect((await sentTo('other.test')).filter((line) => line.includes('other.test'))).toEqual([])
    expect(await sentTo('http://a.cognitiveservices.azure.com')).toEqual([])
  })
})
