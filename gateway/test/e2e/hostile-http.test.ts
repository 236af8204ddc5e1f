import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, chat, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'
import { rawConnect, rawExchange, statusesOf } from '../support/raw-http.ts'

let gateway: Gateway
let openai: MockOpenAi
let cutOff: Promise<string>

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  const config = llmConfig({ openai })
  gateway = await startGateway(
    { ...config, frontendPolicies: { http: { maxBufferSize: 100_000 } } },
    { lifetime: 'file' },
  )
  // Its time limit passes while the other tests run.
  cutOff = dripHead()
  cutOff.catch(() => undefined)
})

/**
 * Sends an endless request head line by line; returns the response after the gateway closes the connection.
 */
async function dripHead(): Promise<string> {
  const connection = await rawConnect(gateway.port, 'file')
  connection.send(`POST /v1/chat/completions HTTP/1.1\r\n${head}`)
  const drip = setInterval(() => connection.send('x-drip: 1\r\n'), 1000)
  return await connection.closed(60_000).finally(() => clearInterval(drip))
}

beforeEach(() => {
  openai.seen.length = 0
})

function post(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...jsonHeaders, ...headers },
    body,
  })
}

async function refusal(response: Response): Promise<{ status: number; code: unknown; message: unknown }> {
  const body: unknown = await response.json()
  return {
    status: response.status,
    code: member(body, 'error', 'code'),
    message: member(body, 'error', 'message'),
  }
}

const good = JSON.stringify({ model: 'gpt-test', messages: [{ role: 'user', content: 'hello' }] })

