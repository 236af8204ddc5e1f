import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxClientHelloBytes, parseClientHello } from './client-hello.ts'

describe('the hello of a real client', () => {
  it('is read with its server name and protocols', async () => {
    const hello = await captureHello({ servername: 'API.Example.COM', ALPNProtocols: ['h2', 'http/1.1'] })
    expect(parseClientHello(hello)).toEqual({
      kind: 'hello',
      serverName: 'api.example.com',
      alpn: ['h2', 'http/1.1'],
    })
  })

  it('is read without either', async () => {
    const hello = await captureHello({})
    expect(parseClientHello(hello)).toEqual({ kind: 'hello', serverName: undefined, alpn: [] })
  })

  it('is read in TLS 1.2, with a long list of protocols', async () => {
    const protocols = Array.from({ length: 200 }, (_, index) => `protocol-${index}`)
    const hello = await captureHello({
      maxVersion: 'TLSv1.2',
      servername: 'old.example.com',
      ALPNProtocols: protocols,
    })
    expect(parseClientHello(hello)).toEqual({ kind: 'hello', serverName: 'old.example.com', alpn: protocols })
  })

  it('is incomplete in every prefix, and unchanged by data behind it', async () => {
    const hello = await captureHello({ servername: 'api.example.com', ALPNProtocols: ['h2'] })
    for (let length = 0; length < hello.length; length++) {
      expect(parseClientHello(hello.subarray(0, length)), `${length} bytes`).toEqual({ kind: 'incomplete' })
    }
    const verdict = parseClientHello(hello)
    expect(parseClientHello(Buffer.concat([hello, Buffer.alloc(20_000, 0xff)]))).toEqual(verdict)
  })

  it('is read in any fragmentation over records', async () => {
    const hello = await captureHello({ servername: 'api.example.com', ALPNProtocols: ['h2'] })
    const message = hello.subarray(5)
    const verdict = parseClientHello(hello)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 40 }), (sizes) => {
        expect(parseClientHello(inRecords(message, sizes))).toEqual(verdict)
      }),
    )
    expect(parseClientHello(inRecords(message, [1]))).toEqual(verdict)
  })
})

describe('a constructed hello', () => {
  it('may contain reserved values (GREASE)', () => {
    const bytes = record(
      hello({
        extensions: [
          extension(0x0a0a, []),
          serverName('a.example'),
          extension(0xfafa, [0]),
          protocols([0x0a, 0x0a], text('h2')),
        ],
        cipherSuites: [0x3a, 0x3a, 0x13, 0x01],
      }),
    )
    expect(parseClientHello(bytes)).toEqual({
      kind: 'hello',
      serverName: 'a.example',
      alpn: ['\u000a\u000a', 'h2'],
    })
  })

  it('may omit all extensions', () => {
    expect(parseClientHello(record(hello({ extensions: undefined })))).toEqual({
      kind: 'hello',
      serverName: undefined,
      alpn: [],
    })
  })

  it.each([
    ['a name that comes twice', [serverName('a.example'), serverName('a.example')]],
    ['protocols that come twice', [protocols(text('h2')), protocols(text('h2'))]],
    [
      'two names in one list',
      [extension(0, vector(2, [...hostName('a.example'), ...hostName('b.example')]))],
    ],
    ['an empty list of names', [extension(0, vector(2, []))]],
    ['an empty extension for names', [extension(0, [])]],
    ['a name of another kind', [extension(0, vector(2, [1, ...vector(2, text('a.example'))]))]],
    ['bytes behind the list of names', [extension(0, [...vector(2, hostName('a.example')), 0])]],
    ['an empty name', [serverName('')]],
    ['a name with a NUL', [serverName('a.example\u0000.b')]],
    ['a name with a slash', [serverName('a/b')]],
    ['a name with a space', [serverName('a b')]],
    ['a name beyond ASCII', [serverName('\u00fcber.example')]],
    ['a name with an empty label', [serverName('a..b')]],
    ['a name with a final dot', [serverName('a.example.')]],
    ['a name with a wildcard', [serverName('*.example')]],
    ['a name with a label of 64', [serverName(`${'a'.repeat(64)}.example`)]],
    ['a name of 254 characters', [serverName(`${'a.'.repeat(126)}aa`)]],
    ['an IPv4 address', [serverName('127.0.0.1')]],
    ['an IPv6 address', [serverName('::1')]],
    ['an empty list of protocols', [protocols()]],
    ['an empty protocol', [protocols([])]],
    ['a protocol cut short', [extension(16, vector(2, [5, ...text('h2')]))]],
    ['an extension cut short', [[0, 0, 0, 9, 1]]],
    ['half an extension header', [[0]]],
  ])('is invalid with %s', (_, extensions) => {
    expect(parseClientHello(record(hello({ extensions })))).toEqual({ kind: 'invalid' })
  })

  it.each([
    ['another record', [23, 3, 1, 0, 5]],
    ['plain HTTP', text('GET / HTTP/1.1\r\n')],
    ['a hello of SSL 2', [0x80, 0x2e, 1, 3, 1]],
    ['another version of the protocol', [22, 2]],
    ['an empty record', [22, 3, 1, 0, 0]],
    ['a record over the limit', [22, 3, 1, 0x40, 1]],
    ['another message', record([2, 0, 0, 1, 0])],
    ['a message over the limit', record([1, 0, 0x40, 0, 0])],
    ['a message that is empty', record([1, 0, 0, 0])],
    ['an odd count of bytes for cipher suites', record(hello({ cipherSuites: [1, 2, 3] }))],
    ['no cipher suites', record(hello({ cipherSuites: [] }))],
    ['no compression methods', record(hello({ compressionMethods: [] }))],
    ['a session id over the limit', record(hello({ sessionId: Array(33).fill(0) }))],
    ['bytes behind the extensions', record(message([...helloBody({}), 0]))],
  ])('is invalid as %s', (_, bytes) => {
    expect(parseClientHello(Uint8Array.from(bytes))).toEqual({ kind: 'invalid' })
  })

  it('is limited in size', () => {
    const endless = inRecords(Uint8Array.from([1, 0, 0x3f, 0, ...Array(0x3f00).fill(0)]), [1])
    expect(parseClientHello(endless.subarray(0, maxClientHelloBytes - 1))).toEqual({ kind: 'incomplete' })
    expect(parseClientHello(endless.subarray(0, maxClientHelloBytes))).toEqual({ kind: 'invalid' })
    expect(parseClientHello(endless)).toEqual({ kind: 'invalid' })
  })
})

