import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { beforeAll, expect, it } from 'vitest'
import { residentMebibytes } from '../../bench/subjects/processes.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { openAiModel } from '../support/llm-config.ts'

// Files of 200 MB in both directions, with a provider that stores none of them.

const fileBytes = 200 * 1024 * 1024
const chunk = Buffer.alloc(64 * 1024, 'content of a large file\n')
const chunks = fileBytes / chunk.length

let gateway: Gateway
/** Headers of the latest upload. */
let received: IncomingMessage['headers'] = {}

beforeAll(async () => {
  const url = await startProvider()
  const rules = [{ deny: '"x-strict" in request.headers && string(request.body).contains("secret")' }]
  const llm = { models: [openAiModel('gpt', url)], policies: { authorization: { rules } } }
  gateway = await startGateway({ llm }, { lifetime: 'file' })
})

async function startProvider(): Promise<string> {
  const server: Server = createServer((request, response) => {
    if (request.url?.includes('refuse')) refuse(response)
    else if (request.method === 'POST') receive(request, response)
    else sendContent(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endAfter('file', () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let bytes = 0
  // A cancelled upload ends without its boundary.
  try {
    for await (const part of request) bytes += part.length
  } catch {
    return
  }
  received = request.headers
  const body = JSON.stringify({ id: 'file-up1', object: 'file', bytes })
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

/** Responds before the file has arrived. */
function refuse(response: ServerResponse): void {
  const error = { message: 'the file is too large', type: 'invalid_request_error' }
  response.writeHead(413, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
}

function sendContent({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.range !== undefined) {
    const range = { 'content-range': `bytes 0-9/${fileBytes}`, 'accept-ranges': 'bytes' }
    response.writeHead(206, { ...range, 'content-type': 'text/plain' }).end(chunk.subarray(0, 10))
    return
  }
  response.writeHead(200, { 'content-length': fileBytes })
  Readable.from(contents()).pipe(response)
}

function* contents(): Generator<Buffer> {
  for (let index = 0; index < chunks; index += 1) yield chunk
}

const head = 'content-disposition: form-data; name='

function* form(): Generator<Buffer> {
  yield Buffer.from(
    `--b1\r\n${head}"purpose"\r\n\r\nuser_data\r\n--b1\r\n${head}"file"; filename="a"\r\n\r\n`,
  )
  yield* contents()
  yield Buffer.from('\r\n--b1--\r\n')
}

/** Runs an exchange. Returns its result and the largest growth of memory during it, in MiB. */
async function withMemory<T>(run: () => Promise<T>): Promise<{ result: T; growth: number }> {
  const before = residentMebibytes(gateway.child)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentMebibytes(gateway.child))
  }, 50)
  try {
    return { result: await run(), growth: Math.max(most, residentMebibytes(gateway.child)) - before }
  } finally {
    clearInterval(timer)
  }
}

async function upload(): Promise<{ status: number; id: string; bytes: number }> {
  const response = await fetch(`${gateway.url}/v1/files`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=b1' },
    body: Readable.toWeb(Readable.from(form())) as ReadableStream,
    duplex: 'half',
  } as RequestInit)
  return { status: response.status, ...((await response.json()) as { id: string; bytes: number }) }
}

it('streams files of 200 MB from and to the provider with little memory', async () => {
  const { result, growth } = await withMemory(upload)
  expect(result).toMatchObject({ status: 200, id: expect.stringMatching(/^file-[\w-]{100,}$/) })
  expect(result.bytes).toBeGreaterThan(fileBytes)
  expect(result.bytes).toBeLessThan(fileBytes + 1000)
  expect(received['transfer-encoding']).toBe('chunked')
  expect(growth).toBeLessThan(120)

  const address = `${gateway.url}/v1/files/${result.id}/content`
  const download = await withMemory(async () => {
    let bytes = 0
    const { body } = await fetch(address)
    if (body !== null) for await (const part of body) bytes += part.length
    return bytes
  })
  expect(download.result).toBe(fileBytes)
  expect(download.growth).toBeLessThan(120)

  const part = await fetch(address, { headers: { range: 'bytes=0-9' } })
  expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([
    206,
    `bytes 0-9/${fileBytes}`,
    chunk.subarray(0, 10).toString(),
  ])
})

it('refuses streamed files if a rule reads the body', async () => {
  const response = await fetch(`${gateway.url}/v1/files`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=b1', 'x-strict': 'yes' },
    body: Buffer.concat([...form()].slice(0, 40).concat(Buffer.from('\r\n--b1--\r\n'))),
  })
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('authorization')])
})

/** Sends parts of a body up to the response. */
function send(path: string, parts: Iterable<Buffer>): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'multipart/form-data; boundary=b1' }
    const outgoing = request(`${gateway.url}${path}`, { method: 'POST', headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode, text }))
    })
    outgoing.on('error', reject)
    Readable.from(parts).pipe(outgoing)
  })
}

it('relays a refusal of the provider during an upload', async () => {
  const parts = [...form()].slice(0, 100)
  const { status, text } = await send('/v1/files?refuse', [...parts, Buffer.from('\r\n--b1--\r\n')])
  expect([status, text]).toEqual([413, expect.stringContaining('the file is too large')])
})

it('refuses a field behind a streamed file, and a cut file', async () => {
  const parts = [...form()].slice(0, 100)
  const field = Buffer.from(`\r\n--b1\r\n${head}"expires_after[seconds]"\r\n\r\n60\r\n--b1--\r\n`)
  const behind = await send('/v1/files', [...parts, field])
  expect([behind.status, behind.text]).toEqual([400, expect.stringContaining('in front of it')])
  const cut = await send('/v1/files', parts)
  expect([cut.status, cut.text]).toEqual([400, expect.stringContaining('must end with its boundary')])
})
