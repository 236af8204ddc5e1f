import { isIP } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { fakeUpstream } from '../../../../../test/fixtures/jwt.ts'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { linkMemory } from '../../../../../test/support/linked-peers.ts'
import type { FetchedDocument } from '../../../../identity/jwt/fetch-document.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { Reply, Send } from '../../../../net/http-client/send.ts'
import { createClientDocuments, isDocumentUrl } from './client-documents.ts'
import { compileClientDocumentFetch } from './fetch-client-document.ts'

const url = 'https://client.test/oauth/metadata.json'
const document = {
  client_id: url,
  client_name: 'Chat',
  redirect_uris: ['https://client.test/cb', 'http://localhost/cb'],
}

function setUp(addresses: readonly string[] = ['93.184.216.34'], networks: readonly string[] = []) {
  const context = fixtureContext()
  const upstream = fakeUpstream()
  upstream.answers.set(url, { text: JSON.stringify(document) })
  /** Resolves names to `addresses`, and connects to the first that the egress policy of the call allows. */
  const send: Send = async (request) => {
    const host = new URL(request.origin).hostname.replace(/^\[|\]$/g, '')
    const policy = request.connection?.egress
    const found = (isIP(host) === 0 ? addresses : [host]).find(
      (address) => policy?.refuses({ host, address, port: 443 }) === undefined,
    )
    if (found === undefined) throw new GatewayError('upstream_connect', 'refused')
    connected.push(found)
    return upstream.send(request)
  }
  const connected: string[] = []
  const fetch = compileClientDocumentFetch(networks, { ...context, send })
  const isAllowedRedirect = (uri: string) => !uri.includes('forbidden')
  const documents = createClientDocuments('documents', { fetch, isAllowedRedirect }, context)
  return {
    ...{ context, upstream, connected },
    find: (id: string, address = '192.0.2.1') => documents.find(id, address),
    serve: (value: unknown, status = 200, headers: Record<string, string> = {}) =>
      upstream.answers.set(url, {
        text: typeof value === 'string' ? value : JSON.stringify(value),
        status,
        headers,
      }),
  }
}

describe('the id of a client', () => {
  it.each([url, 'https://client.test/a', 'https://client.test:8443/a?b=c'])('may be %s', (id) => {
    expect(isDocumentUrl(id)).toBe(true)
  })

  it.each([
    ...['http://client.test/a', 'https://client.test', 'https://client.test/', 'https://client.test/a#b'],
    ...[
      'https://user@client.test/a',
      'https://u:p@client.test/a',
      'https://client.test/a/../b',
      'https:client.test/a',
    ],
    ...[
      'https://client.test/a/./b',
      'https://CLIENT.test/a',
      'https://client.test:443/a',
      'https://client.test\\a',
    ],
    ...[
      'https://client.test/a b',
      'https://2130706433/a',
      'https://0x7f.1/a',
      `https://client.test/${'a'.repeat(600)}`,
    ],
    ...[
      'ftp://client.test/a',
      'javascript:alert(1)',
      'https://clïent.test/a',
      'https://client.test/%2e%2e/a',
      '',
    ],
  ])('may not be %s', (id) => {
    expect(isDocumentUrl(id)).toBe(false)
  })
})

