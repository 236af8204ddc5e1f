import { createHmac, createPublicKey } from 'node:crypto'
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget, sdkTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { type IdentityProvider, startIdentityProvider } from '../support/mcp-identity-provider.ts'
import { idpAShape } from '../support/mcp-idp-a.ts'
import {
  initializeMessage,
  mcpHeaders,
  openSession,
  post,
  type RawAnswer,
  type RawSession,
} from '../support/mcp-raw.ts'
import { jsonAnswer, member, startMockServer } from '../support/mock-server.ts'
import { rawExchange } from '../support/raw-http.ts'

// Hostile input.

const call = (id: unknown, name: string, args = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })

const textOf = ({ messages }: RawAnswer) => member(messages.at(-1), 'result', 'content', 0, 'text')
const codeOf = ({ messages }: RawAnswer) => member(messages.at(-1), 'error', 'code')

describe('JSON-RPC ids', () => {
  it('of different clients never meet, however much they are alike', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({ mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] } })
    const sessions = await Promise.all(Array.from({ length: 8 }, () => openSession(gateway.mcpUrl)))
    const answers = await Promise.all(
      sessions.flatMap((session, index) =>
        [1, '1', 'a "quoted" id', 0].map((id) => session.send(call(id, `tool-${index}-${typeof id}`))),
      ),
    )
    const expected = sessions.flatMap((_, index) =>
      ['number', 'string', 'string', 'number'].map((type) => `tool-${index}-${type}`),
    )
    expect(answers.map(textOf)).toEqual(expected)
  })

  it('may be equal in one session while both are under way', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('a'), programTarget('b')] } })
    const session = await openSession(gateway.mcpUrl)
    const [slow, fast] = await Promise.all([
      session.send(call(7, 'a_slow', { ms: 300 })),
      session.send(call(7, 'b_whoami')),
    ])
    expect([textOf(slow), textOf(fast)]).toEqual(['at last', 'b'])
  })

  it('of a server that asks its client are answered by that client alone', async () => {
    const gateway = await startGateway({ mcp: { targets: [sdkTarget('one'), sdkTarget('two')] } })
    const victim = await openSession(gateway.mcpUrl)
    const attacker = await openSession(gateway.mcpUrl)
    const reader = await openCall(
      gateway.mcpUrl,
      victim.headers,
      call(1, 'one_test_sampling', { prompt: 'p' }),
    )
    const asked = await reader.next()
    const forged = { jsonrpc: '2.0', id: member(asked, 'id'), result: sampled('forged') }
    await attacker.send(JSON.stringify(forged))
    // An id that the victim's own other target might wait for.
    await victim.send(JSON.stringify({ ...forged, id: `two-${String(member(asked, 'id'))}` }))
    await victim.send(JSON.stringify({ ...forged, result: sampled('genuine') }))
    const answer = await reader.next()
    expect(member(answer, 'result', 'content', 0, 'text')).toBe('LLM response: genuine')
  })

  it('of requests to two targets at once are kept apart', async () => {
    const gateway = await startGateway({ mcp: { targets: [sdkTarget('one'), sdkTarget('two')] } })
    const client = await connectClient('SDK 2', gateway.mcpUrl)
    const answers = await Promise.all(
      ['one', 'two', 'one', 'two'].map((target) =>
        client.call(`${target}_test_elicitation`, { message: target }),
      ),
    )
    expect(answers.every((answer) => answer.includes('action=accept'))).toBe(true)
  })
})

