import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  call,
  type FixtureCall,
  type FixtureGateway,
  type FixtureProvider,
  fixtureGateway,
  jsonReply,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { type BodySource, isSource, readAll } from '../../../net/http/body.ts'
import type { OutgoingRequest } from '../../../net/http-client/send.ts'
import { readForm, writeFrame } from '../request/form/form.ts'
import { scanFormStart } from '../request/form/scan.ts'
import { streamFile } from './file-stream.ts'

const head = 'Content-Disposition: form-data; name='
const field = (name: string, value: string) => `--b1\r\n${head}"${name}"\r\n\r\n${value}\r\n`
const file = (content: Uint8Array | string, name = 'file') =>
  Buffer.concat([
    Buffer.from(`--b1\r\n${head}"${name}"; filename="a.bin"\r\nContent-Type: text/plain\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])

/** The form in chunks of some size. */
function sourceOf(parts: readonly (string | Uint8Array)[], chunkBytes = 60_000, end = '--b1--\r\n') {
  const bytes = Buffer.concat([...parts, end].map((part) => Buffer.from(part)))
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
  const { body } = streamReply(chunks)
  if (!isSource(body)) throw new Error('no source')
  return { source: body, length: bytes.length }
}

describe('the file of a form', () => {
  it('arrives as sent, with the announced length, whatever its content and the size of chunks', async () => {
    const noise = fc.array(
      fc.constantFrom('\r\n--b1', '\r\n--b', '\r', '\n', '--b1--', 'x', '\r\n', '\r\n--tollgate-'),
      { maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(noise, fc.integer({ min: 1, max: 40 }), fc.boolean(), async (pieces, size, hasEnd) => {
        const content = pieces.join('').replaceAll('\r\n--b1', '\r\n--b2')
        const { source, length } = sourceOf(
          [field('a', 'b'), file(content)],
          size,
          hasEnd ? '--b1--\r\n' : '--b1--',
        )
        const started = scanFormStart(
          Buffer.concat([Buffer.from(field('a', 'b')), file('').subarray(0, -2)]),
          'b1',
        )
        const { contentType, ...frame } = writeFrame(
          { a: 'b' },
          { name: 'file', filename: 'a.bin', contentType: 'text/plain' },
        )
        const form = { source, contentAt: started?.contentAt ?? 0, boundary: 'b1', length }
        const stream = streamFile(form, frame)
        const sent = await readAll(stream.body, 1_000_000, 'internal')
        expect(sent.length).toBe(stream.length)
        const read = readForm(sent, contentType.split('=')[1] ?? '')
        if (read.kind !== 'form') throw new Error(read.message)
        expect(read.form.fields.value).toEqual({ a: 'b' })
        expect(read.form.files.map((one) => one.content.toString())).toEqual([content])
      }),
    )
  })
})

const large = Buffer.alloc(3_000_000, 'a line of text\n')
const purpose = field('purpose', 'user_data')

const stored = jsonReply({ id: 'file-up1', object: 'file' })

function gatewayOf(provider: FixtureProvider = () => stored): FixtureGateway {
  const params = { apiKey: 'k', baseUrl: 'https://one.test/v1' }
  return fixtureGateway({ models: [{ name: 'gpt', provider: 'openai', params }] }, provider)
}

function upload(source: BodySource, headers = {}): FixtureCall {
  return {
    path: '/v1/files',
    headers: { 'content-type': 'multipart/form-data; boundary=b1', ...headers },
    source,
  }
}

const bodyOf = ({ body }: OutgoingRequest) =>
  readAll(typeof body === 'string' ? Buffer.from(body) : body, 10_000_000, 'internal')

describe('an upload above 1 MiB', () => {
  it('is streamed if its fields precede the file', async () => {
    const gateway = gatewayOf()
    const { source, length } = sourceOf([purpose, field('expires_after[seconds]', '60'), file(large)])
    const { status, text, exchange } = await call(gateway, upload(source, { 'content-length': `${length}` }))
    expect([status, JSON.parse(text).id]).toEqual([200, expect.stringMatching(/^file-[\w-]{100,}$/)])
    expect(exchange.facts.llmRequest).toMatchObject({ purpose: 'user_data' })
    const [sent] = gateway.sent
    if (sent === undefined) throw new Error('nothing was sent')
    expect(isSource(typeof sent.body === 'string' ? undefined : sent.body)).toBe(true)
  })

  it('has the fields and the content of the client', async () => {
    const received: Buffer[] = []
    const gateway = gatewayOf(async (request) => {
      received.push(await bodyOf(request))
      return stored
    })
    const { source, length } = sourceOf([purpose, file(large)])
    await call(gateway, upload(source, { 'content-length': `${length}` }))
    const headers = gateway.sent[0]?.headers ?? {}
    const [body = Buffer.alloc(0)] = received
    expect(headers['content-length']).toBe(String(body.length))
    const read = readForm(body, String(headers['content-type']).split('=')[1] ?? '')
    if (read.kind !== 'form') throw new Error(read.message)
    expect(read.form.fields.value).toEqual({ purpose: 'user_data' })
    expect(read.form.files[0]?.content.equals(large)).toBe(true)
    const chunked = await call(gateway, upload(sourceOf([purpose, file(large)]).source))
    expect([chunked.status, gateway.sent[1]?.headers['content-length']]).toEqual([200, undefined])
    const behind = await call(
      gateway,
      upload(sourceOf([purpose, file(large), field('a', 'b'.repeat(200))]).source),
    )
    expect([behind.status, behind.text]).toEqual([400, expect.stringContaining('in front of it')])
    const cut = await call(gateway, upload(sourceOf([purpose, file(large)], 60_000, '').source))
    expect([cut.status, cut.text]).toEqual([400, expect.stringContaining('must end with its')])
  })

  it.each([
    ['its purpose is behind the file', [file(large), purpose]],
    ['it contains requests', [field('purpose', 'batch'), file(large)]],
    ['its form has another file', [purpose, file('x', 'other'), file(large)]],
  ])('is limited by the size of buffers if %s', async (_, parts) => {
    const gateway = gatewayOf()
    const { status, text } = await call(gateway, upload(sourceOf(parts).source))
    expect([status, text]).toEqual([413, expect.stringContaining('precede the file')])
    expect(gateway.sent).toHaveLength(0)
  })

  it('is discarded if it is refused', async () => {
    const gateway = gatewayOf()
    const { source } = sourceOf([purpose, file(large)])
    let cancelled = 0
    const watched = {
      ...source,
      cancel() {
        cancelled += 1
        source.cancel()
      },
    }
    const refused = await call(gateway, { ...upload(watched), mayUseModel: () => false })
    expect([refused.status, gateway.sent.length]).toEqual([403, 0])
    expect(cancelled).toBeGreaterThan(0)
  })
})