describe('a client metadata document', () => {
  it('describes the client', async () => {
    const { find, connected } = setUp()
    expect(await find(url)).toEqual({
      kind: 'client',
      client: { id: url, name: 'Chat', redirectUris: document.redirect_uris, publisher: 'client.test' },
    })
    expect(connected).toEqual(['93.184.216.34'])
  })

  it.each([
    [['127.0.0.1']],
    [['169.254.169.254']],
    [['::1', '::ffff:10.0.0.1']],
    [['fd00:ec2::254', '64:ff9b::a00:1']],
    [[]],
  ])('is not fetched from a name that resolves to %j', async (addresses) => {
    const { find, upstream } = setUp(addresses)
    expect((await find(url)).kind).toBe('unknown')
    expect(upstream.requests).toEqual([])
  })

  it.each([
    'https://127.0.0.1/a',
    'https://169.254.169.254/latest',
    'https://[::1]/a',
    'https://10.0.0.1:8443/a',
  ])('is not fetched from %s', async (id) => {
    const { find, upstream } = setUp()
    expect((await find(id)).kind).toBe('unknown')
    expect(upstream.requests).toEqual([])
  })

  it('is fetched from the allowed address of a name with several addresses', async () => {
    const { find, connected } = setUp(
      ['127.0.0.1', '169.254.169.254', '10.1.2.3'],
      ['10.0.0.0/8', '169.254.0.0/16'],
    )
    expect((await find(url)).kind).toBe('client')
    expect(connected).toEqual(['10.1.2.3'])
  })

  it.each([
    ['of another client', { ...document, client_id: 'https://other.test/a' }],
    ['with a secret', { ...document, client_secret: 's' }],
    ['of a client that authenticates', { ...document, token_endpoint_auth_method: 'private_key_jwt' }],
    ['without redirect_uris', { client_id: url }],
    [
      'with too many',
      { ...document, redirect_uris: Array.from({ length: 21 }, (_, i) => `https://c.test/${i}`) },
    ],
    ['that is not JSON', '<html>'],
    ['that is too large', { ...document, x: 'x'.repeat(11_000) }],
  ])('%s is refused', async (_, value) => {
    const { find, serve } = setUp()
    serve(value)
    expect((await find(url)).kind).toBe('unknown')
  })

  it.each([301, 302, 404, 500])('is not read from a response with status %i', async (status) => {
    const { find, serve } = setUp()
    serve(document, status, { location: 'https://client.test/other' })
    expect((await find(url)).kind).toBe('unknown')
  })

  it('excludes redirect URIs that are unsafe or not allowed', async () => {
    const { find, serve } = setUp()
    const uris = [
      'javascript:alert(1)',
      'http://client.test/cb',
      'https://client.test/forbidden',
      'https://client.test/cb',
      7,
    ]
    serve({ ...document, redirect_uris: uris })
    expect(await find(url)).toMatchObject({ client: { redirectUris: ['https://client.test/cb'] } })
  })

  it('is cached by its headers, between a minute and a day', async () => {
    const { find, serve, upstream, context } = setUp()
    serve(document, 200, { 'cache-control': 'max-age=5' })
    await Promise.all([find(url), find(url)])
    context.clock.advance(59_999)
    await find(url)
    expect(upstream.requests.length).toBe(1)
    context.clock.advance(1)
    await find(url)
    expect(upstream.requests.length).toBe(2)
  })

  it('is fetched again after ten seconds if unusable', async () => {
    const { find, serve, upstream, context } = setUp()
    serve('nothing', 404)
    await find(url)
    await find(url)
    expect(upstream.requests.length).toBe(1)
    serve(document)
    context.clock.advance(10_000)
    expect((await find(url)).kind).toBe('client')
  })

  it('counts for the limits of all data planes', async () => {
    const { clock, log } = fixtureContext()
    const replies: PromiseWithResolvers<FetchedDocument>[] = []
    const fetch = () => {
      const reply = Promise.withResolvers<FetchedDocument>()
      replies.push(reply)
      return reply.promise
    }
    const planes = linkMemory(3).map((memory) =>
      createClientDocuments('documents', { fetch, isAllowedRedirect: () => true }, { clock, log, memory }),
    )
    let started = 0
    const find = (address: string) => {
      started += 1
      return planes[started % 3]?.find(`https://client.test/${started}`, address)
    }
    const waiting = Array.from({ length: 4 }, () => find('192.0.2.1'))
    expect(await find('192.0.2.1')).toEqual({ kind: 'unavailable' })
    for (let network = 1; network <= 28; network += 1) waiting.push(find(`198.51.100.${network}`))
    expect(await find('203.0.113.1')).toEqual({ kind: 'unavailable' })
    for (const { reject } of replies) reject(new Error('refused'))
    await Promise.all(waiting)
    void find('192.0.2.1')
    expect(replies).toHaveLength(33)
  })

  it('is aborted after five seconds, with few concurrent fetches per network', async () => {
    vi.useFakeTimers()
    const { find, upstream } = setUp()
    const hanging = (index: number) => `https://client.test/${index}`
    for (let index = 0; index < 40; index += 1)
      upstream.answers.set(hanging(index), () => new Promise<Reply>(() => {}))
    const waiting = [0, 1, 2, 3].map((index) => find(hanging(index), `2001:db8::${index + 1}`))
    expect(await find(hanging(4), '2001:db8::f')).toEqual({ kind: 'unavailable' })
    expect((await find(url)).kind).toBe('client')
    for (let index = 4; index < 32; index += 1) waiting.push(find(hanging(index), `192.0.2.${index}`))
    expect(await find(hanging(33), '198.51.100.1')).toEqual({ kind: 'unavailable' })
    await vi.advanceTimersByTimeAsync(5_000)
    for (const found of await Promise.all(waiting)) expect(found.kind).toBe('unknown')
    vi.useRealTimers()
  })
})