describe('bodies', () => {
  it.each([
    ['nothing', ''],
    ['half an object', '{"model": "gpt-test", "messages": ['],
    ['two objects', `${good}${good}`],
    ['an array', '[]'],
    ['a string', '"gpt-test"'],
    ['null', 'null'],
    ['a number', '12'],
    ['a trailing comma', '{"model": "gpt-test",}'],
    ['a comment', '{"model": "gpt-test" /* x */}'],
    ['NaN', '{"model": "gpt-test", "temperature": NaN}'],
    ['a control character in a string', '{"model": "gpt-test\u0001"}'],
  ])('that are %s are 400 in JSON and never forwarded', async (_, body) => {
    const { status, message } = await refusal(await post(body))
    expect(status).toBe(400)
    expect(message).toEqual(expect.any(String))
    expect(openai.seen).toHaveLength(0)
  })

  it('that are no UTF-8 are 400', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"model":"gpt-test","x":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}'),
    ])
    expect((await post(new Uint8Array(bytes))).status).toBe(400)
    expect(openai.seen).toHaveLength(0)
  })

  it.each([
    ['at the top', '{"model":"echo","model":"gpt-test","messages":[]}'],
    ['in another spelling', '{"model":"echo","mod\\u0065l":"gpt-test","messages":[]}'],
    ['deep inside', '{"model":"gpt-test","messages":[{"role":"user","content":"a","content":"b"}]}'],
  ])('with duplicate keys %s are 400', async (_, body) => {
    const { status, message } = await refusal(await post(body))
    expect(status).toBe(400)
    expect(String(message)).toMatch(/duplicate/)
    expect(openai.seen).toHaveLength(0)
  })

  it('with __proto__ and constructor as keys pass through unchanged', async () => {
    const body =
      '{"model":"gpt-test","messages":[],"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}}}'
    expect((await post(body)).status).toBe(200)
    expect(openai.seen[0]?.text).toContain('"__proto__":{"polluted":1}')
    expect((await post(good)).status).toBe(200)
    expect(openai.seen[1]?.text).not.toContain('polluted')
  })

  it('keep integers above 2^53, key order and spacing on the way through', async () => {
    const body = '{ "seed": 12345678901234567890,\n "model":"gpt-test", "messages":[] , "b":1.0, "a":1e2}'
    expect((await post(body)).status).toBe(200)
    expect(openai.seen[0]?.text).toBe(body)
  })

  it('nested too deeply are refused without harm', async () => {
    const deep = `{"model":"gpt-test","messages":${'['.repeat(40_000)}${']'.repeat(40_000)}}`
    expect((await post(deep)).status).toBe(400)
    expect((await post(good)).status).toBe(200)
  })

  it.each([
    ['text/plain'],
    ['application/x-www-form-urlencoded'],
    ['multipart/form-data; boundary=x'],
    ['application/jsonx'],
  ])('of content type %s are 415', async (type) => {
    expect((await post(good, { 'content-type': type })).status).toBe(415)
    expect(openai.seen).toHaveLength(0)
  })

  it.each([['application/json; charset=utf-8'], ['APPLICATION/JSON']])(
    'of content type %s are read',
    async (type) => {
      expect((await post(good, { 'content-type': type })).status).toBe(200)
    },
  )

  it('over the limit are 413 in JSON, by announced and by actual length', async () => {
    const big = JSON.stringify({
      model: 'gpt-test',
      messages: [{ role: 'user', content: 'x'.repeat(100_000) }],
    })
    expect(await refusal(await post(big))).toMatchObject({ status: 413, code: 'request_body_too_large' })
    const chunked = await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${aliceKey}\r\n` +
        `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n` +
        `${big.length.toString(16)}\r\n${big}\r\n0\r\n\r\n`,
    )
    expect(statusesOf(chunked)[0]).toBe(413)
    expect(openai.seen).toHaveLength(0)
  })

  it('below the limit pass', async () => {
    const body = JSON.stringify({
      model: 'gpt-test',
      messages: [{ role: 'user', content: 'x'.repeat(99_000) }],
    })
    expect((await post(body)).status).toBe(200)
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as [string, (text: string) => Buffer][])(
    'compressed with %s are read, and forwarded plain',
    async (coding, compress) => {
      const response = await post(new Uint8Array(compress(good)), { 'content-encoding': coding })
      expect(response.status).toBe(200)
      expect(openai.seen[0]?.text).toBe(good)
      expect(openai.seen[0]?.headers['content-encoding']).toBeUndefined()
    },
  )

  it('that decompress beyond the limit are 413', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20))
    expect((await post(new Uint8Array(bomb), { 'content-encoding': 'gzip' })).status).toBe(413)
  })

  it('in an unknown or broken encoding are refused', async () => {
    expect((await post(good, { 'content-encoding': 'lzma' })).status).toBe(415)
    expect((await post(good, { 'content-encoding': 'gzip' })).status).toBe(400)
    expect(
      (await post(new Uint8Array(gzipSync(good).subarray(0, 40)), { 'content-encoding': 'gzip' })).status,
    ).toBe(400)
    expect(openai.seen).toHaveLength(0)
  })
})

const head = `host: x\r\nauthorization: Bearer ${aliceKey}\r\ncontent-type: application/json\r\n`
const smuggled = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${aliceKey}\r\n\r\n`

/** Each has ambiguous framing; a second response would mean that its bytes were parsed as a request. */
const smuggling: [string, string][] = [
  [
    'both length headers',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: ${good.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'two different lengths',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: 0\r\ncontent-length: ${good.length}\r\n\r\n${good}`,
  ],
  [
    'two lengths in one header',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: 0, ${good.length}\r\n\r\n${good}`,
  ],
  ['a negative length', `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: -1\r\n\r\n${good}`],
  ['a length with a sign', `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: +5\r\n\r\n${good}`],
  [
    'a hexadecimal length',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: 0x10\r\n\r\n${good}`,
  ],
  [
    'an unknown transfer encoding',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'chunked not last',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'a chunk size that is no number',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\nzz\r\n${good}\r\n0\r\n\r\n`,
  ],
  [
    'a chunk size that overflows',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n${good}\r\n0\r\n\r\n`,
  ],
  [
    'a chunk longer than its size',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n2\r\n${good}\r\n0\r\n\r\n`,
  ],
  [
    'a space before the colon',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length : ${good.length}\r\n\r\n${good}`,
  ],
  [
    'a folded header line',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'a bare line feed inside the head',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}x: y\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    'a zero byte in a header',
    `POST /v1/chat/completions HTTP/1.1\r\n${head}x: a\0b\r\ncontent-length: 0\r\n\r\n`,
  ],
  ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(200, 'z')],
  ['an unknown version', `POST /v1/chat/completions HTTP/9.9\r\n${head}content-length: 0\r\n\r\n`],
]

describe('requests that are unclear about their own length', () => {
  it.each(smuggling)('with %s are refused and the connection ends', async (_, request) => {
    const connection = await rawConnect(gateway.port)
    connection.send(request)
    const received = await connection.closed(8000)
    const statuses = statusesOf(received)
    expect(statuses.length).toBeLessThanOrEqual(1)
    for (const status of statuses) expect([400, 501, 505]).toContain(status)
    expect(openai.seen).toHaveLength(0)
    expect((await post(good)).status).toBe(200)
  })

  it('does not take the body of a refused request for the next request', async () => {
    const body = smuggled
    const received = await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer wrong\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    expect(statusesOf(received)).toEqual([401])
  })
})

describe('request targets', () => {
  it.each([['http://169.254.169.254/v1/chat/completions'], ['http://example.com/v1/chat/completions']])(
    'in absolute form (%s) are no way to reach another host',
    async (target) => {
      const received = await rawExchange(
        gateway.port,
        `POST ${target} HTTP/1.1\r\n${head}content-length: ${good.length}\r\n\r\n${good}`,
      )
      // Either refused, or served by the configured provider: never by the host the client named.
      for (const status of statusesOf(received)) expect([200, 400, 404]).toContain(status)
      for (const seen of openai.seen) expect(seen.headers.host).toBe(`127.0.0.1:${openai.port}`)
    },
  )

  it.each([
    ['CONNECT example.com:443'],
    ['OPTIONS *'],
    ['POST /v1/../../etc/passwd'],
    ['POST /v1/chat/completions%00'],
    ['POST /%2e%2e/%2e%2e/v1/chat/completions%2f..%2f..%2fadmin'],
    ['POST //evil.example/v1/models/../files'],
    ['TRACE /v1/chat/completions'],
  ])('such as %s do no harm', async (line) => {
    const received = await rawExchange(
      gateway.port,
      `${line} HTTP/1.1\r\n${head}content-length: ${good.length}\r\n\r\n${good}`,
    )
    for (const status of statusesOf(received)) expect(status).toBeGreaterThanOrEqual(400)
    expect(openai.seen).toHaveLength(0)
    expect((await post(good)).status).toBe(200)
  })

  it.each([['GET'], ['PUT'], ['DELETE'], ['PATCH']])(
    'refuses the method %s on an LLM call',
    async (method) => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, { method, headers: jsonHeaders })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toMatch(/POST/)
    },
  )
})

describe('floods', () => {
  it('of headers are 431', async () => {
    const many = Array.from({ length: 5000 }, (_, index) => `x-flood-${index}: ${'v'.repeat(20)}\r\n`).join(
      '',
    )
    const received = await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\n${head}${many}\r\n`,
    )
    expect(statusesOf(received)).toEqual([431])
    const long = await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\n${head}x: ${'v'.repeat(200_000)}\r\n\r\n`,
    )
    expect(statusesOf(long)).toEqual([431])
  })

  it('of path segments and queries do not slow others down', async () => {
    const path = `/${'../a/'.repeat(2000)}v1/chat/completions`
    const started = Date.now()
    const response = await chat(gateway, {}, { path })
    expect(Date.now() - started).toBeLessThan(10_000)
    expect([200, 400, 404, 414, 431]).toContain(response.status)
  })

  it('of idle connections do not block other clients', async () => {
    const idle = await Promise.all(Array.from({ length: 300 }, () => rawConnect(gateway.port)))
    for (const connection of idle) connection.send('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n')
    expect((await post(good)).status).toBe(200)
  })
})

describe('a slow client', () => {
  it('that sends its body byte by byte is served', async () => {
    const connection = await rawConnect(gateway.port)
    connection.send(`POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: ${good.length}\r\n\r\n`)
    for (const byte of good) {
      connection.send(byte)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    expect(await connection.receives('chatcmpl-mock1')).toMatch(/^HTTP\/1\.1 200/)
  })

  it('that leaves in the middle of its body is not forwarded', async () => {
    const connection = await rawConnect(gateway.port)
    connection.send(`POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: 5000\r\n\r\n${good}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
    connection.socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(openai.seen).toHaveLength(0)
    expect((await post(good)).status).toBe(200)
  })

  it('with Expect: 100-continue receives 100 before it sends the body', async () => {
    const connection = await rawConnect(gateway.port)
    connection.send(
      `POST /v1/chat/completions HTTP/1.1\r\n${head}expect: 100-continue\r\ncontent-length: ${good.length}\r\n\r\n`,
    )
    await connection.receives('100 Continue')
    connection.send(good)
    expect(await connection.receives('chatcmpl-mock1')).toContain('HTTP/1.1 200')
    expect(openai.seen[0]?.headers['expect']).toBeUndefined()
  })

  it('that asks to continue without a valid key is refused before it sends the body', async () => {
    const connection = await rawConnect(gateway.port)
    connection.send(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 50000\r\n\r\n',
    )
    const received = await connection.receives('HTTP/1.1 401')
    expect(received).not.toContain('100 Continue')
  })

  it('may send several requests at once and gets the answers in order', async () => {
    const connection = await rawConnect(gateway.port)
    const one = `POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: ${good.length}\r\n\r\n${good}`
    connection.send(one + smuggled + one)
    const received = await connection.receives('"object":"list"')
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(received.indexOf('chatcmpl-mock1')).toBeLessThan(received.indexOf('"object":"list"'))
    expect(openai.seen).toHaveLength(2)
  })
})