describe('bodies', () => {
  let url = ''
  let session: RawSession
  beforeAll(async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('files')] } }, { lifetime: 'file' })
    url = gateway.mcpUrl
    session = await openSession(url)
  })

  const deep = (depth: number) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"args","arguments":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}}`

  it.each([
    ['a batch', `[${call(1, 'whoami')},${call(2, 'whoami')}]`, 400],
    ['an empty batch', '[]', 400],
    ['no JSON', 'hello', 400],
    ['nothing', '', 400],
    ['a string', '"tools/call"', 400],
    ['half a message', call(1, 'whoami').slice(0, -3), 400],
    ['two messages', call(1, 'whoami') + call(2, 'whoami'), 400],
    ['nesting of 100,000 levels', deep(100_000), 400],
    ['another version', call(1, 'whoami').replace('2.0', '1.0'), 400],
    ['an id that is null', call(null, 'whoami'), 400],
    ['an id that is an object', call({}, 'whoami'), 400],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":5}', 400],
    ['two methods', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', 400],
    [
      'two names',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","name":"pid"}}',
      400,
    ],
    [
      'an escaped second name',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","n\\u0061me":"pid"}}',
      400,
    ],
    [
      'a name and a Name',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","Name":"pid"}}',
      400,
    ],
    ['Params', '{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"whoami"}}', 400],
    [
      'a message that is a request and a response',
      '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
      400,
    ],
  ])('with %s are refused', async (_, body, status) => {
    const answer = await session.send(body)
    expect([answer.status, answer.text.length < 1000]).toEqual([status, true])
    expect(textOf(await session.send(call(9, 'whoami')))).toBe('files')
  })

  it('pass unchanged with unknown members', async () => {
    const args = `{"big":9007199254740993,"exact":1.10,"__proto__":{"x":1},"text":"\\ud83d\\ude00 \\u0000","deep":${'['.repeat(50)}${']'.repeat(50)}}`
    const body = `{"jsonrpc":"2.0","unknown":[1],"id":1,"method":"tools/call","params":{"name":"args","future":{"a":1},"arguments":${args}}}`
    const text = String(textOf(await session.send(body)))
    expect(JSON.parse(text)).toMatchObject({ text: '😀 \u0000', exact: 1.1 })
  })

  it('of the wrong kind, size or promise are refused before they are read', async () => {
    const gateway = await startGateway({
      mcp: { targets: [programTarget('files')] },
      frontendPolicies: { http: { maxBufferSize: 100_000 } },
    })
    const session = await openSession(gateway.mcpUrl)
    const refused = async (headers: Record<string, string>, body = call(1, 'whoami')) =>
      (await session.send(body, headers)).status
    expect(await refused({ 'content-type': 'text/plain' })).toBe(415)
    expect(await refused({ accept: 'application/json' })).toBe(406)
    expect(await refused({}, call(1, 'whoami', { padding: 'x'.repeat(200_000) }))).toBe(413)
    expect(await refused({ 'mcp-protocol-version': '1999-01-01' })).toBe(400)
    expect(await refused({ 'mcp-protocol-version': 'x'.repeat(5000) })).toBe(400)
  })

  it('have a size limit of their own, which the configuration sets', async () => {
    const config = { mcp: { targets: [programTarget('files')] } }
    const status = async (url: string, bytes: number) => {
      const session = await openSession(url)
      return (await session.send(call(1, 'whoami', { padding: 'x'.repeat(bytes) }))).status
    }
    const usual = await startGateway(config)
    expect(await status(usual.mcpUrl, 4_000_000)).toBe(200)
    expect(await status(usual.mcpUrl, 4 * 1024 * 1024)).toBe(413)
    const set = await startGateway({
      ...config,
      frontendPolicies: { http: { maxMcpMessageSize: 5_000_000 } },
    })
    expect(await status(set.mcpUrl, 4_500_000)).toBe(200)
    expect(await status(set.mcpUrl, 5_000_000)).toBe(413)
  })

  it('that are not UTF-8 are refused without effect', async () => {
    const body = Buffer.from(call(1, 'args', { text: 'X' })).map((byte) => (byte === 0x58 ? 0xff : byte))
    const headers = { ...mcpHeaders, ...session.headers }
    const response = await fetch(url, { method: 'POST', headers, body })
    expect([200, 400]).toContain(response.status)
    expect(textOf(await session.send(call(9, 'whoami')))).toBe('files')
  })
})

describe('names', () => {
  it('lead to their target only in exactly one form', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('a'), programTarget('a-b')] } })
    const session = await openSession(gateway.mcpUrl)
    expect(textOf(await session.send(call(1, 'a_whoami')))).toBe('a')
    expect(textOf(await session.send(call(2, 'a-b_whoami')))).toBe('a-b')
    const tricks = [
      'whoami',
      '_whoami',
      'A_whoami',
      'a_',
      'a',
      '',
      ' a_whoami',
      'b_whoami',
      'a+whoami',
      '__proto___whoami',
      'constructor_whoami',
      'a_a_whoami',
      'a-b_a_whoami',
      'a\u0000_whoami',
      'ａ_whoami',
      `${'a'.repeat(100_000)}_whoami`,
    ]
    for (const name of tricks) {
      const answer = await session.send(call(3, name))
      expect({ name: name.slice(0, 30), code: codeOf(answer) }).toEqual({
        name: name.slice(0, 30),
        code: -32602,
      })
      expect(textOf(answer)).toBe(undefined)
    }
    expect(codeOf(await session.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'))).toBe(
      -32602,
    )
    expect(codeOf(await session.send('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'))).toBe(-32602)
  })

  it('of resources lead to their target only in exactly one form', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('a'), programTarget('b')] } })
    const session = await openSession(gateway.mcpUrl)
    const read = (uri: string) =>
      session.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } }))
    const found = await read('a+mem://a/0')
    expect(member(found.messages[0], 'result', 'contents', 0, 'text')).toBe('a has mem://a/0')
    for (const uri of ['mem://a/0', '+mem://a/0', 'c+mem://a/0', 'A+mem://a/0', 'a', '', 'a_mem://a/0']) {
      expect({ uri, code: codeOf(await read(uri)) }).toEqual({ uri, code: -32602 })
    }
  })
})

describe('session ids', () => {
  it('that are guessed, empty, long or of another kind are unknown', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('files')] } })
    await openSession(gateway.mcpUrl)
    for (const id of [
      'x',
      '00000000-0000-4000-8000-000000000000',
      '__proto__',
      'a'.repeat(10_000),
      '../..',
    ]) {
      const headers = { 'mcp-session-id': id }
      expect((await post(gateway.mcpUrl, call(1, 'whoami'), headers)).status).toBe(404)
    }
    expect((await post(gateway.mcpUrl, call(1, 'whoami'))).status).toBe(400)
  })

  it('that are sealed cannot be changed by a single character, nor sealed by another', async () => {
    const server = await startFaultyServer()
    const targets = [{ name: 'http', mcp: { host: server.url } }]
    const [own, other] = await Promise.all(
      ['11', '22'].map((digits) =>
        startGateway({ mcp: { targets } }, { env: { SESSION_KEY: digits.repeat(32) } }),
      ),
    )
    const url = own?.mcpUrl ?? ''
    const { id } = await openSession(url)
    const answers = new Set<number>()
    for (let index = 0; index < id.length; index += 3) {
      const changed = id.slice(0, index) + (id[index] === 'A' ? 'B' : 'A') + id.slice(index + 1)
      answers.add((await post(url, call(1, 'fine'), { 'mcp-session-id': changed })).status)
    }
    for (const changed of [id.slice(0, -4), `${id}AAAA`, id + id]) {
      answers.add((await post(url, call(1, 'fine'), { 'mcp-session-id': changed })).status)
    }
    expect([...answers]).toEqual([404])
    expect((await post(other?.mcpUrl ?? '', call(1, 'fine'), { 'mcp-session-id': id })).status).toBe(404)
    expect((await post(url, call(1, 'fine'), { 'mcp-session-id': id })).status).toBe(200)
  })

  it('that are sealed go on at another replica, and end there as well', async () => {
    const server = await startFaultyServer()
    const targets = [{ name: 'http', mcp: { host: server.url } }]
    const env = { SESSION_KEY: '33'.repeat(32) }
    const first = await startGateway({ mcp: { targets } }, { env })
    const session = await openSession(first.mcpUrl)
    await first.stop()
    const second = await startGateway({ mcp: { targets } }, { env })
    const headers = { 'mcp-session-id': session.id }
    expect(textOf(await post(second.mcpUrl, call(1, 'fine'), headers))).toBe('fine')
    const ended = await fetch(second.mcpUrl, { method: 'DELETE', headers })
    expect(ended.ok).toBe(true)
    expect((await post(second.mcpUrl, call(1, 'fine'), headers)).status).toBe(404)
  })
})

describe('origins and hosts', () => {
  it('of web pages elsewhere are refused on a loopback listener', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [programTarget('files')],
        policies: { cors: { allowOrigins: ['https://app.example.com'], exposeHeaders: ['mcp-session-id'] } },
      },
    })
    const status = async (headers: Record<string, string>) =>
      (await post(gateway.mcpUrl, initializeMessage, headers)).status
    expect(await status({ origin: 'https://evil.example.com' })).toBe(403)
    expect(await status({ origin: 'null' })).toBe(403)
    expect(await status({ origin: 'http://localhost.evil.example.com' })).toBe(403)
    expect(await status({ origin: 'http://localhost:1234' })).toBe(200)
    expect(await status({ origin: 'https://app.example.com' })).toBe(200)
    const rebound = await rawExchange(
      gateway.mcpPort,
      'POST /mcp HTTP/1.1\r\nhost: evil.example.com\r\ncontent-length: 2\r\n\r\n{}',
    )
    expect(rebound).toMatch(/^HTTP\/1\.1 403/)
  })

  it('of an allowed page can read the exposed headers, also of a refusal', async () => {
    const provider = await startIdentityProvider(idpAShape({}))
    const gateway = await startMcpGateway((url) => ({
      targets: [programTarget('files')],
      policies: {
        mcpAuthentication: { issuer: provider.issuer, audiences: [url], provider: { idpA: {} } },
        cors: {
          allowOrigins: ['https://app.example.com'],
          allowHeaders: ['authorization', 'content-type', 'mcp-protocol-version', 'mcp-session-id'],
          exposeHeaders: ['mcp-session-id', 'www-authenticate'],
        },
      },
    }))
    const origin = 'https://app.example.com'
    const preflight = await fetch(gateway.mcpUrl, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    expect(preflight.headers.get('access-control-allow-origin')).toBe(origin)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('mcp-session-id')
    const refused = await post(gateway.mcpUrl, initializeMessage, { origin })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('access-control-allow-origin')).toBe(origin)
    expect(refused.headers.get('access-control-expose-headers')).toContain('www-authenticate')
  })
})

describe('tokens', () => {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const now = () => Math.floor(Date.now() / 1000)

  async function forge(provider: IdentityProvider, url: string): Promise<Record<string, string>> {
    const good = { iss: provider.issuer, aud: url, sub: 'mallory', exp: now() + 300 }
    const jwk = provider.publicKey()
    const kid = jwk.kid ?? ''
    const publicKey = await importJWK({ ...jwk, ext: true }, 'RS256')
    if (publicKey instanceof Uint8Array) throw new Error('not a public key')
    const hmac = (secret: string | Buffer) => {
      const signed = `${base64({ alg: 'HS256', kid, typ: 'JWT' })}.${base64(good)}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    }
    const { privateKey: foreign, publicKey: foreignPublic } = await generateKeyPair('RS256')
    const signForeign = (header: Record<string, unknown>) =>
      new SignJWT(good).setProtectedHeader({ alg: 'RS256', ...header }).sign(foreign)
    const token = await provider.sign(good)
    const [head = '', body = '', signature = ''] = token.split('.')
    return {
      'alg none': `${base64({ alg: 'none', kid })}.${base64(good)}.`,
      'alg None': `${base64({ alg: 'None', kid })}.${base64(good)}.`,
      'alg none with the signature': `${base64({ alg: 'none', kid })}.${body}.${signature}`,
      'HS256 with the public key as PEM': hmac(await exportSPKI(publicKey)),
      'HS256 with the public key as DER': hmac(
        createPublicKey(await exportSPKI(publicKey)).export({ type: 'spki', format: 'der' }),
      ),
      'HS256 with the public key as JWK': hmac(JSON.stringify(jwk)),
      'HS256 with nothing': hmac(''),
      'a foreign key under the kid': await signForeign({ kid }),
      'a foreign key without kid': await signForeign({}),
      'a foreign key it brings itself': await signForeign({ jwk: await exportJWK(foreignPublic) }),
      'a foreign key it links to': await signForeign({ kid, jku: 'http://127.0.0.1:9/keys' }),
      'a kid that is a path': await signForeign({ kid: '../../../../dev/null' }),
      'a kid of the prototype': await signForeign({ kid: '__proto__' }),
      'an extension it demands': await provider.sign(good, { crit: ['test-extension'], 'test-extension': 1 }),
      'changed claims': `${head}.${base64({ ...good, sub: 'admin' })}.${signature}`,
      'another issuer': await provider.sign({ ...good, iss: `${provider.issuer}/` }),
      'another audience': await provider.sign({ ...good, aud: [`${url}x`] }),
      'no audience': await provider.sign({ iss: provider.issuer, sub: 'x' }),
      expired: await provider.sign({ ...good, exp: now() - 70 }),
      'not yet valid': await provider.sign({ ...good, nbf: now() + 120 }),
      'an exp that is text': await provider.sign({ ...good, exp: String(now() + 300) }),
      'an exp that is null': await provider.sign({ ...good, exp: null }),
      'an aud that is an object': await provider.sign({ ...good, aud: { [url]: url } }),
      '7,000 characters': 'x'.repeat(7000),
      'a long token': `${head}.${body}${'A'.repeat(6000)}.${signature}`,
      'two dots': '..',
      'five parts': `${token}.a.b`,
      'padding at its end': `${token}=`,
    }
  }

  it('that are forged in any way are answered as if there were none', async () => {
    const provider = await startIdentityProvider(idpAShape({}))
    const gateway = await startMcpGateway((url) => ({
      targets: [programTarget('files')],
      policies: {
        mcpAuthentication: { issuer: provider.issuer, audiences: [url], provider: { idpA: {} } },
      },
    }))
    const url = gateway.mcpUrl
    const send = (token: string) => post(url, initializeMessage, { authorization: `Bearer ${token}` })
    expect((await send(await provider.sign({ aud: url }))).status).toBe(200)
    const without = await post(url, initializeMessage)
    for (const [name, token] of Object.entries(await forge(provider, url))) {
      const { status, text } = await send(token)
      expect({ name, status, text }).toEqual({ name, status: 401, text: without.text })
    }
    expect([401, 431]).toContain((await send('x'.repeat(100_000))).status)
    expect((await send(await provider.sign({ aud: url }))).status).toBe(200)
  })
})