describe('any bytes', () => {
  const anyBytes = fc.uint8Array({ maxLength: 600 })

  it('return a result, which more bytes do not change once it is final', () => {
    fc.assert(
      fc.property(fc.oneof(anyBytes, mutatedHello()), (bytes) => {
        const verdict = parseClientHello(bytes)
        for (let length = bytes.length; length >= 0; length -= 7) {
          const earlier = parseClientHello(bytes.subarray(0, length))
          if (earlier.kind !== 'incomplete') expect(earlier).toEqual(verdict)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('return DNS names only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', maxLength: 40 }), (name) => {
        const verdict = parseClientHello(record(hello({ extensions: [serverName(name)] })))
        if (verdict.kind === 'hello') {
          expect(verdict.serverName).toBe(name.toLowerCase())
          expect(verdict.serverName).toMatch(/^[a-z0-9_.-]+$/)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

/** A valid hello with a few bytes changed, so that the parser gets further than with random bytes. */
function mutatedHello(): fc.Arbitrary<Uint8Array> {
  const good = Uint8Array.from(
    record(hello({ extensions: [serverName('api.example.com'), protocols(text('h2'), text('http/1.1'))] })),
  )
  const change = fc.tuple(fc.nat(good.length - 1), fc.nat(255))
  return fc.array(change, { maxLength: 3 }).map((changes) => {
    const bytes = good.slice()
    for (const [at, value] of changes) bytes[at] = value
    return bytes
  })
}

async function captureHello(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const accepted = once(server, 'connection')
  const client = connect({ ...options, host: '127.0.0.1', port: address.port, rejectUnauthorized: false })
  client.on('error', () => {})
  try {
    const [socket] = (await accepted) as [Socket]
    let bytes = Buffer.alloc(0)
    while (parseClientHello(bytes).kind === 'incomplete') {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      bytes = Buffer.concat([bytes, chunk])
    }
    socket.destroy()
    return bytes
  } finally {
    client.destroy()
    server.close()
  }
}

type Hello = {
  sessionId?: number[]
  cipherSuites?: number[]
  compressionMethods?: number[]
  extensions?: number[][] | undefined
}

function hello(parts: Hello): number[] {
  return message(helloBody(parts))
}

function helloBody(parts: Hello): number[] {
  const { sessionId = [], cipherSuites = [0x13, 0x01], compressionMethods = [0] } = parts
  const extensions = 'extensions' in parts ? parts.extensions : []
  return [
    3,
    3,
    ...Array<number>(32).fill(7),
    ...vector(1, sessionId),
    ...vector(2, cipherSuites),
    ...vector(1, compressionMethods),
    ...(extensions === undefined ? [] : vector(2, extensions.flat())),
  ]
}

function message(body: number[]): number[] {
  return [1, 0, body.length >> 8, body.length & 255, ...body]
}

function record(fragment: number[]): Uint8Array {
  return inRecords(Uint8Array.from(fragment), [16_384])
}

/** `message` in records of these sizes; the last one repeats. */
function inRecords(bytes: Uint8Array, sizes: number[]): Uint8Array {
  const parts: number[] = []
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const fragment = bytes.subarray(at, at + (sizes[index] ?? sizes.at(-1) ?? 1))
    parts.push(22, 3, 1, fragment.length >> 8, fragment.length & 255, ...fragment)
    at += fragment.length
  }
  return Uint8Array.from(parts)
}

function extension(type: number, content: number[]): number[] {
  return [type >> 8, type & 255, ...vector(2, content)]
}

function serverName(name: string): number[] {
  return extension(0, vector(2, hostName(name)))
}

function hostName(name: string): number[] {
  return [0, ...vector(2, text(name))]
}

function protocols(...names: number[][]): number[] {
  return extension(
    16,
    vector(
      2,
      names.flatMap((name) => vector(1, name)),
    ),
  )
}

function vector(lengthBytes: 1 | 2, content: number[]): number[] {
  const length = lengthBytes === 1 ? [content.length] : [content.length >> 8, content.length & 255]
  return [...length, ...content]
}

function text(value: string): number[] {
  return [...Buffer.from(value, 'latin1')]
}