describe('headers of the client', () => {
  it('that describe its own connection or identity are not forwarded', async () => {
    await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\n${head}connection: keep-alive, x-private\r\nx-private: 1\r\n` +
        'te: trailers\r\nkeep-alive: timeout=5\r\nproxy-authorization: Basic eDp5\r\ncookie: session=1\r\n' +
        `x-forwarded-for: 1.2.3.4\r\norigin: http://evil.example\r\ncontent-length: ${good.length}\r\n\r\n${good}`,
    )
    const headers = openai.seen[0]?.headers ?? {}
    for (const name of [
      'x-private',
      'te',
      'keep-alive',
      'proxy-authorization',
      'cookie',
      'x-forwarded-for',
      'origin',
    ]) {
      expect([name, headers[name]]).toEqual([name, undefined])
    }
  })

  it('sent twice do not confuse authentication', async () => {
    const received = await rawExchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer wrong\r\nauthorization: Bearer ${aliceKey}\r\n` +
        `content-type: application/json\r\ncontent-length: ${good.length}\r\n\r\n${good}`,
    )
    expect(statusesOf(received)).not.toContain(200)
    expect(openai.seen).toHaveLength(0)
  })
})

it('a client that never finishes its head is cut off', async () => {
  expect(statusesOf(await cutOff)).toEqual([408])
}, 60_000)