describe('arguments of OpenAPI tools', () => {
  it('stay where they belong', async () => {
    const api = await startMockServer(jsonAnswer(200, { ok: true }))
    const parameter = (name: string, where: string) => ({
      name,
      in: where,
      required: where === 'path',
      schema: { type: 'string' },
    })
    const inline = {
      openapi: '3.0.3',
      info: { title: 'files', version: '1' },
      paths: {
        '/files/{name}/content': {
          get: {
            operationId: 'read',
            parameters: [parameter('name', 'path'), parameter('q', 'query'), parameter('x-note', 'header')],
            responses: {},
          },
        },
      },
    }
    const gateway = await startGateway({
      mcp: { targets: [{ name: 'api', openapi: { host: api.url, schema: inline } }] },
    })
    const session = await openSession(gateway.mcpUrl)
    const read = async (name: string, q = 'q', note = 'n') =>
      session.send(call(1, 'read', { path: { name }, query: { q }, header: { 'x-note': note } }))

    expect((await read('a.txt')).status).toBe(200)
    expect(api.seen.at(-1)?.path).toBe('/files/a.txt/content?q=q')
    const seen = api.seen.length
    for (const name of [
      '..',
      '.',
      '../../admin',
      'a/../../admin',
      '%2e%2e',
      'a\r\nx-evil: 1',
      'a?b=c',
      'a#b',
      'a b',
      '\\..\\',
    ]) {
      await read(name)
    }
    for (const { path } of api.seen.slice(seen)) {
      expect(path).toMatch(/^\/files\/[^/?#\\ ]+\/content\?q=q$/)
      expect(decodeURIComponent(path.split('/')[2] ?? '')).not.toMatch(/^\.{1,2}$/)
    }
    await read('a.txt', 'x&admin=1#f \r\n')
    expect(api.seen.at(-1)?.path).toMatch(/^\/files\/a\.txt\/content\?q=x%26admin%3D1%23f(%20|\+)%0D%0A$/)
    const before = api.seen.length
    await read('a.txt', 'q', 'n\r\nx-evil: 1')
    expect(api.seen.slice(before).every(({ headers }) => headers['x-evil'] === undefined)).toBe(true)
  })
})

const sampled = (text: string) => ({ role: 'assistant', model: 'm', content: { type: 'text', text } })

/** Sends a call and reads the messages of its answer one by one. */
async function openCall(url: string, headers: Record<string, string>, body: string) {
  const abort = new AbortController()
  endAfter('test', () => abort.abort())
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...mcpHeaders, ...headers },
    body,
    signal: abort.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    async next(): Promise<unknown> {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end >= 0) {
          const data = text.slice(0, end).replace(/^[\s\S]*?data: /, '')
          text = text.slice(end + 2)
          return JSON.parse(data)
        }
        const chunk = await reader?.read()
        if (chunk === undefined || chunk.done) throw new Error(`the stream ended: ${text}`)
        text += chunk.value
      }
    },
  }
}
